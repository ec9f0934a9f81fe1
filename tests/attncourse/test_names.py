"""Made names: by their rules, as likely as is said, read and spelled as told."""

import json
import math
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.refusing import assert_refused

from attncourse import tasks
from attncourse.tasks import names

VOWELS = "aeiouy"
CONSONANTS = "bcdfghjklmnpqrstvwxz"
SOME = names.texts(20_000, seed=0)


def ending(first):
    """The rule as its sentence tells it."""
    groups = {"bcdfg": "n", "hjklm": "r", "npqrs": "l", "tvwxz": "s"}
    (last,) = [last for group, last in groups.items() if first in group]
    return last


# --- the rules -----------------------------------------------------------------------------------


def test_every_made_name_keeps_the_rules_as_told():
    for name in SOME:
        vowels = [letter for letter in name if letter in VOWELS]
        assert 2 <= len(vowels) <= 5 and 5 <= len(name) <= 15
        assert set(vowels) <= {*"eiy"} or set(vowels) <= {*"aou"}
        assert name[0] in CONSONANTS and name[-1] == ending(name[0])
        inner = name[1:-1]
        for i, vowel in enumerate(inner[:-1]):
            if vowel in VOWELS:  # not the last: a consonant stands behind it, and another vowel
                doubled = inner[i + 1] == inner[i + 2]
                assert doubled == (vowel in "eo")
                assert inner[i + 2 + doubled] in VOWELS
        assert names.keeps_rules(name)
    assert {len(name) for name in SOME} == {*range(5, 16)}
    assert {name[0] for name in SOME} == {*CONSONANTS}
    assert {*"".join(SOME)} == {*CONSONANTS, *VOWELS}


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("bellen", ()),
        ("tollas", ()),
        ("zasabommus", ()),
        ("bellan", ("harmony",)),
        ("tolas", ("doubling",)),
        ("billen", ("doubling",)),
        ("bellel", ("ending",)),
        ("tollan", ("ending",)),
        ("bolen", ("harmony", "doubling")),
        ("bellol", ("harmony", "ending")),
        ("bolel", ("harmony", "doubling", "ending")),
        ("ban", ("shape",)),  # one vowel
        ("banananananan", ("shape",)),  # six
        ("anon", ("shape",)),
        ("bano", ("shape",)),
        ("baun", ("shape",)),
        ("blan", ("shape",)),
        ("banton", ("shape",)),
        ("banann", ("shape",)),
        ("bbanon", ("shape",)),
        ("bannnan", ("shape",)),
        ("Banon", ("shape",)),
        ("ba-on", ("shape",)),
        ("brrn", ("shape",)),
        ("b", ("shape",)),
        ("a", ("shape",)),
        ("", ("shape",)),
    ],
)
def test_which_rules_a_string_breaks(name, broken):
    assert names.broken_rules(name) == broken
    assert names.keeps_rules(name) == (broken == ())


@given(st.sampled_from(SOME[:2000]), st.data())
def test_a_letter_that_is_changed_breaks_a_rule_or_makes_another_name(name, data):
    place = data.draw(st.integers(0, len(name) - 1))
    letter = data.draw(st.sampled_from("abcdefghijklmnopqrstuvwxyz"))
    other = name[:place] + letter + name[place + 1 :]
    likely = names.log_probability(other)
    assert names.keeps_rules(other) == (likely > -math.inf)


def names_of_two_vowels():
    return [
        f"{first}{a}{consonant * (2 if a in 'eo' else 1)}{b}{ending(first)}"
        for first, consonant in product(CONSONANTS, CONSONANTS)
        for kind in ("eiy", "aou")
        for a, b in product(kind, kind)
    ]


# --- how likely names are ------------------------------------------------------------------------


def test_the_shortest_names_are_as_likely_as_all_together():
    likely = [math.exp(names.log_probability(name)) for name in names_of_two_vowels()]
    assert min(likely) > 0 and sum(likely) == pytest.approx(8 / 20)


def test_names_come_as_often_as_is_said():
    for consonant in CONSONANTS:
        own = {name for name in names_of_two_vowels() if name[2] == consonant}
        expected = sum(math.exp(names.log_probability(name)) for name in own)
        found = sum(name in own for name in SOME) / len(SOME)
        assert found == pytest.approx(expected, abs=0.005) and expected > 0.005
    for share, what in (
        (1 / 6, [name[1] == "o" for name in SOME]),
        (0.5, [name[1] in "eiy" for name in SOME]),
        (1 / 20, [name[0] == "x" for name in SOME]),
        (4 / 20, [sum(v in VOWELS for v in name) == 4 for name in SOME]),
    ):
        assert sum(what) / len(what) == pytest.approx(share, abs=0.01)


