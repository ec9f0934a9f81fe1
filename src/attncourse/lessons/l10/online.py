"""A softmax that meets its scores block by block."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attncourse.checking import CheckResult, check_function, exercise
from attncourse.checking.functions import not_yet


def attended(scores: Tensor, values: Tensor, block: int) -> Tensor:
    """Return softmax(scores) @ values; rows that may look nowhere give 0."""
    return scores.softmax(-1).nan_to_num(0.0) @ values


def _online(
    *,
    old_sum: Callable[[Tensor], Tensor] = lambda factor: factor,
    old_mix: Callable[[Tensor], Tensor] = lambda factor: factor,
    largest: Callable[[Tensor], Tensor] = lambda part: part.amax(-1, keepdim=True),
    start: float = -math.inf,
    higher: Callable[[Tensor, Tensor], Tensor] = torch.maximum,  # of the old and the block's own
    safe: bool = True,
    divide: bool = True,
    add_up: Callable[[Tensor], Tensor] = lambda new: new.sum(-1, keepdim=True),
    at_once: bool = False,  # divide in each block
    keep: bool = True,  # the largest score, from block to block
    whole_blocks: bool = False,  # a shorter one at the end is left out
) -> Callable[[Tensor, Tensor, int], Tensor]:
    """Make an online softmax, possibly with a mistake; rows that met only -inf need care."""

    def attend(scores: Tensor, values: Tensor, block: int) -> Tensor:
        top = torch.full_like(scores[:, :1], start)
        total = torch.zeros_like(top)
        mix = values.new_zeros(len(scores), values.shape[1])
        blocks = zip(scores.split(block, dim=1), values.split(block), strict=True)
        for number, (part, own) in enumerate(blocks):
            if whole_blocks and number and part.shape[1] < block:
                continue
            new_top = higher(top, largest(part))
            measure = new_top.nan_to_num(neginf=0.0) if safe else new_top
            factor, new = (top - measure).exp(), (part - measure).exp()
            total = old_sum(factor) * total + add_up(new)
            mix = (old_mix(factor) * mix + new @ own) / (total if at_once else 1)
            top = new_top if keep else top
        if at_once or not divide:
            return mix
        return mix / (total.masked_fill(total == 0, 1.0) if safe else total)

    return attend


class _Watch(TorchFunctionMode):
    """Notes the longest axis along which a softmax, exponentials or a largest number are taken.

    Also the most of them that are taken one after the other without touching the values, which are
    `width` wide, or one wider with a column of ones.
    """

    KINDS = (
        ("softmax", ("softmax", "scaled_dot_product_attention")),
        ("largest", ("max", "logsumexp", "topk", "sort")),
        ("exponentials", ("exp", "exp2", "pow")),
    )
    SIZES = ("get", "len", "size", "dim")  # what asks for them alone touches no numbers

    def __init__(self, width: int) -> None:
        super().__init__()
        self.longest = {kind: 0 for kind, _ in self.KINDS}
        self.widths = {width, width + 1}
        self.without_values = self.most = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "").strip("_")
        kind = next((kind for kind, ends in self.KINDS if name.endswith(ends)), None)
        given = [x for arg in args for x in (arg if isinstance(arg, list | tuple) else [arg])]
        axes = [axis for x in given if isinstance(x, Tensor) for axis in x.shape]
        longest = max([*axes, 0])
        if kind == "largest" and self.longest["exponentials"] and longest > self.longest[kind]:
            kind = "exponentials"  # of blocks that were kept: no row was asked before
        if kind is not None:
            self.longest[kind] = max(self.longest[kind], longest)
            self.without_values += 1
            self.most = max(self.most, self.without_values)
        elif name not in self.SIZES and not self.widths.isdisjoint(axes):
            self.without_values = 0
        return func(*args, **(kwargs or {}))


def _cases() -> list[list[tuple[Tensor, Tensor, int]]]:
    """Return scores and values for every size of a block; then far below 0; then with -inf.

    A mistake in the first cases is told, whatever becomes of the later ones.
    """
    scores, values = torch.randn(5, 12), torch.randn(12, 3)
    usual = [(scores, values, block) for block in (1, 2, 3, 5, 7, 11, 12, 40)]
    rising = 400.0 * torch.arange(12) + torch.randn(5, 12)
    usual += [(scores + 100, values, 4), (rising, values, 4), (-rising, values, 5)]
    apart = scores - 120.0 * (torch.arange(5)[:, None] % 2)
    below = [(rising - 9000, values, 1), (apart, values, 4)]
    blocked = torch.randn(5, 12)
    blocked[0, :4], blocked[1, 4:8], blocked[2, 8:] = -math.inf, -math.inf, -math.inf
    blocked[3, :11], blocked[4] = -math.inf, -math.inf
    return [usual, below, [(blocked, values, block) for block in (1, 4, 5, 12)]]


@exercise()
def online_softmax(answer: Any) -> CheckResult:
    """Check `attend(scores, values, block)`: softmax(scores) @ values, `block` keys at a time.

    Scores are [T_q, T_k], values [T_k, d_v]. A row that may look nowhere gives 0.
    """
    too_long: set[str] = set()

    def watched(scores: Tensor, values: Tensor, block: int) -> Any:
        with _Watch(values.shape[1]) as watch:
            result = answer(scores, values, block)
        # axes of the right length, in any order; a block may hold what came before it as well
        allowed = max(block + 1, len(scores), values.shape[1])
        too_long.update(kind for kind, axis in watch.longest.items() if axis > allowed)
        # where no block is all -inf: it may be left out, values and all
        if block == 1 and scores.isfinite().all() and watch.most >= scores.shape[1]:
            too_long.add("before_values")
        return result

    for cases in _cases():
        praise = "Exact for every size of a block, and nothing wider than a block was ever held."
        verdict = check_function(
            watched if callable(answer) else answer,
            attended,
            cases,
            online_softmax.mistakes,
            output_names=["the output"],
            praise=praise,
        )
        if not verdict:
            return verdict
    hints = online_softmax.hints.items()
    return next((not_yet(hint) for kind, hint in hints if kind in too_long), verdict)
