"""Checks of a model's parts and inputs."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from attnlib.blocks import TransformerBlock
from attnlib.cache import KVCache
from attnlib.checks import (
    checked_list,
    require_flag,
    require_positive_int,
    require_same_device,
    require_tensor,
    shape_of,
)


def checked_blocks(blocks: Sequence[TransformerBlock]) -> list[TransformerBlock]:
    """Return blocks as a list, or raise unless there are different ones of one width."""
    blocks = checked_list("blocks", blocks)
    if not blocks:
        raise ValueError("blocks must hold at least one, got none")
    for i, block in enumerate(blocks):
        if not isinstance(block, TransformerBlock):
            raise TypeError(
                f"blocks must be attnlib TransformerBlocks, got {type(block).__name__} at {i}"
            )
        if block.d_model != blocks[0].d_model:
            raise ValueError(
                f"blocks must have one width, got d_model={blocks[0].d_model} in the first "
                f"and {block.d_model} at {i}"
            )
        if (first := next(j for j, other in enumerate(blocks) if other is block)) < i:
            raise ValueError(
                f"blocks must differ, but block {i} is block {first} once more: they would share "
                "weights (copy.deepcopy makes another)"
            )
    return blocks


def require_readouts(readouts: Mapping[str, int]) -> None:
    """Raise unless readouts have sizes, and names that submodules can have."""
    if not isinstance(readouts, Mapping):
        raise TypeError(
            "readouts must map a name to its number of answers, such as {'next': 10}, got "
            f"{type(readouts).__name__}"
        )
    if not readouts:
        raise ValueError("readouts must hold at least one, got none")
    for name, size in readouts.items():
        taken = isinstance(name, str) and hasattr(nn.ModuleDict, name)
        if not isinstance(name, str) or not name or "." in name or taken:
            raise ValueError(
                "readouts must have names that a part of a module can have, without a dot and "
                f"not its own, got {name!r}"
            )
        require_positive_int(f"readouts[{name!r}]", size)


def require_tied(
    tied: bool, readouts: Mapping[str, int], vocabulary_size: int, readout_bias: bool
) -> None:
    """Raise unless `tied` is False, or the one readout can use the embedding of tokens."""
    require_flag("tied", tied)
    if tied and (list(readouts.values()) != [vocabulary_size] or readout_bias):
        raise ValueError(
            "tied must be left out unless there is one readout, without bias, of as many answers "
            f"as there are tokens, {vocabulary_size}; got readouts {dict(readouts)} and "
            f"readout_bias={readout_bias}"
        )


def require_token_ids(tokens: Tensor, weight: Tensor, length: int, past: int) -> None:
    """Raise unless tokens are ids [B, T] of an embedding's weight [V, d], and not too many.

    There are `length` positions, and tokens in caches take the first `past`.
    """
    require_tensor("tokens", tokens)
    if tokens.dtype != torch.int64:
        raise TypeError(f"tokens must be ids of dtype torch.int64, got {tokens.dtype}")
    if tokens.dim() != 2:
        raise ValueError(
            f"tokens must have shape [B, T], got {shape_of(tokens)}: "
            "for one sentence [T] add a batch of one with .unsqueeze(0)"
        )
    if not 1 <= tokens.shape[1] <= length - past:
        raise ValueError(
            f"tokens must be 1 to {length - past} per sentence, got shape {shape_of(tokens)}: "
            f"the model has {length} positions" + (f", and {past} are in caches" if past else "")
        )
    require_same_device("tokens", tokens, "the model's weights", weight)
    if torch.compiler.is_compiling() or tokens.is_meta or not len(tokens):
        return  # no numbers to look at
    low, high = (int(bound) for bound in tokens.aminmax())
    if low < 0 or high >= len(weight):
        raise ValueError(
            f"tokens must be ids from 0 to {len(weight) - 1}, got {low if low < 0 else high}"
        )


def checked_head_masks(
    head_masks: Sequence[Tensor | None] | Tensor | None, layers: int
) -> Sequence[Tensor | None]:
    """Return a mask or None for each layer."""
    if head_masks is None:
        return [None] * layers
    if isinstance(head_masks, Tensor) and head_masks.dim() < 2:
        raise ValueError(
            f"head_masks must hold a mask for each of {layers} layers, got one tensor of shape "
            f"{shape_of(head_masks)}: put it into a list"
        )
    masks = checked_list("head_masks", head_masks)
    if len(masks) != layers:
        raise ValueError(
            f"head_masks must hold a mask for each of {layers} layers, got {len(masks)}"
        )
    return masks


def checked_caches(
    caches: Sequence[KVCache] | None, layers: int, causal: bool
) -> Sequence[KVCache | None]:
    """Return a cache or None for each layer, or raise unless all hold equally many tokens."""
    if caches is None:
        return [None] * layers
    found = checked_list("caches", caches)
    for cache in found:
        if not isinstance(cache, KVCache):
            raise TypeError(f"caches must be KVCaches, got {type(cache).__name__}")
    if len(found) != layers or len({id(cache) for cache in found}) != layers:
        raise ValueError(
            f"caches must hold one for each of {layers} layers, each another, such as "
            f"[KVCache() for _ in model.blocks], got {len(found)}"
        )
    lengths = [len(cache) for cache in found]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"caches must hold as many tokens each, got {lengths}: did a call fail midway? "
            "Begin again with new ones"
        )
    if not causal:
        raise ValueError(
            "caches must be left out where causal=False: tokens that are remembered would have to "
            "look at those that came later"
        )
    return found
