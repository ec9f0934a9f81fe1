"""All exhibits, room by room."""

from attnlib.museum import causal, heads, masks, outputs, projections, rows, scale, scores
from attnlib.museum._exhibit import Exhibit

EXHIBITS: tuple[Exhibit, ...] = (
    *heads.EXHIBITS, *scale.EXHIBITS, *scores.EXHIBITS, *masks.EXHIBITS, *causal.EXHIBITS,
    *rows.EXHIBITS, *projections.EXHIBITS, *outputs.EXHIBITS,
)  # fmt: skip
_BY_NAME = {exhibit.name: exhibit for exhibit in EXHIBITS}


def named(name: str) -> Exhibit:
    """Return the exhibit of this name.

    Raises:
        TypeError, ValueError: not a name, or there is none.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {type(name).__name__}")
    if name not in _BY_NAME:
        raise ValueError(f"name must be one of {', '.join(map(repr, _BY_NAME))}, got {name!r}")
    return _BY_NAME[name]
