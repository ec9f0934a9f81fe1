"""What a signal measures at each stop of its way up a stack: BuildABlock plays it."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor

from attnlib.attention import MultiHeadAttention
from attnlib.blocks import FeedForward, NormPosition, TransformerBlock
from attnlib.norms import LayerNorm

TOKENS, WIDTH, HEADS, SEED = 8, 16, 4, 0
ORIGIN = f"{TOKENS} random tokens, the same random weights in every wiring (seed {SEED})"
WIRINGS: tuple[tuple[bool, NormPosition], ...] = tuple(
    (residual, norm) for residual in (False, True) for norm in (None, "pre", "post")
)
PLACES = 8  # a block's input, up to three stops for each of two sub-layers, the last norm


def stops(block: TransformerBlock, x: Tensor) -> Iterator[Tensor]:
    """Yield what leaves each part of a block, in the order of a signal: norm, layer, sum, norm."""
    layers: list[Any] = [lambda x: block.attention(x)[0], block.feed_forward]
    norms: list[Any] = [block.norm_1, block.norm_2]  # None where there is no norm
    for layer, norm in zip(layers, norms, strict=True):
        stream = x
        if block.norm_position == "pre":
            yield (x := norm(x))
        yield (x := layer(x))
        if block.residual:
            yield (x := stream + x)
        if block.norm_position == "post":
            yield (x := norm(x))


@cache
def measured_signal(numbers: tuple[int, ...]) -> Tensor:
    """Return [6 wirings, len(numbers), 8 places, 2] float64: root mean square and token cosine.

    Wirings are in the order of `WIRINGS`; places that a wiring lacks are 0. `numbers` are those of
    the measured blocks of the stack, from 1, increasing.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(SEED)
        start = torch.randn(1, TOKENS, WIDTH, dtype=torch.float64)
        parts = [(MultiHeadAttention(WIDTH, HEADS), FeedForward(WIDTH)) for _ in range(numbers[-1])]
        signal = torch.zeros(len(WIRINGS), len(numbers), PLACES, 2, dtype=torch.float64)
        last_norm = LayerNorm(WIDTH).double()
        for wiring, (residual, norm_position) in enumerate(WIRINGS):
            x = start
            for number, (attention, feed_forward) in enumerate(parts, 1):
                block = TransformerBlock.of_parts(
                    attention, feed_forward, norm_position=norm_position, residual=residual
                ).double()
                states = [x, *stops(block, x)]
                x = states[-1]
                if number in numbers:
                    row = signal[wiring, numbers.index(number)]
                    for place, state in enumerate(states):
                        row[place] = _measure(state)
                    if norm_position == "pre":
                        row[-1] = _measure(last_norm(x))
    return signal


def _measure(x: Tensor) -> Tensor:
    """Return the root mean square of tokens [1, T, d], and the mean cosine between two of them."""
    unit = x[0] / x[0].norm(dim=-1, keepdim=True)  # F.cosine_similarity takes tiny ones for 0
    above = (unit @ unit.T).triu(1)
    return torch.stack([x.square().mean().sqrt(), above.sum() / (TOKENS * (TOKENS - 1) / 2)])
