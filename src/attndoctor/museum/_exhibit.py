"""An exhibit, and its label in the text beside its room: `heads.md` has those of `heads.py`.

    # view instead of transpose

    * Story: how people come to write it.
    * Cause: why it goes wrong.
    * Notice: how one would notice.
    * Hint: a sentence for its author.
    * Seen: https://github.com/owner/repository/issues/1 what one finds there.

A heading has the name of an exhibit. Each of its parts is one line; only the last may be left out.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from attndoctor.museum.steps import SteppedAttention
from attndoctor.support.texts import read_labels


@dataclass(frozen=True)
class Thread:
    """A public thread about a bug, or a public file that has it.

    Attributes:
        address: of an issue or a pull request on GitHub, or of a file there at one commit.
        says: what one finds there.
    """

    address: str
    says: str

    @property
    def title(self) -> str:
        """Its short name: owner/repository with a thread's number or a file's name."""
        owner, repository, kind, rest = self.address.removeprefix("https://github.com/").split(
            "/", 3
        )
        end = f": {rest.split('/')[-1]}" if kind == "blob" else f"#{rest}"
        return f"{owner}/{repository}{end}"


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
        hint: a sentence for its author.
        killed_by: the name of the first probe of `diagnose` on which it is wrong.
        thread: where it happened in public, or None where no thread or file is known.
        only_loaded: whether only loaded weights show it, since the right attention with its
            weights in another order does the same: what is trained with the bug learns as well.
    """

    name: str
    steps: dict[str, Any]
    cause: str
    story: str
    notice: str
    hint: str
    killed_by: str = "self-attention"
    thread: Thread | None = None
    only_loaded: bool = False

    def __call__(self, d_model: int, num_heads: int, **options: Any) -> SteppedAttention:
        """Build the broken module."""
        return SteppedAttention(d_model, num_heads, steps=self.steps, **options)

    def __repr__(self) -> str:
        """Return which exhibit it is."""
        return f"Exhibit({self.name!r})"

    @property
    def anchor(self) -> str:
        """The target before its heading on the museum's page."""
        return "-".join(["exhibit", *re.findall("[a-z0-9]+", self.name.lower())])

    @property
    def source(self) -> str:
        """The broken code itself."""
        functions = dict.fromkeys(self.steps.values())  # each once, in order
        return "\n\n".join(dedent(inspect.getsource(function)).strip() for function in functions)

    def _repr_markdown_(self) -> str:
        """Return the exhibit's label: the broken code, its story, and how one would notice."""
        seen = (
            f"[{self.thread.title}]({self.thread.address}): {self.thread.says}"
            if self.thread
            else "No public thread known."
        )
        return "\n\n".join(
            (
                f"```python\n{self.source}\n```",
                self.story,
                f"**Cause.** {self.cause}",
                f"**How to notice.** {self.notice}",
                f"**Caught by** the question “{self.killed_by}”.",
                f"**Seen in public.** {seen}",
            )
        )


def room(file: str) -> Callable[..., Exhibit]:
    """Return what makes the exhibits of a room, with their labels, of its `__file__`.

    It takes the name, the steps, and `killed_by` and `only_loaded` as `Exhibit` does.

    Raises:
        ValueError: an exhibit has no label, or not all parts of it.
    """
    labels = read_labels(file)

    def exhibit(name: str, steps: dict[str, Any], **facts: Any) -> Exhibit:
        label = dict(labels.get(name, ()))
        seen = label.pop("Seen", None)
        if list(label) != ["Story", "Cause", "Notice", "Hint"]:
            raise ValueError(
                f"labels of {file}: wanted '# {name}' with Story, Cause, Notice and Hint, "
                f"got {', '.join(label) or 'none'}"
            )
        thread = Thread(*seen.split(" ", 1)) if seen else None
        texts: dict[str, Any] = {part.lower(): text for part, text in label.items()}
        return Exhibit(name, steps, thread=thread, **texts, **facts)

    return exhibit
