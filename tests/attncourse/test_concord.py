"""Concord against a second, independent reading of its grammar, and what people type."""

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attncourse.tasks import concord, pack, verbs_last
from attnlib.patterns import best_offset

SENTENCES = concord.sentences(10_000, seed=11)
WORDS = concord.data["words"]

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


def read_by_hand(words):
    """Return (relation, place) -> partner of a sentence, or None where words are none."""
    letters = "".join(LETTER_OF[word] for word in words)
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


def test_the_vocabulary_is_as_told():
    assert len(concord.vocabulary) == 89 == len(set(concord.vocabulary))
    counted = {category: len(words) for category, words in WORDS.items()}
    told = {"male": 8, "female": 8, "thing": 8, "determiner": 4, "adjective": 6, "adverb": 4,
            "predicate": 6, "verb": 6, "relative verb": 4, "giving verb": 4}  # fmt: skip
    assert counted.items() >= told.items()
    assert WORDS["adverb"] == ["very", "too", "quite", "so"]
    assert {name: len(answers) for name, answers in concord.readouts.items()} == {"A": 12, "B": 9}
    for readout, answers in concord.readouts.items():
        assert len(set(answers)) == len(answers)
        assert {a for s in SENTENCES for a in s.answers[readout]} == {None, *range(len(answers))}
    assert {word for s in SENTENCES for word in s.words} == set(concord.vocabulary)


def test_a_second_reading_finds_the_same_partners_and_answers():
    for sentence in SENTENCES:
        words = sentence.words
        partners = read_by_hand(words)
        assert partners is not None, str(sentence)
        assert partners == {
            (name, place): partner
            for name, pairs in sentence.partners.items()
            for place, partner in pairs.items()
        }, str(sentence)
        assert answers_by_hand(words, partners) == {
            (readout, place): concord.readouts[readout][answer]
            for readout, answers in sentence.answers.items()
            for place, answer in enumerate(answers)
            if answer is not None
        }, str(sentence)
        assert [concord.vocabulary[i] for i in sentence.ids] == list(words)


def test_no_answer_hangs_on_anything_but_the_words():
    for sentence in SENTENCES[:2_000]:
        assert concord.read(sentence.words) == sentence
        assert concord.read(str(sentence)) == sentence


def test_sentences_are_at_most_as_long_as_told_and_some_are():
    longest = (
        "the very big new king that the nun feared gave every very big new monk today "
        "their very big new boy ."
    )
    assert len(concord.read(longest)) == concord.length == 22
    assert max(map(len, SENTENCES)) <= 22


def share(sentences, of):
    return sum(map(of, sentences)) / len(sentences)


def letters_of(sentence):
    return "".join(LETTER_OF[word] for word in sentence.words)


def test_the_proportions_are_those_told():
    near = {"abs": 0.02}
    letters = [letters_of(sentence) for sentence in SENTENCES]
    because = [found for found in letters if "C" in found]
    giving = [found for found in letters if "g" in found]
    clauses = [found for found in letters if "R" in found]
    assert share(letters, lambda found: "C" in found) == pytest.approx(0.40, **near)
    assert share(letters, lambda found: "g" in found) == pytest.approx(0.35, **near)
    assert share(letters, lambda found: "R" in found) == pytest.approx(0.5, **near)
    assert share(clauses, lambda found: "RD" in found) == pytest.approx(0.5, **near)
    assert share(because, lambda found: "cV" in found) == pytest.approx(0.7, **near)
    assert share(giving, lambda found: "T" in found) == pytest.approx(0.5, **near)
    groups = [group for found in letters for group in re.findall("(?<=[DH])([VA]*)[mft]", found)]
    outside = [group for found in letters for group in re.findall("(?<=RD)([VA]*)[mft]", found)]
    assert set(outside) == {""}  # a clause's noun stands alone
    groups = list((Counter(groups) - Counter(outside)).elements())
    with_adjective = [group for group in groups if group]
    assert share(groups, bool) == pytest.approx(0.5, **near)
    assert share(with_adjective, lambda group: "V" in group) == pytest.approx(0.5, **near)
    assert share(with_adjective, lambda group: "AA" in group) == pytest.approx(0.35, **near)


def test_kind_does_not_betray_a_role():
    """Outside "because" every role has both genders alike; inside, all three kinds."""
    counts = {}
    for sentence in SENTENCES:
        letters = letters_of(sentence)
        for role, place in GRAMMAR.fullmatch(letters).groupdict().items():
            if place and role not in ("clause", "reason"):
                role = (role, "C" in letters)
                counts.setdefault(role, Counter())[place[-1]] += 1
    assert len(counts) == 6
    for (_, in_because), kinds in counts.items():
        expected = kinds.total() / (3 if in_because else 2)
        assert sorted(kinds) == (["f", "m", "t"] if in_because else ["f", "m"])
        assert all(count == pytest.approx(expected, rel=0.12) for count in kinds.values())