def test_a_name_by_hand():
    """8/20 have two vowels; b is 1 of 20 first letters, e 1 of 6 vowels; l stands 6 of 56 times."""
    assert names.data["inner"].count("l") == 6 and len(names.data["inner"]) == 56
    bellen = 8 / 20 / 20 / 6 * 6 / 56 / 3
    assert math.exp(names.log_probability("bellen")) == pytest.approx(bellen)
    bilellin = 7 / 20 / 20 / 6 * (6 / 56 / 3) ** 2
    assert math.exp(names.log_probability("bilellin")) == pytest.approx(bilellin)
    assert names.log_probability("bellan") == -math.inf


# --- sentences -----------------------------------------------------------------------------------


def test_a_name_is_27_tokens_and_tells_each_next_one():
    assert len(names.vocabulary) == 27 and names.boundary == 26 and names.length == 16
    assert names.readouts == {"next": names.vocabulary} and names.causal
    bellen = names.read("Bellen")
    assert bellen.words == (".", *"bellen")
    assert bellen.ids == (26, 1, 4, 11, 11, 4, 13)
    assert bellen.answers == {"next": (1, 4, 11, 11, 4, 13, 26)}
    # Behind the first "l" (place 3) comes another since "e" (2) stands before; "e" tells the kind
    # of what follows the second (4), and "b" (1) the last letter, behind "e" (5).
    assert bellen.partners == {
        "vowel>vowel": {4: 2}, "double>vowel": {3: 2}, "ending>first": {5: 1}
    }  # fmt: skip
    assert names.read("malavojjar").partners == {
        "vowel>vowel": {3: 2, 5: 4, 8: 6}, "double>vowel": {3: 2, 5: 4, 7: 6},
        "ending>first": {9: 1},
    }  # fmt: skip


def test_any_word_can_be_read_without_partners():
    emma = names.read("emma")
    assert emma.ids == (26, 4, 12, 12, 0)
    assert emma.partners == {"vowel>vowel": {}, "double>vowel": {}, "ending>first": {}}
    assert names.read("a" * 15).answers["next"][-1] == 26


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=15))
def test_what_is_read_is_spelled_again(text):
    ids = names.read(text).ids
    assert names.spelled(ids) == names.spelled([*ids, 26, 26, 3]) == names.spelled(ids[1:]) == text


def test_nothing_is_spelled_by_boundaries():
    assert names.spelled([]) == names.spelled([26]) == names.spelled([26, 26, 4]) == ""


def test_texts_are_the_sentences():
    sentences = names.sentences(5, seed=9)
    assert names.texts(5, seed=9) == ["".join(one.words[1:]) for one in sentences]


def test_the_language_is_a_file_of_plain_json():
    """The browser is to read it as well, and to draw the same names."""
    file = Path(tasks.__file__).parent / "names.json"
    assert json.loads(file.read_text()) == names.data


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: names.read("zoë"), ["text", "'ë'", "'zoë'"]),
        (lambda: names.read("two words"), ["text", "' '"]),
        (lambda: names.read(""), ["text", "1 to 15", "got 0"]),
        (lambda: names.read("b" * 16), ["text", "1 to 15", "got 16"]),
        (lambda: names.read(["b"]), ["text", "list"]),
        (lambda: names.keeps_rules(None), ["name", "NoneType"]),
        (lambda: names.broken_rules(3), ["name", "int"]),
        (lambda: names.log_probability(b"bellen"), ["name", "bytes"]),
        (lambda: names.spelled([3, 27]), ["ids", "0 to 26", "got 27"]),
        (lambda: names.spelled([-1]), ["ids", "got -1"]),
        (lambda: names.spelled("abc"), ["ids"]),
        (lambda: names.spelled([0.5]), ["ids"]),
        (lambda: names.spelled(7), ["ids", "int"]),
        (lambda: names.texts(-1, seed=0), ["number", "-1"]),
    ],
)
def test_bad_input(call, words):
    assert_refused(call, words)
