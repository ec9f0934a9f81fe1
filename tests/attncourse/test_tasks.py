"""Tasks whose relations are known: the same from a seed, with true partners, packed as told."""

from collections import Counter
from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attncourse.tasks import Sentence, concord, diagonals, induction, lookup, names, pack
from attnlib.patterns import best_offset

TASKS = {
    "concord": concord,
    "lookup": lookup(),
    "small lookup": lookup(slots=2, values=1),
    "diagonals": diagonals(),
    "staircase": diagonals((1, 3, 5, 7), symbols=5, length=12),
    "induction": induction(),
    "no filler": induction(symbols=4, length=9, chunks=(3,), filler=0),
    "names": names,
    "concord in A": concord.asked("A"),
}
every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


@every_task
def test_a_seed_gives_the_same_sentences_every_time(task):
    sentences = task.sentences(50, seed=3)
    assert sentences == task.sentences(50, seed=3)
    assert sentences[:20] == task.sentences(20, seed=3)
    assert sentences == list(islice(task.stream(seed=3), 50))
    assert task.sentences(0, seed=3) == []
    if task is not TASKS["no filler"]:  # whose sequences differ in little
        assert sentences != task.sentences(50, seed=4)


@every_task
def test_a_sentence_is_what_the_task_says(task):
    names = [relation.name for relation in task.relations]
    for sentence in task.sentences(200, seed=5):
        T = len(sentence)
        assert T <= task.length
        assert [task.vocabulary[i] for i in sentence.ids] == list(sentence.words)
        assert list(sentence.answers) == list(task.readouts)
        for readout, answers in sentence.answers.items():
            assert len(answers) == T
            assert {a for a in answers if a is not None} <= {*range(len(task.readouts[readout]))}
        assert list(sentence.partners) == names
        for relation in task.relations:
            for place, partner in sentence.partners[relation.name].items():
                assert sentence.answers[relation.readout][place] is not None
                assert 0 <= partner < T
                assert not task.causal or partner <= place


@pytest.mark.parametrize("task", [concord, lookup(), diagonals(), induction()], ids=str)
def test_held_out_sentences_do_not_come(task):
    sentences = task.sentences(60, seed=7)
    held_out = sentences[::3]
    kept = [sentence for sentence in sentences if sentence not in held_out]
    assert task.sentences(len(kept), seed=7, without=held_out) == kept


def test_where_all_sentences_are_held_out_there_are_none():
    task = lookup(slots=2, values=1)
    held_out = task.sentences(100, seed=0)
    assert len({sentence.ids for sentence in held_out}) == 4
    with pytest.raises(ValueError, match=r"without must leave sentences .* among its 4$"):
        task.sentences(1, seed=1, without=held_out)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"number": -1}, ValueError, "number must be at least 0, got -1"),
        ({"number": 2.0}, TypeError, "number must be an int, got float"),
        ({"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ({"seed": None}, TypeError, "seed must be an int, got NoneType"),
        ({"without": ["the king"]}, TypeError, "without must be Sentences of a task, got 'the"),
        ({"without": 3}, TypeError, "without must be a list, got int"),
    ],
)
def test_what_can_not_be_drawn_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        concord.sentences(**({"number": 2, "seed": 0} | arguments))


# Two needs


def test_a_question_asks_for_two_different_keys():
    task = lookup(slots=5, values=3)
    asked, orders, held = Counter(), set(), Counter()
    for sentence in task.sentences(3_000, seed=0):
        *slots, question = sentence.words
        keys, values = zip(*slots, strict=True)
        assert sorted(keys) == list("abcde")
        first, second, mark = question
        assert mark == "?" and first != second
        for name, key in (("first", first), ("second", second)):
            place = keys.index(key)
            assert sentence.partners[f"question>{name}"] == {5: place}
            *before, answer = sentence.answers[name]
            assert before == [None] * 5
            assert task.readouts[name][answer] == values[place]
        asked[first, second] += 1
        orders.add(keys)
        held.update(values)
    assert len(asked) == 20 and min(asked.values()) > 100
    assert len(orders) == 120
    assert all(count == pytest.approx(5_000, rel=0.05) for count in held.values())


@given(st.integers(2, 6), st.integers(1, 4), st.integers(0, 99))
def test_a_lookup_is_taken_apart(slots, values, seed):
    task = lookup(slots, values)
    sentences = task.sentences(5, seed=seed)
    asked, keys, held = task.parts(pack(sentences).tokens)
    assert asked.shape == (5, 2) and keys.shape == held.shape == (5, slots)
    for b, sentence in enumerate(sentences):
        names = [f"{'abcdef'[k]}{v}" for k, v in zip(keys[b], held[b], strict=True)]
        question = "".join("abcdef"[k] for k in asked[b]) + "?"
        assert [*names, question] == list(sentence.words)