BASELINES = {
    "determiner>noun": ({1}, 0.56), "adjective>noun": ({1}, 0.74), "verb>subject": ({-1}, 0.61),
    "verb>object": ({2}, 0.22), "pronoun>noun": ({-2}, 0.49), "their>owner": ({-1, -2}, 0.51),
    "their>thing": ({1}, 0.48), "adjective>adverb": ({-1}, 0.74), "predicate>noun": ({-5}, 0.35),
}  # fmt: skip


def test_no_fixed_offset_finds_the_partners():
    partners = pack(SENTENCES).partners
    assert set(partners) == set(BASELINES) == {relation.name for relation in concord.relations}
    for name, (offsets, baseline) in BASELINES.items():
        offset, share = best_offset(partners[name])
        assert offset in offsets, name
        assert share == pytest.approx(baseline, abs=0.025), name


# What people type


def test_a_typed_sentence_is_read():
    sentence = concord.read("The king that I feared   saw this BIG monk")
    assert str(sentence) == "the king that I feared saw this big monk ."
    assert sentence.partners["verb>object"] == {4: 1, 5: 8}
    assert sentence.partners["verb>subject"] == {5: 1}
    pronoun = concord.read(["the", "king", "saw", "the", "ball", "as", "it", "was", "wet", "."])
    assert pronoun.partners["predicate>noun"] == {8: 4}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the kign saw a monk", "words of the language, got 'kign' as word 2.*king, brother"),
        ("the the king saw", "got 'the' as word 2 after 'the'; there may stand very, too"),
        ("the king saw the", "got its end after 'the king saw the'; there may stand very"),
        ("the king the dog", "got 'the' as word 3 after 'the king'; there may stand that; "),
        ("the ball saw the ball", "got 'ball' as word 5 .*princess, niece, waitress$"),
        ("the king saw the ball", "got its end after .*there may stand because, since, as"),
        (
            "the ball saw the king .",
            "got '\\.' as word 6 .*there may stand because, since, as, when",
        ),
        ("the ball gave", "got 'gave' as word 3 after 'the ball'; .* that; saw, found"),
        ("the king saw the boy because", "got 'because' as word 6 .*there may stand \\.$"),
        ("the king saw the nun because it", "got 'it' as word 7 .*there may stand he, she$"),
        ("the king saw the nun . the", "got 'the' as word 7 .*there the sentence is over"),
        ("a king gave a nun their ball", "got 'ball' as word 7"),
        ("saw", "got 'saw' as word 1; there may stand the, a, this, every"),
        ("the big " * 12, "at most 22 words, got 24"),
        ("", "at least one string, got none"),
        ("  ", "at least one string, got none"),
    ],
)
def test_what_is_no_sentence_is_refused_with_what_may_stand_there(text, words):
    with pytest.raises(ValueError, match=f"^text must .*{words}"):
        concord.read(text)


@pytest.mark.parametrize("text", [3, None, [1, 2], b"the king"])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(TypeError, match=r"^text must"):
        concord.read(text)


@st.composite
def nearly_sentences(draw):
    """Sentences in which some words were replaced, left out, doubled or exchanged."""
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


@settings(max_examples=300)  # what differs in little is what is easily taken for a sentence
@given(nearly_sentences())
def test_what_is_read_is_what_the_second_reading_takes(words):
    whole = words if words[-1] == "." else [*words, "."]  # which may be left out
    if read_by_hand(whole) is None:
        with pytest.raises(ValueError, match=r"^text must"):
            concord.read(words)
    else:
        assert concord.read(words).words == tuple(whole)


@given(st.data())
def test_words_that_may_come_next_always_lead_to_a_sentence(data):
    words = []
    while candidates := concord.next_words(words):
        other = data.draw(st.sampled_from(concord.vocabulary))
        if other not in candidates:
            with pytest.raises(ValueError, match=f"got '{re.escape(other)}' as word"):
                concord.next_words([*words, other])
        words.append(data.draw(st.sampled_from(candidates)))
    assert words[-1] == "."
    assert concord.read(words).words == tuple(words)


def test_words_to_go_on_with_can_be_asked_as_text():
    assert concord.next_words("") == ("the", "a", "this", "every")
    assert concord.next_words("The king saw the nun because") == ("he", "she")
    assert concord.next_words("the king saw the nun .") == ()
    with pytest.raises(ValueError, match="got 'the' as word 2"):
        concord.next_words("the the")


def test_verbs_last_moves_each_verb_after_its_object_and_nothing_else():
    for before, after in zip(SENTENCES[:300], verbs_last.stream(seed=11), strict=False):
        assert sorted(before.words) == sorted(after.words)
        verbs = after.partners["verb>object"]
        assert all(verb > partner for verb, partner in verbs.items())
        assert [w for i, w in enumerate(after.words) if i not in verbs] == [
            word for i, word in enumerate(before.words) if i not in before.partners["verb>object"]
        ]

        def in_words(sentence):
            answers = [
                (word, [sentence.answers[readout][i] for readout in sentence.answers])
                for i, word in enumerate(sentence.words)
            ]
            pairs = [
                (name, sentence.words[word], sentence.words[partner])
                for name, found in sentence.partners.items()
                for word, partner in found.items()
            ]
            return sorted(answers, key=str), sorted(pairs)

        assert in_words(after) == in_words(before)
