"""What all tasks have in common: sentences whose answers and partners are known, and batches."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np
import torch
from torch import Tensor

from attnlib.checks import checked_list, require_count, require_flag
from attnlib.rng import Sfc32

NONE = -1  # in a batch: no answer is due here, or no partner
PATIENCE = 10_000  # give up after so many rejected sentences in a row


@dataclass(frozen=True)
class Relation:
    """A relation between words: whose partner one has to find to give an answer."""

    name: str  # who looks for whom, such as "verb>object"
    readout: str  # the readout whose answer depends on it


@dataclass(frozen=True)
class Sentence:
    """A sequence of T words with the answers that a model must give.

    `answers` has for each readout the right answer of each word (its place among the readout's
    answers), or None where none is due.
    """

    words: tuple[str, ...]
    ids: tuple[int, ...]  # their places in the task's vocabulary
    answers: Mapping[str, tuple[int | None, ...]]
    partners: Mapping[str, Mapping[int, int]]  # by relation: place of a word -> of its partner

    def __len__(self) -> int:
        return len(self.words)

    def __str__(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True)
class Batch:
    """Sentences as tensors, the shorter ones filled up on the right.

    `partners` is empty after `pack(..., partners=False)`.
    """

    tokens: Tensor  # int64 [B, T], the words' places in the vocabulary; 0 in what was filled up
    key_mask: Tensor | None  # bool [B, T], True = a word; None if all sentences are equally long
    answers: dict[str, Tensor]  # of each readout int64 [B, T], -1 where no answer is due
    partners: dict[str, Tensor]  # of each relation int64 [B, T], the partner's column or -1


class Task(ABC):
    """What a model is to learn: sentences from a seed, with answers and true partners.

    A task of your own has these attributes, and a method `draw`.
    """

    name: str
    vocabulary: tuple[str, ...]  # a word's place is its token
    readouts: Mapping[str, tuple[str, ...]]  # of each, its answers as words
    relations: tuple[Relation, ...]  # what must be found out to answer
    causal: bool  # whether each word may look to the left only
    length: int  # the most words that a sentence has

    def sentences(
        self, number: int, *, seed: int, without: Collection[Sentence] = ()
    ) -> list[Sentence]:
        """Return this many sentences, the same ones for a seed every time and in the browser.

        Args:
            number: how many. The first of them don't depend on it.
            seed: whole number from 0 to 2^32 - 1.
            without: sentences that must not come, such as those held out for a test.

        Raises:
            TypeError, ValueError: `number` or `seed` is no such number, or `without` leaves none.
        """
        require_count("number", number)
        return list(islice(self.stream(seed=seed, without=without), number))

    def stream(self, *, seed: int, without: Collection[Sentence] = ()) -> Iterator[Sentence]:
        """Yield the sentences of a seed without end; see `sentences`."""
        return self.drawn_with(Sfc32(seed), without=without)

    def drawn_with(self, rng: Sfc32, *, without: Collection[Sentence] = ()) -> Iterator[Sentence]:
        """Yield sentences without end, each drawn when it is needed.

        All that is random in them comes from `rng`, so from its state one can go on later.
        """
        held_out = {sentence.ids for sentence in checked_sentences("without", without)}
        return self._drawn(rng, held_out)

    def with_readouts(self, *readouts: str) -> "Task":
        """Return the task of the same sentences, asked in these readouts alone.

        So a need can be taken away: ``concord.with_readouts("A")`` leaves every word at most one.

        Raises:
            ValueError: no readouts, or names that aren't among the task's.
        """
        return _WithReadouts(self, readouts)

    def _drawn(self, rng: Sfc32, held_out: set[tuple[int, ...]]) -> Iterator[Sentence]:
        refused = 0  # in a row
        while refused < PATIENCE:
            sentence = self.draw(rng)
            refused = refused + 1 if sentence.ids in held_out else 0
            if not refused:
                yield sentence
        raise ValueError(
            f"without must leave sentences to draw, but {PATIENCE} in a row were among its "
            f"{len(held_out)}"
        )

    @abstractmethod
    def draw(self, rng: Sfc32) -> Sentence:
        """Draw one sentence; all that is random in it comes from `rng`."""

    def __repr__(self) -> str:
        return f"<task {self.name}: {len(self.vocabulary)} words, at most {self.length} a sentence>"


class _WithReadouts(Task):
    """A task's sentences, with the answers and partners of some readouts alone."""

    def __init__(self, task: Task, readouts: tuple[str, ...]) -> None:
        unknown = [name for name in readouts if name not in task.readouts]
        if unknown or not readouts:
            raise ValueError(
                f"readouts must be some of {', '.join(map(repr, task.readouts))}, "
                f"got {', '.join(map(repr, unknown)) or 'none'}"
            )
        self._task = task
        self.name = f"{task.name} asked in {' and '.join(readouts)}"
        self.vocabulary, self.causal, self.length = task.vocabulary, task.causal, task.length
        self.readouts = {name: task.readouts[name] for name in readouts}
        self.relations = tuple(one for one in task.relations if one.readout in readouts)

    def draw(self, rng: Sfc32) -> Sentence:
        sentence = self._task.draw(rng)
        return replace(
            sentence,
            answers={name: sentence.answers[name] for name in self.readouts},
            partners={one.name: sentence.partners[one.name] for one in self.relations},
        )


