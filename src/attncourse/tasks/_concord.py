"""Concord: a made language in which words answer to others."""

from collections.abc import Sequence

from attncourse.tasks._grammar import Drawing, Plan, Reading, StuckError, walk_through
from attncourse.tasks._lexicon import (
    ANSWER,
    CATEGORY,
    DATA,
    KINDS,
    NO_ADVERB,
    PLACE,
    READOUTS,
    REFUSED,
    WORDS,
)
from attncourse.tasks._tasks import Relation, Sentence, Task
from attnlib.checks import checked_texts
from attnlib.rng import Sfc32

SPELLING = {word.lower(): word for word in CATEGORY}


class Concord(Task):
    """A made language in which words answer to others, so that it is known who must look at whom.

    Its one instance is `attncourse.tasks.concord`. Nouns belong to four classes, which nothing
    shows but the noun itself, and other words agree with them, as in Bantu languages. A model
    translates word by word: each word has up to two answers, in the readouts A (12 answers) and
    B (9).

    ================  =======  ==================================================================
    relation          readout  what the answer tells
    ================  =======  ==================================================================
    determiner>noun   A        the class of its noun, as a modifier's ending ("bale")
    adjective>noun    A        the class of its noun, as a modifier's ending
    predicate>noun    A        the class of the noun that the pronoun means, in the same way
    verb>subject      A        the class of its subject ("bana"); "I" and the like have none
    pronoun>noun      A        the class of the noun that it means ("baye")
    their>owner       A        the class of who is given something, in the same way
    verb>object       B        the class of its object ("-ba"); of a giving verb, of what is given
    their>thing       B        the class of what is given
    adjective>adverb  B        the adverb of its group ("very"), or "(none)"
    ================  =======  ==================================================================

    So a verb, an adjective and "their" have to look at two places at once, all others at one.

    A noun phrase is a determiner, with probability .5 adjectives, and a noun. The adjectives are
    one or, with .35, two, and with .5 an adverb stands before them, which belongs to both. With .5
    a subject carries a clause, "that I liked" or "that the nun liked", whose noun stands without
    adjectives. A sentence has one of three shapes:

    * .25: subject, verb, object.
    * .40: subject, verb, object, "because it was too heavy" (the adverb with .7). All nouns differ
      in kind (male, female, thing), so that the pronoun tells which of subject and object it means.
    * .35: subject, giving verb, receiver, "today" (with .5), "their", adjectives as above, noun.

    "I", "because", "was" and "today" stand for several words each. But for sentences with a pronoun
    all nouns are persons, so that a noun's kind doesn't betray its role. There are 89 words, the
    full stop among them. A noun's class is its place among the nouns of its kind, modulo 4.
    """

    name = "concord"
    vocabulary = tuple(CATEGORY)
    readouts = READOUTS
    relations = tuple(
        Relation(name, relation["readout"]) for name, relation in DATA["relations"].items()
    )
    causal = False
    length: int = DATA["length"]
    data = DATA  # words, numbers, answers and refusals, which the browser reads as well

    def draw(self, rng: Sfc32) -> Sentence:
        walk = Drawing(rng)
        plan = walk_through(walk)
        return _sentence(walk.words(plan), plan)

    def read(self, text: str | Sequence[str]) -> Sentence:
        """Return a text as a sentence, with its answers and partners.

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
            raise ValueError(REFUSED["long"].format(most=self.length, number=len(words)))
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
        if not text:
            raise ValueError(REFUSED["empty"])
    words: list[str] = []
    for word in checked_texts("text", text):
        if word.lower() not in SPELLING:
            came, offer = _came(word, len(words)), _offer(_candidates(words))
            raise ValueError(REFUSED["unknown"].format(word=came, offer=offer))
        words.append(SPELLING[word.lower()])
    return words


def _plan_of(words: Sequence[str]) -> Plan:
    walk = Reading(words)
    plan = walk_through(walk)
    if walk.place < len(words):
        raise StuckError(walk.place, ())
    return plan


def _candidates(words: Sequence[str]) -> tuple[str, ...]:
    """Return what may follow these words, or raise ValueError where they go astray."""
    try:
        _plan_of(words)
    except StuckError as stuck:
        if stuck.place < len(words):
            raise ValueError(_objection(words, stuck)) from None
        return stuck.candidates
    return ()


def _objection(words: Sequence[str], stuck: StuckError) -> str:
    place = stuck.place
    came = _came(words[place], place) if place < len(words) else REFUSED["end"]
    after = REFUSED["after"].format(words=" ".join(words[:place])) if place else ""
    return REFUSED["astray"].format(came=came, after=after, offer=_offer(stuck.candidates))


def _came(word: str, place: int) -> str:
    return REFUSED["word"].format(word=repr(word), place=place + 1)


def _offer(candidates: Sequence[str]) -> str:
    """Return the words that may stand somewhere, category by category."""
    if not candidates:
        return REFUSED["over"]
    kinds: dict[str, list[str]] = {}
    for word in candidates:
        kinds.setdefault(CATEGORY[word], []).append(word)
    return REFUSED["offer"].format(words="; ".join(map(", ".join, kinds.values())))


def _sentence(words: list[str], plan: Plan) -> Sentence:
    """Return words with their partners, and the answers that depend on these."""
    partners = plan.partners
    if plan.pronoun >= 0:
        kind = KINDS[WORDS["pronoun"].index(words[plan.pronoun])]
        noun = plan.subject if CATEGORY[words[plan.subject]] == kind else plan.object
        partners["pronoun>noun"][plan.pronoun] = partners["predicate>noun"][plan.predicate] = noun
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


class VerbsLast(Task):
    """Concord with each verb after its object, as in Turkish: "the king the ball saw".

    A verb then has its subject and its object on one side, the left; in Concord the main verb
    stands between them. Nothing else differs: words, answers, readouts, relations. Its one instance
    is `attncourse.tasks.verbs_last`.
    """

    name = "concord with verbs last"
    vocabulary, readouts, relations = Concord.vocabulary, Concord.readouts, Concord.relations
    causal, length = Concord.causal, Concord.length

    def draw(self, rng: Sfc32) -> Sentence:
        sentence = concord.draw(rng)
        order = list(range(len(sentence)))
        for verb, partner in sentence.partners["verb>object"].items():
            if partner > verb:
                order.insert(partner, order.pop(verb))
        place_of = {earlier: place for place, earlier in enumerate(order)}
        return Sentence(
            words=tuple(sentence.words[i] for i in order),
            ids=tuple(sentence.ids[i] for i in order),
            answers={
                readout: tuple(answers[i] for i in order)
                for readout, answers in sentence.answers.items()
            },
            partners={
                name: {place_of[word]: place_of[partner] for word, partner in found.items()}
                for name, found in sentence.partners.items()
            },
        )


concord, verbs_last = Concord(), VerbsLast()
