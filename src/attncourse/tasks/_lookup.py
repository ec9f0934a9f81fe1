"""Two needs, one row: tasks in which one query has to look at several places at once."""

import string
from collections.abc import Sequence

import torch
from torch import Tensor

from attncourse.tasks._tasks import Relation, Sentence, Task
from attnlib.checks import checked_list, require_positive_int, require_whole_numbers, shape_of
from attnlib.rng import Sfc32

LETTERS = string.ascii_letters  # the symbols' names, so there are 52 at most


class Lookup(Task):
    """M slots with a key and a value each, and a question for two values; see `lookup`."""

    causal = False

    def __init__(self, slots: int, values: int) -> None:
        require_symbols("slots", slots, least=2)
        require_positive_int("values", values)
        self.slots, self.values = slots, values
        self.name = f"lookup-{slots}-{values}"
        keys = LETTERS[:slots]
        contents = [f"{key}{value}" for key in keys for value in range(values)]
        questions = [f"{p}{q}?" for p in keys for q in keys if p != q]
        self.vocabulary = (*contents, *questions)
        answers = tuple(str(value) for value in range(values))
        self.readouts = {"first": answers, "second": answers}
        self.relations = (
            Relation("question>first", "first"),
            Relation("question>second", "second"),
        )
        self.length = slots + 1

    def parts(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Take sentences apart, for an attention whose keys come from the keys alone.

        Args:
            tokens: int64 [B, M + 1], as `pack` returns them.

        Returns:
            The two keys that are asked for [B, 2], the slots' keys [B, M] and values [B, M].

        Raises:
            TypeError, ValueError: `tokens` isn't a batch of this task's sentences.
        """
        require_whole_numbers("tokens", tokens)
        contents = self.slots * self.values
        if tokens.dim() != 2 or tokens.shape[1] != self.length:
            raise ValueError(f"tokens must have shape [B, {self.length}], got {shape_of(tokens)}")
        slots, question = tokens[:, :-1], tokens[:, -1] - contents
        questions = len(self.vocabulary) - contents
        are_slots = (slots >= 0) & (slots < contents)
        are_questions = (question >= 0) & (question < questions)
        if not are_slots.all() or not are_questions.all():
            off = tokens[~(are_slots.all(1) & are_questions)][0].tolist()
            wanted = f"{self.slots} slots and then a question, in each row"
            raise ValueError(f"tokens must be {wanted}, got {off}")
        first = question // (self.slots - 1)
        other = question % (self.slots - 1)  # among the keys without the first
        second = other + (other >= first).long()
        asked = torch.stack([first, second], dim=1)
        return asked, slots // self.values, slots % self.values

    def draw(self, rng: Sfc32) -> Sentence:
        keys = rng.shuffled(range(self.slots))
        values = [rng.randbelow(self.values) for _ in keys]
        first = rng.randbelow(self.slots)
        other = rng.randbelow(self.slots - 1)
        asked = (first, other + (other >= first))
        slots = [key * self.values + value for key, value in zip(keys, values, strict=True)]
        question = self.slots * self.values + first * (self.slots - 1) + other
        ids = (*slots, question)
        places = [keys.index(key) for key in asked]
        return Sentence(
            words=tuple(self.vocabulary[i] for i in ids),
            ids=ids,
            answers={
                readout: (*[None] * self.slots, values[place])
                for readout, place in zip(self.readouts, places, strict=True)
            },
            partners={
                relation.name: {self.slots: place}
                for relation, place in zip(self.relations, places, strict=True)
            },
        )


class Diagonals(Task):
    """Random symbols; each row tells those some places back: see `diagonals`."""

    causal = True

    def __init__(self, offsets: Sequence[int], symbols: int, length: int) -> None:
        offsets = checked_list("offsets", offsets)
        for offset in offsets:
            require_positive_int("offsets", offset)
        if not offsets or sorted(set(offsets)) != offsets:
            raise ValueError(f"offsets must be rising numbers such as (1, 3), got {offsets}")
        require_symbols("symbols", symbols, least=1)
        require_positive_int("length", length)
        if length <= offsets[-1]:
            raise ValueError(
                f"length must be above the largest offset {offsets[-1]}, got {length}: "
                "no row could answer"
            )
        self.offsets, self.symbols, self.length = tuple(offsets), symbols, length
        self.name = f"diagonals-{'-'.join(map(str, offsets))}"
        self.vocabulary = tuple(LETTERS[:symbols])
        self.readouts = {f"{offset} back": self.vocabulary for offset in offsets}
        self.relations = tuple(Relation(name, name) for name in self.readouts)

    def draw(self, rng: Sfc32) -> Sentence:
        ids = tuple(rng.randbelow(self.symbols) for _ in range(self.length))
        first = self.offsets[-1]  # the first row that can answer all
        return Sentence(
            words=tuple(self.vocabulary[i] for i in ids),
            ids=ids,
            answers={
                name: (*[None] * first, *(ids[i - offset] for i in range(first, self.length)))
                for name, offset in zip(self.readouts, self.offsets, strict=True)
            },
            partners={
                name: {i: i - offset for i in range(first, self.length)}
                for name, offset in zip(self.readouts, self.offsets, strict=True)
            },
        )


def lookup(slots: int = 8, values: int = 8) -> Lookup:
    """Return a task in which a question asks for the values of two keys at once.

    A sentence has M slots, each a key and a value ("c5"), the keys in random order; then comes a
    question ("fc?"), whose row must tell the value of its first key in the readout "first" and of
    its second in "second". Attention whose weights don't depend on the values has one row for both,
    so a single head can't serve two linear readouts; two heads can.

    Args:
        slots: how many slots, 2 to 52.
        values: how many values.

    Example:
        >>> print(lookup(slots=3, values=10).sentences(1, seed=2)[0])
        a9 c5 b8 ba?

    Raises:
        TypeError, ValueError: a size is no such number.
    """
    return Lookup(slots, values)


def diagonals(offsets: Sequence[int] = (1, 3), symbols: int = 16, length: int = 16) -> Diagonals:
    """Return a causal task in which each row tells the symbols some places back.

    Every offset has a readout of its own, such as "3 back". A row answers as soon as all its
    offsets lie within the sentence. With more offsets this is a staircase: how many heads serve
    how many needs?

    Args:
        offsets: how far back the symbols stand, rising.
        symbols: how many symbols there are, at most 52.
        length: how many words a sentence has.

    Raises:
        TypeError, ValueError: an offset or a size is no such number, or no row could answer.
    """
    return Diagonals(offsets, symbols, length)


def require_symbols(name: str, value: int, *, least: int) -> None:
    """Raise unless there are letters enough to name this many symbols, at least `least`."""
    require_positive_int(name, value)
    if not least <= value <= len(LETTERS):
        raise ValueError(f"{name} must be from {least} to {len(LETTERS)}, got {value}")
