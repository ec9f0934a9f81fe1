"""Tasks: each sentence is read a second time from its words alone, and packed as it is."""

from collections import Counter
from functools import partial
from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tools.refusing import assert_named, refusals

from attncourse.tasks import because, concord, diagonals, induction, lookup, names, pack
from attnlib.patterns import best_offset

TASKS = {
    "concord": concord,
    "concord in A": concord.with_readouts("A"),
    "because": because,
    "names": names,
    "lookup": lookup(),
    "small lookup": lookup(slots=2, values=1),
    "diagonals": diagonals(),
    "staircase": diagonals((1, 3, 5, 7), symbols=5, length=12),
    "induction": induction(),
    "no filler": induction(symbols=4, length=9, chunks=(3,), filler=0),
}
every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


@every_task
def test_a_seed_gives_the_same_sentences_every_time(task):
    sentences = task.sentences(50, seed=3)
    assert sentences == task.sentences(50, seed=3) == list(islice(task.stream(seed=3), 50))
    assert sentences[:20] == task.sentences(20, seed=3)
    assert task.sentences(0, seed=3) == []
    if task is not TASKS["no filler"]:  # whose sequences differ in little
        assert sentences != task.sentences(50, seed=4)
    # The first is held out, and with it all that equal it.
    others = [sentence for sentence in sentences if sentence != sentences[0]]
    if others:
        assert task.sentences(len(others), seed=3, without=sentences[:1]) == others


def test_where_all_sentences_are_held_out_there_are_none():
    task = lookup(slots=2, values=1)
    held_out = task.sentences(100, seed=0)
    with pytest.raises(ValueError, match=r"^without .* 4$"):
        task.sentences(1, seed=1, without=held_out)


@every_task
def test_sentences_and_batches_hold_what_the_task_says(task):
    sentences = task.sentences(200, seed=5)
    batch = pack(sentences)
    T = max(map(len, sentences))
    assert T <= task.length and str(task.length) in repr(task) and task.name in repr(task)
    assert (batch.key_mask is None) == all(len(sentence) == T for sentence in sentences)
    assert list(batch.answers) == list(task.readouts)
    assert list(batch.partners) == [relation.name for relation in task.relations]
    tensors = [batch.tokens, *batch.answers.values(), *batch.partners.values()]
    assert {tensor.dtype for tensor in tensors} == {torch.int64}
    assert {tensor.shape for tensor in tensors} == {(200, T)}
    for b, sentence in enumerate(sentences):
        t = len(sentence)
        assert str(sentence).split() == [task.vocabulary[i] for i in sentence.ids]
        assert batch.tokens[b].tolist() == [*sentence.ids, *[0] * (T - t)]
        if batch.key_mask is not None:
            assert batch.key_mask[b].tolist() == [True] * t + [False] * (T - t)
        for name, answers in sentence.answers.items():
            assert {*answers} <= {None, *range(len(task.readouts[name]))}
            row = [-1 if answer is None else answer for answer in answers]
            assert batch.answers[name][b].tolist() == row + [-1] * (T - t)
        for relation in task.relations:
            pairs = sentence.partners[relation.name]
            assert batch.partners[relation.name][b].tolist() == [pairs.get(i, -1) for i in range(T)]
            for place, partner in pairs.items():
                assert sentence.answers[relation.readout][place] is not None
                assert 0 <= partner < t and (partner <= place or not task.causal)
    lean = pack(sentences, partners=False)
    assert lean.partners == {} and torch.equal(lean.tokens, batch.tokens)
    assert all(torch.equal(found, batch.answers[name]) for name, found in lean.answers.items())


def read_lookup(task, words):
    *slots, question = words
    keys = [slot[0] for slot in slots]
    assert sorted(keys) == list("abcdefgh"[: len(slots)])
    assert question[0] != question[1] and question[2:] == "?"
    asked = {"first": keys.index(question[0]), "second": keys.index(question[1])}
    end = len(slots)
    return (
        {name: {end: slots[place][1:]} for name, place in asked.items()},
        {f"question>{name}": {end: place} for name, place in asked.items()},
    )


def read_diagonals(task, words):
    rows = range(task.offsets[-1], task.length)  # each of these can answer all
    offsets = {f"{offset} back": offset for offset in task.offsets}
    return (
        {name: {i: words[i - offset] for i in rows} for name, offset in offsets.items()},
        {name: {i: i - offset for i in rows} for name, offset in offsets.items()},
    )


def read_because(task, words):
    _, first, _, verb, _, second, *_, adjective, _ = words
    assert words == (
        *("the", first, "didn't", verb, "the", second, "because", "it", "was", "too"),
        *(adjective, "."),
    )
    living, places = task.nouns
    assert first in (living if verb == "cross" else places)
    assert second in (places if verb == "cross" else living)
    meant = living if adjective in task.adjectives[0] else places
    place = 1 if first in meant else 5
    return {"who": {7: words[place]}}, {"it>noun": {7: place}}


READINGS = {
    because: read_because,
    lookup(5, 3): read_lookup,
    diagonals((2, 3, 7), symbols=52, length=8): read_diagonals,
}


@pytest.mark.parametrize("task", READINGS, ids=repr)
def test_a_second_reading_finds_the_same_answers_and_partners(task):
    for sentence in task.sentences(200, seed=1):
        answers, partners = READINGS[task](task, sentence.words)
        assert partners == sentence.partners
        assert answers == {
            name: {i: task.readouts[name][a] for i, a in enumerate(found) if a is not None}
            for name, found in sentence.answers.items()
        }


