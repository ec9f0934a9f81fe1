"""A layer of GPT-2: its attention out of a state dict, its heads out of c_attn's answer."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise, not_yet
from attncourse.checking.calling import call, mentions, outputs_of
from attncourse.checking.numbers import same_numbers
from attnlib.attention import MultiHeadAttention
from attnlib.functional import split_heads
from attnlib.interop import from_gpt2

State = Mapping[str, Tensor]
Loader = Callable[[State, int, int], MultiHeadAttention]


MANY = 12  # layers; the last ones have two digits


def _thirds(packed: Tensor) -> list[Tensor]:
    """Cut [d, 3 d], or [3 d], into three and turn matrices to [d_out, d_in]."""
    return [part.mT if part.dim() > 1 else part for part in packed.chunk(3, dim=-1)]


def _reshaped(packed: Tensor) -> list[Tensor]:
    """Read [d, 3 d] as if it were [3 d, d], without turning it."""
    rows = packed.reshape(-1, packed.shape[0]) if packed.dim() > 1 else packed
    return list(rows.chunk(3))


def _unturned(packed: Tensor) -> list[Tensor]:
    return list(packed.chunk(3, dim=-1))


def _head_by_head(num_heads: int) -> Callable[[Tensor], list[Tensor]]:
    def cut(packed: Tensor) -> list[Tensor]:
        parts = packed.unflatten(-1, (num_heads, 3, -1)).unbind(-2)  # [d, 3 d] -> 3 of [d, h, d_k]
        return [part.flatten(-2).mT if part.dim() > 2 else part.flatten() for part in parts]

    return cut


def _loader(
    *,
    order: str = "qkv",
    cut: Callable[[Tensor], list[Tensor]] | None = _thirds,
    proj_turned: bool = True,
    layer_of: Callable[[int], int] = lambda layer: layer,
    heads: int | None = None,
) -> Loader:
    """Make a loader that may have a mistake; `cut` None cuts head by head."""

    def load(state: State, layer: int, num_heads: int) -> MultiHeadAttention:
        part = f"h.{layer_of(layer)}.attn."
        d = len(state[f"{part}c_proj.bias"])
        module = MultiHeadAttention(d, heads or num_heads)
        pieces = cut or _head_by_head(num_heads)
        targets = {"q": module.W_q, "k": module.W_k, "v": module.W_v}
        with torch.no_grad():
            for kind in ("weight", "bias"):
                for name, piece in zip(order, pieces(state[f"{part}c_attn.{kind}"]), strict=True):
                    getattr(targets[name], kind).copy_(piece)
            weight = state[f"{part}c_proj.weight"]
            module.W_o.weight.copy_(weight.T if proj_turned else weight)
            module.W_o.bias.copy_(state[f"{part}c_proj.bias"])
        return module

    return load


def _state(layers: int, d: int) -> dict[str, Tensor]:
    shapes = {
        "c_attn.weight": (d, 3 * d), "c_attn.bias": (3 * d,),
        "c_proj.weight": (d, d), "c_proj.bias": (d,),
    }  # fmt: skip
    return {
        f"h.{layer}.attn.{name}": torch.randn(shape) / d**0.5
        for layer in range(layers)
        for name, shape in shapes.items()
    }


def _wrong_parts(load: Loader) -> str:
    """Return a hint on the parameters that aren't the file's, if others are."""
    given = _state(3, 12), 2, 3
    module, right = call(load, given).outputs, dict(from_gpt2(*given[:2], num_heads=3).state_dict())
    found = module.state_dict() if isinstance(module, MultiHeadAttention) else {}
    wrong = [
        name for name, numbers in right.items() if not same_numbers(found.get(name), numbers, 1e-6)
    ]
    if not 0 < len(wrong) < len(right):
        return ""
    return (
        f"These parameters of your module aren't what the file holds: {', '.join(wrong)}. "
        f"The other {len(right) - len(wrong)} are right."
    )


@exercise()
def gpt2_layer(answer: Loader) -> CheckResult:
    """Check `load(state, layer, num_heads)`: a `MultiHeadAttention` of a layer of GPT-2.

    state holds `h.0.attn.c_attn.weight` and its like, in the layout of `transformers`; layer counts
    from 0.
    """

    def reference(state: State, layer: int, num_heads: int) -> MultiHeadAttention:
        return from_gpt2(state, layer, num_heads=num_heads)

    cases = [
        (_state(3, 12), 2, 3, torch.randn(2, 5, 12)),
        (_state(4, 10), 2, 2, torch.randn(3, 6, 10)),
        (_state(MANY, 6), 1, 2, torch.randn(2, 4, 6)),
    ]
    computed = partial(outputs_of, run=lambda module, x: module(x, causal=True, need_weights=True))
    praise = (
        "Outputs and every head's weights agree with GPT-2's arithmetic: that is parity, and "
        "shapes alone would not have shown it."
    )
    result = check_function(
        answer,
        computed(reference),
        cases,
        gpt2_layer.mistakes,
        output_names=["the output of your module", "the weights of your module"],
        as_function=computed,
        otherwise=_wrong_parts,
        praise=praise,
    )
    lost = _wrong_parts(answer) if result else ""  # a bias of keys, which no output shows
    return not_yet(lost) if lost else result


Heads = tuple[Tensor, ...]


def unpacked(packed: Tensor, num_heads: int) -> Heads:
    """Return q, k and v [B, h, T, d_k] of what c_attn returns, [B, T, 3 d]."""
    return tuple(split_heads(part, num_heads) for part in packed.chunk(3, dim=-1))


def _three(answer: Callable) -> Callable:
    """Take one stacked tensor, [3, B, h, T, d_k], for three: it unpacks as they do."""

    def split(packed: Tensor, num_heads: int) -> Any:
        found = answer(packed, num_heads)
        return tuple(found) if isinstance(found, Tensor) and found.dim() == 5 else found

    return split


def _split_cases() -> list[tuple[Tensor, int]]:
    return [(torch.randn(2, 5, 36), 3), (torch.randn(3, 4, 30), 2)]


@exercise()
def split_c_attn(answer: Any) -> CheckResult:
    """Check `split_qkv(packed, num_heads)`: [B, T, 3 d] -> q, k and v, each [B, h, T, d_k]."""
    praise = "Three blocks, then heads: c_attn computes 3 h small matrices at once."
    result = check_function(
        answer,
        unpacked,
        _split_cases(),
        split_c_attn.mistakes,
        output_names=["the queries", "the keys", "the values"],
        as_function=_three,
        praise=praise,
    )
    ready_made = result and mentions(answer, "split_heads")
    return not_yet(split_c_attn.hints["ready_made"]) if ready_made else result
