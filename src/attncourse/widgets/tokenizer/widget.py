"""Tokenizer: type a text, see it cut by more and more merges, and what may come next."""

from collections.abc import Sequence

import torch
import traitlets
from torch import Tensor

from attncourse.tokens import BytePairTokenizer
from attncourse.widgets._base import CourseWidget, Numbers, browser_files, summary_trait
from attncourse.widgets._inputs import require_within
from attnlib.checks import checked_texts, dense_numbers, require_count, require_text, shape_of

LONGEST = 200  # UTF-16 units, by which browsers count a field's letters
MOST_MERGES = 2**12
MOST_COUNTED = 2**24  # float32 holds whole numbers up to here


class Tokenizer(CourseWidget):
    """A text that a reader types, cut into tokens by as many merges as the slider says.

    The browser applies the merges, and shows each token with its id; where a token is a part of a
    letter or can't be seen, its bytes. With `counts`, it also shows which letters follow the text's
    last one, how often of all times: the guesses of a bigram model. In a notebook::

        tokenizer = BytePairTokenizer.train("banana bandana", num_merges=4)
        Tokenizer(tokenizer, "a banana", origin="two words")
        Tokenizer(tokenizer, "ban", counts=counts, vocabulary=names.vocabulary)

    Traits that a reader changes:
        text (str): one line of at most 200 letters.
        num_merges (int): how many of the merges are used.

    Args:
        tokenizer: with at most 4,096 merges.
        text: at the start.
        num_merges: at the start; all of them if left out.
        counts: [V, V], how often each letter (column) comes after each (row), as
            `attncourse.training.pair_counts` returns them; then `vocabulary` is needed.
        vocabulary: the V letters; the last is the boundary, which stands before and after a
            text.
        origin: what tokenizer and counts have learned from, shown to the reader.
    """

    _esm, _css = browser_files("tokenizer")
    summary = summary_trait(
        "A text to type, cut into tokens by merges that were learned, with their ids."
    )

    merges = Numbers("<u2")
    most = traitlets.Int(read_only=True).tag(sync=True)
    counts = Numbers()
    vocabulary = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    origin = traitlets.Unicode(read_only=True).tag(sync=True)
    text = traitlets.Unicode().tag(sync=True)
    num_merges = traitlets.Int().tag(sync=True)

    def __init__(
        self,
        tokenizer: BytePairTokenizer,
        text: str = "",
        *,
        num_merges: int | None = None,
        counts: Tensor | None = None,
        vocabulary: Sequence[str] | None = None,
        origin: str = "as given",
    ) -> None:
        if not isinstance(tokenizer, BytePairTokenizer):
            raise TypeError(
                f"tokenizer must be a BytePairTokenizer, got {type(tokenizer).__name__}"
            )
        most = len(tokenizer.merges)
        if most > MOST_MERGES:
            raise ValueError(
                f"tokenizer must have at most {MOST_MERGES} merges, got {most}: use its first()"
            )
        _require_one_line(text)
        num_merges = most if num_merges is None else num_merges
        require_count("num_merges", num_merges)
        require_within("num_merges", num_merges, 0, most)
        require_text("origin", origin)
        letters = _checked_letters(counts, vocabulary)
        super().__init__(
            merges=torch.tensor(tokenizer.merges),
            most=most,
            counts=b"" if counts is None else _checked_counts(counts, len(letters)),
            vocabulary=letters,
            origin=origin,
            text=text,
            num_merges=num_merges,
        )

    def __repr__(self) -> str:
        return f"Tokenizer({self.text!r}, num_merges={self.num_merges} of {self.most})"


def _require_one_line(text: str) -> None:
    require_text("text", text)
    if "\n" in text or "\r" in text:
        raise ValueError(f"text must be one line, got {text!r:.60}")
    try:
        length = len(text.encode("utf-16-le")) // 2
    except UnicodeEncodeError:
        raise ValueError("text must be letters, got half of a pair") from None
    if length > LONGEST:
        raise ValueError(f"text must have at most {LONGEST} letters, got {length}")


def _checked_letters(counts: Tensor | None, vocabulary: Sequence[str] | None) -> list[str]:
    if (counts is None) != (vocabulary is None):
        lacking = "counts" if counts is None else "vocabulary"
        raise ValueError(f"counts and vocabulary must come together, got no {lacking}")
    if vocabulary is None:
        return []
    letters = checked_texts("vocabulary", list(vocabulary))
    if any(len(letter) != 1 for letter in letters) or len(set(letters)) != len(letters):
        raise ValueError(f"vocabulary must be single letters, each once, got {letters!r:.60}")
    return letters


def _checked_counts(counts: Tensor, V: int) -> Tensor:
    """Return counts in float64, or raise unless they are whole and [V, V]."""
    numbers = dense_numbers("counts", counts)
    if numbers.shape != (V, V):
        raise ValueError(f"counts must have shape [{V}, {V}], got {shape_of(numbers)}")
    are_counts = (numbers >= 0) & (numbers <= MOST_COUNTED) & (numbers == numbers.round())
    if not are_counts.all():
        got = numbers[~are_counts][0].item()
        raise ValueError(f"counts must be whole numbers from 0 to {MOST_COUNTED}, got {got}")
    return numbers