@pytest.mark.parametrize("offsets", [(1,), (1, 3), (2, 3, 7)])
def test_each_row_tells_symbols_some_places_back(offsets):
    task = diagonals(offsets, symbols=6, length=10)
    assert list(task.readouts) == [f"{offset} back" for offset in offsets]
    for sentence in task.sentences(50, seed=1):
        for offset in offsets:
            name = f"{offset} back"
            answers = sentence.answers[name]
            rows = [i for i, answer in enumerate(answers) if answer is not None]
            assert rows == list(range(offsets[-1], 10))  # each of these can answer all
            assert all(sentence.ids[i - offset] == answers[i] for i in rows)
            assert sentence.partners[name] == {i: i - offset for i in rows}
    partners = pack(task.sentences(9, seed=2)).partners
    assert [best_offset(partners[name]) for name in partners] == [(-o, 1.0) for o in offsets]


# Induction


def test_what_followed_last_time_comes_again():
    task = induction()
    sentences = task.sentences(500, seed=0)
    foretold = 0
    for sentence in sentences:
        assert sentence.words[0] == "<start>" and "<start>" not in sentence.words[1:]
        assert len(sentence) == 40
        assert sentence.answers["next"] == (*sentence.ids[1:], None)
        for place, partner in sentence.partners["induction"].items():
            assert sentence.ids[partner - 1] == sentence.ids[place]
            assert sentence.ids[place] not in sentence.ids[partner:place]  # the last time
            assert sentence.ids[partner] == sentence.answers["next"][place]
            foretold += 1
    assert foretold / (500 * 39) == pytest.approx(0.4, abs=0.05)


def test_every_repetition_within_a_chunk_is_a_partner():
    """A second reading: a symbol that always had the same successor, but at its last place."""
    task = induction(filler=0.2)
    for sentence in task.sentences(200, seed=1):
        followers = {}
        for i, (now, following) in enumerate(zip(sentence.ids, sentence.ids[1:], strict=False)):
            if i in sentence.partners["induction"]:
                assert followers[now][-1] == following
            followers.setdefault(now, []).append(following)
    chunk = task.sentences(1, seed=1)[0].partners["induction"]
    assert chunk


def test_no_fixed_offset_foretells_much():
    partners = pack(induction().sentences(2_000, seed=0)).partners["induction"]
    assert best_offset(partners)[1] < 0.2


def test_filler_is_as_frequent_as_told():
    task = induction(symbols=4, length=2_000, chunks=(3,), filler=0.2)
    (sentence,) = task.sentences(1, seed=0)
    stray = min(Counter(sentence.ids[1:]).items(), key=lambda item: item[1])
    draws = stray[1] + (1_999 - stray[1]) / 3  # a chunk is drawn at once
    assert stray[1] / draws == pytest.approx(0.2, abs=0.04)


# Bad sizes


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: lookup(slots=1), ValueError, "slots must be from 2 to 52, got 1"),
        (lambda: lookup(slots=53), ValueError, "slots must be from 2 to 52, got 53"),
        (lambda: lookup(values=0), ValueError, "values must be at least 1, got 0"),
        (lambda: lookup(slots=2.5), TypeError, "slots must be an int, got float"),
        (lambda: diagonals(()), ValueError, r"offsets must be rising numbers .* got \[\]"),
        (lambda: diagonals((3, 1)), ValueError, r"offsets must be rising .* got \[3, 1\]"),
        (lambda: diagonals((0, 1)), ValueError, "offsets must be at least 1, got 0"),
        (lambda: diagonals(3), TypeError, "offsets must be a list, got int"),
        (lambda: diagonals(length=3), ValueError, "length must be above the largest offset 3"),
        (lambda: diagonals(symbols=0), ValueError, "symbols must be at least 1, got 0"),
        (lambda: induction(symbols=11), ValueError, "symbols must be from 12 to 52, got 11"),
        (lambda: induction(chunks=(1, 2)), ValueError, r"chunks must hold sizes .* got \[1, 2\]"),
        (lambda: induction(chunks=()), ValueError, r"chunks must hold sizes .* got \[\]"),
        (lambda: induction(filler=1), ValueError, "filler must be at least 0 and below 1, got 1"),
        (lambda: induction(length=0), ValueError, "length must be at least 1, got 0"),
    ],
)
def test_sizes_that_can_not_be_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    ("tokens", "error", "words"),
    [
        ([[0, 5, 8]], TypeError, "tokens must be a torch.Tensor, got list"),
        (torch.zeros(2, 4, dtype=torch.long), ValueError, r"shape \[B, 3\], got \[2, 4\]"),
        (torch.zeros(3, dtype=torch.long), ValueError, r"shape \[B, 3\], got \[3\]"),
        (torch.zeros(2, 3), TypeError, r"tokens must be whole numbers \(int64\), got .*float32"),
        (torch.tensor([[0, 4, 1]]), ValueError, "tokens must be 2 slots and then a question"),
        (torch.tensor([[9, 4, 8]]), ValueError, "tokens must be 2 slots and then a question"),
        (torch.tensor([[0, 4, 10]]), ValueError, "tokens must be 2 slots and then a question"),
        (torch.tensor([[-1, 4, 8]]), ValueError, "tokens must be 2 slots and then a question"),
    ],
)
def test_what_is_no_lookup_is_not_taken_apart(tokens, error, words):
    with pytest.raises(error, match=words):
        lookup(slots=2, values=4).parts(tokens)


