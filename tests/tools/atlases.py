"""Atlases of no model: weights by chance, with patterns in some heads, of any size."""

import torch

from attncourse.atlas import Atlas, PatternScores
from attnlib.heatmap import cell_edges

GRID = 64


def made_weights(L: int, h: int, T: int, *, causal: bool, seed: int) -> torch.Tensor:
    """Return weights [L, h, T, T] by chance; the first head looks back, the last at token 0."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(L, h, T, T, generator=generator) * torch.linspace(1, 4, h)[:, None, None]
    places = torch.arange(T)
    scores[0, 0, places, (places - 1).clamp(min=0)] += 12
    scores[-1, -1, :, 0] += 12
    if causal:
        scores = scores.masked_fill(places[:, None] < places, -torch.inf)
    return scores.softmax(-1)


def pooled(weights: torch.Tensor) -> torch.Tensor:
    """Return maps as `attnlib.heatmap` pools them, mass by cells."""
    T = weights.shape[-1]
    edges = cell_edges(T, GRID)
    sizes = torch.tensor(edges).diff().tolist()
    by_keys = torch.stack([part.sum(-1) for part in weights.split(sizes, -1)], -1)
    return torch.stack([part.mean(-2) for part in by_keys.split(sizes, -2)], -2)


def scores_of(weights: torch.Tensor) -> dict[str, PatternScores]:
    """Return three scores: one in shares, one with offsets, one in nats."""
    L, h, T = weights.shape[:3]
    back = weights.diagonal(-1, -2, -1).mean(-1).double()
    nats = torch.special.entr(weights).sum(-1).mean(-1).double()
    chance, spread = 1 / T, torch.full((L, h), 0.02).double()

    def scores(name, mean, baseline, rule, offsets=None):
        base = torch.full((L, h), baseline).double()
        return PatternScores(name, mean, spread, base, rule, 3 - (rule == "evenly"), offsets, 40)

    offsets = torch.full((L, h), -1)
    return {
        "previous token": scores("previous token", back, chance, "evenly"),
        "best offset": scores("best offset", back, chance, "always at offset -3", offsets),
        "entropy": scores("entropy", nats, float(torch.tensor(T).log()), "evenly"),
    }


def made_atlas(
    L=2, h=3, T=6, *, tokens=None, name="made by chance", causal=True, seed=0, has_values=True
) -> tuple[Atlas, torch.Tensor]:
    """Return an atlas, and the weights [L, h, T, T] that it is of."""
    weights = made_weights(L, h, T, causal=causal, seed=seed)
    tokens = tuple(tokens or (f"t{i}" for i in range(T)))
    top_weights, top_keys = weights.topk(min(8, T), dim=-1)
    lengths = torch.rand(L, h, T, generator=torch.Generator().manual_seed(seed)) + 0.5
    atlas = Atlas(
        name=name,
        layer_names=tuple(f"layer.{i}" for i in range(L)),
        texts=(("one", "other", "text"), tokens),
        shown=1,
        causal=causal,
        scores=scores_of(weights),
        maps=pooled(weights),
        top_keys=top_keys.masked_fill(top_weights == 0, -1).int(),
        top_weights=top_weights,
        value_norms=lengths if has_values else None,
    )
    return atlas, weights
