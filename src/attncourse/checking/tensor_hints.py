"""How a wrong tensor differs from the right one.

What is said of all numbers holds in all cases that came out wrong, so that it isn't so by chance;
what is said of a slice holds in the first of them.
"""

import math
from collections.abc import Callable, Sequence
from itertools import permutations

import torch
from torch import Tensor

from attncourse.checking.numbers import same_numbers

Pair = tuple[Tensor, Tensor]  # what came, what was wanted
MOST_AXES = 5  # all their orders are tried
MANY = 100  # counts above are hardly a multiple of others by chance
FEWEST = 5  # numbers; of fewer a part is right by chance

_CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "with the other sign": torch.neg,
    "divided by ln 2 (bits for nats?)": lambda right: right / math.log(2),
    "as a power of e": torch.exp,
    "as a logarithm": torch.log,
    "turned around, 1 / x": torch.reciprocal,
    "taken from 1, 1 - x": lambda right: 1 - right,
    "squared": torch.square,
    "under a root": torch.sqrt,
}


def relation(pairs: Sequence[Pair], tolerance: float) -> str:
    """Return in which relation what came stands to what was wanted, in each of the pairs."""
    for says in (_moved, _axes, _changed, _scaled, _shifted, _in_part, _spread, _reordered):
        if pairs and (sentence := says(pairs, tolerance)):
            return f" {sentence}"
    return ""


def is_simple(pairs: Sequence[Pair], tolerance: float) -> bool:
    """Return whether axes that changed places, or one function of each number, explain it all."""
    return bool(_moved(pairs, tolerance) or _changed(pairs, tolerance))


def _hold(pairs: Sequence[Pair], tolerance: float, change: Callable[[Tensor], Tensor]) -> bool:
    return all(same_numbers(ours, change(right), tolerance) for ours, right in pairs)


def _moved(pairs: Sequence[Pair], tolerance: float) -> str:
    """Return how all the right numbers stand in another shape."""
    dim = pairs[0][1].dim()
    orders = permutations(range(dim)) if 1 < dim <= MOST_AXES else ()
    for order in [order for order in orders if order != tuple(range(dim))]:
        if all(b.dim() == dim and same_numbers(a, b.permute(order), tolerance) for a, b in pairs):
            moved = [axis for axis, place in enumerate(order) if axis != place]
            if len(moved) == 2:
                return f"All numbers are right: only axes {moved[0]} and {moved[1]} are exchanged."
            return f"All numbers are right, but your axes stand in the order {list(order)}."
    if all(
        a.numel() == b.numel() and same_numbers(a.reshape(b.shape), b, tolerance) for a, b in pairs
    ):
        return "All numbers are right, and in the right order: only the shape isn't."
    return ""


def _axes(pairs: Sequence[Pair], tolerance: float) -> str:
    ours, right = pairs[0]
    mine, wanted, dim = list(ours.shape), list(right.shape), right.dim()
    if mine == wanted:
        return ""
    if sorted(mine) == sorted(wanted):
        return "Do your axes stand in another order?"
    if [size for size in mine if size != 1] == [size for size in wanted if size != 1]:
        return "An axis of length 1 is missing, or is too many."
    if any(mine == wanted[:i] + wanted[i + 1 :] for i in range(dim)):
        return "You lost an axis: did you take a mean, a sum or an index along it?"
    if any(wanted == mine[:i] + mine[i + 1 :] for i in range(len(mine))):
        return "You have an axis too many: what is still to be added up, or picked, along it?"
    if len(mine) == dim - 1 and ours.numel() == right.numel():
        return "You joined two axes."
    if mine == wanted[dim - len(mine) :]:
        return "The axes in front are missing: is it the same along each of them?"
    unlike = [(a, b) for a, b in zip(mine, wanted, strict=False) if a != b]
    if len(mine) == dim and len(unlike) == 1:
        came, right_size = unlike[0]
        if came == 1:
            return "Along the axis of length 1 there should be more: what got left out, or summed?"
        if came > right_size and came % right_size == 0:
            times = came // right_size
            return f"One axis is {times} times too long: did something come more than once?"
    return ""


