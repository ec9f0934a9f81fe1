"""One token on its way through a model: where each part looks, and what it adds."""

from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from attnlib import palette
from attnlib.plotting.cells import (
    HATCHED,
    add_color_bar,
    add_meanings,
    label_axis,
    meanings_of,
    write_numbers,
)
from attnlib.plotting.checks import checked_labels, checked_tensor
from attnlib.plotting.layout_limits import require_height
from attnlib.plotting.page import PHONE_WIDTH, drawn_for_phones, on_phone, text_width
from attnlib.plotting.style import WEIGHT_MAP, new_figure
from attnlib.plotting.text import LETTER, label_of, longest, plain_text
from attnlib.plotting.weights import LEGEND_LINE
from attnlib.weight_checks import require_attention

ROW = 0.27  # inches
AROUND = 0.95  # inches above and below the rows of a panel
SHARES = Normalize(0, 1)


@drawn_for_phones
def plot_token_walk(
    weights: Tensor, adds: Tensor, labels: Sequence[str], tokens: Sequence[str]
) -> Figure:
    """Draw a line per part of a model: one token's weights there, and beside them what it adds.

    Args:
        weights: the token's row in each part, [parts, T]; wholly 0, and hatched, for a part that
            looks at no other token, such as a feed-forward network.
        adds: what each part adds to some number, such as a logit, [parts].
        labels: what the parts are called.
        tokens: T labels of the columns.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: weights that aren't attention, shapes that don't fit, labels too many
            or too few, or more parts than a figure of 24 inches holds.
    """
    rows = checked_tensor("weights", weights, "parts T")
    require_attention(weights)
    parts, T = rows.shape
    amounts = checked_tensor("adds", adds, "parts", parts=parts)
    names = [
        label_of(label, PHONE_WIDTH / 2)
        for label in checked_labels("labels", labels, parts, "part")
    ]
    words = [label_of(token) for token in checked_labels("tokens", tokens, T, "token")]
    panels = 2 if on_phone() else 1  # below each other, or side by side
    hatched = bool((rows.sum(-1) == 0).any())
    height = panels * (ROW * parts + AROUND) + LEGEND_LINE * hatched
    require_height("weights", height, "draw fewer parts at a time")
    layout = {"nrows": 2} if on_phone() else {"ncols": 2, "width_ratios": (3, 2)}
    figure, (maps, bars) = new_figure(height=height, **layout)
    room = text_width() * (1 if on_phone() else 0.6) - LETTER * longest(names) - 0.2
    _draw_rows(maps, rows, min(room / T, ROW))
    label_axis(maps.xaxis, words, T, room / T)
    label_axis(maps.yaxis, names, parts, ROW)
    _draw_bars(bars, amounts)
    label_axis(bars.yaxis, names if on_phone() else None, parts, ROW)
    maps.set_title(plain_text("where it looks"))
    bars.set_title(plain_text("what it adds"))
    add_color_bar(figure, maps, maps.images[0], shrink=0.6)
    if hatched:
        add_meanings(figure, meanings_of(hatched=True, blank=False))
    return figure


def _draw_rows(ax: Axes, rows: Tensor, cell: float) -> None:
    """Draw the token's rows, hatched where it looks nowhere."""
    blind = rows.sum(-1) == 0
    seen = rows.masked_fill(blind[:, None], torch.nan)
    ax.imshow(
        seen.numpy(), cmap=WEIGHT_MAP, norm=SHARES, interpolation="none", aspect="auto",
        origin="upper",
    )  # fmt: skip
    write_numbers(ax, seen, WEIGHT_MAP, SHARES, "{:.2f}", cell)
    for i in blind.nonzero()[:, 0].tolist():
        ax.add_patch(Rectangle((-0.5, i - 0.5), rows.shape[1], 1, linewidth=0, **HATCHED))
    ax.spines[:].set_visible(False)


def _draw_bars(ax: Axes, amounts: Tensor) -> None:
    """Draw a bar per part, as far down as its row."""
    places = range(len(amounts))
    ax.barh(places, amounts.numpy(), 0.7, color=palette.QUERY_COLOR)
    ax.axvline(0, color=palette.MUTED, linewidth=0.8)
    ax.set_ylim(len(amounts) - 0.5, -0.5)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x")
