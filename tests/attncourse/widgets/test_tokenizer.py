"""Tokenizer's Python side: its state, its traits, its refusals."""

import numpy as np
import pytest
import torch
import traitlets

from attncourse.tokens import BytePairTokenizer
from attncourse.widgets import Tokenizer

TOKENIZER = BytePairTokenizer.train("banana bandana", 4)
COUNTS = torch.tensor([[0, 2, 1], [3, 0, 0], [1, 1, 0]])


def test_state_holds_merges_and_counts_as_bytes():
    widget = Tokenizer(TOKENIZER, "ban", counts=COUNTS, vocabulary="ab.", origin="two words")
    merges = np.frombuffer(widget.merges, "<u2").reshape(-1, 2)
    assert [tuple(pair) for pair in merges.tolist()] == list(TOKENIZER.merges)
    assert np.array_equal(np.frombuffer(widget.counts, "<f4").reshape(3, 3), COUNTS.numpy())
    assert (widget.most, widget.num_merges, widget.text) == (4, 4, "ban")
    assert (widget.vocabulary, widget.origin) == (["a", "b", "."], "two words")


def test_a_tokenizer_may_have_no_merges_and_no_counts():
    widget = Tokenizer(BytePairTokenizer())
    assert (widget.merges, widget.counts, widget.most, widget.vocabulary) == (b"", b"", 0, [])


def test_what_a_reader_changes_is_observable():
    widget = Tokenizer(TOKENIZER, "ban")
    seen = []
    widget.observe(lambda change: seen.append((change["name"], change["new"])))
    widget.text, widget.num_merges = "😀", 0
    assert seen == [("text", "😀"), ("num_merges", 0)]
    assert {"text", "num_merges"} <= set(widget.keys)  # synced with the browser
    assert repr(widget) == "Tokenizer('😀', num_merges=0 of 4)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", "two\nlines"),
        ("text", "two\rlines"),
        ("text", "a" * 201),
        ("text", "😀" * 101),
        ("text", "\ud83d"),
        ("num_merges", -1),
        ("num_merges", 5),
    ],
)
def test_impossible_values_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        Tokenizer(TOKENIZER, **{name: value})


@pytest.mark.parametrize("name", ["merges", "most", "counts", "vocabulary", "origin"])
def test_what_was_learned_is_fixed(name):
    widget = Tokenizer(TOKENIZER)
    with pytest.raises(traitlets.TraitError, match="read-only"):
        setattr(widget, name, getattr(widget, name))


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (TypeError, "tokenizer must be a BytePairTokenizer, got list", {"tokenizer": []}),
        (TypeError, "text must be a string, got int", {"text": 3}),
        (TypeError, "origin must be a string", {"origin": None}),
        (ValueError, "got no vocabulary", {"counts": COUNTS}),
        (ValueError, "got no counts", {"vocabulary": "ab."}),
        (ValueError, "single letters", {"counts": COUNTS, "vocabulary": ["a", "bc", "."]}),
        (ValueError, "each once", {"counts": COUNTS, "vocabulary": "aa."}),
        (ValueError, r"\[2, 2\], got \[3, 3\]", {"counts": COUNTS, "vocabulary": "a."}),
        (ValueError, "counts must be whole", {"counts": -COUNTS, "vocabulary": "ab."}),
        (ValueError, "counts must be whole", {"counts": COUNTS / 2, "vocabulary": "ab."}),
        (ValueError, "counts must be whole", {"counts": COUNTS / 0, "vocabulary": "ab."}),
        (TypeError, "counts must be a torch.Tensor", {"counts": [[1]], "vocabulary": "."}),
    ],
)
def test_bad_input_is_refused_in_words(error, message, options):
    with pytest.raises(error, match=message):
        Tokenizer(**{"tokenizer": TOKENIZER, **options})


def test_too_many_merges_are_refused():
    merges = [(i // 256, i % 256) for i in range(4097)]
    with pytest.raises(ValueError, match="at most 4096 merges, got 4097"):
        Tokenizer(BytePairTokenizer(merges))
