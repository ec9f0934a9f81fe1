"""What the parameters of models are spent on."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attncourse.model_bars import checked_models, plot_models
from attnlib import palette
from attnlib.checks import require_count
from attnlib.plotting.page import drawn_for_phones, text_width

BAR = 0.62  # inches for a bar and the title above it
NARROWEST = 0.45  # inches of a piece in which its share can be written


@drawn_for_phones
def plot_budgets(models: Mapping[str, Mapping[str, int]]) -> Figure:
    """Draw a bar per model, as long for each, cut into the shares of its parts.

    Args:
        models: name -> {part: number of parameters}; every model has the same parts.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: numbers that aren't counts, models of other parts or without
            parameters, or more models than a figure of 24 inches holds.
    """
    counted = checked_models(
        models, parts="parts", holds="dict of counts", kind="count", check=require_count
    )
    for name, counts in counted.items():
        if not sum(counts.values()):
            raise ValueError(f"models[{name!r}] must hold counts, not all of them 0, got {counts}")
    titles = [f"{name}: {sum(counts.values()):,}" for name, counts in counted.items()]
    return plot_models(counted, BAR, _draw_bar, titles)


def _draw_bar(ax: Axes, counts: list[int]) -> None:
    """Draw shares from left to right, with percents where there is room."""
    start, total = 0.0, sum(counts)
    for i, count in enumerate(counts):
        share = count / total
        color = palette.head_color(i)
        ax.barh(0, share, left=start, height=1, facecolor=(color, 0.45), edgecolor=color)
        if share * text_width() >= NARROWEST:
            middle = start + share / 2
            ax.text(middle, 0, f"{share:.0%}", ha="center", va="center", fontsize=8.5)
        start += share
    ax.set(xlim=(0, 1), ylim=(-0.5, 0.5))
    ax.set_axis_off()
