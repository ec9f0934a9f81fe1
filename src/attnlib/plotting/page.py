"""Layouts for a page's text and for phones.

Each `plot_...` describes its layout once, with `text_width()` for the width that it may fill and
`on_phone()` where a phone needs something else. The phone's copy of a figure is drawn when the
figure is shown; see `style.py`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, ParamSpec
from weakref import WeakKeyDictionary

from matplotlib.figure import Figure
from torch import Tensor

TEXT_WIDTH = 7.2  # inches; the width of a page's text column
# A window of 360 pixels leaves 312 for text, 3.25 inches; a notebook adds a margin to figures.
PHONE_WIDTH = 3.05
NARROW_ENOUGH = 3.4  # inches; such a figure needs no copy, as a phone shrinks it a little
SMALLEST_TEXT = 6.75  # points, 9 pixels; smaller text can't be read on a phone

Parameters = ParamSpec("Parameters")

_on_phone: ContextVar[bool] = ContextVar("on_phone", default=False)
_drawn_by: WeakKeyDictionary[Figure, Callable[[], Figure]] = WeakKeyDictionary()


def on_phone() -> bool:
    """Return whether the current figure is drawn for a phone."""
    return _on_phone.get()


def text_width() -> float:
    """Return the width of the current figure in inches."""
    return PHONE_WIDTH if on_phone() else TEXT_WIDTH


def drawn_for_phones(plot: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """Remember the call that drew each figure, so that `phone_copy` can draw it again."""

    @wraps(plot)
    def keep(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Figure:
        again = partial(plot, *_snapshot(args), **_snapshot(kwargs))
        figure = again()
        _drawn_by[figure] = again
        return figure

    return keep


def phone_copy(figure: Figure) -> Figure | None:
    """Return a figure's copy for phones, or None if phones show the figure itself.

    They do if it fits, if no `plot_...` made it, or if the copy would be too tall.
    """
    again = _drawn_by.get(figure)
    if again is None or figure.get_figwidth() <= NARROW_ENOUGH:
        return None
    with layout_for(phone=True):
        try:
            return again()
        except ValueError:  # too tall; other faults were refused before
            return None


@contextmanager
def layout_for(*, phone: bool) -> Iterator[None]:
    """Lay out for a phone, or for a page, within this context."""
    before = _on_phone.set(phone)
    try:
        yield
    finally:
        _on_phone.reset(before)


def _snapshot(value: Any) -> Any:
    """Copy arguments, which may be changed or used up before they are drawn again."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, Iterator):
        value = list(value)
    if type(value) in (list, tuple):
        return type(value)(map(_snapshot, value))
    if type(value) is dict:
        return {name: _snapshot(item) for name, item in value.items()}
    return value
