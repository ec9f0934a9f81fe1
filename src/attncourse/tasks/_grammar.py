"""The grammar of Concord: one walk, by which sentences are drawn and read.

At each turn the walk says whether a word of some category comes next: `Drawing` throws a die,
`Reading` looks at the next word. The browser's twin is `widgets/engine/language.js`, which throws
its dice in the same order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from attncourse.tasks._lexicon import CATEGORY, CHANCES, DATA, KINDS, PERSONS, SHAPES, WORDS
from attnlib.rng import Sfc32


@dataclass
class Plan:
    """Who is who in a sentence, as places of its words.

    The grammar alone doesn't give the partner of a pronoun and of its predicate: it is `subject` or
    `object`, whichever the pronoun's gender names.
    """

    partners: dict[str, dict[int, int]] = field(
        default_factory=lambda: {name: {} for name in DATA["relations"]}
    )
    adjectives: list[int] = field(default_factory=list)  # each answers in B, adverb or none
    subject: int = -1
    object: int = -1
    pronoun: int = -1  # as the next one, -1 where the sentence has none
    predicate: int = -1


def walk_through(walk: "Drawing | Reading") -> Plan:
    """Go through a sentence: subject, clause, verb, object, and what the shape adds."""
    plan = Plan()
    partners = plan.partners
    plan.subject = _noun_phrase(walk, plan, walk.take("determiner"))
    if walk.comes(CHANCES["clause"], "that"):
        walk.take("that")
        noun = None
        if walk.comes(CHANCES["clause with a noun"], "determiner"):
            determiner, noun = walk.take("determiner"), walk.take("noun")
            partners["determiner>noun"][determiner] = noun
        else:
            walk.take("speaker")
        verb = walk.take("relative verb")
        if noun is not None:
            partners["verb>subject"][verb] = noun
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


def _noun_phrase(walk: "Drawing | Reading", plan: Plan, determiner: int | None) -> int:
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

    def __init__(self, rng: Sfc32) -> None:
        self._rng = rng
        self.categories: list[str] = []

    def comes(self, probability: float, *categories: str) -> bool:
        """Return by a die whether a word of these categories comes next."""
        return self._rng.bernoulli(probability)

    def take(self, category: str) -> int:
        """Go on after a word of this category; return its place."""
        self.categories.append(category)
        return len(self.categories) - 1

    def words(self, plan: Plan) -> list[str]:
        """Draw the words. The pronoun's gender tells which of the nouns it means."""
        rng = self._rng
        nouns = [i for i, category in enumerate(self.categories) if category == "noun"]
        if plan.pronoun < 0:
            kinds = [rng.choice(PERSONS) for _ in nouns]
        else:
            kinds = rng.shuffled(KINDS)
        kind_of = dict(zip(nouns, kinds, strict=False))
        words = [
            rng.choice(WORDS[kind_of.get(i, category)]) if category != "pronoun" else ""
            for i, category in enumerate(self.categories)
        ]
        if plan.pronoun >= 0:
            meant = rng.choice([plan.subject, plan.object])
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
        """Return whether the next word is of these categories and fits."""
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
        """Return whether a noun of this kind leaves room for a pronoun later on."""
        return distinct and kind not in self._kinds and "giving verb" not in self._taken
