"""Answer: what a reader answers to an exercise, and the verdict that its check gave."""

from collections.abc import Sequence

import torch
import traitlets
from torch import Tensor

from attncourse.widgets._base import (
    CourseWidget,
    Numbers,
    browser_files,
    kept_trait,
    summary_trait,
)
from attndoctor.support.check_result import CheckResult


class Answer(CourseWidget):
    """An exercise that is answered where no Python runs. `check.name.on_page()` makes one.

    The reader answers, presses "Check", and reads the verdict of the exercise's check, which has
    been asked about all these answers before. The kinds are

    * "numbers": fields, several of them in a row perhaps. Known numbers are recognized within the
      tolerance; numbers near the right ones have a verdict too, and so have all others.
    * "choice": one choice for each part.
    * "lines": lines to pick in a listing.
    * "order": steps that are moved up and down.

    Traits that a reader changes:
        given (list): texts as typed; the index of each choice, None before there is one; the
            indices of the picked lines, ascending; or the steps' indices in their order.
        checked (bool): whether the verdict on this is shown.

    Args:
        kind: one of the four.
        parts: the title of each part, which may be empty, and the labels of all that is in it.
        verdicts: one for each answer. Numbers: the mixes of what each group of them can be, the
            known rows in order, then near ones (if `near` exceeds the tolerance), then others.
            Choices: the mixes. Lines: the picks. Order: the permutations. What comes last changes
            fastest, as in `itertools`.
        known: numbers: the known ones [K, n] of each group of fields, the right ones first.
        tolerance: numbers: how far from known ones still counts as them.
        near: numbers: how far from the right ones still counts as near.
        pick: lines: how many are picked.
    """

    _esm, _css = browser_files("answer")

    kind = traitlets.Unicode(read_only=True).tag(sync=True)
    titles = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    labels = traitlets.List(traitlets.List(traitlets.Unicode()), read_only=True).tag(sync=True)
    verdicts = traitlets.List(traitlets.Dict(), read_only=True).tag(sync=True)
    table = Numbers("<u2")
    known = Numbers("<f8")
    groups = traitlets.List(traitlets.List(traitlets.Int()), read_only=True).tag(sync=True)
    tolerance = traitlets.Float(read_only=True).tag(sync=True)
    near = traitlets.Float(read_only=True).tag(sync=True)
    pick = traitlets.Int(read_only=True).tag(sync=True)
    summary = summary_trait(
        "Download this page as a notebook and run it: there a cell checks the same answer, with "
        "the same hints."
    )
    kept = kept_trait("given", "checked")
    given: traitlets.List = traitlets.List().tag(sync=True)
    checked = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self,
        kind: str,
        parts: Sequence[tuple[str, Sequence[str]]],
        verdicts: Sequence[CheckResult],
        *,
        known: Sequence[Tensor] = (),
        tolerance: float = 0.0,
        near: float = 0.0,
        pick: int = 1,
    ) -> None:
        labels = [list(found) for _, found in parts]
        different = list(dict.fromkeys(verdicts))
        table = torch.tensor([different.index(verdict) for verdict in verdicts])
        numbers = [group.to(torch.float64).flatten() for group in known]
        super().__init__(
            kind=kind,
            titles=[title for title, _ in parts],
            labels=labels,
            verdicts=[_as_words(verdict) for verdict in different],
            table=table,
            groups=[list(group.shape) for group in known],
            pick=pick,
            known=torch.cat(numbers) if numbers else b"",
            tolerance=float(tolerance),
            near=float(near),
            given=_untouched(kind, [len(found) for found in labels]),
        )

    def __repr__(self) -> str:
        return f"Answer({self.kind!r}, {sum(map(len, self.labels))} labels)"


def _as_words(verdict: CheckResult) -> dict[str, object]:
    return {"passed": verdict.passed, "heading": verdict.heading, "message": verdict.message}


def _untouched(kind: str, sizes: list[int]) -> list:
    """Return what is given before a reader has done anything."""
    if kind == "numbers":
        return [""] * sum(sizes)
    if kind == "choice":
        return [None] * len(sizes)
    return list(range(sizes[0])) if kind == "order" else []
