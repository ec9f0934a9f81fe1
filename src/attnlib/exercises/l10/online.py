"""A softmax that meets its scores block by block."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function, not_yet
from attnlib.exercises._exercise import Mistake, exercise


def attended(scores: Tensor, values: Tensor, block: int) -> Tensor:
    """Return softmax(scores) @ values; rows that may look nowhere give 0."""
    return scores.softmax(-1).nan_to_num(0.0) @ values


def _online(
    *,
    old_sum: Callable[[Tensor], Tensor] = lambda factor: factor,
    old_mix: Callable[[Tensor], Tensor] = lambda factor: factor,
    follow: bool = True,
    safe: bool = True,
    divide: bool = True,
    whole_blocks: bool = False,
) -> Callable[[Tensor, Tensor, int], Tensor]:
    """Make an online softmax, possibly with a mistake.

    Args:
        old_sum, old_mix: what the sum and the mix so far are multiplied by, of the right factor.
        follow: whether the largest score is followed beyond the first block.
        safe: whether rows that have met nothing but -inf are cared for.
        divide: whether the mix is divided by the sum at the end.
        whole_blocks: whether a shorter block at the end is left out.
    """

    def attend(scores: Tensor, values: Tensor, block: int) -> Tensor:
        top = torch.full_like(scores[:, :1], -math.inf)
        total = torch.zeros_like(top)
        mix = values.new_zeros(len(scores), values.shape[1])
        blocks = zip(scores.split(block, dim=1), values.split(block), strict=True)
        for number, (part, own) in enumerate(blocks):
            if whole_blocks and number and part.shape[1] < block:
                continue
            new_top = top
            if follow or not number:
                new_top = torch.maximum(top, part.amax(-1, keepdim=True))
            measure = new_top.nan_to_num(neginf=0.0) if safe else new_top
            factor, new = (top - measure).exp(), (part - measure).exp()
            total = old_sum(factor) * total + new.sum(-1, keepdim=True)
            mix = old_mix(factor) * mix + new @ own
            top = new_top
        if not divide:
            return mix
        return mix / (total.masked_fill(total == 0, 1.0) if safe else total)

    return attend


def _each_block_alone(scores: Tensor, values: Tensor, block: int) -> Tensor:
    blocks = list(zip(scores.split(block, dim=1), values.split(block), strict=True))
    return torch.stack([attended(part, own, block) for part, own in blocks]).mean(0)


class _Watch(TorchFunctionMode):
    """Notes whether a softmax is called meanwhile, and how many keys an exponential is taken of."""

    ready_made, widest = False, 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        self.ready_made |= "softmax" in name or name == "scaled_dot_product_attention"
        result = func(*args, **(kwargs or {}))
        if name.rstrip("_") in ("exp", "exp2", "pow") and isinstance(result, Tensor):
            self.widest = max(self.widest, result.shape[-1] if result.dim() else 1)
        return result


_READY_MADE = Mistake(
    "torch's own",
    attended,
    "The numbers are right, but this is torch's own softmax, which needs the whole row. Here it is "
    "to be made of exp, the largest score so far and sums.",
)
_WHOLE = Mistake(
    "the whole row",
    lambda scores, values, block: _online()(scores, values, max(scores.shape[1], 1)),
    "The numbers are right, but you take exponentials of a whole row at once. Go through the keys "
    "`block` at a time: scores.split(block, dim=1) and values.split(block).",
)
_NO_CARE = Mistake(
    "nothing but -inf",
    _online(safe=False),
    "Right, until a row has met nothing but -inf: then the largest score so far is -inf, and -inf "
    "minus -inf isn't a number. Measure such a row against 0, and don't divide by a sum of 0.",
)
ONLINE_MISTAKES = (
    Mistake(
        "nothing rescaled",
        _online(old_sum=torch.ones_like, old_mix=torch.ones_like),
        "When a larger score comes, what was added up so far is measured against the old one. "
        "Multiply sum and mix by e to the power of (old largest - new largest) first.",
    ),
    Mistake(
        "the sum alone",
        _online(old_mix=torch.ones_like),
        "You rescale the sum, but not the mix. Both are made of the same exponentials.",
    ),
    Mistake(
        "the mix alone",
        _online(old_sum=torch.ones_like),
        "You rescale the mix, but not the sum. Both are made of the same exponentials.",
    ),
    Mistake(
        "the first block's largest",
        _online(follow=False),
        "Right while no later score is much larger than the first block's: measured against that "
        "one, a large score overflows. Follow the largest score from block to block.",
    ),
    Mistake(
        "not divided",
        _online(divide=False),
        "The mix is right. Divide it by the sum at the end, so that the weights sum to 1.",
    ),
    Mistake(
        "each block alone",
        _each_block_alone,
        "You took a softmax in each block and then the mean of the blocks. A block with large "
        "scores must count more: carry sums along, and divide at the end.",
    ),
    Mistake(
        "whole blocks",
        _online(whole_blocks=True),
        "The last block may be shorter than the others. Yours is left out.",
    ),
    _NO_CARE,
)


def _cases() -> list[tuple[Tensor, Tensor, int]]:
    """Return scores and values for every size of a block, with levels and -inf of all kinds."""
    scores, values = torch.randn(5, 12), torch.randn(12, 3)
    cases = [(scores, values, block) for block in (1, 2, 3, 5, 7, 11, 12, 40)]
    rising = 400.0 * torch.arange(12) + torch.randn(5, 12)
    cases += [(rising, values, 4), (-rising, values, 5), (rising - 9000, values, 1)]
    blocked = torch.randn(5, 12)
    blocked[0, :4], blocked[1, 4:8], blocked[2, 8:] = -math.inf, -math.inf, -math.inf
    blocked[3, :11], blocked[4] = -math.inf, -math.inf
    return [*cases, *((blocked, values, block) for block in (1, 4, 5, 12))]


@exercise(mistakes=(_READY_MADE, _WHOLE, *ONLINE_MISTAKES))
def online_softmax(answer: Any) -> Verdict:
    """Check `attend(scores, values, block)`: softmax(scores) @ values, `block` keys at a time.

    Scores are [T_q, T_k], values [T_k, d_v]. A row that may look nowhere gives 0.
    """
    watch, wide = _Watch(), False

    def watched(scores: Tensor, values: Tensor, block: int) -> Any:
        nonlocal wide
        watch.widest = 0
        with watch:
            result = answer(scores, values, block)
        wide |= watch.widest > max(block, values.shape[1])
        return result

    verdict = check_function(
        watched if callable(answer) else answer,
        attended,
        _cases(),
        ONLINE_MISTAKES,
        output_names=["the output"],
        praise="Exact for every size of a block, and nothing wider than a block was ever held.",
    )
    if verdict and watch.ready_made:
        return not_yet(_READY_MADE.hint)
    return not_yet(_WHOLE.hint) if verdict and wide else verdict
