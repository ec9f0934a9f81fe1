"""Concord: a made language in which words answer to others.

Its words, numbers and answers are the file `concord.json`, which the browser reads as well; the
grammar stands here and, for the browser, in `widgets/engine/language.js`. One walk through the
grammar serves both ways: at each turn it asks whether a word of some category comes next. Who draws
a sentence throws a die, who reads one looks at the next word.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from attnlib._chance import Chance
from attnlib._checks import checked_texts
from attnlib.relations._tasks import Relation, Sentence, Task

DATA: dict[str, Any] = json.loads(
    Path(__file__).with_name("concord.json").read_text(encoding="utf-8")
)
WORDS: dict[str, list[str]] = DATA["words"]
KINDS: list[str] = DATA["kinds"]
PERSONS: list[str] = DATA["persons"]
CHANCES: dict[str, float] = DATA["chances"]
SHAPES: dict[str, float] = DATA["shapes"]
CATEGORY = {word: category for category, words in WORDS.items() for word in words}
PLACE = {word: place for place, word in enumerate(CATEGORY)}
READOUTS: dict[str, tuple[str, ...]] = {
    readout: tuple(answer for answers in sets.values() for answer in answers)
    for readout, sets in DATA["answers"].items()
}
CLASS = {noun: place % DATA["classes"] for kind in KINDS for place, noun in enumerate(WORDS[kind])}
NO_ADVERB = READOUTS["B"].index(DATA["answers"]["B"]["adverb"][0])


def _answers() -> dict[tuple[str, str], int]:
    """Return (relation, partner) -> the answer's place in its readout."""
    found = {}
    for name, relation in DATA["relations"].items():
        answers = DATA["answers"][relation["readout"]][relation["answers"]]
        for word in [*CLASS, *WORDS["adverb"]]:
            answer = answers[CLASS[word]] if word in CLASS else word
            if answer in answers:  # no adverb stands where a noun is looked for
                found[name, word] = READOUTS[relation["readout"]].index(answer)
    return found


ANSWER = _answers()
SPELLING = {word.lower(): word for word in CATEGORY}


class Walk(Protocol):
    """What goes through the grammar: it draws a sentence, or reads one."""

    def comes(self, probability: float, *categories: str) -> bool:
        """Say whether a word of these categories comes next."""

    def take(self, category: str) -> int:
        """Go on behind a word of this category; return its place."""


@dataclass
class Plan:
    """Who is who in a sentence, as places of its words.

    Where a pronoun stands, its partner and that of the predicate aren't told by the grammar alone:
    it is `subject` or `object`, whichever the pronoun's gender names.
    """

    partners: dict[str, dict[int, int]] = field(
        default_factory=lambda: {name: {} for name in DATA["relations"]}
    )
    adjectives: list[int] = field(default_factory=list)  # each answers in B, adverb or none
    subject: int = -1
    object: int = -1
    pronoun: int = -1  # as the next one, -1 where the sentence has none
    predicate: int = -1


def walk_through(walk: Walk) -> Plan:
    """Go through a sentence: subject, clause, verb, object, and what the shape adds."""
    plan = Plan()
    partners = plan.partners
    plan.subject = _noun_phrase(walk, plan, walk.take("determiner"))
    if walk.comes(CHANCES["clause"], "that"):
        walk.take("that")
        if walk.comes(CHANCES["clause with a noun"], "determiner"):
            determiner, noun = walk.take("determiner"), walk.take("noun")
            partners["determiner>noun"][determiner] = noun
            verb = walk.take("relative verb")
            partners["verb>subject"][verb] = noun
        else:
            walk.take("speaker")
            verb = walk.take("relative verb")
        partners["verb>object"][verb] = plan.subject
    giving = walk.comes(SHAPES["giving"], "giving verb")
    verb = walk.take("giving verb" if giving else "verb")
    partners["verb>subject"][verb] = plan.subject
    plan.object = _noun_phrase(walk, plan, walk.take("determiner"))
    if giving:
        if walk.comes(CHANCES["time"], "time"):
            walk.take("time")
        their = walk.take("their")
        thing = _noun_phrase(walk, plan, None)
        partners["their>owner"][their] = plan.object
        partners["their>thing"][their] = partners["verb>object"][verb] = thing
    else:
        partners["verb>object"][verb] = plan.object
        if walk.comes(SHAPES["because"] / (SHAPES["because"] + SHAPES["plain"]), "conjunction"):
            walk.take("conjunction")
            plan.pronoun = walk.take("pronoun")
            walk.take("copula")
            if walk.comes(CHANCES["adverb of predicate"], "adverb"):
                walk.take("adverb")
            plan.predicate = walk.take("predicate")
    walk.take("end")
    return plan


