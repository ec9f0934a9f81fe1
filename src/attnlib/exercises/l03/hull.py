"""An output that no weights can reach: it lies outside the convex hull of the values."""

from typing import Any

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._calling import Outcome, as_outputs, call, describe
from attnlib.exercises._checking import correct, not_a_function, not_yet, same_numbers
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._numbers import as_tensor


def _beyond(v: Tensor) -> Tensor:
    return v.amax(0) + 1


_REACHED = Mistake(
    lambda v: (v[0], v[0] - v.mean(0)),
    "Your target can be reached: there are weights that give it. (All weight on one token "
    "gives that token's value.)",
)
_NEAR = Mistake(
    lambda v: (2 * v[0], v[0]),
    "Far away from one value may be close to another: for some V your target is still a mix "
    "of the values. Go beyond *all* of them.",
)
_FIXED = Mistake(
    lambda v: (v.new_full((v.shape[1],), 100.0), v.new_ones(v.shape[1])),
    "Your target is the same for every V. Some V reach it; choose it by looking at V.",
)
_STEP = Mistake(
    lambda v: (v.mean(0) + 100, v.new_ones(v.shape[1])),
    "You go a fixed way from the middle. Values that lie a thousand apart still have your target "
    "between them: let V say how far is far enough.",
)
_MULTIPLIED = Mistake(
    lambda v: (2 * v.amax(0), v.new_ones(v.shape[1])),
    "The step by which you go beyond is made of the values' own numbers. Where all values are 0 it "
    "is 0 too, and your target is one of them; and twice a negative number lies before it. Add a "
    "step of your own.",
)
_TURNED = Mistake(
    lambda v: (_beyond(v), -v.new_ones(v.shape[1])),
    "Your target is out of reach, but your direction points the wrong way: along it, the "
    "target comes before the values, not after them.",
)
_SWAPPED = Mistake(
    lambda v: (v.new_ones(v.shape[1]), _beyond(v)),
    "Both are there, in the wrong order: first the target, then the direction.",
)
_ZEROS = Mistake(
    lambda v: (_beyond(v), v.new_zeros(v.shape[1])),
    "A direction of zeros tells nothing apart: every dot product with it is 0.",
)
_UNPROVED = Mistake(
    lambda v: (_beyond(v), (torch.arange(v.shape[1]) == 0) * 2.0 - 1),
    "Your target seems out of reach, but the direction doesn't prove it: some value lies as "
    "far along it as the target does.",
)
_ONE_RESULT = Mistake(
    _beyond,
    "Return two results: the target, and the direction that proves it out of reach.",
)


_DIAMOND = torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1]])


def _value_rows() -> list[Tensor]:
    """Values around 0, far from it, in a line, in four dimensions, very far apart, and all 0.

    In one V a single value out of a thousand lies far out: no multiple of their spread reaches it.
    """
    line = torch.tensor([1.0, 2.0, 3.0])[:, None] * (torch.rand(1, 2) + 0.5)
    around = torch.randn(5, 2)
    far = 100 + 20 * torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]]) + torch.randn(4, 2)
    apart = [size * _DIAMOND + torch.randn(4, 2) for size in (1e3, 4e6)]
    below = -50 + torch.randn(3, 2)
    outlier = torch.zeros(1000, 2)
    outlier[7] = 1e4
    return [line, around, far, torch.randn(6, 4), below, *apart, outlier, torch.zeros(3, 2)]


def _values_around(outcome: Outcome) -> list[Tensor]:
    """Return values in the plane around a target that was given for others, if there is one."""
    target = as_tensor(as_outputs(outcome.outputs)[0])
    if target is None or target.shape != (2,) or not target.isfinite().all():
        return []
    return [(target + _DIAMOND).float()]


