"""Scores of heads: how much of a known pattern their weights hold, and what a fixed rule would get.

A head that always looks at the previous word finds every subject right before its verb, and knows
nothing of verbs. So each score comes with a *fixed-offset baseline*: the score of a head that
always looks at the same distance, for the best distance (as in Clark et al. 2019, section 4.2, and
Voita et al. 2019, section 5.2)::

    >>> import torch
    >>> from attnlib import patterns
    >>> weights = torch.eye(4).roll(1, dims=1)[None]  # [h=1, T, T]: each looks at the next
    >>> patterns.relation_mass(weights, torch.tensor([1, 3, 3, -1]))
    Scores(heads=[0.67], baseline=0.67 at offset +1, rows=3)

In the formulas, A is the weights, i the row of the word that looks, j the column that it looks at.
Means are over the rows of all samples together. A row that may look nowhere counts as 0.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlib.checks import (
    require_boolean_mask,
    require_flag,
    require_positive_int,
    require_whole_numbers,
    shape_of,
)
from attnlib.pattern_sums import (
    EntropySums,
    TargetSums,
    follower_targets,
    partner_pairs,
    previous_targets,
    same_targets,
)
from attnlib.weight_checks import require_attention

__all__ = [
    "Scores",
    "best_offset",
    "entropy",
    "induction_score",
    "previous_token_score",
    "relation_accuracy",
    "relation_mass",
    "same_token_score",
]


@dataclass(frozen=True, repr=False)
class Scores:
    """The scores of heads on a pattern, and that of the best fixed offset.

    Attributes:
        heads: one score per head, float64 [h], from 0 to 1.
        baseline: the score of a head that always looks at the best fixed offset.
        offset: that offset; -1 is the word to the left.
        rows: how many rows the mean is over.
    """

    heads: Tensor
    baseline: float
    offset: int
    rows: int

    @property
    def best(self) -> int:
        """The head with the highest score; of several, the first."""
        return int(self.heads.argmax())

    def __repr__(self) -> str:
        heads = ", ".join(f"{score:.2f}" for score in self.heads.tolist())
        return (
            f"Scores(heads=[{heads}], baseline={self.baseline:.2f} at offset {self.offset:+d}, "
            f"rows={self.rows})"
        )


def previous_token_score(weights: Tensor, *, key_mask: Tensor | None = None) -> Scores:
    """Return how much each head looks at the word before: the mean of A[i, i - 1] over i >= 1.

    The baseline is 1, as the pattern is an offset itself: a high score says what a head does, not
    that it found something. Source: Voita et al. 2019, section 5.1 (positional heads), and
    Clark et al. 2019, section 3.1.

    Args:
        weights: attention [B, h, T, T] or [h, T, T].
        key_mask: bool [B, T] or [T], True = a real token; needed for padded samples.

    Raises:
        TypeError, ValueError: `weights` isn't attention of T words to themselves, `key_mask`
            doesn't fit it, or no row has a word before it.
    """
    maps, real = _checked(weights, key_mask)
    T = real.shape[-1]
    targets = previous_targets(T, range(T)) & _both(real)
    return _mass("weights", "a row with a word before it", maps, targets)


def same_token_score(
    weights: Tensor, tokens: Tensor, *, causal: bool = False, key_mask: Tensor | None = None
) -> Scores:
    """Return how much each head looks at other places of the word that looks.

    The mean of the sum of A[i, j] over j != i with tokens[j] == tokens[i], over the rows i that
    have such a j. Source: Wang et al. 2023, section 3 (duplicate token heads).

    Args:
        weights: attention [B, h, T, T] or [h, T, T].
        tokens: whole numbers [B, T] or [T].
        causal: whether only earlier places count.
        key_mask: bool [B, T] or [T], True = a real token; needed for padded samples.

    Raises:
        TypeError, ValueError: as `previous_token_score`, `tokens` that don't fit `weights`, or no
            word comes twice.
    """
    require_flag("causal", causal)
    maps, real = _checked(weights, key_mask)
    tokens = _numbers("tokens", tokens, weights)
    targets = same_targets(tokens, range(tokens.shape[1]), causal=causal)
    return _mass("tokens", "a word that comes twice", maps, targets & _both(real))


def induction_score(
    weights: Tensor, tokens: Tensor, *, after: int = 1, key_mask: Tensor | None = None
) -> Scores:
    """Return how much each head looks at what came after its word earlier: prefix matching.

    The mean of the sum of A[i, j] over j <= i with tokens[j - after] == tokens[i], over the rows i
    that have such a j. Source: Olsson et al. 2022, who use repeated random tokens.

    Args:
        weights: attention [B, h, T, T] or [h, T, T].
        tokens: whole numbers [B, T] or [T].
        after: how many places after the earlier word; some heads do induction one place further.
        key_mask: bool [B, T] or [T], True = a real token; needed for padded samples.

    Raises:
        TypeError, ValueError: as `same_token_score`.
    """
    maps, real = _checked(weights, key_mask)
    tokens = _numbers("tokens", tokens, weights)
    require_positive_int("after", after)
    targets = follower_targets(tokens, range(tokens.shape[1]), after)
    return _mass("tokens", "a word that comes twice", maps, targets & _both(real))


def relation_mass(weights: Tensor, partners: Tensor) -> Scores:
    """Return how much each head looks from a word at its true partner.

    The mean of A[i, partners[i]] over the rows i that have a partner. Source: Vig and Belinkov
    2019, who take the share of all weight on pairs in a relation.

    Args:
        weights: attention [B, h, T, T] or [h, T, T].
        partners: whole numbers [B, T] or [T], the partner's column, -1 where there is none, such
            as `torch.tensor([-1, 3, -1, -1])` where the second word's partner is the fourth.

    Raises:
        TypeError, ValueError: `weights` isn't attention of T words to themselves, `partners`
            doesn't fit it, or no row has a partner.
    """
    maps, _ = _checked(weights, None)
    return _mass("partners", "a row with a partner", maps, _targets(partners, weights))


def relation_accuracy(weights: Tensor, partners: Tensor) -> Scores:
    """Return how often each head looks at the true partner more than at any other word.

    The share of the rows i with a partner in which A[i, partners[i]] is the largest weight; of
    equal weights, the leftmost is the largest. Source: Clark et al. 2019, section 4.2, and
    Voita et al. 2019, section 5.2.

    Args:
        weights: attention [B, h, T, T] or [h, T, T].
        partners: as for `relation_mass`.

    Raises:
        TypeError, ValueError: as `relation_mass`.
    """
    maps, _ = _checked(weights, None)
    favorites = torch.zeros_like(maps).scatter_(-1, maps.argmax(-1, keepdim=True), 1)
    favorites *= maps.sum(-1, keepdim=True) > 0  # a row that may look nowhere has no favorite
    return _mass("partners", "a row with a partner", favorites, _targets(partners, weights))


def entropy(weights: Tensor, *, key_mask: Tensor | None = None) -> Tensor:
    """Return how widely each head looks: the mean entropy of its rows, in nats, float64 [h].

    The mean of -sum_j A[i, j] ln A[i, j] over the rows that may look. A head with a fixed offset
    has 0, one that looks at n words alike ln n. Source: Clark et al. 2019, section 3.3.

    Args:
        weights: attention [B, h, T, T] or [h, T, T].
        key_mask: bool [B, T] or [T], True = a real token; needed for padded samples.

    Raises:
        TypeError, ValueError: as `previous_token_score`, or a head has no row that may look.
    """
    maps, real = _checked(weights, key_mask)
    sums = EntropySums()
    sums.add(maps, real)
    return sums.means()


def best_offset(partners: Tensor) -> tuple[int, float]:
    """Return the offset at which most partners stand, and their share.

    This is the baseline of `relation_mass` and `relation_accuracy`. Of several such offsets it is
    the shortest; of two that are as short, the one to the left.

    Args:
        partners: whole numbers [B, T] or [T], the partner's column, -1 where there is none.

    Example:
        >>> best_offset(torch.tensor([-1, 0, 1, 0]))
        (-1, 0.6666666666666666)

    Raises:
        TypeError, ValueError: `partners` isn't such a tensor, or no row has a partner.
    """
    require_whole_numbers("partners", partners)
    if partners.dim() not in (1, 2) or not partners.shape[-1]:
        raise ValueError(
            f"partners must have shape [B, T] or [T] with T of at least 1, got {shape_of(partners)}"
        )
    pairs = _pairs(partners.reshape(-1, partners.shape[-1]))
    sums = TargetSums(pairs.shape[-1])
    sums.count(pairs, range(pairs.shape[-1]))
    _require_rows("partners", "a row with a partner", sums)
    return sums.baseline()


def _mass(name: str, wanted: str, maps: Tensor, targets: Tensor) -> Scores:
    """Score maps [B, h, T, T] on targets [B, T, T]; `wanted` says what is missing if none."""
    sums = TargetSums(targets.shape[-1])
    sums.add(maps, targets, range(targets.shape[-1]))
    _require_rows(name, wanted, sums)
    offset, share = sums.baseline()
    return Scores(sums.means(), share, offset, sums.rows)


def _require_rows(name: str, wanted: str, sums: TargetSums) -> None:
    if not sums.rows:
        raise ValueError(f"{name} must have {wanted}, got none")


def _targets(partners: Tensor, weights: Tensor) -> Tensor:
    """Check that partners fit weights; return them as pairs [B, T, T]."""
    return _pairs(_numbers("partners", partners, weights))


def _pairs(partners: Tensor) -> Tensor:
    """Return partners [B, T] as pairs [B, T, T], True where the column is the row's partner."""
    T = partners.shape[-1]
    if partners.numel() and not -1 <= int(partners.min()) <= int(partners.max()) < T:
        raise ValueError(
            f"partners must be columns from 0 to {T - 1}, or -1 for none, "
            f"got {int(partners.min())} to {int(partners.max())}"
        )
    return partner_pairs(partners.cpu())


