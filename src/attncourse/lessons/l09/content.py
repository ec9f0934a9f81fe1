"""Scores that change with the content, by which one head answers two questions."""

import torch
from torch import Tensor

from attncourse.checking import CheckResult, exercise
from attncourse.checking.calling import Outcome, as_outputs, call
from attncourse.checking.functions import correct, not_a_function, not_yet
from attncourse.checking.numbers import all_numbers

CONTENTS = [(first, second) for first in (0, 1) for second in (0, 1)]
VALUES = torch.tensor([[0.0, 0], [1, 1], [0, 1]], dtype=torch.float64)  # of 0, of 1, of elsewhere
ELSEWHERE = 2  # the place of its score and its value


def _read(outcome: Outcome) -> Tensor | None:
    """Return three scores (-inf as a very low one), or None if something else came."""
    if outcome.error is not None:
        return None
    outputs = as_outputs(outcome.outputs)
    scores = all_numbers(outputs[0] if len(outputs) == 1 else list(outputs))
    if scores is None or scores.numel() != len(VALUES) or scores.flatten().softmax(0).isnan().any():
        return None
    return scores.flatten().detach().to(torch.float64).nan_to_num(neginf=-1e4)


def _answers(output: Tensor) -> tuple[int, int]:
    """Read both answers out of the head's output [2]."""
    return int(2 * output[0] - 0.5 > 0), int(output[1] - 0.75 > 0)


def _hint(scores: dict[tuple[int, int], Tensor]) -> str | None:
    """Return what is wrong with the scores of the four contents; None if nothing is."""
    table = torch.stack([scores[content] for content in CONTENTS])  # [4, 3]
    if (table - table[0]).abs().max() < 1e-6:
        return one_head.hints["fixed"]
    if table.min() >= 0 and (table.sum(-1) - 1).abs().max() < 1e-4:
        return one_head.hints["weights"]
    grid = table.view(2, 2, 3)  # first digit, second digit, place
    peeks = [grid[:, 0, 0] - grid[:, 1, 0], grid[0, :, 1] - grid[1, :, 1],
             (table - table[0])[:, ELSEWHERE]]  # fmt: skip
    if max(differences.abs().max() for differences in peeks) > 1e-6:
        return one_head.hints["peeking"]
    weights = table.softmax(-1)  # [4, 3]
    outputs = {
        content: row @ VALUES[[*content, ELSEWHERE]]
        for content, row in zip(CONTENTS, weights, strict=True)
    }
    wrong = [content for content in CONTENTS if _answers(outputs[content]) != content]
    if not wrong:
        return None
    if weights[:, ELSEWHERE].max() < 0.05:
        return one_head.hints["never_away"]
    if weights[:, ELSEWHERE].min() > 0.95:
        return one_head.hints["always_away"]
    changes = grid[1, 0, 0] - grid[0, 0, 0], grid[0, 1, 1] - grid[0, 0, 1]  # by a 1 for a 0
    signs = tuple(int(change.sign()) for change in changes)
    if 0 in signs:
        box = ("first", "second")[signs.index(0)]
        return (
            f"The score of the {box} box is the same for 0 and 1, so its digit decides nothing "
            "about where you look. Let both scores change."
        )
    usual = {(1, 1): "ones", (-1, -1): "zeros", (-1, 1): "turned"}
    if signs in usual:
        return one_head.hints[usual[signs]]
    if table.max() - table.min() < 3:
        return one_head.hints["weak"]
    first = wrong[0]
    told = ", ".join(f"{weight:.2f}" for weight in weights[CONTENTS.index(first)].tolist())
    return (
        f"With {first[0]} in the first box and {first[1]} in the second the weights are {told}, "
        f"and the readouts say {_answers(outputs[first])}."
    )


@exercise()
def one_head(answer: object) -> CheckResult:
    """Check `scores(first, second)`: three scores by which one head answers both questions."""
    if not callable(answer):
        return not_a_function(answer)
    found = {}
    for content in CONTENTS:
        outcome = call(answer, content)
        scores = _read(outcome)
        if scores is None:
            return not_yet(
                outcome.complaint
                or f"Three finite scores were wanted for the digits {content}: of the first box, "
                "of the second, and of elsewhere."
            )
        found[content] = scores
    hint = _hint(found)
    if hint is not None:
        return not_yet(hint)
    return correct(
        "One head, one row, linear readouts, and both answers. The row changes with the digits, "
        "and that was the way out."
    )
