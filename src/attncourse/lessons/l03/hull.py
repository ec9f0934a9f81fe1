"""An output that no weights can reach: it lies outside the convex hull of the values."""

import torch
from torch import Tensor

from attncourse.checking import CheckResult, exercise
from attncourse.checking.calling import Outcome, as_outputs, call, describe
from attncourse.checking.functions import correct, not_a_function, not_yet
from attncourse.checking.numbers import as_tensor, same_numbers


def _beyond(v: Tensor) -> Tensor:
    return v.amax(0) + 1


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
    """Return whether some weights mix the rows of `v` to `target`.

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
        return unreachable.hints["one_result"]
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
        return unreachable.hints["reached"]
    if not direction.any():
        return unreachable.hints["zeros"]
    return (
        unreachable.hints["turned"]
        if along < values_along.min() - margin
        else unreachable.hints["unproved"]
    )


@exercise()
def unreachable(answer: object) -> CheckResult:
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
        return not_yet(unreachable.hints["swapped"])
    if 0 < problems.count(unreachable.hints["reached"]) < len(problems):  # right for some V by luck
        reached = [
            v
            for v, problem in zip(rows, problems, strict=True)
            if problem == unreachable.hints["reached"]
        ]
        if not any(v.any() for v in reached):
            return not_yet(unreachable.hints["multiplied"])
        return not_yet(_hint_on_luck(outcomes, rows))
    return not_yet(next(problem for problem in problems if problem))


def _turned_around(outcome: Outcome) -> Outcome:
    return Outcome(outputs=as_outputs(outcome.outputs)[::-1])


def _hint_on_luck(outcomes: list[Outcome], rows: list[Tensor]) -> str:
    """Return the hint for targets that are out of reach for some V, and not for others."""
    first, second = (torch.as_tensor(as_outputs(outcome.outputs)[0]) for outcome in outcomes[:2])
    if same_numbers(first, second, tolerance=0.0):
        return unreachable.hints["fixed"]
    step, another = first - rows[0].mean(0), second - rows[1].mean(0)
    return (
        unreachable.hints["step"]
        if same_numbers(step, another, tolerance=1e-3)
        else unreachable.hints["near"]
    )
