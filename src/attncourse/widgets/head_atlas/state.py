"""What a HeadAtlas holds: an atlas, checked, as the texts and bytes that the browser reads."""

import math
from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attncourse._words import counted
from attncourse.widgets._inputs import checked_numbers
from attnlib.checks import checked_list, checked_texts, require_whole_numbers, shape_of
from attnlib.weight_checks import require_attention

if TYPE_CHECKING:
    from attncourse.atlas import Atlas, PatternScores

MOST_HEADS, MOST_TOKENS = 1024, 1024  # that a page can hold as buttons
MOST_BYTES = 10_000_000  # of maps and rows; compressed and as text they are a file of that size
NO_KEY = 2**16 - 1


def state_of(atlas: "Atlas", layers: Iterable[int] | None) -> dict[str, Any]:
    """Return the fixed traits of a HeadAtlas; raises what HeadAtlas raises."""
    from attncourse.atlas import Atlas  # which imports the widgets to write files

    if not isinstance(atlas, Atlas):
        raise TypeError(
            f"atlas must be an Atlas, got {type(atlas).__name__}: "
            "attncourse.atlas.of(model, texts) makes one"
        )
    tokens = checked_texts("the shown text of the atlas", atlas.texts[atlas.shown])
    names = checked_texts("layer_names", atlas.layer_names)
    size = _checked_size(atlas, len(names), len(tokens))
    chosen = _checked_layers(layers, len(names))
    L, h, T, cells, k = size
    norms = atlas.value_norms
    _require_room(len(chosen), size, has_values=norms is not None)
    scores = {name: _checked_scores(name, each, L, h) for name, each in atlas.scores.items()}
    if not scores:
        raise ValueError("scores must hold at least one pattern, got none")
    weights = _within("top_weights", atlas.top_weights[chosen], 1)
    return {
        "name": str(atlas.name),
        "about": _about(atlas, chosen, len(tokens)),
        "layers": chosen,
        "layer_names": [names[layer] for layer in chosen],
        "tokens": tokens,
        "h": h,
        "T": T,
        "cells": cells,
        "k": k,
        "causal": bool(atlas.causal),
        "patterns": [_entry(name, each, chosen) for name, each in atlas.scores.items()],
        "scores": torch.stack([each[:, chosen] for each in scores.values()]),
        "maps": _packed_maps(atlas.maps[chosen]),
        "top_keys": _packed_keys(atlas.top_keys[chosen], T),
        "top_weights": (weights * (2**16 - 1)).round(),
        "value_norms": b"" if norms is None else _within("value_norms", norms[chosen], math.inf),
    }


def _checked_size(atlas: "Atlas", L: int, T: int) -> tuple[int, int, int, int, int]:
    """Return L, h, T, cells and k, or raise ValueError unless all tensors have them."""
    if atlas.maps.dim() != 4 or 0 in atlas.maps.shape:
        raise ValueError(f"maps must have shape [L, h, cells, cells], got {shape_of(atlas.maps)}")
    h, cells = atlas.maps.shape[1], atlas.maps.shape[2]
    k = atlas.top_keys.shape[-1] if atlas.top_keys.dim() == 4 else 0
    wanted = {"maps": [L, h, cells, cells], "top_keys": [L, h, T, k], "top_weights": [L, h, T, k]}
    if atlas.value_norms is not None:
        wanted["value_norms"] = [L, h, T]
    for name, shape in wanted.items():
        found = shape_of(getattr(atlas, name))
        if found != shape or k == 0:
            raise ValueError(
                f"{name} must fit {L} layers of {h} heads and {T} tokens, got shape {found}"
            )
    if math.ceil(T / math.ceil(T / cells)) != cells:
        raise ValueError(
            f"maps must have one cell for every token, or every two, and so on: {cells} cells a "
            f"side don't divide {T} tokens alike"
        )
    return L, h, T, cells, k


def _checked_layers(layers: Iterable[int] | None, L: int) -> list[int]:
    if layers is None:
        return list(range(L))
    chosen = checked_list("layers", layers)
    for layer in chosen:
        if isinstance(layer, bool) or not isinstance(layer, Integral):
            raise TypeError(f"layers must be whole numbers, got {type(layer).__name__} ({layer!r})")
        if not 0 <= layer < L:
            raise ValueError(f"layers must be of 0 to {L - 1} (0-based), got {layer}")
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"layers must be at least one, each once, got {chosen}")
    return chosen