def _noun_phrase(walk: Walk, plan: Plan, determiner: int | None) -> int:
    """Go through adverb, adjectives and noun; return the noun's place."""
    adverb, adjectives = None, []
    if walk.comes(CHANCES["adjective"], "adverb", "adjective"):
        if walk.comes(CHANCES["adverb"], "adverb"):
            adverb = walk.take("adverb")
        adjectives.append(walk.take("adjective"))
        if walk.comes(CHANCES["second adjective"], "adjective"):
            adjectives.append(walk.take("adjective"))
    noun = walk.take("noun")
    if determiner is not None:
        plan.partners["determiner>noun"][determiner] = noun
    for adjective in adjectives:
        plan.partners["adjective>noun"][adjective] = noun
        if adverb is not None:
            plan.partners["adjective>adverb"][adjective] = adverb
    plan.adjectives += adjectives
    return noun


class Drawing:
    """A walk that throws dice; the words are drawn afterwards."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self.categories: list[str] = []

    def comes(self, probability: float, *categories: str) -> bool:
        """Throw a die."""
        return self._chance.happens(probability)

    def take(self, category: str) -> int:
        """Note that a word of this category is to be drawn."""
        self.categories.append(category)
        return len(self.categories) - 1

    def words(self, plan: Plan) -> list[str]:
        """Draw the words. The pronoun's gender tells which of the nouns it means."""
        chance = self._chance
        nouns = [i for i, category in enumerate(self.categories) if category == "noun"]
        if plan.pronoun < 0:
            kinds = [chance.choice(PERSONS) for _ in nouns]
        else:
            kinds = chance.shuffled(KINDS)
        kind_of = dict(zip(nouns, kinds, strict=False))
        words = [
            chance.choice(WORDS[kind_of.get(i, category)]) if category != "pronoun" else ""
            for i, category in enumerate(self.categories)
        ]
        if plan.pronoun >= 0:
            meant = chance.choice([plan.subject, plan.object])
            words[plan.pronoun] = WORDS["pronoun"][KINDS.index(kind_of[meant])]
        return words


class StuckError(Exception):
    """No sentence goes on like this: at a place, only other words may stand."""

    def __init__(self, place: int, candidates: Sequence[str]) -> None:
        super().__init__(place)
        self.place, self.candidates = place, tuple(candidates)


class Reading:
    """A walk along given words, which raises StuckError where none of what may stand there comes.

    Nouns are persons, but where a pronoun follows: there no two are of one kind, and the pronoun is
    that of the subject or of the object.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self.place = 0  # of the next word
        self._kinds: list[str] = []  # of the nouns so far
        self._taken: list[str] = []  # the categories so far
        self._candidates: list[str] = []  # all that was asked for at this place

    def comes(self, probability: float, *categories: str) -> bool:
        """Look at the next word."""
        candidates = [word for category in categories for word in self._fitting(category)]
        self._candidates += candidates
        return self._next() in candidates

    def take(self, category: str) -> int:
        """Take the next word, if it is of this category and fits."""
        fitting = self._fitting(category)
        if self._next() not in fitting:
            raise StuckError(self.place, [*dict.fromkeys([*self._candidates, *fitting])])
        if category == "noun":
            self._kinds.append(CATEGORY[self._words[self.place]])
        self._taken.append(category)
        self._candidates = []
        self.place += 1
        return self.place - 1

    def _next(self) -> str | None:
        return self._words[self.place] if self.place < len(self._words) else None

    def _fitting(self, category: str) -> list[str]:
        """Return the words of a category which may stand here, after the nouns so far."""
        persons = all(kind in PERSONS for kind in self._kinds)
        distinct = len(set(self._kinds)) == len(self._kinds)
        if category == "noun":
            return [
                word
                for kind in KINDS
                if (persons and kind in PERSONS) or self._may_differ(distinct, kind)
                for word in WORDS[kind]
            ]
        if category == "pronoun":
            meant = (self._kinds[0], self._kinds[-1])  # subject and object
            return [WORDS["pronoun"][KINDS.index(kind)] for kind in KINDS if kind in meant]
        fits = {
            "giving verb": persons,
            "conjunction": distinct,
            "end": persons or "pronoun" in self._taken,
        }
        return WORDS[category] if fits.get(category, True) else []

    def _may_differ(self, distinct: bool, kind: str) -> bool:
        """Say whether a noun of this kind leaves room for a pronoun later on."""
        return distinct and kind not in self._kinds and "giving verb" not in self._taken


class Concord(Task):
    """The language; see `concord`."""

    name = "concord"
    vocabulary = tuple(CATEGORY)
    readouts = READOUTS
    relations = tuple(
        Relation(name, relation["readout"]) for name, relation in DATA["relations"].items()
    )
    causal = False
    length: int = DATA["length"]

    def _draw(self, chance: Chance) -> Sentence:
        walk = Drawing(chance)
        plan = walk_through(walk)
        return _sentence(walk.words(plan), plan)

    def read(self, text: str | Sequence[str]) -> Sentence:
        """Return what somebody typed as a sentence, with its answers and partners.

        Args:
            text: words with spaces between them, or a list of words. Capitals don't matter, and
                the full stop may be left out.

        Example:
            >>> sentence = concord.read("The king saw the big ball because it was too wet.")
            >>> noun = sentence.partners["pronoun>noun"][sentence.words.index("it")]
            >>> sentence.words[noun]
            'ball'

        Raises:
            TypeError: `text` isn't text.
            ValueError: a word isn't in the vocabulary, there are too many of them, or they are no
                sentence of the language; the message names the word and what may stand there.
        """
        words = _words_of(text)
        if len(words) > self.length:
            raise ValueError(f"text must have at most {self.length} words, got {len(words)}")
        stop = WORDS["end"]
        if words[-1:] != stop and stop[0] in _candidates(words):
            words += stop
        try:
            return _sentence(words, _plan_of(words))
        except StuckError as stuck:
            raise ValueError(_objection(words, stuck)) from None

    def next_words(self, words: str | Sequence[str]) -> tuple[str, ...]:
        """Return the words with which a sentence that begins so may go on; none at its end.

        Raises:
            TypeError, ValueError: as `read`, where no sentence begins so.
        """
        return _candidates(_words_of(words) if words else [])


def _words_of(text: str | Sequence[str]) -> list[str]:
    """Return a text's words as the vocabulary has them; unknown ones are refused."""
    if isinstance(text, str):
        for end in WORDS["end"]:
            text = text.replace(end, f" {end} ")
        text = text.split()
    words: list[str] = []
    for word in checked_texts("text", text):
        if word.lower() not in SPELLING:
            raise ValueError(
                f"text must hold words of the language, got {word!r} as word {len(words) + 1}; "
                f"{_offer(_candidates(words))}"
            )
        words.append(SPELLING[word.lower()])
    return words