CHANCES = [  # what is drawn with equal chances, and of how many
    (lookup(5, 3), lambda words: tuple(word[0] for word in words[:-1]), 120),
    (lookup(5, 3), lambda words: words[-1], 20),
    (diagonals(), lambda words: words[5], 16),
    (because, lambda words: words[1], 12),
    (because, lambda words: (words[3], words[10]), 24),
]


@pytest.mark.parametrize(("task", "part", "number"), CHANCES)
def test_what_is_drawn_with_equal_chances_comes_alike(task, part, number):
    counts = Counter(part(sentence.words) for sentence in task.sentences(6_000, seed=0))
    expected = 6_000 / number
    assert len(counts) == number
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())


@given(st.integers(2, 6), st.integers(1, 4), st.integers(0, 99))
def test_a_lookup_is_taken_apart(slots, values, seed):
    task = lookup(slots, values)
    sentences = task.sentences(5, seed=seed)
    parts = task.parts(pack(sentences).tokens)
    for sentence, asked, keys, held in zip(sentences, *parts, strict=True):
        contents = [f"{'abcdef'[k]}{v}" for k, v in zip(keys, held, strict=True)]
        assert (*contents, "".join("abcdef"[k] for k in asked) + "?") == sentence.words


@pytest.mark.parametrize("task", [induction(), induction(12, 24, (2, 2, 3), 0.4)], ids=repr)
def test_what_followed_last_time_comes_again(task):
    sentences = task.sentences(500, seed=0)
    for sentence in sentences:
        ids, partners = sentence.ids, sentence.partners["induction"]
        assert sentence.words[0] == "<start>" and "<start>" not in sentence.words[1:]
        assert len(sentence) == task.length
        assert sentence.answers["next"] == (*ids[1:], None)
        for place, partner in partners.items():
            assert ids[partner - 1] == ids[place] and ids[place] not in ids[partner:place]
            assert ids[partner] == ids[place + 1]
        followers = {}  # within a chunk, the same symbol always comes next
        for i in range(1, task.length - 1):
            followers.setdefault(ids[i], []).append((ids[i + 1], i in partners))
        for found in followers.values():
            symbols, known = zip(*found, strict=True)
            if any(known):
                assert len({*symbols}) == 1 and known.count(False) == 1  # the first time
    packed = pack(sentences).partners["induction"]
    assert best_offset(packed)[1] < 0.25  # no fixed offset foretells much


def test_stray_symbols_are_as_frequent_as_told():
    task = induction(symbols=4, length=2_000, chunks=(3,), filler=0.2)
    (sentence,) = task.sentences(1, seed=0)
    stray = min(Counter(sentence.ids[1:]).values())
    draws = stray + (1_999 - stray) / 3  # a chunk is drawn at once
    assert stray / draws == pytest.approx(0.2, abs=0.04)


def test_a_task_is_asked_in_some_readouts_alone():
    alone = concord.with_readouts("B")
    assert alone.readouts == {"B": concord.readouts["B"]}
    own = [one for one in concord.relations if one.readout == "B"]
    assert list(alone.relations) == own
    both = (task.sentences(40, seed=2) for task in (alone, concord))
    for asked, whole in zip(*both, strict=True):
        assert asked.words == whole.words and asked.answers == {"B": whole.answers["B"]}
        assert asked.partners == {one.name: whole.partners[one.name] for one in own}
    assert concord.with_readouts("A", "B").sentences(9, seed=1) == concord.sentences(9, seed=1)
    for readouts in ((), ("A", "C")):
        assert_named(ValueError, "readouts", partial(concord.with_readouts, *readouts))


drawn = partial(concord.sentences, number=2, seed=0)
take_apart = lookup(slots=2, values=4).parts
SOME = concord.sentences(1, seed=0)
REFUSED = {
    TypeError: {
        drawn: {"number": [2.0], "seed": [None], "without": [["the king"], 3]},
        lookup: {"slots": [2.5]},
        diagonals: {"offsets": [3]},
        induction: {"filler": ["0.2"]},
        take_apart: {"tokens": [[[0, 5, 8]], torch.zeros(2, 3)]},
        partial(pack, SOME): {"partners": ["no"]},
        pack: {"sentences": [["the king"], 7, SOME[0]]},
    },
    ValueError: {
        drawn: {"number": [-1], "seed": [-1, 2**32]},
        lookup: {"slots": [1, 53], "values": [0]},
        diagonals: {"offsets": [(), (3, 1), (1, 1), (0, 1)], "length": [3, 0], "symbols": [0, 53]},
        induction: {
            "symbols": [11, 53], "chunks": [(1, 2), ()], "filler": [1, -0.1], "length": [0],
        },
        take_apart: {
            "tokens": [
                torch.zeros(2, 4).long(), torch.zeros(3).long(), torch.tensor([[0, 4, 7]]),
                torch.tensor([[8, 4, 8]]), torch.tensor([[-1, 4, 8]]),
            ],
        },
        pack: {"sentences": [[], [*diagonals().sentences(1, seed=0), *SOME]]},
    },
}  # fmt: skip

test_what_does_not_fit_is_refused = refusals(REFUSED)
