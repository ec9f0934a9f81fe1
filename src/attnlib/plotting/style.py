"""The look of figures: one set of rcParams, one scale for weights, the text's width."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.layout_engine import ConstrainedLayoutEngine

from attnlib import palette
from attnlib.checks import require_not_negative
from attnlib.plotting._captions import show_captions
from attnlib.plotting.checks import checked_positive
from attnlib.plotting.page import phone_copy, text_width

TALLEST = 24.0  # inches; the limit of a figure's height

COURSE_FONT = "CourseText"  # comes with this package, so every machine draws the same
FALLBACK_FONT = "DejaVu Sans"  # comes with matplotlib, and has what the course's font lacks
for file in sorted((Path(__file__).parent / "fonts").glob("*.ttf")):
    fontManager.addfont(file)

STYLE: dict[Any, Any] = {  # older matplotlibs take str as keys, newer ones a type of their own
    "figure.facecolor": palette.PAPER,
    "savefig.facecolor": palette.PAPER,
    "axes.facecolor": "none",
    "axes.edgecolor": palette.MUTED,
    "axes.labelcolor": palette.INK,
    "axes.titlecolor": palette.INK,
    "axes.titlesize": 10.5,
    "axes.labelsize": 9.5,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=palette.HEAD_COLORS),
    "text.color": palette.INK,
    "xtick.color": palette.MUTED,
    "ytick.color": palette.MUTED,
    "xtick.labelcolor": palette.MUTED,
    "ytick.labelcolor": palette.MUTED,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "grid.color": palette.LINE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "hatch.color": palette.MUTED,
    "hatch.linewidth": 0.6,
    "font.family": [COURSE_FONT, FALLBACK_FONT],
    "svg.fonttype": "path",
    "svg.hashsalt": "attnlib",  # the same figure gives the same file
}

WEIGHT_MAP: Colormap = LinearSegmentedColormap.from_list("attnlib_weights", palette.WEIGHT_SCALE)
SIGNED_MAP: Colormap = LinearSegmentedColormap.from_list("attnlib_signed", palette.SIGNED_SCALE)


def use_course_style() -> None:
    """Draw all later figures in the course's style, in notebooks as SVG with captions.

    Figures of this package get a copy for phones, in the metadata of the output.
    """
    matplotlib.rcParams.update(STYLE)
    if find_spec("IPython") is None:
        return
    from IPython import get_ipython

    if (shell := get_ipython()) is not None:
        show_captions(shell)
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        # PNG is for programs that don't trust a notebook and so don't show its SVG.
        set_matplotlib_formats("svg", "png", metadata={"Date": None})
        svg = shell.display_formatter.formatters["image/svg+xml"]
        svg.for_type(Figure, partial(_show_with_phone_copy, svg.for_type(Figure)))


def _show_with_phone_copy(show: Callable[[Figure], str], figure: Figure) -> Any:
    """Return a figure's SVG, with metadata for IPython if there is a copy for phones."""
    narrow = phone_copy(figure)
    return show(figure) if narrow is None else (show(figure), {"narrow": show(narrow)})


class SettledLayout(ConstrainedLayoutEngine):
    """Matplotlib's constrained layout, repeated if it left a title above the figure.

    That happens when both the figure's height and its width limit square maps; a second run starts
    from the result of the first and corrects it.
    """

    def execute(self, fig: Figure) -> None:
        """Lay the figure out."""
        super().execute(fig)
        titled = [ax for ax in fig.axes if ax.title.get_text()]
        for ax in titled:
            ax.apply_aspect()
        if any(ax.title.get_window_extent().y1 > fig.bbox.y1 for ax in titled):
            super().execute(fig)


def new_figure(
    width: float | None = None, height: float = 3.0, *, gap: float = 0.0, **subplots: Any
) -> tuple[Figure, Any]:
    """Return a figure in the course's style and its axes, as `Figure.subplots` returns them.

    The figure isn't registered with pyplot: to show it, make it the last expression of a cell.

    Args:
        width: inches; the text's width if left out.
        height: inches, at most 24.
        gap: extra inches between lines of panels; half of it goes above the first and below the
            last line.
        subplots: passed on to `Figure.subplots` (nrows, ncols, sharex, ...).

    Raises:
        TypeError, ValueError: width or height isn't above 0, height above 24, or gap below 0.
    """
    width = checked_positive("width", text_width() if width is None else width)
    require_not_negative("gap", gap)
    if checked_positive("height", height) > TALLEST:
        raise ValueError(
            f"height must be at most {TALLEST:g} inches, got {height:.0f}: draw less in one figure"
        )
    with matplotlib.rc_context(STYLE):
        pad = matplotlib.rcParams["figure.constrained_layout.h_pad"] + gap / 2
        figure = Figure(figsize=(width, height), layout=SettledLayout(h_pad=pad))
        FigureCanvasAgg(figure)  # a bare Figure has no canvas to measure text with
        axes = figure.subplots(**subplots)
    return figure, axes


def signed_norm(limit: float) -> TwoSlopeNorm:
    """Return a color norm from -limit over 0 to limit."""
    limit = limit or 1.0  # a matrix of zeros has no range of its own
    return TwoSlopeNorm(vmin=-limit, vcenter=0.0, vmax=limit)
