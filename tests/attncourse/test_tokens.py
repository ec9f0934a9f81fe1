"""The byte-pair tokenizer, held against a plain retelling that works on one long list."""

from functools import partial
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tools.refusing import assert_refused, refusals

from attncourse.tasks import concord
from attncourse.tokens import BytePairTokenizer

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


@given(any_text)
def test_every_text_comes_back(text):
    for tokenizer in (TOKENIZER, TOKENIZER.first(0), BytePairTokenizer.train(text, 5)):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert b"".join(tokenizer.vocabulary[token] for token in ids) == text.encode()


def test_a_tokenizer_is_a_value_and_half_a_letter_is_told_as_such():
    again = BytePairTokenizer([list(pair) for pair in TOKENIZER.merges])
    assert again == TOKENIZER and hash(again) == hash(TOKENIZER)
    assert repr(TOKENIZER) == "BytePairTokenizer(120 merges, 376 tokens)"
    assert TOKENIZER.decode([*"é".encode()][:1]) == "\ufffd"
    assert_refused(partial(TOKENIZER.first, 121), ("num_merges", "120", "121"), ValueError)


train = partial(BytePairTokenizer.train, text="a", num_merges=1)
REFUSED = {
    TypeError: {
        TOKENIZER.encode: {"text": [b"a"]},
        train: {"text": [["a"]], "num_merges": [1.0]},
        TOKENIZER.decode: {"ids": [3, "a"]},
        BytePairTokenizer: {"merges": [3, [3]]},
    },
    ValueError: {
        TOKENIZER.encode: {"text": ["a\ud83d"]},
        train: {"num_merges": [-1]},
        TOKENIZER.decode: {"ids": [[376], [-1], [True]]},
        BytePairTokenizer: {"merges": [[(1, 2, 3)], [(256, 1)], [(1, 2), (1, 2)]]},
    },
}

test_what_does_not_fit_is_refused = refusals(REFUSED)
