"""What a figure is drawn for: the text of a page, or a phone.

Each `plot_...` describes its layout once. Where that depends on the room there is, it asks here:
`text_width()` is the width that it may fill, `on_phone()` whether it is drawn to be read on a
phone. A phone's copy is drawn when somebody looks at the figure, and not before; see `style.py`.
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
# A window of 360 pixels leaves 312 to the text, 3.25 inches; a notebook adds a rim to a figure.
PHONE_WIDTH = 3.05
NARROW_ENOUGH = 3.4  # inches; on a phone such a figure still shrinks to the text's width
SMALLEST_TEXT = 6.75  # points, which are 9 pixels: smaller is not to be read on a phone

Parameters = ParamSpec("Parameters")

_on_phone: ContextVar[bool] = ContextVar("on_phone", default=False)
_drawn_by: WeakKeyDictionary[Figure, Callable[[], Figure]] = WeakKeyDictionary()


def on_phone() -> bool:
    """Return whether what is drawn now is drawn for a phone."""
    return _on_phone.get()


def text_width() -> float:
    """Return how wide a figure may be that is drawn now, in inches."""
    return PHONE_WIDTH if on_phone() else TEXT_WIDTH


def drawn_for_phones(plot: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """Keep how each figure of a `plot_...` is drawn, so that `phone_copy` can draw it again."""

    @wraps(plot)
    def keep(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Figure:
        again = partial(plot, *_as_they_are(args), **_as_they_are(kwargs))
        figure = again()
        _drawn_by[figure] = again
        return figure

    return keep


def phone_copy(figure: Figure) -> Figure | None:
    """Return a figure as a phone shows it, or None if it is to be shown as it is.

    That is one that fits a phone, that no `plot_...` made, or that would get too tall there.
    """
    again = _drawn_by.get(figure)
    if again is None or figure.get_figwidth() <= NARROW_ENOUGH:
        return None
    with layout_for(phone=True):
        try:
            return again()
        except ValueError:  # too tall: other faults of the arguments were refused before
            return None


@contextmanager
def layout_for(*, phone: bool) -> Iterator[None]:
    """Lay out for a phone, or for a page, what is laid out inside."""
    before = _on_phone.set(phone)
    try:
        yield
    finally:
        _on_phone.reset(before)


def _as_they_are(value: Any) -> Any:
    """Return arguments as they are now: they may be changed, or used up, before they are drawn."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, Iterator):
        value = list(value)
    if type(value) in (list, tuple):
        return type(value)(map(_as_they_are, value))
    if type(value) is dict:
        return {name: _as_they_are(item) for name, item in value.items()}
    return value