def pack(sentences: Sequence[Sentence], *, partners: bool = True) -> Batch:
    """Return sentences of one task as a batch of tensors, as long as the longest of them.

    Args:
        sentences: at least one.
        partners: whether the batch holds them; a training, which doesn't need them, saves the time.

    Raises:
        TypeError: something else than sentences; partners is neither True nor False.
        ValueError: none, or sentences of different tasks.
    """
    sentences = checked_sentences("sentences", sentences)
    require_flag("partners", partners)
    if not sentences:
        raise ValueError("sentences must hold at least one sentence, got none")
    readouts, relations = list(sentences[0].answers), list(sentences[0].partners)
    for sentence in sentences:
        if list(sentence.answers) != readouts or list(sentence.partners) != relations:
            raise ValueError(
                f"sentences must be of one task, got some with the relations {relations} "
                f"and some with {list(sentence.partners)}"
            )
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    T = int(lengths.max())
    words = torch.arange(T) < lengths[:, None]  # [T] < [B, 1] -> [B, T]

    def of_words(values: Iterable[int | None], other: int) -> Tensor:
        """Return one value a word, sentence after sentence, as [B, T]."""
        filled = torch.full(words.shape, other)
        numbers = (other if value is None else value for value in values)
        filled[words] = torch.from_numpy(np.fromiter(numbers, np.int64))  # torch.tensor is slower
        return filled

    return Batch(
        tokens=of_words(chain.from_iterable(one.ids for one in sentences), 0),
        key_mask=None if words.all() else words,
        answers={
            name: of_words(
                chain.from_iterable(sentence.answers[name] for sentence in sentences), NONE
            )
            for name in readouts
        },
        partners={
            name: _columns([sentence.partners[name] for sentence in sentences], T)
            for name in (relations if partners else ())
        },
    )


def checked_sentences(name: str, sentences: Iterable[Sentence]) -> list[Sentence]:
    """Return sentences as a list, or raise TypeError if they aren't."""
    found = checked_list(name, sentences)
    for sentence in found:
        if not isinstance(sentence, Sentence):
            raise TypeError(f"{name} must be Sentences of a task, got {sentence!r:.60}")
    return found


def _columns(partners: Sequence[Mapping[int, int]], T: int) -> Tensor:
    """Return the partners of a relation, one mapping a sentence, as columns [B, T]."""
    columns = torch.full((len(partners), T), NONE)
    found = [
        (row, place, partner)
        for row, pairs in enumerate(partners)
        for place, partner in pairs.items()
    ]
    if found:
        rows, places, values = torch.tensor(found).unbind(1)
        columns[rows, places] = values
    return columns
