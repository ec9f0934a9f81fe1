"""What checks are made of: verdicts, and comparing numbers or functions with the right ones.

A check never raises for a wrong answer and never prints the solution. It returns a `Verdict` whose
message names the mistake when the answer is exactly what that mistake would produce.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from attnlib._verdict import Verdict
from attnlib.exercises._calling import Outcome, as_outputs, call, describe
from attnlib.exercises._exercise import Mistake


def correct(message: str) -> Verdict:
    """Return a passing verdict."""
    return Verdict(True, message)


def not_yet(hint: str) -> Verdict:
    """Return a failing verdict with a hint."""
    return Verdict(False, hint)


def not_a_function(answer: Any) -> Verdict:
    """Return the verdict on an answer that should be a function, and can't be called."""
    return not_yet(
        f"A function was wanted, but a {type(answer).__name__} came. "
        "Hand in the function itself, without calling it."
    )


def as_tensor(answer: Any) -> torch.Tensor | None:
    """Return `answer` as a float64 tensor, or None when it is no array of numbers."""
    try:
        return torch.as_tensor(answer).detach().cpu().to(torch.float64)
    except (TypeError, ValueError, RuntimeError):
        return None


def check_values(
    answer: Any,
    expected: torch.Tensor,
    mistakes: Sequence[Mistake] = (),
    *,
    tolerance: float = 1e-3,
    praise: str,
    otherwise: str,
) -> Verdict:
    """Compare numbers that a reader worked out with `expected`.

    Mistakes are tried first, so that a typical wrong result gets its own hint; any other wrong
    result gets `otherwise`, which should say where to look, never the number.
    """
    if answer is None or answer is ...:
        return not_yet("Nothing is filled in so far: replace the ... with your numbers.")
    given = as_tensor(answer)
    if given is None:
        return not_yet(
            "A list or tensor of numbers was wanted, and yours can't be read as one. "
            "Is every ... replaced?"
        )
    if given.shape != expected.shape:
        return not_yet(
            f"The shape should be {list(expected.shape)}, but yours is {list(given.shape)}."
        )
    expected = expected.to(torch.float64)
    if torch.allclose(given, expected, atol=tolerance, rtol=0):
        return correct(praise)
    for mistake in mistakes:
        wrong = as_tensor(mistake.answer)
        if wrong is not None and wrong.shape == given.shape:
            if torch.allclose(given, wrong, atol=tolerance, rtol=0):
                return not_yet(mistake.hint)
    if torch.allclose(given, expected, atol=6 * tolerance, rtol=0):
        return not_yet(f"Very close. Give more digits: within {tolerance:g} counts as equal.")
    return not_yet(otherwise)


def agree(left: Outcome, right: Outcome, tolerance: float) -> bool:
    """Tell whether two outcomes are the same: the same error, or the same shapes and values."""
    if left.error is not None or right.error is not None:
        return left.error is right.error
    ours, theirs = as_outputs(left.outputs), as_outputs(right.outputs)
    return len(ours) == len(theirs) and all(
        same_numbers(a, b, tolerance) for a, b in zip(ours, theirs, strict=True)
    )


def same_numbers(left: Any, right: Any, tolerance: float) -> bool:
    """Tell whether two outputs are tensors (or numbers) of one shape that agree."""
    left, right = as_tensor(left), as_tensor(right)
    if left is None or right is None or left.shape != right.shape:
        return False
    return torch.allclose(left, right, atol=tolerance, rtol=tolerance, equal_nan=True)


def check_function(
    answer: Any,
    reference: Callable,
    cases: Sequence[Sequence[Any]],
    mistakes: Sequence[Mistake] = (),
    *,
    output_names: Sequence[str],
    tolerance: float = 1e-5,
    praise: str,
    as_function: Callable[[Any], Callable] = lambda answer: answer,
) -> Verdict:
    """Compare a reader's function with `reference` on every case (a sequence of arguments).

    When something differs, each mistake is run on the same cases; the one that behaves like the
    reader's function on all of them gives the hint. Otherwise the hint describes the first case
    that differs, without giving the right numbers away.

    Args:
        as_function: turns what is handed in into the function to compare, for answers whose own
            results (a module, say) can't be compared.
    """
    if not callable(answer):
        return not_a_function(answer)
    given = [call(as_function(answer), case) for case in cases]
    wanted = [call(reference, case) for case in cases]
    if all(agree(g, w, tolerance) for g, w in zip(given, wanted, strict=True)):
        return correct(praise)
    for mistake in mistakes:
        wrong = [call(as_function(mistake.answer), case) for case in cases]
        if all(agree(g, w, tolerance) for g, w in zip(given, wrong, strict=True)):
            return not_yet(mistake.hint)
    case, first, right = next(
        (c, g, w)
        for c, g, w in zip(cases, given, wanted, strict=True)
        if not agree(g, w, tolerance)
    )
    if first.complaint:
        return not_yet(first.complaint)
    return not_yet(_difference(describe(case), first, right, output_names, tolerance))


def _difference(
    case: str, given: Outcome, right: Outcome, names: Sequence[str], tolerance: float
) -> str:
    ours, theirs = as_outputs(given.outputs), as_outputs(right.outputs)
    if len(ours) != len(theirs):
        wanted = f"{len(theirs)} result{'s were' if len(theirs) > 1 else ' was'} wanted"
        hint = " A list counts as several; make it one tensor." if len(theirs) == 1 else ""
        return f"{wanted} ({', '.join(names)}), but {len(ours)} came.{hint}"
    for name, a, b in zip(names, ours, theirs, strict=True):
        name = name[0].upper() + name[1:]
        ours_, theirs_ = as_tensor(a), as_tensor(b)
        if ours_ is None or theirs_ is None:
            return f"{name} should be a tensor, but it is a {type(a).__name__}."
        if ours_.shape != theirs_.shape:
            wanted = f"{name} should have shape {list(theirs_.shape)}, but has {list(ours_.shape)}"
            return f"{wanted}, when called with {case}."
        if ours_.isnan().any() and not theirs_.isnan().any():
            return f"{name} holds nan (not a number), when called with {case}. Was 0 divided by 0?"
        if not same_numbers(a, b, tolerance):
            gap = (ours_ - theirs_).abs().max().item()
            return (
                f"{name} has the right shape, but differs by up to {gap:.2g} "
                f"when called with {case}."
            )
    raise ValueError("no difference: the outcomes agree")