# Packing


@every_task
def test_a_batch_holds_what_its_sentences_do(task):
    sentences = task.sentences(20, seed=9)
    batch = pack(sentences)
    T = max(map(len, sentences))
    assert batch.tokens.shape == (20, T)
    alike = all(len(sentence) == T for sentence in sentences)
    assert (batch.key_mask is None) == alike
    for b, sentence in enumerate(sentences):
        t = len(sentence)
        assert batch.tokens[b].tolist() == [*sentence.ids, *[0] * (T - t)]
        if not alike:
            assert batch.key_mask[b].tolist() == [True] * t + [False] * (T - t)
        for readout, answers in sentence.answers.items():
            row = [-1 if answer is None else answer for answer in answers]
            assert batch.answers[readout][b].tolist() == row + [-1] * (T - t)
        for name, pairs in sentence.partners.items():
            assert batch.partners[name][b].tolist() == [pairs.get(i, -1) for i in range(T)]
    tensors = [batch.tokens, *batch.answers.values(), *batch.partners.values()]
    assert {tensor.dtype for tensor in tensors} == {torch.int64}
    assert list(batch.answers) == list(task.readouts)


@pytest.mark.parametrize(
    ("sentences", "error", "words"),
    [
        ([], ValueError, "sentences must hold at least one sentence, got none"),
        (["the king"], TypeError, "sentences must be Sentences of a task, got 'the king'"),
        (7, TypeError, "sentences must be a list, got int"),
        (concord.sentences(1, seed=0)[0], TypeError, "sentences must be a list, got Sentence"),
        (
            [*diagonals().sentences(1, seed=0), *concord.sentences(1, seed=0)],
            ValueError,
            r"sentences must be of one task, got some with the relations \['1 back', '3 back'\]",
        ),
    ],
)
def test_what_can_not_be_packed_is_refused(sentences, error, words):
    with pytest.raises(error, match=words):
        pack(sentences)


def test_a_task_is_asked_in_some_readouts_alone():
    alone = concord.asked("B")
    assert set(alone.readouts) == {"B"} and alone.readouts["B"] == concord.readouts["B"]
    assert [one.name for one in alone.relations] == [
        one.name for one in concord.relations if one.readout == "B"
    ]
    for own, whole in zip(alone.sentences(40, seed=2), concord.sentences(40, seed=2), strict=True):
        assert own.words == whole.words and own.answers == {"B": whole.answers["B"]}
        assert own.partners == {one.name: whole.partners[one.name] for one in alone.relations}
    assert concord.asked("A", "B").sentences(9, seed=1) == concord.sentences(9, seed=1)


@pytest.mark.parametrize(("readouts", "word"), [((), "none"), (("A", "C"), "'C'")])
def test_readouts_that_a_task_has_not_are_refused(readouts, word):
    with pytest.raises(ValueError, match="readouts must be some of 'A', 'B', got") as caught:
        concord.asked(*readouts)
    assert word in str(caught.value)


def test_sentences_and_tasks_say_what_they_are():
    sentence = concord.read("a nun hid a monk")
    assert isinstance(sentence, Sentence)
    assert str(sentence) == "a nun hid a monk ."
    assert repr(concord) == "<task concord: 89 words, at most 22 a sentence>"


def test_a_batch_may_go_without_partners():
    sentences = concord.sentences(7, seed=3)
    whole, lean = pack(sentences), pack(sentences, partners=False)
    assert torch.equal(lean.tokens, whole.tokens) and torch.equal(lean.key_mask, whole.key_mask)
    assert {name: found.tolist() for name, found in lean.answers.items()} == {
        name: found.tolist() for name, found in whole.answers.items()
    }
    assert lean.partners == {} and set(whole.partners) > {"verb>object"}
    with pytest.raises(TypeError, match="partners must be True or False, got str"):
        pack(sentences, partners="no")
