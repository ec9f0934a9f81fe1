"""Names as ids and back, with the boundary on both sides."""

from collections.abc import Callable, Sequence
from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._calling import call
from attnlib.exercises._checking import correct, not_a_function, not_yet
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.relations import names

LETTERS = "abcdefghijklmnopqrstuvwxyz."
BOUNDARY = len(LETTERS) - 1
EXAMPLES = ("emma", "a", "zz", *names.texts(100, seed=7))

Codec = Sequence[Callable[[Any], Any]]


def encode(text: str) -> list[int]:
    """Return a name's ids between two boundaries."""
    return [BOUNDARY, *map(LETTERS.index, text), BOUNDARY]


def decode(ids: Sequence[int]) -> str:
    """Return the name of ids between two boundaries."""
    return "".join(LETTERS[i] for i in ids[1:-1])


def _all_letters(ids: Sequence[int]) -> str:
    return "".join(LETTERS[i] for i in ids)


CODEC_MISTAKES = (
    Mistake(
        "no boundary",
        [lambda text: encode(text)[1:-1], _all_letters],
        "Your ids hold the letters alone. The boundary, 26, stands before them and behind them.",
    ),
    Mistake(
        "boundary in front only",
        [lambda text: encode(text)[:-1], lambda ids: _all_letters(ids[1:])],
        "The boundary behind the name is missing: without it nothing says that the name is over.",
    ),
    Mistake(
        "boundary at the end only",
        [lambda text: encode(text)[1:], lambda ids: _all_letters(ids[:-1])],
        "The boundary before the name is missing: the first letter must stand behind something, "
        "too.",
    ),
    Mistake(
        "counted from 1",
        [
            lambda text: [i if i == BOUNDARY else i + 1 for i in encode(text)],
            lambda ids: "".join(LETTERS[i - 1] for i in ids[1:-1]),
        ],
        "Your letters count from a = 1. An id is a place in the list, and Python's first place "
        "is 0.",
    ),
    Mistake(
        "letters of this name only",
        [
            lambda text: [BOUNDARY, *map(sorted(set(text)).index, text), BOUNDARY],
            lambda ids: _all_letters(ids[1:-1]),
        ],
        "Your ids depend on which letters this name has. The vocabulary is the same for all names: "
        "look each letter up in `letters`.",
    ),
    Mistake(
        "boundary kept",
        [encode, _all_letters],
        "Your decoder keeps the boundaries: emma comes back as .emma. and not as it was.",
    ),
)


def _ids(ids: Any) -> list[int] | None:
    """Return ids as a list of ints, or None if they aren't that."""
    try:
        return [int(i) for i in ids]
    except (TypeError, ValueError):
        return None


def _came_out(codec: Codec) -> tuple[list[Any], str | None]:
    """Return the ids and the text for each example, and what went wrong in words."""
    found: list[Any] = []
    for text in EXAMPLES:
        encoded = call(codec[0], [text])
        ids = _ids(encoded.outputs)
        if encoded.error is not None or ids is None:
            return found, encoded.complaint or "The encoder must return a list of ids."
        decoded = call(codec[1], [ids])
        found.append((ids, decoded.outputs))
        if decoded.error is not None:
            return found, decoded.complaint
    return found, None


@exercise(mistakes=CODEC_MISTAKES)
def codec(answer: Any) -> Verdict:
    """Check `[encode, decode]`: a name to its ids between boundaries, and ids to the name."""
    if not isinstance(answer, list | tuple) or len(answer) != 2:
        return not_yet("Two functions were wanted: [my_encode, my_decode].")
    for function in answer:
        if not callable(function):
            return not_a_function(function)
    found, complaint = _came_out(answer)
    wanted, _ = _came_out([encode, decode])
    if found == wanted:
        return correct(f"{len(EXAMPLES)} names went to ids and came back as they were.")
    for mistake in CODEC_MISTAKES:
        if found and found == _came_out(mistake.answer)[0]:
            return not_yet(mistake.hint)
    for (ids, _), (right, _), name in zip(found, wanted, EXAMPLES, strict=False):
        if ids != right:
            return not_yet(f"{name} should begin and end with 26 and have {len(right)} ids.")
    if complaint is not None:
        return not_yet(complaint)
    back = next(back for (_, back), (_, name) in zip(found, wanted, strict=True) if back != name)
    return not_yet(f"The ids are right, but a name came back as {back!r:.40}.")
