"""What a candidate is compared with: attnlib's attention, right or with steps of exhibits."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import nn

from attnlib.attention import MultiHeadAttention
from attnlib.museum._steps import SteppedAttention

PROJECTIONS = ("W_q", "W_k", "W_v", "W_o")


@dataclass(frozen=True)
class Sizes:
    """Sizes of a module, and the dropout that it is built with."""

    d_model: int
    num_heads: int
    num_kv_heads: int
    dropout: float = 0.0


@dataclass(frozen=True)
class Setting:
    """All that a candidate's module and those it is compared with have in common.

    biases: which of `PROJECTIONS` add one. always_causal: each question is asked causally.
    mask_replaces: whether such a module leaves the triangle to the mask where one is given.
    out_projection: whether W_o is there; it is the identity otherwise.
    """

    sizes: Sizes
    biases: frozenset[str] = frozenset(PROJECTIONS)
    always_causal: bool = False
    mask_replaces: bool = False
    out_projection: bool = True


@cache
def reference(setting: Setting) -> MultiHeadAttention:
    """Return the right module; its biases are random, so that a forgotten one shows."""
    sizes = setting.sizes
    torch.manual_seed(0)
    module = MultiHeadAttention(
        sizes.d_model, sizes.num_heads, num_kv_heads=sizes.num_kv_heads, dropout=sizes.dropout
    )
    with torch.no_grad():
        for name in PROJECTIONS:
            bias = getattr(module, name).bias
            nn.init.normal_(bias)
            if name not in setting.biases:
                bias.zero_()
        if not setting.out_projection:
            nn.init.eye_(module.W_o.weight)
            module.W_o.bias.zero_()
    return module.eval()


@cache
def _in_steps(setting: Setting) -> SteppedAttention:
    sizes = setting.sizes
    module = SteppedAttention(
        sizes.d_model, sizes.num_heads, num_kv_heads=sizes.num_kv_heads, dropout=sizes.dropout,
        steps={},
    )  # fmt: skip
    module.load_state_dict(reference(setting).state_dict())
    return module.eval()


def stepped(setting: Setting, steps: dict[str, Any]) -> SteppedAttention:
    """Return the module with these steps and the reference's weights, until the next call."""
    module = _in_steps(setting)
    module.steps = steps
    return module
