"""Reading what a reader hands in as numbers."""

from fractions import Fraction
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


def all_numbers(answer: Any) -> torch.Tensor | None:
    """Return the numbers of lists, tuples, arrays and tensors, one within the other, as a tensor.

    Parts of different shapes are strung together. None where something isn't a real number.
    """
    if not isinstance(answer, list | tuple) or not answer:
        return as_tensor(float(answer) if isinstance(answer, Fraction) else answer)
    parts = [found for part in answer if (found := all_numbers(part)) is not None]
    if len(parts) < len(answer):
        return None
    alike = len({part.shape for part in parts}) == 1
    return torch.stack(parts) if alike else torch.cat([part.flatten() for part in parts])


def in_shape_of(right: torch.Tensor, answer: Any) -> torch.Tensor | None:
    """Return all numbers of an answer: in the right shape if they are as many, in a single row."""
    given = all_numbers(answer)
    in_rows = given is not None and 1 in (given.squeeze().dim(), right.dim())
    if given is not None and in_rows and given.numel() == right.numel():
        given = given.reshape(right.shape)
    return given


def set_of_numbers(answer: Any) -> set[Any]:
    """Return the numbers in a list, tuple, set or array; none where it holds something else."""
    found = all_numbers(list(answer) if isinstance(answer, set | frozenset) else answer)
    return set() if found is None else set(found.flatten().tolist())


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
