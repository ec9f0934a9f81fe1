"""Reading what a reader hands in as numbers."""

from fractions import Fraction
from numbers import Real
from typing import Any

import torch


def as_tensor(answer: Any) -> torch.Tensor | None:
    """Return `answer` as a float64 tensor, or None when it is no array of real numbers."""
    try:
        given = torch.as_tensor(answer).detach().cpu()
        return None if given.is_complex() else given.to(torch.float64)
    except (TypeError, ValueError, RuntimeError):
        return None


def as_list(answer: Any) -> list[Any]:
    """Return a list, tuple, set or array as a list; anything else as an empty one."""
    if isinstance(answer, list | tuple | set | frozenset):
        return list(answer)
    given = as_tensor(answer)
    return [] if given is None or given.dim() == 0 else given.tolist()


def set_of_numbers(answer: Any) -> set[Any]:
    """Return the numbers in a list, tuple, set or array; none where it holds something else."""
    listed = as_list(answer)
    return set(listed) if all(isinstance(number, Real) for number in listed) else set()


def plain_numbers(answer: Any) -> Any:
    """Return lists of numbers with fractions, which torch can't read, as floats."""
    if isinstance(answer, list | tuple):
        return [plain_numbers(number) for number in answer]
    return float(answer) if isinstance(answer, Fraction) else answer


def holds(answer: Any, kind: type | tuple[type, ...]) -> bool:
    """Return whether an answer is of this kind, or a list or tuple with such a thing in it."""
    if isinstance(answer, list | tuple):
        return any(holds(part, kind) for part in answer)
    return isinstance(answer, kind)


def same_numbers(left: Any, right: Any, tolerance: float) -> bool:
    """Return whether two outputs are tensors (or numbers) of one shape that agree."""
    left, right = as_tensor(left), as_tensor(right)
    if left is None or right is None or left.shape != right.shape:
        return False
    return torch.allclose(left, right, atol=tolerance, rtol=tolerance, equal_nan=True)
