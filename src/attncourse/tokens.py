"""Text as ids: a byte-pair tokenizer that learns its tokens from a text.

    >>> tokenizer = BytePairTokenizer.train("banana bandana", num_merges=3)
    >>> tokenizer.vocabulary[256:]
    (b'an', b'ban', b'ana')
    >>> tokenizer.encode("banana")
    [257, 258]
    >>> tokenizer.decode([257, 258])
    'banana'

It begins with the 256 bytes that every text is made of, so no text is unknown to it. Then it
joins the pair of neighboring tokens that comes most often to a new token, again and again (Sennrich
et al. 2016, "Neural Machine Translation of Rare Words with Subword Units"; on bytes as in GPT-2,
Radford et al. 2019, "Language Models are Unsupervised Multitask Learners").
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

from attnlib.checks import checked_list, require_count, require_text

__all__ = ["BytePairTokenizer", "merge"]

Pair = tuple[int, int]

BYTES = 256
CHUNK = re.compile(r" ?[^ \n]+|[ \n]")  # a word with the space before it; what is left of spaces


@dataclass(frozen=True, repr=False)
class BytePairTokenizer:
    """Text to ids and back, by merges in the order in which they were learned.

    Ids 0 to 255 are the bytes of UTF-8; merge i makes token 256 + i. Merges stay within a word with
    the space before it, so no token holds parts of two words. Where a text holds no bytes that are
    cut apart, `decode(encode(text))` is the text, letter by letter, in any script.

    Args:
        merges: pairs of ids, each of a token that is there before its merge; `train` learns them.

    Raises:
        TypeError, ValueError: merges that aren't pairs of such ids, or the same pair twice.
    """

    merges: tuple[Pair, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "merges", tuple(_checked_merges(self.merges)))

    @classmethod
    def train(cls, text: str, num_merges: int) -> Self:
        """Learn merges from a text: each of the pair that comes most often when its turn comes.

        Of pairs that come equally often, the one that comes first in the text is merged. Pairs are
        counted where they stand, so the pair aa comes twice in aaa.

        Args:
            text: what to learn from.
            num_merges: how many merges to learn; fewer are, where no pair is left.

        Raises:
            TypeError, ValueError: text that isn't one, or not a number of merges from 0 on.
        """
        require_count("num_merges", num_merges)
        words = Counter(CHUNK.findall(_checked_text(text)))  # in the order of the text
        counted = [(list(word.encode()), count) for word, count in words.items()]
        merges: list[Pair] = []
        while len(merges) < num_merges:
            pairs: Counter[Pair] = Counter()
            for ids, count in counted:
                for pair in pairwise(ids):
                    pairs[pair] += count
            if not pairs:
                break
            commonest = max(pairs, key=pairs.__getitem__)  # the first of equals
            new = BYTES + len(merges)
            counted = [
                (merge(ids, commonest, new) if commonest[0] in ids else ids, count)  # saves time
                for ids, count in counted
            ]
            merges.append(commonest)
        return cls(tuple(merges))

    @cached_property
    def vocabulary(self) -> tuple[bytes, ...]:
        """The bytes of each token, by its id."""
        tokens = [bytes([byte]) for byte in range(BYTES)]
        for left, right in self.merges:
            tokens.append(tokens[left] + tokens[right])
        return tuple(tokens)

    def first(self, num_merges: int) -> Self:
        """Return the smaller tokenizer that has only the first merges of this one.

        Raises:
            TypeError, ValueError: not a number from 0 to that of the merges.
        """
        require_count("num_merges", num_merges)
        if num_merges > len(self.merges):
            raise ValueError(f"num_merges must be at most {len(self.merges)}, got {num_merges}")
        return type(self)(self.merges[:num_merges])

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text: its bytes, merged as long as there is a pair that was learned.

        In each word the merge that was learned first comes first.

        Raises:
            TypeError, ValueError: not a text, or half of a surrogate pair in it.
        """
        chunks = CHUNK.findall(_checked_text(text))
        return [token for chunk in chunks for token in self._merged(list(chunk.encode()))]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids. Bytes that make no letter become the sign for that, U+FFFD.

        Raises:
            TypeError, ValueError: ids that aren't a list of this tokenizer's ids.
        """
        ids = checked_list("ids", ids)
        for token in ids:
            if not _is_id(token, len(self.vocabulary)):
                raise ValueError(
                    f"ids must be ints from 0 to {len(self.vocabulary) - 1}, got {token!r}"
                )
        return b"".join(self.vocabulary[token] for token in ids).decode(errors="replace")

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __repr__(self) -> str:
        return f"BytePairTokenizer({len(self.merges)} merges, {len(self)} tokens)"

    @cached_property
    def _ranks(self) -> dict[Pair, int]:
        return {pair: rank for rank, pair in enumerate(self.merges)}

    def _merged(self, ids: list[int]) -> list[int]:
        ranks = self._ranks
        while known := [pair for pair in pairwise(ids) if pair in ranks]:
            earliest = min(known, key=ranks.__getitem__)
            ids = merge(ids, earliest, BYTES + ranks[earliest])
        return ids


def merge(ids: Sequence[int], pair: Pair, new: int) -> list[int]:
    """Return ids in which a new one stands for each occurrence of a pair, from left to right.

    Example:
        >>> merge([7, 7, 7, 8], (7, 7), 9)
        [9, 7, 8]
    """
    merged: list[int] = []
    place = 0
    while place < len(ids):
        is_pair = tuple(ids[place : place + 2]) == pair
        merged.append(new if is_pair else ids[place])
        place += 2 if is_pair else 1
    return merged


def _is_id(token: object, size: int) -> bool:
    return type(token) is int and 0 <= token < size


def _checked_text(text: str) -> str:
    require_text("text", text)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"text must be letters, got half of a surrogate pair at place {error.start}"
        ) from None
    return text


def _checked_merges(merges: Iterable[Pair]) -> list[Pair]:
    """Return merges as pairs, or raise unless each joins two tokens that are there by then."""
    checked: list[Pair] = []
    for i, pair in enumerate(checked_list("merges", merges)):
        ids = checked_list(f"merges[{i}]", pair)
        if len(ids) != 2 or not all(_is_id(token, BYTES + i) for token in ids):
            raise ValueError(
                f"merges[{i}] must be two ids from 0 to {BYTES + i - 1}, got {pair!r}: "
                "a merge joins tokens that are there before it"
            )
        checked.append((ids[0], ids[1]))
    twice = [pair for pair, count in Counter(checked).items() if count > 1]
    if twice:
        raise ValueError(f"merges must differ from each other, got {twice[0]} twice")
    return checked
