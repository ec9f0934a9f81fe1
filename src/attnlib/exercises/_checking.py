"""What every check shares: verdicts, mistakes with their hints, and comparing a reader's function.

A check never raises for a wrong answer and never prints the solution. It returns a `Verdict` whose
message names the mistake when the answer is exactly what that mistake would produce.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch
from torch import nn

from attnlib._verdict import Verdict
from attnlib.museum import Exhibit

LONGEST_ERROR = 240  # letters of an error message that a hint repeats


@dataclass(frozen=True)
class Mistake:
    """A usual mistake: what a reader who makes it hands in, and the hint that helps.

    `answer` has the form that the check expects: a function, a tensor, a list of numbers.
    """

    name: str
    answer: Any
    hint: str


def from_museum(exhibit: Exhibit, answer: Any) -> Mistake:
    """Return the mistake that an exhibit of the museum is, with its hint."""
    return Mistake(exhibit.name, answer, exhibit.hint)


@dataclass(frozen=True)
class Exercise:
    """A check together with the mistakes that it recognizes; tests hold each to its own hint."""

    check: Callable[[Any], Verdict]
    mistakes: tuple[Mistake, ...]


def keeps_random_state(check: Callable[..., Verdict]) -> Callable[..., Verdict]:
    """Let a check draw random inputs without changing what the reader's next cell draws."""

    @wraps(check)
    def quiet(*answers: Any) -> Verdict:
        with torch.random.fork_rng(devices=[]):
            return check(*answers)

    return quiet


def correct(message: str) -> Verdict:
    """Return a passing verdict."""
    return Verdict(True, message)


def not_yet(hint: str) -> Verdict:
    """Return a failing verdict with a hint."""
    return Verdict(False, hint)


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


@dataclass(frozen=True)
class Outcome:
    """What one call of a function gave: outputs, or the complaint and the kind of error."""

    outputs: Any = None
    complaint: str = ""
    error: type | None = None


def call(function: Callable, arguments: Sequence[Any]) -> Outcome:
    """Call `function` on copies of `arguments` and describe whatever goes wrong."""
    copies = [_copy(argument) for argument in arguments]
    try:
        outputs = function(*copies)
    except NotImplementedError as error:
        hint = "Your function is still the stub: replace the raise with your code."
        return Outcome(complaint=hint, error=type(error))
    except Exception as error:  # whatever a reader's code raises becomes a hint, not a crash
        hint = f"Your function raised {type(error).__name__}: {shortened(error)} "
        return Outcome(complaint=f"{hint}(called with {describe(arguments)}).", error=type(error))
    for position, (before, after) in enumerate(zip(arguments, copies, strict=True), start=1):
        if isinstance(before, torch.Tensor) and not same_tensor(before, after):
            hint = f"Your function changed its argument number {position} in place. "
            return Outcome(complaint=hint + "Make a new tensor instead.", error=ChangedInputError)
        if isinstance(before, nn.Module) and not _same_state(before, after):
            hint = f"Your function changed the module that it was given (argument {position}). "
            return Outcome(complaint=hint + "Copy from it, not into it.", error=ChangedInputError)
    if any(output is None for output in as_outputs(outputs)):
        hint = "Your function returned None: did you forget the return?"
        return Outcome(complaint=hint, error=type(None))
    return Outcome(outputs=outputs)


class ChangedInputError(Exception):
    """Marks an outcome whose function changed its input."""


def _copy(argument: Any) -> Any:
    """Copy what a reader's function could change; other arguments are handed on."""
    if isinstance(argument, torch.Tensor):
        return argument.clone()
    return copy.deepcopy(argument) if isinstance(argument, nn.Module) else argument


def _same_state(left: nn.Module, right: nn.Module) -> bool:
    ours, theirs = left.state_dict(), right.state_dict()
    return ours.keys() == theirs.keys() and all(same_tensor(ours[k], theirs[k]) for k in ours)


def shortened(error: Exception) -> str:
    """Return an error's message; a long one (it may print a tensor) is cut."""
    message = str(error)
    return message if len(message) <= LONGEST_ERROR else message[:LONGEST_ERROR] + " ..."


def same_tensor(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Tell whether two tensors have the same shape and values (NaN equals NaN)."""
    return left.shape == right.shape and bool(
        ((left == right) | ((left != left) & (right != right))).all()
    )


def describe(arguments: Sequence[Any]) -> str:
    """Describe arguments by shape, so that a hint can say which input failed."""
    return ", ".join(_describe_one(argument) for argument in arguments)


def _describe_one(argument: Any) -> str:
    if isinstance(argument, torch.Tensor):
        return f"a tensor {list(argument.shape)}"
    return repr(argument) if isinstance(argument, int | float | str) else type(argument).__name__


def as_outputs(result: Any) -> tuple[Any, ...]:
    """Return what a function returned as a tuple, one entry an output."""
    return tuple(result) if isinstance(result, tuple | list) else (result,)


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
        return not_yet(
            f"A function was wanted, but a {type(answer).__name__} came. "
            "Hand in the function itself, without calling it."
        )
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
