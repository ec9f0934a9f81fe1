"""What a HeadAtlas holds: an atlas as the texts and numbers that the browser reads."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import torch

from attncourse.widgets.head_atlas.atlas_protocol import ShownAtlas, ShownScores
from attndoctor.support.printing import counted
from attnlib.checks import checked_list

MOST_HEADS, MOST_TOKENS = 1024, 1024  # that a page can hold as buttons
MOST_BYTES = 10_000_000  # of maps and rows; compressed and as text they are a file of that size
NO_KEY = 2**16 - 1


def state_of(atlas: ShownAtlas, layers: Iterable[int] | None) -> dict[str, Any]:
    """Return the fixed traits of a HeadAtlas; raises what HeadAtlas raises."""
    if not isinstance(atlas, ShownAtlas):
        raise TypeError(
            f"atlas must be an Atlas, got {type(atlas).__name__}: "
            "attncourse.atlas.from_model(model, texts) makes one"
        )
    (L, h, cells, _), k = atlas.maps.shape, atlas.top_keys.shape[-1]
    tokens, norms = list(atlas.tokens), atlas.value_norms
    T = len(tokens)
    chosen = _checked_layers(layers, L)
    _require_room(len(chosen), (h, T, cells, k), has_values=norms is not None)
    scores = [
        torch.stack([each.mean, each.spread, each.baseline]) for each in atlas.scores.values()
    ]
    return {
        "name": str(atlas.name),
        "about": _about(atlas, chosen, T),
        "layers": chosen,
        "layer_names": [atlas.layer_names[layer] for layer in chosen],
        "tokens": tokens,
        "h": h,
        "T": T,
        "cells": cells,
        "k": k,
        "causal": bool(atlas.causal),
        "patterns": [_entry(name, each, chosen) for name, each in atlas.scores.items()],
        "scores": torch.stack(scores)[:, :, chosen],
        "maps": (atlas.maps[chosen].double().clamp(max=1).sqrt() * 255).round(),
        "top_keys": atlas.top_keys[chosen].masked_fill(atlas.top_keys[chosen] < 0, NO_KEY),
        "top_weights": (atlas.top_weights[chosen].clamp(max=1) * (2**16 - 1)).round(),
        "value_norms": b"" if norms is None else norms[chosen],
    }


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


def _require_room(L: int, size: tuple[int, int, int, int], *, has_values: bool) -> None:
    h, T, cells, k = size
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


def _entry(name: str, scores: ShownScores, layers: list[int]) -> dict[str, object]:
    """Return what the browser needs of a pattern besides its numbers."""
    offsets = [] if scores.offsets is None else scores.offsets[layers].flatten().tolist()
    lower = name == "entropy"  # the lower, the more a head has found
    entry = {"name": name, "rule": scores.rule, "texts": scores.texts, "rows": scores.rows}
    return entry | {"lower": lower, "offsets": offsets}


def _about(atlas: ShownAtlas, layers: list[int], T: int) -> list[str]:
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
