"""Comparing two answers, and saying what differs."""

import math

import torch
from torch import Tensor

from attndoctor.asking import Pair
from attndoctor.probes import Answer
from attndoctor.told import said

NEAR = 0.05  # what a number that isn't low enough for minus infinity lets through


def agree(given: Answer, other: Answer, tolerance: float) -> bool:
    """Tell whether two answers are the same; weights count where both give them."""
    if isinstance(given, Exception) or isinstance(other, Exception):
        return type(given) is type(other)
    return all(_same(a, b, tolerance) for a, b in zip(given, other, strict=True))


def farthest(given: Answer, right: Answer) -> float:
    """Return the largest difference between an answer's outputs and the right ones."""
    return _differences(given, right).max().item()


def mean_difference(given: Answer, right: Answer) -> float:
    """Return how far an answer's outputs are from the right ones on the average."""
    return _differences(given, right).mean().item()


def mostly(given: Answer, right: Answer) -> float:
    """Return the difference that three numbers of four stay below."""
    gaps = _differences(given, right)
    return gaps.kthvalue(1 + round(0.75 * (len(gaps) - 1))).values.item()


def _differences(given: Answer, right: Answer) -> Tensor:
    unlike = torch.tensor([math.inf])
    if isinstance(given, Exception) or isinstance(right, Exception):
        return unlike
    pairs = [(a, b) for (a, _), (b, _) in zip(given, right, strict=True)]
    if any(a is None or b is None or a.shape != b.shape for a, b in pairs):
        return unlike
    gaps = [(a - b).abs().flatten() for a, b in pairs if a is not None and b is not None]
    return torch.cat(gaps).nan_to_num(math.inf)


def difference(given: Answer, right: Answer, tolerance: float, of: str) -> str:
    """Say what an answer (of an output, or of a gradient) has instead of the right one."""
    if isinstance(right, Exception):
        raise right
    if isinstance(given, Exception):
        return f"it raises {said(given)}."
    for ours, theirs in zip(given, right, strict=True):
        pairs = zip((of, "the weights"), ours, theirs, strict=True)
        for name, a, b in reversed(list(pairs)):  # weights say more
            if a is None or b is None or _same((a, None), (b, None), tolerance):
                continue
            return _describe(name, a, b)
    raise ValueError("no difference: both agree")


def _same(left: Pair, right: Pair, tolerance: float) -> bool:
    for ours, theirs in zip(left, right, strict=True):
        if ours is None or theirs is None:
            continue
        if ours.shape != theirs.shape:
            return False
        if ours.dtype != theirs.dtype:  # weights may be float32 in half precision
            ours, theirs = ours.double(), theirs.double()
        if not _close(ours, theirs, tolerance):
            return False
    return True


def _close(ours: Tensor, theirs: Tensor, tolerance: float) -> bool:
    # Most are close by their largest difference alone, which is found in a tenth of the time.
    if ours.numel() and (ours - theirs).abs().amax() <= tolerance:
        return True
    return torch.allclose(ours, theirs, atol=tolerance, rtol=tolerance, equal_nan=True)


def _describe(name: str, ours: Tensor, theirs: Tensor) -> str:
    ours, theirs = ours.double(), theirs.double()  # whatever dtype the candidate's own have
    differ = "differ" if name == "the weights" else "differs"
    if ours.shape != theirs.shape:
        have = "have" if name == "the weights" else "has"
        return f"{name} {have} shape {list(ours.shape)} instead of {list(theirs.shape)}."
    if ours.isnan().any() and not theirs.isnan().any():
        return f"{name} {'hold' if name == 'the weights' else 'holds'} NaN."
    sums = ours.sum(-1)
    if name == "the weights" and not torch.allclose(sums, theirs.sum(-1), atol=1e-3):
        low, high = f"{sums.min():.3g}", f"{sums.max():.3g}"
        between = f"to {low}" if low == high else f"to between {low} and {high}"
        return f"rows of the weights sum {between}."
    return f"{name} {differ} by up to {(ours - theirs).abs().max().item():.3g}."