def _plan_of(words: Sequence[str]) -> Plan:
    """Return who is who in a whole sentence, or raise StuckError."""
    walk = Reading(words)
    plan = walk_through(walk)
    if walk.place < len(words):
        raise StuckError(walk.place, ())
    return plan


def _candidates(words: Sequence[str]) -> tuple[str, ...]:
    """Return what may stand behind these words, or raise ValueError where they go astray."""
    try:
        _plan_of(words)
    except StuckError as stuck:
        if stuck.place < len(words):
            raise ValueError(_objection(words, stuck)) from None
        return stuck.candidates
    return ()


def _objection(words: Sequence[str], stuck: StuckError) -> str:
    """Say where words are no sentence, and what may stand there."""
    place = stuck.place
    came = f"{words[place]!r} as word {place + 1}" if place < len(words) else "its end"
    behind = f" behind {' '.join(words[:place])!r}" if place else ""
    return (
        f"text must be a sentence of the language, got {came}{behind}; {_offer(stuck.candidates)}"
    )


def _offer(candidates: Sequence[str]) -> str:
    """Name the words that may stand somewhere, category by category."""
    if not candidates:
        return "there the sentence is over"
    kinds: dict[str, list[str]] = {}
    for word in candidates:
        kinds.setdefault(CATEGORY[word], []).append(word)
    return "there may stand " + "; ".join(", ".join(words) for words in kinds.values())


def _sentence(words: list[str], plan: Plan) -> Sentence:
    """Return words with their partners, and the answers that hang on these."""
    partners = plan.partners
    if plan.pronoun >= 0:
        kind = KINDS[WORDS["pronoun"].index(words[plan.pronoun])]
        meant = plan.subject if CATEGORY[words[plan.subject]] == kind else plan.object
        partners["pronoun>noun"][plan.pronoun] = partners["predicate>noun"][plan.predicate] = meant
    answers: dict[str, list[int | None]] = {readout: [None] * len(words) for readout in READOUTS}
    for name, relation in DATA["relations"].items():
        for place, partner in partners[name].items():
            answers[relation["readout"]][place] = ANSWER[name, words[partner]]
    for place in plan.adjectives:
        if place not in partners["adjective>adverb"]:
            answers["B"][place] = NO_ADVERB
    return Sentence(
        words=tuple(words),
        ids=tuple(PLACE[word] for word in words),
        answers={readout: tuple(found) for readout, found in answers.items()},
        partners=partners,
    )


concord = Concord()