def _checked(weights: Tensor, key_mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return weights as float64 [B, h, T, T] on the CPU, and which words are real [B, T]."""
    maps = require_attention(weights)
    if maps.dim() not in (3, 4) or maps.shape[-1] != maps.shape[-2]:
        raise ValueError(
            f"weights must have shape [B, h, T, T] or [h, T, T], got {shape_of(weights)}"
        )
    maps = maps.reshape(-1, *maps.shape[-3:])
    B, _, T, _ = maps.shape
    if key_mask is None:
        return maps, torch.ones(B, T, dtype=torch.bool)
    require_boolean_mask("key_mask", key_mask, weights.device)
    _require_shape("key_mask", key_mask, weights)
    return maps, key_mask.reshape(B, T).cpu()


def _numbers(name: str, value: Tensor, weights: Tensor) -> Tensor:
    """Return whole numbers, one per word of the weights, as [B, T] on the CPU, or raise."""
    require_whole_numbers(name, value)
    _require_shape(name, value, weights)
    return value.reshape(-1, weights.shape[-1]).cpu()


def _require_shape(name: str, value: Tensor, weights: Tensor) -> None:
    """Raise unless there is one number per word: [B, T], or [T] for weights [h, T, T]."""
    wanted = [*weights.shape[:-3], weights.shape[-1]]
    if shape_of(value) != wanted:
        raise ValueError(
            f"{name} must have shape {wanted} beside weights of shape {shape_of(weights)}, "
            f"got {shape_of(value)}"
        )


def _both(real: Tensor) -> Tensor:
    """Return True for pairs of real tokens: [B, T] -> [B, T, T]."""
    return real[:, :, None] & real[:, None, :]
