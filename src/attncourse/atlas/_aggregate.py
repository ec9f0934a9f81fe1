"""Scores over all texts: means, spreads, baselines."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from attncourse.atlas._atlas import PatternScores
from attncourse.atlas._layer_scores import REACH, Layer

Text = Sequence[Layer]  # what one text showed, layer by layer
ON_TARGETS = ("previous token", "first token", "same token", "induction")


def is_causal(seen: Sequence[Text]) -> bool:
    """Return whether no head ever looked to the right."""
    return not any(layer.attends_forward for text in seen for layer in text)


def scores_of(seen: Sequence[Text], lengths: Sequence[int]) -> dict[str, PatternScores]:
    """Return the scores of all patterns that any text has; the texts have these lengths."""
    causal = is_causal(seen)
    scores = {}
    for pattern in ON_TARGETS:
        counted = "same token before" if pattern == "same token" and causal else pattern
        having = [text for text in seen if counted in text[0].scores]
        if having:
            scores[pattern] = _on_targets(pattern, counted, having)
    scores["best offset"] = _best_offset(seen, lengths, causal)
    scores["entropy"] = _entropy(seen, lengths, causal)
    return scores


def _on_targets(pattern: str, counted: str, seen: Sequence[Text]) -> PatternScores:
    found = _stacked(seen, lambda layer: layer.scores[counted])
    best = [text[0].baselines[counted] for text in seen]  # depends on the tokens, not on the layer
    offsets = {offset for offset, _ in best}
    share = sum(share for _, share in best) / len(best)
    rule = "at the best offset of each text"
    if len(offsets) == 1:
        rule = f"always at offset {offsets.pop():+d}"
    baseline = torch.full(found.shape[1:], share, dtype=torch.float64)
    rows = sum(text[0].rows[counted] for text in seen)
    return PatternScores(
        pattern, found.mean(0), _spread(found), baseline, rule, len(seen), rows=rows
    )


def _entropy(seen: Sequence[Text], lengths: Sequence[int], causal: bool) -> PatternScores:
    found = _stacked(seen, lambda layer: layer.scores["entropy"])
    evenly = torch.stack([_keys(T, causal).log().mean() for T in lengths]).mean()
    baseline = evenly.expand(found.shape[1:]).clone()
    return PatternScores(
        "entropy", found.mean(0), _spread(found), baseline, "evenly", len(seen), rows=sum(lengths)
    )


def _best_offset(seen: Sequence[Text], lengths: Sequence[int], causal: bool) -> PatternScores:
    """Score each head at the offset at which it has most weight, on average over the texts."""
    found = _stacked(seen, lambda layer: _to_reach(layer.by_offset))  # [texts, L, h, offsets]
    best = found.nanmean(0).nan_to_num(-1.0).argmax(-1)  # [L, h]
    at_best = found.gather(-1, best.expand(len(found), *best.shape)[..., None])[..., 0]
    there = ~at_best.isnan()  # [texts, L, h]: the text is long enough
    count = there.sum(0)
    mean = at_best.nan_to_num().sum(0) / count
    squares = ((at_best - mean) ** 2).nan_to_num().sum(0)
    spread = (squares / (count - 1).clamp_min(1)).sqrt()
    evenly = torch.stack([_evenly_at(T, causal) for T in lengths]).nanmean(0)[best]  # [L, h]
    return PatternScores(
        "best offset", mean, spread, evenly, "evenly", len(seen), best - REACH, sum(lengths)
    )


def _stacked(seen: Sequence[Text], of: Callable[[Layer], Tensor]) -> Tensor:
    """Return what each layer of each text has, [texts, L, h, ...]."""
    return torch.stack([torch.stack([of(layer) for layer in text]) for text in seen])


def _spread(found: Tensor) -> Tensor:
    """Return the standard deviation over texts, 0 for a single one."""
    return found.std(0) if len(found) > 1 else torch.zeros_like(found[0])


def _keys(T: int, causal: bool) -> Tensor:
    """Return how many keys each query may look at, float64 [T]."""
    keys = torch.arange(1, T + 1) if causal else torch.full((T,), T)
    return keys.double()


def _evenly_at(T: int, causal: bool) -> Tensor:
    """Return what a head scores at each offset that looks evenly, float64 [offsets]."""
    each = 1 / _keys(T, causal)
    scores = torch.full((2 * REACH + 1,), torch.nan, dtype=torch.float64)
    reach = min(REACH, T // 2)
    for offset in range(-reach, reach + 1):
        rows = each[-offset:] if offset <= 0 else each[:-offset]
        scores[offset + REACH] = 0.0 if causal and offset > 0 else rows.mean()
    return scores


def _to_reach(by_offset: Tensor) -> Tensor:
    """Return the scores [h, offsets] of a short text with NaN at the offsets that it hasn't."""
    missing = REACH - by_offset.shape[-1] // 2
    return torch.nn.functional.pad(by_offset, (missing, missing), value=torch.nan)
