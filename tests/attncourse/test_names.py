"""Made names: a second reading finds the same rules, chances and partners; letters and ids."""

import math
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.refusing import refusals

from attncourse.tasks import names

LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOWELS = "aeiouy"
CONSONANTS = "bcdfghjklmnpqrstvwxz"
NUMBERS = {2: 8, 3: 7, 4: 4, 5: 1}  # how many of 20 names have so many vowels
SOME = names.texts(10_000, seed=0)
SHAPE = f"[{CONSONANTS}](?:[{VOWELS}]([{CONSONANTS}])\\1?){{1,4}}[{VOWELS}][{CONSONANTS}]"


def ending(first):
    groups = {"bcdfg": "n", "hjklm": "r", "npqrs": "l", "tvwxz": "s"}
    (last,) = [last for group, last in groups.items() if first in group]
    return last


def broken_by_hand(name):
    """Return which rules a string breaks, as the sentences tell them."""
    if not re.fullmatch(SHAPE, name):
        return ("shape",)
    broken = {
        "harmony": {*name} & {*"eiy"} and {*name} & {*"aou"},
        "doubling": re.search(f"[eo][{CONSONANTS}][{VOWELS}]|[aiuy]([{CONSONANTS}])\\1", name),
        "ending": name[-1] != ending(name[0]),
    }
    return tuple(rule for rule, is_broken in broken.items() if is_broken)


def likely_by_hand(name):
    """Return how likely a name is: its vowels' number, its first letter and vowel, the others."""
    vowels = [place for place, letter in enumerate(name) if letter in VOWELS]
    inner = names.data["inner"]
    likely = NUMBERS[len(vowels)] / 20 / len(CONSONANTS) / len(VOWELS)
    for vowel in vowels[:-1]:
        likely *= inner.count(name[vowel + 1]) / len(inner) / 3
    return likely


@st.composite
def nearly_names(draw):
    """Draw names in which some letters were replaced, doubled or left out."""
    letters = list(draw(st.sampled_from(SOME)))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(letters) - 1))
        alike = [group for group in (VOWELS, CONSONANTS) if letters[place] in group] or [LETTERS]
        others = [draw(st.sampled_from(draw(st.sampled_from([LETTERS, *alike]))))]
        letters[place : place + 1] = draw(st.sampled_from([others, [letters[place]] * 2, []]))
        letters = letters or ["-"]
    return "".join(letters)


@given(nearly_names() | st.text("abno-B", max_size=6))
def test_a_second_reading_finds_the_same_rules_broken(name):
    broken = broken_by_hand(name)
    assert names.broken_rules(name) == broken
    assert names.keeps_rules(name) == (broken == ())
    likely = math.log(likely_by_hand(name)) if not broken else -math.inf
    assert names.log_probability(name) == pytest.approx(likely)


def test_drawn_names_keep_the_rules_and_come_as_often_as_is_said():
    assert not any(map(broken_by_hand, SOME))
    assert {len(name) for name in SOME} == {*range(5, 16)}
    assert {*"".join(SOME)} == {*CONSONANTS, *VOWELS} == {*LETTERS}
    for place, letters in ((0, CONSONANTS), (1, VOWELS), (2, names.data["inner"])):
        for letter in letters:
            share = sum(name[place] == letter for name in SOME) / len(SOME)
            assert share == pytest.approx(letters.count(letter) / len(letters), abs=0.015)
    numbers = [sum(letter in VOWELS for letter in name) for name in SOME]
    for number, of_20 in NUMBERS.items():
        assert numbers.count(number) / len(SOME) == pytest.approx(of_20 / 20, abs=0.015)


def test_sentences_have_the_partners_of_a_second_reading():
    assert len(names.vocabulary) == 27 and names.boundary == 26 and names.length == 16
    assert names.readouts == {"next": names.vocabulary}
    for sentence, name in zip(names.sentences(500, seed=0), SOME[:500], strict=True):
        letters = [LETTERS.index(letter) for letter in name]
        assert sentence.words == (".", *name) and sentence.ids == (26, *letters)
        assert sentence.answers == {"next": (*letters, 26)}
        vowels = [place for place, word in enumerate(sentence.words) if word in VOWELS]
        partners = {  # of rows, which stand before what they tell
            "vowel>vowel": {after - 1: before for before, after in pairwise(vowels)},
            "double>vowel": {vowel + 1: vowel for vowel in vowels[:-1]},
            "ending>first": {len(name) - 1: 1},
        }
        assert sentence.partners == partners
        assert names.read(name) == names.read(name.upper()) == sentence


@given(st.text(LETTERS, min_size=1, max_size=15))
def test_any_word_is_read_and_spelled_again(text):
    sentence = names.read(text)
    ids = sentence.ids
    assert names.spelled(ids) == names.spelled([*ids, 26, 26, 3]) == names.spelled(ids[1:]) == text
    assert sentence.answers["next"] == (*ids[1:], 26)
    assert any(sentence.partners.values()) == (not broken_by_hand(text))
    assert names.spelled([]) == names.spelled([26]) == names.spelled([26, 26, 4]) == ""


REFUSED = {
    TypeError: {
        names.read: {"text": [["b"]]},
        names.keeps_rules: {"name": [None]},
        names.broken_rules: {"name": [3]},
        names.log_probability: {"name": [b"bellen"]},
        names.spelled: {"ids": ["abc", 7]},
    },
    ValueError: {
        names.read: {"text": ["zo\u00eb", "two words", "", "b" * 16]},
        names.spelled: {"ids": [[3, 27], [-1], [0.5]]},
    },
}

test_what_does_not_fit_is_refused = refusals(REFUSED)
