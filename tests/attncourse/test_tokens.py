"""The byte-pair tokenizer, held against a plain retelling that works on one long list."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attncourse.tasks import concord
from attncourse.tokens import BytePairTokenizer, merge

SENTENCES = " ".join(" ".join(s.words) for s in concord.sentences(300, seed=0))
TOKENIZER = BytePairTokenizer.train(SENTENCES, 120)

few_letters = st.text(alphabet="ab \né", max_size=30)
any_text = st.text(max_size=40) | few_letters


def words_of(text):
    """Cut a text letter by letter: a space opens a word if a letter follows; a newline is alone."""
    words = []
    for i, letter in enumerate(text):
        joins = i > 0 and letter not in " \n" and text[i - 1] != "\n"
        if joins:
            words[-1] += letter
        else:
            words.append(letter)
    return words


def pieces_of(text):
    """Return a text as bytes of one letter each, with None where merges must stop."""
    pieces = []
    for word in words_of(text):
        pieces += [bytes([byte]) for byte in word.encode()] + [None]
    return pieces


def joined(pieces, left, right):
    """Join each left with the right behind it, by going through once."""
    found = []
    for piece in pieces:
        if found and found[-1] == ("open", left) and piece == right:
            found[-1] = ("shut", left + right)
        else:
            found.append(("open", piece))
    return [piece for _, piece in found]


def plain_training(text, number):
    """Learn merges of bytes by counting all neighbors of one long list anew each time."""
    pieces, merges = pieces_of(text), []
    for _ in range(number):
        neighbors = [p for p in pairwise(pieces) if None not in p]
        if not neighbors:
            break
        best = max(neighbors, key=lambda p: (neighbors.count(p), -neighbors.index(p)))
        pieces = joined(pieces, *best)
        merges.append(best)
    return merges, [piece for piece in pieces if piece is not None]


@settings(max_examples=150, deadline=None)
@given(few_letters, st.integers(0, 8))
def test_it_learns_and_cuts_as_the_plain_retelling_does(text, number):
    merges, cut = plain_training(text, number)
    tokenizer = BytePairTokenizer.train(text, number)
    vocabulary = tokenizer.vocabulary
    # A piece that two merges make is told apart by ids alone, so the first such merge is the last.
    pieces = [left + right for left, right in merges]
    if len(set(pieces)) == len(pieces):
        assert [(vocabulary[a], vocabulary[b]) for a, b in tokenizer.merges] == merges
        assert [vocabulary[token] for token in tokenizer.encode(text)] == cut


@settings(max_examples=200, deadline=None)
@given(any_text)
def test_every_text_comes_back(text):
    for tokenizer in (TOKENIZER, TOKENIZER.first(0), BytePairTokenizer.train(text, 5)):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert b"".join(tokenizer.vocabulary[token] for token in ids) == text.encode()


@settings(max_examples=100, deadline=None)
@given(any_text, st.integers(0, 120))
def test_encoding_is_the_merges_one_after_another(text, number):
    tokenizer = TOKENIZER.first(number)
    expected = []
    for word in words_of(text):
        ids = list(word.encode())
        for i, pair in enumerate(tokenizer.merges):
            ids = merge(ids, pair, 256 + i)
        expected += ids
    assert tokenizer.encode(text) == expected


def test_what_was_learned_first_is_merged_first():
    tokenizer = BytePairTokenizer.train("bc\nbc\nbc\nab\nab", 2)
    assert tokenizer.vocabulary[256:] == (b"bc", b"ab")
    assert tokenizer.encode("abcab") == [ord("a"), 256, 257]


def test_ties_go_to_the_pair_that_comes_first_in_the_text():
    assert BytePairTokenizer.train("ab cd", 1).vocabulary[256] == b"ab"
    assert BytePairTokenizer.train("cd ab", 1).vocabulary[256] == b"cd"
    assert BytePairTokenizer.train("ab xcd xcd ab ab", 1).vocabulary[256:] == (b"ab",)


def test_merges_stop_at_words_and_hold_the_space_before():
    vocabulary = BytePairTokenizer.train("a a a a b\nb\nb", 50).vocabulary[256:]
    assert b" a" in vocabulary
    assert all(b" " not in token[1:] and b"\n" not in token for token in vocabulary)


def test_no_pair_left_ends_the_training():
    assert BytePairTokenizer.train("aaaa", 50).vocabulary[256:] == (b"aa", b"aaaa")
    assert BytePairTokenizer.train("", 3) == BytePairTokenizer()
    assert len(BytePairTokenizer.train("aaaa", 0)) == 256


def test_known_words_become_tokens():
    tokenizer = BytePairTokenizer.train(SENTENCES, 300)
    word = next(w for s in concord.sentences(1, seed=0) for w in s.words)
    assert [tokenizer.decode([token]) for token in tokenizer.encode(" " + word)] == [" " + word]


def test_half_a_letter_is_told_as_such():
    ids = BytePairTokenizer().encode("é")
    assert len(ids) == 2
    assert BytePairTokenizer().decode(ids[:1]) == "\ufffd"


def test_a_tokenizer_is_a_value():
    again = BytePairTokenizer([list(pair) for pair in TOKENIZER.merges])
    assert again == TOKENIZER and hash(again) == hash(TOKENIZER)
    assert TOKENIZER.first(7).merges == TOKENIZER.merges[:7]
    assert repr(TOKENIZER) == "BytePairTokenizer(120 merges, 376 tokens)"


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (TypeError, "text must be a string, got bytes", lambda: TOKENIZER.encode(b"a")),
        (TypeError, "text must be a string", lambda: BytePairTokenizer.train(["a"], 1)),
        (ValueError, "surrogate pair at place 1", lambda: TOKENIZER.encode("a\ud83d")),
        (TypeError, "num_merges must be an int", lambda: BytePairTokenizer.train("a", 1.0)),
        (ValueError, "num_merges must be at least 0", lambda: BytePairTokenizer.train("a", -1)),
        (ValueError, "num_merges must be at most 120, got 121", lambda: TOKENIZER.first(121)),
        (TypeError, "ids must be a list, got int", lambda: TOKENIZER.decode(3)),
        (ValueError, "ids must be ints from 0 to 375, got 376", lambda: TOKENIZER.decode([376])),
        (ValueError, "ids must be ints .* got -1", lambda: TOKENIZER.decode([-1])),
        (ValueError, "ids must be ints .* got True", lambda: TOKENIZER.decode([True])),
        (ValueError, "ids must be ints .* got 'a'", lambda: TOKENIZER.decode("a")),
        (TypeError, "merges must be a list", lambda: BytePairTokenizer(3)),
        (TypeError, r"merges\[0\] must be a list", lambda: BytePairTokenizer([3])),
        (ValueError, r"merges\[0\] must be two ids", lambda: BytePairTokenizer([(1, 2, 3)])),
        (ValueError, r"merges\[0\] .* 255, got", lambda: BytePairTokenizer([(256, 1)])),
        (ValueError, r"got \(1, 2\) twice", lambda: BytePairTokenizer([(1, 2), (1, 2)])),
    ],
)
def test_bad_input_is_refused_in_words(error, message, call):
    with pytest.raises(error, match=message):
        call()
