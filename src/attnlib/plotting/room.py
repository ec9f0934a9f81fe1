"""What a page has room for: how small a cell may be, how tall a figure, how many panels a line."""

import math
from collections.abc import Callable, Sequence

from attnlib.plotting.page import on_phone
from attnlib.plotting.style import TALLEST
from attnlib.plotting.text import TITLE_LETTER, longest

COMFORTABLE = 10.0  # inches; a taller figure is scrolled through rather than looked at
SMALLEST_CELL = 1 / 200  # inches; a pixel of a sharp screen: of smaller cells some are lost
FLATTEST_MAP, TALLEST_MAP = 0.3, 8.0  # inches; one query would be a line, 300 on one key a tower
NARROWEST_PANEL = 0.6  # inches; a title such as "head 144" needs that much
PHONE_ROW = 0.36  # inches; maps that stand below each other shouldn't fill several screens
PHONE_PANEL = 1.0  # inches; on a phone a smaller map would be a stamp


def row_height(rows: int, cell: float) -> float:
    """Return how tall a map's rows are, in inches: as its cells are wide, if that can be seen."""
    return min(max(cell, FLATTEST_MAP / rows), TALLEST_MAP / rows)


def best_columns(usual: int, most: int, height: Callable[[int], float]) -> int:
    """Return how many panels to put in a line: the usual number, or more if the figure gets tall.

    Args:
        usual: panels a line where that makes a comfortable figure.
        most: how many can stand there; fewer than usual if they are wide.
        height: a figure's height in inches with so many panels a line.
    """
    fitting = (n for n in range(min(usual, most), most) if height(n) <= COMFORTABLE)
    return next(fitting, most)


def phone_columns(usual: int, fits: Callable[[int], bool]) -> int:
    """Return how many panels to put in a line on a phone: the most that can be read, or else one.

    Args:
        usual: panels a line on a page.
        fits: whether so many can be read.
    """
    return next((n for n in range(usual, 1, -1) if fits(n)), 1)


def line_gap() -> float:
    """Return by how much a phone's panels stand further apart than matplotlib would set them.

    In inches; a title would stand on the labels of the panel above it.
    """
    return 0.12 if on_phone() else 0.0


def titles_fit(titles: Sequence[str], width: float) -> bool:
    """Return whether panels of `width` inches are as wide as each word of their titles."""
    words = [word for title in titles for word in title.split()]
    return TITLE_LETTER * longest(words or [""]) <= width


def require_height(name: str, height: float, way: str) -> None:
    """Raise ValueError if a figure of what `name` holds would be too tall.

    Args:
        way: what to do instead.
    """
    if height > TALLEST:
        raise ValueError(
            f"{name} must fit a figure of {TALLEST:g} inches, got enough for {math.ceil(height)}: "
            + way
        )


def require_seen(name: str, size: float, cells: str, way: str) -> None:
    """Raise ValueError if cells of this size, in inches, would be too small to be seen."""
    if size < SMALLEST_CELL:
        raise ValueError(
            f"{name} must leave each cell {SMALLEST_CELL:g} inches, got {cells}, which leave "
            f"{size:.1g}: {way}"
        )
