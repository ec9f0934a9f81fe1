"""Concord against a second, independent reading of its grammar, and what people type."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.refusing import refusals

from attncourse.tasks import concord, verbs_last

SENTENCES = concord.sentences(10_000, seed=11)
WORDS, REFUSED = concord.data["words"], concord.data["refused"]

# One letter per category, so that a regular expression reads a sentence; m, f, t are nouns.
LETTER = {
    "determiner": "D", "adverb": "V", "adjective": "A", "male": "m", "female": "f", "thing": "t",
    "that": "R", "speaker": "S", "relative verb": "r", "verb": "v", "conjunction": "C",
    "pronoun": "P", "copula": "c", "predicate": "p", "giving verb": "g", "time": "T", "their": "H",
    "end": ".",
}  # fmt: skip
LETTER_OF = {word: LETTER[category] for category, words in WORDS.items() for word in words}
GROUP = "(?:V?AA?)?[mft]"
GRAMMAR = re.compile(
    f"(?P<subject>D{GROUP})(?P<clause>R(?:D[mft]|S)r)?"
    f"(?:v(?P<object>D{GROUP})(?P<reason>CPcV?p)?"
    f"|g(?P<owner>D{GROUP})T?H(?P<thing>{GROUP}))\\."
)
GENDER = {"he": "m", "she": "f", "it": "t"}
NOUNS = [noun for kind in ("male", "female", "thing") for noun in WORDS[kind]]


def letters_of(words):
    return "".join(LETTER_OF[word] for word in words)


def read_by_hand(words):
    """Return (relation, place) -> partner of a sentence, or None where words are none."""
    letters = letters_of(words)
    match = GRAMMAR.fullmatch(letters)
    if match is None:
        return None
    kinds = re.sub("[^mft]", "", letters)
    if match["reason"]:
        gender = GENDER[words[letters.index("P")]]
        last_of = {group: match.end(group) - 1 for group in ("subject", "object")}
        meant = [place for place in last_of.values() if letters[place] == gender]
        if len(set(kinds)) < len(kinds) or not meant:
            return None
    elif "t" in kinds:
        return None

    def next_noun(place):
        return re.compile("[mft]").search(letters, place).start()

    partners = {}
    for place, letter in enumerate(letters):
        if letter == "D":
            partners["determiner>noun", place] = next_noun(place)
        elif letter == "A":
            partners["adjective>noun", place] = next_noun(place)
            before = letters[:place].rstrip("A")
            if before.endswith("V"):
                partners["adjective>adverb", place] = len(before) - 1
        elif letter in "vgr":
            noun_before = letters[place - 1] in "mft"
            if letter != "r" or noun_before:
                subject = place - 1 if letter == "r" else match.end("subject") - 1
                partners["verb>subject", place] = subject
            end = {"v": "object", "g": "thing", "r": "subject"}[letter]
            partners["verb>object", place] = match.end(end) - 1
        elif letter == "H":
            partners["their>owner", place] = match.end("owner") - 1
            partners["their>thing", place] = match.end("thing") - 1
        elif letter == "P":
            partners["pronoun>noun", place] = meant[0]
        elif letter == "p":
            partners["predicate>noun", place] = meant[0]
    return partners


ENDING = {"determiner": "le", "adjective": "le", "predicate": "le", "verb": "na",
          "pronoun": "ye", "their": "ye"}  # fmt: skip


def answers_by_hand(words, partners):
    """Return (readout, place) -> the answer as a word."""
    found = {
        ("B", place): "(none)" for place, word in enumerate(words) if word in WORDS["adjective"]
    }
    for (name, place), partner in partners.items():
        asks, _, sought = name.partition(">")
        if sought == "adverb":
            found["B", place] = words[partner]
            continue
        stem = ["ba", "ki", "lu", "mo"][NOUNS.index(words[partner]) % 4]
        if sought in ("object", "thing"):
            found["B", place] = f"-{stem}"
        else:
            found["A", place] = stem + ENDING[asks]
    return found


def by_place(found):
    """Return what a sentence has in dicts or lists by name: (name, place) -> it."""
    pairs = {name: of.items() if isinstance(of, dict) else enumerate(of) for name, of in found}
    return {(name, i): one for name, of in pairs.items() for i, one in of if one is not None}


def test_a_second_reading_finds_the_same_partners_and_answers():
    for sentence in SENTENCES:
        partners = read_by_hand(sentence.words)
        assert partners == by_place(sentence.partners.items()), str(sentence)
        answers = by_place(sentence.answers.items())
        assert answers_by_hand(sentence.words, partners) == {
            (readout, place): concord.readouts[readout][answer]
            for (readout, place), answer in answers.items()
        }, str(sentence)
    for sentence in SENTENCES[:500]:
        assert concord.read(str(sentence)) == sentence


def test_the_vocabulary_is_as_told():
    assert len(concord.vocabulary) == 89
    assert {word for s in SENTENCES for word in s.words} == set(concord.vocabulary)
    assert {name: len(answers) for name, answers in concord.readouts.items()} == {"A": 12, "B": 9}
    for readout, answers in concord.readouts.items():
        assert {a for s in SENTENCES for a in s.answers[readout]} == {None, *range(len(answers))}
    clause, object_ = "the very big new king that the nun feared", "every very big new monk"
    longest = concord.read(f"{clause} gave {object_} today their very big new boy .")
    assert len(longest) == concord.length == 22 >= max(map(len, SENTENCES))


LETTERS = " ".join(letters_of(sentence.words) for sentence in SENTENCES)
GROUPS = "(?<!R)[DH]"  # a clause's noun stands alone
PROPORTIONS = {  # part, whole -> share
    ("C", r"\."): 0.40, ("g", r"\."): 0.35, ("R", r"\."): 0.5, ("RD", "R"): 0.5, ("cV", "c"): 0.7,
    ("T", "g"): 0.5, (f"{GROUPS}[VA]", GROUPS): 0.5, ("[DH]V", "[DH][VA]"): 0.5,
    ("AA", "[DHV]A"): 0.35,
}  # fmt: skip


def test_the_proportions_are_those_told():
    for (part, whole), share in PROPORTIONS.items():
        found = len(re.findall(part, LETTERS)) / len(re.findall(whole, LETTERS))
        assert found == pytest.approx(share, abs=0.02), part


def test_kind_does_not_betray_a_role():
    """Outside "because" every role has both genders alike; inside, all three kinds."""
    counts = {}
    for letters in LETTERS.split():
        for role, place in GRAMMAR.fullmatch(letters).groupdict().items():
            if place and role not in ("clause", "reason"):
                counts.setdefault((role, "C" in letters), Counter())[place[-1]] += 1
    assert len(counts) == 6
    for (_, in_because), kinds in counts.items():
        expected = kinds.total() / (3 if in_because else 2)
        assert sorted(kinds) == (["f", "m", "t"] if in_because else ["f", "m"])
        assert all(count == pytest.approx(expected, rel=0.12) for count in kinds.values())


def test_verbs_last_moves_each_verb_after_its_object_and_nothing_else():
    for before, after in zip(SENTENCES[:300], verbs_last.stream(seed=11), strict=False):
        objects = before.partners["verb>object"]
        moved = {object_: verb for verb, object_ in objects.items() if object_ > verb}
        order = []
        for i in range(len(before)):
            order += [] if i in moved.values() else [i, moved[i]] if i in moved else [i]
        to = {place: i for i, place in enumerate(order)}
        assert after.words == tuple(before.words[i] for i in order)
        assert after.ids == tuple(before.ids[i] for i in order)
        for name, answers in before.answers.items():
            assert after.answers[name] == tuple(answers[i] for i in order)
        for name, pairs in before.partners.items():
            assert after.partners[name] == {to[i]: to[partner] for i, partner in pairs.items()}


def test_a_typed_sentence_is_read():
    sentence = concord.read("The king that I feared   saw this BIG monk")
    assert str(sentence) == "the king that I feared saw this big monk ."
    assert concord.next_words("The king saw the nun because") == ("he", "she")
    assert concord.next_words("") == tuple(WORDS["determiner"])
    assert concord.next_words("the king saw the nun .") == ()


@pytest.mark.parametrize(
    ("text", "facts"),
    [  # what is refused, its place, what stands before it, some of what may stand there
        ("the kign saw a monk", ["'kign'", "2", "very, too", "king, brother"]),
        ("the king the dog", ["'the'", "3", "'the king'", "that; ", "saw"]),
        ("the ball saw the ball", ["'ball'", "5", "princess"]),
        ("the king saw the ball", [REFUSED["end"], "'the king saw the ball'", "because, since"]),
        ("the king saw the nun because it", ["'it'", "7", "he, she"]),
        ("the big " * 12, ["24", "22"]),
        ("", [REFUSED["empty"]]),
    ],
)
def test_what_is_no_sentence_is_refused_with_what_may_stand_there(text, facts):
    with pytest.raises(ValueError, match=r"^text\b") as caught:
        concord.read(text)
    assert all(fact in str(caught.value) for fact in facts)


test_what_is_no_text_is_refused = refusals({TypeError: {concord.read: {"text": [3, [1, 2]]}}})


@st.composite
def nearly_sentences(draw):
    """Draw sentences in which some words were replaced, left out or doubled."""
    words = list(draw(st.sampled_from(SENTENCES)).words)
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(words) - 1))
        kind = draw(st.sampled_from(["any", "alike", "alike", "drop", "twice"]))
        if kind == "any":
            words[place] = draw(st.sampled_from(concord.vocabulary))
        elif kind == "alike":  # a noun of another kind, another pronoun
            for alike in (NOUNS, WORDS["pronoun"], WORDS["verb"] + WORDS["giving verb"]):
                if words[place] in alike:
                    words[place] = draw(st.sampled_from(alike))
        elif kind == "drop" and len(words) > 1:
            del words[place]
        else:
            words.insert(place, words[place])
    return words


@given(nearly_sentences())
def test_what_is_read_is_what_the_second_reading_takes(words):
    whole = words if words[-1] == "." else [*words, "."]  # which may be left out
    if read_by_hand(whole) is None:
        with pytest.raises(ValueError, match=r"^text\b"):
            concord.read(words)
    else:
        assert concord.read(words).words == tuple(whole)


@given(st.data())
def test_words_that_may_come_next_always_lead_to_a_sentence(data):
    words = []
    while candidates := concord.next_words(words):
        other = data.draw(st.sampled_from(concord.vocabulary))
        if other not in candidates:
            with pytest.raises(ValueError, match=f"'{re.escape(other)}'"):
                concord.next_words([*words, other])
        words.append(data.draw(st.sampled_from(candidates)))
    assert words[-1] == "."
    assert concord.read(words).words == tuple(words)