def _changed(pairs: Sequence[Pair], tolerance: float) -> str:
    if torch.cat([right.flatten() for _, right in pairs]).unique().numel() < 2:
        return ""  # 0 for 1 is the logarithm, and much else
    for what, change in _CHANGES.items():
        if _hold(pairs, tolerance, change):
            return f"It is what was wanted, {what}."
    return ""


def _scaled(pairs: Sequence[Pair], tolerance: float) -> str:
    ours, right = pairs[0]
    if ours.numel() > 1 and not any(came.any() for came, _ in pairs):
        return "All its numbers are 0."
    size = right.square().sum()
    factor = ((ours * right).sum() / size).item() if size and ours.shape == right.shape else 0.0
    if factor and len(pairs) > 1 and _hold(pairs, tolerance, lambda right: factor * right):
        return f"In each case it is {factor:.3g} times what was wanted."
    if factor and right.numel() > 1 and same_numbers(ours, factor * right, tolerance):
        others = ", in other cases another number of times" if len(pairs) > 1 else ""
        return f"It is {factor:.3g} times what was wanted{others}."
    for times, way in ((factor, "large"), (factor and 1 / factor, "small")):
        is_whole = times > 1 and math.isclose(times, round(times), rel_tol=1e-6)
        if is_whole and right.numel() == 1 and abs(right.item()) > MANY:
            return f"Here it is {round(times):,} times too {way}."
    return ""


def _shifted(pairs: Sequence[Pair], tolerance: float) -> str:
    ours, right = pairs[0]
    for axis in range(right.dim() if ours.shape == right.shape else 0):
        left = right.shape[axis] - 1
        for way, start in (("early", 1), ("late", 0)):
            moved = right.narrow(axis, start, left), ours.narrow(axis, 1 - start, left)
            if left > 1 and right.unique().numel() > 2 and same_numbers(*moved, tolerance):
                return f"The numbers are right, but one place too {way} along axis {axis}."
    return ""


def _in_part(pairs: Sequence[Pair], tolerance: float) -> str:
    """Return that one slice alone is wrong, or right."""
    ours, right = pairs[0]
    if ours.shape != right.shape or right.numel() < FEWEST:
        return ""
    good = torch.isclose(ours, right, atol=tolerance, rtol=tolerance, equal_nan=True)
    for what, found in (("wrong", ~good), ("right", good)):
        index = [":"] * right.dim()
        for axis in range(right.dim()):
            along = found.movedim(axis, 0).flatten(1) if right.dim() > 1 else found[:, None]
            places = (along.any(1) if what == "wrong" else along.all(1)).nonzero().flatten()
            tells = what == "wrong" or along.shape[1] > 2  # fewer may be right by chance
            if len(places) == 1 and right.shape[axis] > 2 and tells:
                index[axis] = str(places.item())
        if any(place != ":" for place in index):
            return f"Only `[{', '.join(index)}]` is {what}."
    return ""


def _spread(pairs: Sequence[Pair], tolerance: float) -> str:
    """Return in which way rows of shares are wrong that are in the right order."""
    sharper = set()
    for ours, right in pairs:
        if ours.shape != right.shape or not right.dim() or right.shape[-1] < 2 or right.le(0).any():
            return ""
        sums = torch.stack([ours.sum(-1), right.sum(-1)])
        if not same_numbers(sums, torch.ones_like(sums), tolerance):
            return ""
        gap = ours.amax(-1) - right.amax(-1)
        in_order = torch.equal(ours.argsort(-1), right.argsort(-1))
        if not in_order or ours.lt(0).any() or gap.abs().le(tolerance).any():
            return ""
        sharper |= set((gap > 0).flatten().tolist())
    says = "Each row sums to 1, and its numbers are in the right order, but they are too"
    if sharper == {True}:
        return f"{says} far apart: were the scores too large?"
    alike = "much alike: were the scores too small, or is there a softmax too many?"
    return f"{says} {alike}" if sharper == {False} else ""


def _reordered(pairs: Sequence[Pair], tolerance: float) -> str:
    ours, right = pairs[0]
    numbers, wanted = ours.flatten().sort().values, right.flatten().sort().values
    if right.unique().numel() > 2 and same_numbers(numbers, wanted, tolerance):
        why = ": was something cut or joined before its axes stood in the right order?"
        return f"The right numbers are all there, in other places{why if right.dim() > 1 else '.'}"
    return ""
