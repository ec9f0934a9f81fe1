"""Blocks that are alike, one for each layer."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from attnlib.attention import MultiHeadAttention
from attnlib.blocks import Activation, FeedForward, NormPosition, TransformerBlock
from attnlib.checks import require_count, require_flag, require_positive_int
from attnlib.norms import make_norms
from attnlib.positions import RotaryPositions


def alike_blocks(
    d_model: int,
    num_heads: int,
    num_layers: int,
    *,
    d_ff: int | None,
    norm_position: NormPosition,
    norm: Callable[..., nn.Module],
    num_kv_heads: int | None,
    bias: bool,
    activation: Activation,
    dropout: float,
    rotary: bool,
    options: Mapping[str, Any],
) -> list[TransformerBlock]:
    """Make as many blocks as there are layers; see `TransformerModel.of_sizes`."""
    require_positive_int("num_layers", num_layers)
    require_flag("bias", bias)
    if d_ff is not None:
        require_count("d_ff", d_ff)

    def block() -> TransformerBlock:
        attention = MultiHeadAttention(
            d_model, num_heads, num_kv_heads=num_kv_heads, bias=bias,
            rotary=RotaryPositions() if rotary else None, **options,
        )  # fmt: skip
        feed_forward = None
        if d_ff:
            feed_forward = FeedForward(d_model, d_ff, activation=activation, bias=bias, **options)
        sublayers = 2 if d_ff else 1
        norms = make_norms(norm, sublayers if norm_position else 0, d_model, options)
        return TransformerBlock.of_parts(
            attention, feed_forward, norms, norm_position=norm_position, dropout=dropout
        )

    return [block() for _ in range(num_layers)]
