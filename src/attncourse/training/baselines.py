"""Losses of guessers that know nothing, or how common tokens are, or the token before.

    >>> counts = pair_counts([[2, 0, 1, 2], [2, 0, 0, 2]], vocabulary_size=3)
    >>> counts  # row: what stands before, column: what follows
    tensor([[1, 1, 1],
            [0, 0, 1],
            [2, 0, 0]])
    >>> losses = uniform_loss(3), unigram_loss(counts.sum(0)), bigram_loss(counts)
    >>> print(*(f"{loss:.3f}" for loss in losses))
    1.099 1.011 0.549

All losses are mean cross-entropies per token, in nats: -ln of the probability that was given to
what came.
"""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from attnlib.checks import checked_list, dense_numbers, require_positive_int, shape_of

TINY = torch.finfo(torch.float64).tiny


def pair_counts(texts: Iterable[Sequence[int]], vocabulary_size: int) -> Tensor:
    """Count which token follows which.

    Args:
        texts: each a sequence of token ids, with what stands before its first token and after its
            last if they count.
        vocabulary_size: V, how many tokens there are.

    Returns:
        int64 [V, V]: in row i, column j how often j comes right after i. Summed over rows,
        `sum(0)`, they are how often each token comes after another.

    Raises:
        TypeError, ValueError: texts that aren't sequences of ids from 0 to V - 1.
    """
    require_positive_int("vocabulary_size", vocabulary_size)
    counts = torch.zeros(vocabulary_size, vocabulary_size, dtype=torch.int64)
    for i, text in enumerate(checked_list("texts", texts)):
        listed = checked_list(f"texts[{i}]", text)
        if not all(type(token) is int for token in listed):
            raise TypeError(f"texts must be sequences of token ids, got {text!r:.60} at {i}")
        if not all(0 <= token < vocabulary_size for token in listed):
            raise ValueError(
                f"texts must hold ids from 0 to {vocabulary_size - 1}, got {text!r:.60} at {i}"
            )
        ids = torch.tensor(listed, dtype=torch.int64)
        counts.index_put_((ids[:-1], ids[1:]), torch.tensor(1), accumulate=True)
    return counts


def uniform_loss(vocabulary_size: int) -> float:
    """Return what it costs to give every token the same probability: ln V.

    Raises:
        TypeError, ValueError: not a whole number of at least 1.
    """
    require_positive_int("vocabulary_size", vocabulary_size)
    return math.log(vocabulary_size)


def unigram_loss(counts: Tensor, of: Tensor | None = None) -> float:
    """Return what it costs to give each token the share that it has among all.

    Args:
        counts: how often each token comes, [V].
        of: how often each comes in the text that is guessed, [V]; `counts` itself if left out. The
            loss is infinite where it has a token that was never counted.

    Raises:
        TypeError, ValueError: not counts of this shape, or nothing counted.
    """
    return _loss(counts, of, dim=1)


def bigram_loss(counts: Tensor, of: Tensor | None = None) -> float:
    """Return what it costs to give each token the share that it has after the token before it.

    Args:
        counts: how often each token (column) comes after each other (row), [V, V], as
            `pair_counts` returns them.
        of: the same of the text that is guessed; `counts` itself if left out. The loss is infinite
            where it has a pair that was never counted.

    Raises:
        TypeError, ValueError: not counts of this shape, or nothing counted.
    """
    return _loss(counts, of, dim=2)


def _loss(counts: Tensor, of: Tensor | None, dim: int) -> float:
    """Return the mean of -ln share, the shares taken within the last dimension."""
    seen = _checked("counts", counts, dim)
    guessed = seen if of is None else _checked("of", of, dim)
    if guessed.shape != seen.shape:
        raise ValueError(
            f"of must have the shape of counts {shape_of(seen)}, got {shape_of(guessed)}"
        )
    shares = seen / seen.sum(-1, keepdim=True).clamp(min=TINY)  # a row without counts stays 0
    return -(torch.special.xlogy(guessed, shares).sum() / guessed.sum()).item()


def _checked(name: str, counts: Tensor, dim: int) -> Tensor:
    """Return counts in float64, or raise unless they are some."""
    numbers = dense_numbers(name, counts)
    if numbers.dim() != dim or len({*numbers.shape, 0}) != 2:
        wanted = ["V"] * dim
        raise ValueError(f"{name} must have shape [{', '.join(wanted)}], got {shape_of(counts)}")
    if not (numbers >= 0).all() or not 0 < numbers.sum() < math.inf:
        ends = f"from {numbers.min().item()} to {numbers.max().item()}"
        raise ValueError(f"{name} must be counts, 0 or more, not all of them 0, got {ends}")
    return numbers
