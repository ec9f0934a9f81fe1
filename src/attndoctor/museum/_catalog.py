"""All exhibits, room by room."""

from difflib import get_close_matches

from attndoctor.museum import causal, heads, masks, outputs, projections, rows, scale, scores
from attndoctor.museum._exhibit import Exhibit

ROOMS = (heads, scale, scores, masks, causal, rows, projections, outputs)
EXHIBITS = tuple(x for room in ROOMS for x in vars(room).values() if isinstance(x, Exhibit))
_BY_NAME = {exhibit.name: exhibit for exhibit in EXHIBITS}


def named(name: str) -> Exhibit:
    """Return the exhibit of this name.

    Raises:
        TypeError, ValueError: not a name, or there is none.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {type(name).__name__}")
    if name not in _BY_NAME:
        nearest = get_close_matches(name, _BY_NAME, 1)
        meant = f"; is {nearest[0]!r} meant?" if nearest else ""
        raise ValueError(
            f"name must be one of {', '.join(map(repr, _BY_NAME))}, got {name!r}{meant}"
        )
    return _BY_NAME[name]
