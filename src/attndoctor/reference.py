"""What a candidate is compared with: attnlib's attention, right or with steps of exhibits."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import nn

from attndoctor.museum.steps import SteppedAttention
from attnlib.attention import MultiHeadAttention

PROJECTIONS = ("W_q", "W_k", "W_v", "W_o")
Attention = TypeVar("Attention", bound=MultiHeadAttention)


@dataclass(frozen=True)
class Sizes:
    """Sizes of a module, and the dropout that it is built with.

    head_dim: the width of a head, where that isn't d_model / num_heads; 0 where it is.
    """

    d_model: int
    num_heads: int
    num_kv_heads: int
    dropout: float = 0.0
    head_dim: int = 0

    @property
    def d_k(self) -> int:
        """Width of one head."""
        return self.head_dim or self.d_model // self.num_heads

    @property
    def all_heads(self) -> int:
        """Width of all heads together, which W_q gives and W_o takes."""
        return self.num_heads * self.d_k


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


def _built(kind: type[Attention], sizes: Sizes, **options: Any) -> Attention:
    kv_heads, dropout = sizes.num_kv_heads, sizes.dropout
    return kind(sizes.d_model, sizes.num_heads, num_kv_heads=kv_heads, dropout=dropout, **options)


def _with_own_heads(module: Attention, setting: Setting) -> Attention:
    """Give a module heads of another width than d_model / num_heads, if a setting has such."""
    sizes = setting.sizes
    if sizes.head_dim:
        d, wide, narrow = sizes.d_model, sizes.all_heads, sizes.num_kv_heads * sizes.d_k
        module.W_q, module.W_k, module.W_v, module.W_o = (
            nn.Linear(*widths)
            for widths in (
                (d, wide), (d, narrow), (d, narrow), (wide, d if setting.out_projection else wide)
            )
        )  # fmt: skip
        module.reset_parameters()
    return module


@lru_cache(maxsize=64)
def reference(setting: Setting) -> MultiHeadAttention:
    """Return the right module; its biases are random, so that a forgotten one shows."""
    torch.manual_seed(0)
    module = _with_own_heads(_built(MultiHeadAttention, setting.sizes), setting)
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


@lru_cache(maxsize=64)
def _in_steps(setting: Setting) -> SteppedAttention:
    module = _with_own_heads(_built(SteppedAttention, setting.sizes, steps={}), setting)
    module.load_state_dict(reference(setting).state_dict())
    return module.eval()


def stepped(setting: Setting, steps: dict[str, Any]) -> SteppedAttention:
    """Return the module with these steps and the reference's weights, until the next call."""
    module = _in_steps(setting)
    module.steps = steps
    return module
