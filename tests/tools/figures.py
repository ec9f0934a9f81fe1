"""Every figure: the instruments of attnlib.plotting, and the illustrations of single pages."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from matplotlib.figure import Figure

from attncourse.head_shards import plot_head_shards
from attncourse.lessons import lessons
from attnlib import plotting

ILLUSTRATIONS = [
    import_module(f"{lesson.__name__}.figures")
    for lesson in lessons().values()
    if find_spec(f"{lesson.__name__}.figures")
]
FIGURES: dict[str, Callable[..., Figure]] = {
    name: getattr(room, name)
    for room in (plotting, *ILLUSTRATIONS)
    for name in room.__all__
    if name.startswith("plot_")
} | {"plot_head_shards": plot_head_shards}
