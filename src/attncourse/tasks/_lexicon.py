"""The words, numbers, answers and refusals of Concord, from the file that browsers read, too."""

import json
from pathlib import Path
from typing import Any

DATA: dict[str, Any] = json.loads(
    (Path(__file__).parent / "concord.json").read_text(encoding="utf-8")
)
WORDS: dict[str, list[str]] = DATA["words"]
KINDS: list[str] = DATA["kinds"]
PERSONS: list[str] = DATA["persons"]
CHANCES: dict[str, float] = DATA["chances"]
SHAPES: dict[str, float] = DATA["shapes"]
REFUSED: dict[str, str] = DATA["refused"]
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
