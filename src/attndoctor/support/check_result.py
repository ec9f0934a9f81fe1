"""The result of a check of an exercise, and of a diagnosis."""

import re
from dataclasses import dataclass
from html import escape

MARKUP = re.compile(r"`([^`]+)`|\*(?!\s)([^*]*[^*\s])\*")  # as the browser's shared/text.js


@dataclass(frozen=True, repr=False)
class CheckResult:
    """The outcome of a check: truthy when the answer is right; its repr is what the reader sees."""

    passed: bool
    message: str

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return f"{self.heading} {self.message}"

    def _repr_html_(self) -> str:
        """Let notebooks and pages wrap the message, which plain output doesn't, and mark it up."""
        kind = "passed" if self.passed else "open"
        return (
            f'<p class="verdict verdict-{kind}"><strong>{self.heading}</strong> '
            f"{marked_up(self.message)}</p>"
        )

    @property
    def heading(self) -> str:
        """The verdict in a word."""
        return "Correct." if self.passed else "Not yet."


def marked_up(text: str) -> str:
    """Return text as HTML, in which `code` and *emphasis* are elements."""
    return MARKUP.sub(
        lambda found: f"<code>{found[1]}</code>" if found[1] else f"<em>{found[2]}</em>",
        escape(text),
    )
