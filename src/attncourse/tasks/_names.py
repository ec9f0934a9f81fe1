"""Names that are made by four rules, letter by letter."""

import json
import math
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from attncourse.tasks._tasks import Relation, Sentence, Task
from attnlib.checks import checked_list, require_text
from attnlib.rng import Sfc32

DATA: dict[str, Any] = json.loads(
    (Path(__file__).parent / "names.json").read_text(encoding="utf-8")
)
PLACE = {letter: place for place, letter in enumerate(DATA["letters"])}
KINDS: list[str] = list(DATA["vowels"].values())
VOWELS = "".join(KINDS)
ENDING = {first: ending for ending, firsts in DATA["endings"].items() for first in firsts}
FIRST = "".join(sorted(ENDING))
NUMBERS: list[int] = DATA["numbers"]
INNER: str = DATA["inner"]
BEFORE_DOUBLE: str = DATA["before double"]


class Names(Task):
    """Made names, in which each letter must tell what comes next.

    Its one instance is `attncourse.tasks.names`. A name keeps four rules:

    * *shape*: it begins and ends with a consonant; vowels, 2 to 5 of them, stand alone, and between
      two stands a consonant, once or twice.
    * *harmony*: all its vowels are front ones (e, i, y) or all are back ones (a, o, u), as in
      Finnish or Turkish.
    * *doubling*: after e and o the consonant between two vowels is double, after others single.
    * *ending*: the first letter fixes the last. After b, c, d, f, g it is n; after h, j, k, l, m
      it is r; after n, p, q, r, s it is l; after t, v, w, x, z it is s.

    So "bellen" and "tollas" are names; "bellan", "tolas" and "bellel" aren't. A name is drawn in
    this order: the kind of its vowels, its first letter and how many vowels it has; a vowel; then,
    for each further one, the consonant before it and the vowel. In the file of the language a
    letter stands as often as it is likely.

    There are 27 tokens: the 26 letters, a = 0, and the boundary "." = 26, which stands before a
    name and is the answer after its last letter. The readout is "next". Names have 15 letters at
    most, so a sentence has at most 16 words. Three relations are known, one for each rule but the
    first:

    * *vowel>vowel*: before each vowel but the first, the partner is the vowel before that one.
    * *double>vowel*: after a consonant that may be double, the partner is the vowel before it.
    * *ending>first*: before the last letter, the partner is the first.
    """

    name = "names"
    vocabulary = (*DATA["letters"], DATA["boundary"])
    readouts = {"next": vocabulary}  # noqa: RUF012
    relations = tuple(
        Relation(name, "next") for name in ("vowel>vowel", "double>vowel", "ending>first")
    )
    causal = True
    length: int = 1 + DATA["longest"]
    data = DATA  # letters, their chances, endings and refusals, which the browser reads as well

    @property
    def boundary(self) -> int:
        """The token before and after a name."""
        return len(self.vocabulary) - 1

    def draw(self, rng: Sfc32) -> Sentence:
        vowels, first, number = rng.choice(KINDS), rng.choice(FIRST), rng.choice(NUMBERS)
        letters = [first, rng.choice(vowels)]
        for _ in range(number - 1):
            consonant = rng.choice(INNER)
            doubled = letters[-1] in BEFORE_DOUBLE
            letters += [consonant * 2 if doubled else consonant, rng.choice(vowels)]
        name = "".join([*letters, ENDING[first]])
        return self._sentence(name, _partners(name))

    def read(self, text: str) -> Sentence:
        """Return a text as a sentence: the boundary, then its letters, each asked for the next.

        Partners are known where the text keeps the rules; else there are none.

        Args:
            text: 1 to 15 letters from a to z. Capitals don't matter.

        Example:
            >>> sentence = names.read("Emma")
            >>> sentence.ids, sentence.answers["next"]
            ((26, 4, 12, 12, 0), (4, 12, 12, 0, 26))

        Raises:
            TypeError: `text` isn't text.
            ValueError: it has another letter, none, or more than 15.
        """
        text = _checked(text)
        return self._sentence(text, _partners(text if self.keeps_rules(text) else ""))

    def _sentence(self, text: str, partners: dict[str, dict[int, int]]) -> Sentence:
        letters = tuple(PLACE[letter] for letter in text)
        return Sentence(
            words=(DATA["boundary"], *text),
            ids=(self.boundary, *letters),
            answers={"next": (*letters, self.boundary)},
            partners=partners,
        )

    def spelled(self, ids: Sequence[int]) -> str:
        """Return the name that tokens spell, up to the first boundary that ends one.

        Example:
            >>> names.spelled([26, 4, 12, 12, 0, 26, 26])
            'emma'

        Raises:
            ValueError: an id that isn't a token's.
        """
        ids = checked_list("ids", ids)
        for token in ids:
            if not isinstance(token, int) or not 0 <= token <= self.boundary:
                raise ValueError(f"ids must be ints from 0 to {self.boundary}, got {token!r}")
        text = "".join(self.vocabulary[token] for token in ids)
        return text.removeprefix(DATA["boundary"]).split(DATA["boundary"])[0]

    def texts(self, number: int, *, seed: int) -> list[str]:
        """Return this many names as plain strings; see `sentences`.

        Example:
            >>> names.texts(4, seed=0)
            ['byhin', 'mahollulamor', 'tizemmezzis', 'tusus']
        """
        return [self.spelled(sentence.ids) for sentence in self.sentences(number, seed=seed)]

    def keeps_rules(self, name: str) -> bool:
        """Return whether a string keeps all four rules.

        Raises:
            TypeError: `name` isn't text.
        """
        return not self.broken_rules(name)

    def broken_rules(self, name: str) -> tuple[str, ...]:
        """Return which of "shape", "harmony", "doubling" and "ending" a string breaks.

        Where it has another shape, the other rules say nothing, and "shape" comes alone.

        Example:
            >>> names.broken_rules("banin")
            ('harmony',)

        Raises:
            TypeError: `name` isn't text.
        """
        require_text("name", name)
        consonants, vowels = re.split(f"[{VOWELS}]", name), re.findall(f"[{VOWELS}]", name)
        first, *inner, last = consonants if vowels else ("", "")
        single = all(len(end) == 1 for end in (first, last))
        fits = single and all(len(one) in (1, 2) and len(set(one)) == 1 for one in inner)
        if not fits or not set("".join(consonants)) <= {*FIRST} or len(vowels) not in NUMBERS:
            return ("shape",)
        doubled = [vowel in BEFORE_DOUBLE for vowel in vowels[:-1]]
        kept = {
            "harmony": any(set(vowels) <= {*kind} for kind in KINDS),
            "doubling": [len(one) == 2 for one in inner] == doubled,
            "ending": last == ENDING[first],
        }
        return tuple(rule for rule, is_kept in kept.items() if not is_kept)

    def log_probability(self, name: str) -> float:
        """Return ln of how likely it is that this name is drawn; -inf where it breaks a rule.

        No guess of new names is better than this. So the sum of -log_probability over
        names, divided by the number of their tokens (letters + 1), is the least loss to be had.

        Raises:
            TypeError: `name` isn't text.
        """
        if not self.keeps_rules(name):
            return -math.inf
        _, *inner, _ = re.split(f"[{VOWELS}]", name)
        likely = NUMBERS.count(len(inner) + 1) / len(NUMBERS) / len(FIRST)
        likely /= len(VOWELS)  # kinds are as large as each other: so is the first vowel's chance
        for consonant in inner:
            likely *= INNER.count(consonant[0]) / len(INNER) / len(KINDS[0])
        return math.log(likely)


def _checked(text: str) -> str:
    require_text("text", text)
    text = text.lower()
    for letter in text:
        if letter not in DATA["letters"]:
            raise ValueError(DATA["refused"]["letter"].format(letter=repr(letter), text=repr(text)))
    if not 1 <= len(text) <= DATA["longest"]:
        told = {"most": DATA["longest"], "number": len(text)}
        raise ValueError(DATA["refused"]["length"].format(**told))
    return text


def _partners(name: str) -> dict[str, dict[int, int]]:
    """Return the partners of a name's rows; letter i is word i + 1, the answer of row i."""
    vowels = [i for i, letter in enumerate(name) if letter in VOWELS]
    return {
        "vowel>vowel": {after: before + 1 for before, after in pairwise(vowels)},
        "double>vowel": {before + 2: before + 1 for before in vowels[:-1]},
        "ending>first": {len(name) - 1: 1} if name else {},
    }


names = Names()