def _is_reached(target: Tensor, v: Tensor, steps: int = 1000) -> bool:
    """Tell whether some weights mix the rows of `v` to `target`.

    Frank-Wolfe: move the mix towards the row that lies farthest in the direction of the target. If
    no row lies as far along it as the target itself, the target is out of reach.
    """
    mix = v[0]
    for _ in range(steps):
        missing = target - mix
        if missing.norm() < 1e-3 * (1 + v.std()):
            return True
        towards = v[(v @ missing).argmax()] - mix
        if towards @ missing < missing @ missing:
            return False
        mix = mix + (missing @ towards / (towards @ towards)).clamp(max=1) * towards
    return False


def _problem(outcome: Outcome, v: Tensor) -> str | None:
    """Return the hint for one V, or None if the target is out of reach and proved to be."""
    if outcome.complaint:
        return outcome.complaint
    results = as_outputs(outcome.outputs)
    if len(results) != 2:
        return _ONE_RESULT.hint
    tensors = []
    for name, result in zip(("target", "direction"), results, strict=True):
        tensor = as_tensor(result)
        if tensor is None or tensor.shape != (v.shape[1],):
            shape = "no tensor" if tensor is None else list(tensor.shape)
            return (
                f"The {name} should have shape [{v.shape[1]}], as a row of V has, "
                f"but yours is {shape} when called with {describe([v])}."
            )
        if not tensor.isfinite().all():
            return f"The {name} holds infinity or NaN."
        tensors.append(tensor)
    target, direction = tensors
    along, values_along = target @ direction, v.double() @ direction
    margin = 1e-9 * direction.norm() * (1 + v.abs().max())
    if along > values_along.max() + margin:
        return None
    if _is_reached(target, v.double()):
        return _REACHED.hint
    if not direction.any():
        return _ZEROS.hint
    return _TURNED.hint if along < values_along.min() - margin else _UNPROVED.hint


@exercise(
    mistakes=(
        _REACHED, _NEAR, _FIXED, _STEP, _MULTIPLIED, _SWAPPED, _TURNED, _ZEROS, _UNPROVED,
        _ONE_RESULT,
    )
)  # fmt: skip
def unreachable(answer: Any) -> Verdict:
    """Check `unreachable(V)`: a target [d] that no weights reach, and a direction that proves it.

    The proof: every output is an average of V's rows, so along any direction it lies no farther
    than the farthest row. A target that lies farther can't be an output.
    """
    if not callable(answer):
        return not_a_function(answer)
    rows = _value_rows()
    rows += _values_around(call(answer, (rows[0],)))
    outcomes = [call(answer, (v,)) for v in rows]
    problems = [_problem(outcome, v) for outcome, v in zip(outcomes, rows, strict=True)]
    if not any(problems):
        return correct("No weights reach your targets, and your directions prove it.")
    for outcome in outcomes:
        if outcome.complaint:
            return not_yet(outcome.complaint)
    if not any(map(_problem, map(_turned_around, outcomes), rows)):
        return not_yet(_SWAPPED.hint)
    if 0 < problems.count(_REACHED.hint) < len(problems):  # right for some V by luck
        reached = [v for v, problem in zip(rows, problems, strict=True) if problem == _REACHED.hint]
        if not any(v.any() for v in reached):
            return not_yet(_MULTIPLIED.hint)
        return not_yet(_hint_on_luck(outcomes, rows))
    return not_yet(next(problem for problem in problems if problem))


def _turned_around(outcome: Outcome) -> Outcome:
    return Outcome(outputs=as_outputs(outcome.outputs)[::-1])


def _hint_on_luck(outcomes: list[Outcome], rows: list[Tensor]) -> str:
    """Return the hint for targets that are out of reach for some V, and not for others."""
    first, second = (torch.as_tensor(as_outputs(outcome.outputs)[0]) for outcome in outcomes[:2])
    if same_numbers(first, second, tolerance=0.0):
        return _FIXED.hint
    step, another = first - rows[0].mean(0), second - rows[1].mean(0)
    return _STEP.hint if same_numbers(step, another, tolerance=1e-3) else _NEAR.hint
