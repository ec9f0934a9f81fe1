"""Limits of a layout: how small a cell may be, how tall a figure, how many panels a line."""

import math
from collections.abc import Callable, Sequence

from attnlib.plotting.page import on_phone
from attnlib.plotting.style import TALLEST
from attnlib.plotting.text import TITLE_LETTER, longest

COMFORTABLE = 10.0  # inches; a taller figure is scrolled through rather than looked at
SMALLEST_CELL = 1 / 200  # inches; a pixel of a sharp screen, which would lose smaller cells
FLATTEST_MAP, TALLEST_MAP = 0.3, 8.0  # inches; one query would be a line, 300 on one key a tower
NARROWEST_PANEL = 0.6  # inches for a title such as "head 144"
PHONE_ROW = 0.36  # inches; so that maps below each other don't fill several screens
PHONE_PANEL = 1.0  # inches; the smallest map on a phone


def row_height(rows: int, cell: float) -> float:
    """Return the height of a map's rows in inches: the cells' width within the map's limits."""
    return min(max(cell, FLATTEST_MAP / rows), TALLEST_MAP / rows)


def best_columns(usual: int, most: int, height: Callable[[int], float]) -> int:
    """Return how many panels to put in a line: the usual number, or more if the figure gets tall.

    Args:
        usual: panels a line, if that makes a comfortable figure.
        most: the limit, which may be below usual for wide panels.
        height: returns a figure's height in inches for a number of panels a line.
    """
    fitting = (n for n in range(min(usual, most), most) if height(n) <= COMFORTABLE)
    return next(fitting, most)


def phone_columns(usual: int, fits: Callable[[int], bool]) -> int:
    """Return the most panels a line, up to the usual number, that fit on a phone; at least one."""
    return next((n for n in range(usual, 1, -1) if fits(n)), 1)


def line_gap() -> float:
    """Return the extra inches between lines of panels on a phone, to keep titles off labels."""
    return 0.12 if on_phone() else 0.0


def titles_fit(titles: Sequence[str], width: float) -> bool:
    """Return whether each word of the titles fits into a panel of `width` inches."""
    words = [word for title in titles for word in title.split()]
    return TITLE_LETTER * longest(words or [""]) <= width


def require_height(name: str, height: float, advice: str) -> None:
    """Raise ValueError if a figure of `name` would be too tall; `advice` says what else to do."""
    if height > TALLEST:
        raise ValueError(
            f"{name} must fit a figure of {TALLEST:g} inches, got enough for {math.ceil(height)}: "
            + advice
        )


def require_seen(name: str, size: float, cells: str, advice: str) -> None:
    """Raise ValueError if cells of `size` inches would be too small to see."""
    if size < SMALLEST_CELL:
        raise ValueError(
            f"{name} must leave each cell {SMALLEST_CELL:g} inches, got {cells}, which leave "
            f"{size:.1g}: {advice}"
        )