def _require_room(L: int, size: tuple[int, int, int, int, int], *, has_values: bool) -> None:
    _, h, T, cells, k = size
    each = cells**2 + T * k * 4 + (T * 4 if has_values else 0)  # bytes of a head
    fewer = f"HeadAtlas(atlas, layers=range({max(1, min(MOST_HEADS, MOST_BYTES // each) // h)}))"
    if T > MOST_TOKENS:
        raise ValueError(
            f"the shown text must have at most {MOST_TOKENS} tokens, got {T}: give a shorter one"
        )
    if L * h > MOST_HEADS:
        raise ValueError(
            f"atlas must have at most {MOST_HEADS:,} heads to be drawn, got {L} x {h}: show some "
            f"layers with {fewer}"
        )
    if L * h * each > MOST_BYTES:
        raise ValueError(
            f"atlas must fit into {MOST_BYTES / 1e6:.0f} MB, but {L} x {h} heads and {T} tokens "
            f"need {L * h * each / 1e6:.1f} MB: show some layers with {fewer}, or a shorter text"
        )


def _checked_scores(name: str, scores: "PatternScores", L: int, h: int) -> Tensor:
    """Return mean, spread and baseline of a pattern as float32 [3, L, h], or raise."""
    parts = []
    for part in ("mean", "spread", "baseline"):
        value = checked_numbers(f"{part} of {name!r}", getattr(scores, part))
        if shape_of(value) != [L, h]:
            raise ValueError(f"{part} of {name!r} must have shape {[L, h]}, got {shape_of(value)}")
        parts.append(value)
    return torch.stack(parts)


def _entry(name: str, scores: "PatternScores", layers: list[int]) -> dict[str, object]:
    """Return what the browser needs of a pattern besides its numbers."""
    offsets = [] if scores.offsets is None else scores.offsets[layers].flatten().tolist()
    lower = name == "entropy"  # the lower, the more a head has found
    entry = {"name": name, "rule": scores.rule, "texts": scores.texts, "rows": scores.rows}
    return entry | {"lower": lower, "offsets": offsets}


def _within(name: str, value: Tensor, most: float) -> Tensor:
    """Return numbers as float32, or raise ValueError unless all are from 0 to `most`."""
    numbers = checked_numbers(name, value)
    low, high = numbers.min().item(), numbers.max().item()
    if low < 0 or high > most * (1 + 1e-4):
        raise ValueError(f"{name} must be from 0 to {most}, got {low:.4g} to {high:.4g}")
    return numbers.clamp(max=most)


def _packed_maps(maps: Tensor) -> Tensor:
    """Return the square roots of shares in steps of 1/255."""
    try:
        shares = require_attention(maps)
    except ValueError as error:
        raise ValueError(f"maps of the atlas: {error}") from None
    return (shares.clamp(max=1).sqrt() * 255).round()


def _packed_keys(keys: Tensor, T: int) -> Tensor:
    """Return keys with `NO_KEY` in place of -1."""
    require_whole_numbers("top_keys", keys)
    low, high = int(keys.min()), int(keys.max())
    if low < -1 or high >= T:
        raise ValueError(f"top_keys must be from 0 to {T - 1}, or -1 for none, got {low} to {high}")
    return keys.masked_fill(keys < 0, NO_KEY)


def _about(atlas: "Atlas", layers: list[int], T: int) -> list[str]:
    """Return sentences that say which heads and which texts these are."""
    L, h = atlas.maps.shape[:2]
    heads = f"{counted(L, 'layer')} of {counted(h, 'head')}"
    if len(layers) < L:
        heads += f", {counted(len(layers), 'layer')} of them shown"
    together = sum(map(len, atlas.texts))
    texts = f"{counted(len(atlas.texts), 'text')} ({counted(together, 'token')})"
    which = f"text {atlas.shown + 1}" if len(atlas.texts) > 1 else "the text"
    return [
        f"{heads}; scores are of {texts}.",
        f"Maps and rows are of {which}, {counted(T, 'token')} long.",
    ]
