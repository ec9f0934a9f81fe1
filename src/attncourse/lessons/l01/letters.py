"""Names as ids and back, with the boundary on both sides."""

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from attncourse.checking import CheckResult, exercise
from attncourse.checking.calling import call
from attncourse.checking.functions import correct, not_a_function, not_yet
from attncourse.tasks import names

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


def _ids(ids: Any) -> list[int] | None:
    """Return ids as a list of ints, or None if they aren't whole numbers, such as "4" or 4.0."""
    try:
        return [index(i) for i in ids]
    except TypeError:
        return None


def _about_wrong_ids(name: str, ids: list[int], right: list[int]) -> str:
    """Return where a name's ids go wrong: at its ends, or at a letter."""
    if len(ids) != len(right) or {ids[0], ids[-1]} != {BOUNDARY}:
        shown = f"{ids}" if len(ids) <= 2 * len(right) else f"{len(ids)} ids"
        return (
            f"{name} should begin and end with {BOUNDARY} and have {len(right)} ids, "
            f"but became {shown}."
        )
    place = next(
        i for i, (ours, theirs) in enumerate(zip(ids, right, strict=True)) if ours != theirs
    )
    return (
        f"{name} begins and ends with {BOUNDARY}, as it should. But its letter "
        f"{name[place - 1]!r} became {ids[place]}, and that isn't its place in `letters`."
    )


def _came_out(codec: Codec) -> tuple[list[Any], str | None]:
    """Return the ids and the text for each example, and what went wrong in words."""
    found: list[Any] = []
    for text in EXAMPLES:
        encoded = call(codec[0], [text])
        ids = _ids(encoded.outputs)
        if encoded.error is not None or ids is None:
            wanted = "The encoder must return a list of ids, which are whole numbers."
            return found, encoded.complaint or wanted
        decoded = call(codec[1], [ids])
        found.append((ids, decoded.outputs))
        if decoded.error is not None:
            return found, decoded.complaint
    return found, None


def _is_the_same(found: list[Any], mistaken: list[Any], wanted: list[Any]) -> bool:
    """Return whether a mistake explains what came out; if ids are wrong, only they must agree."""
    ids, mistaken_ids, wanted_ids = (
        [ids for ids, _ in results[: len(found)]] for results in (found, mistaken, wanted)
    )
    return found == mistaken if ids == wanted_ids else ids == mistaken_ids


@exercise()
def codec(answer: object) -> CheckResult:
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
    for mistake in codec.mistakes:
        if found and _is_the_same(found, _came_out(mistake.answer)[0], wanted):
            return not_yet(mistake.hint)
    for (ids, _), (right, _), name in zip(found, wanted, EXAMPLES, strict=False):
        if ids != right:
            return not_yet(_about_wrong_ids(name, ids, right))
    if complaint is not None:
        turned = _came_out(answer[::-1])[0] == wanted
        return not_yet(codec.hints["turned"] if turned else complaint)
    back, name = next(
        (back, name) for (_, back), (_, name) in zip(found, wanted, strict=True) if back != name
    )
    return not_yet(f"The ids are right, but {name} came back as {back!r:.40}.")
