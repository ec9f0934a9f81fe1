"""What an exhibit is."""

import inspect
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from attnlib.museum._steps import SteppedAttention


@dataclass(frozen=True)
class Thread:
    """A public thread about a bug."""

    address: str
    says: str

    @property
    def title(self) -> str:
        """The thread's short name: owner/repository and number."""
        owner, repository, _, number = self.address.removeprefix("https://github.com/").split("/")
        return f"{owner}/{repository}#{number}"


@dataclass(frozen=True, eq=False, repr=False)
class Exhibit:
    """An attention that is wrong in one way, which happened somewhere.

    Build it as you would build a `MultiHeadAttention`: it gives a `SteppedAttention` with the same
    parameters and one bug. Fewer key heads work where the broken step doesn't take h of them for
    granted.

    Attributes:
        name: in a few words.
        steps: the broken steps, by the names of the right ones that they replace.
        cause: why it goes wrong, in one sentence.
        story: how people come to write it.
        notice: how one would notice.
        hint: what to tell whoever wrote it.
        killed_by: the name of the first probe of `diagnose` on which it is wrong.
        thread: where it happened in public, or None where no thread is known.
    """

    name: str
    steps: dict[str, Any]
    cause: str
    story: str
    notice: str
    hint: str
    killed_by: str
    thread: Thread | None = None

    def __call__(self, d_model: int, num_heads: int, **options: Any) -> SteppedAttention:
        """Build the broken module."""
        return SteppedAttention(d_model, num_heads, steps=self.steps, **options)

    def __repr__(self) -> str:
        """Say which exhibit it is."""
        return f"Exhibit({self.name!r})"

    @property
    def source(self) -> str:
        """The broken code itself."""
        functions = dict.fromkeys(self.steps.values())  # each once, in order
        return "\n\n".join(dedent(inspect.getsource(function)).strip() for function in functions)

    def _repr_markdown_(self) -> str:
        """Return the exhibit's label: its story, how one would notice, and the code, folded."""
        seen = (
            f"[{self.thread.title}]({self.thread.address}): {self.thread.says}"
            if self.thread
            else "No public thread known."
        )
        return "\n\n".join(
            (
                self.story,
                f"**Cause.** {self.cause}",
                f"**How to notice.** {self.notice}",
                f"**Seen in public.** {seen}",
                f"<details>\n<summary>The broken code</summary>\n\n```python\n{self.source}\n```\n",
                "</details>",
            )
        )
