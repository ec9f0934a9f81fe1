"""The weights of several places in two heads as points, and where each lies furthest out."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor
from torch.nn.functional import normalize

from attnlib import palette
from attnlib.plotting.checks import checked_labels, checked_tensor
from attnlib.plotting.layout_limits import line_gap, require_height
from attnlib.plotting.page import drawn_for_phones, on_phone, text_width
from attnlib.plotting.style import new_figure
from attnlib.plotting.text import font_of, label_of, plain_text, set_title
from attnlib.weight_checks import tolerance_of

LABEL_ROOM = 0.7  # inches for a label beside its point
MOST_COLUMNS = 3  # panels a line
TICKS = MaxNLocator(2, steps=[1, 2, 5, 10])
CLOSE = 0.05  # of the largest weight: a foot no further from its point counts as being there
ROUNDING = 1e-6  # of the largest weight: a smaller lead is none


@drawn_for_phones
def plot_directions(weights: Tensor, labels: Sequence[str]) -> Figure:
    """Draw a panel per place: the direction in which its point lies furthest out.

    A place's two weights are its point. The direction is the one along which it leads the
    others, and the origin, by most. A dotted line leads from each point to its foot on it, which
    says how far out the point lies that way.

    Args:
        weights: each place's weight in head 1 and in head 2, [places, 2].
        labels: what the places are called.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: something that isn't a tensor [places, 2], weights below 0 or those
            of a head above 1 together, a place that lies furthest out in no direction, or more
            places than a figure of 24 inches holds.
    """
    points = checked_tensor("weights", weights, "places 2")
    labels = checked_labels("labels", labels, len(points), "place")
    sums = points.sum(0)
    if points.min() < 0 or sums.max() > 1 + tolerance_of(weights):
        raise ValueError(
            "weights must not be negative, nor those of a head be above 1 together, got "
            f"{points.min().item():.4g} as the smallest and sums {sums.tolist()}"
        )
    columns = 1 if on_phone() else min(MOST_COLUMNS, len(points))
    lines = -(-len(points) // columns)
    panel = 2.45 if on_phone() else 2.5  # inches
    require_height("weights", panel * lines + 0.2, "draw fewer places at a time")
    directions = [furthest_out(points, place) for place in range(len(points))]
    figure, axes = new_figure(
        height=panel * lines + 0.2, gap=line_gap(), nrows=lines, ncols=columns, squeeze=False,
        sharex=True, sharey=True,
    )  # fmt: skip
    for ax in axes.flat[len(points) :]:
        ax.set_axis_off()
    reached = [points.new_zeros(1, 2), points]
    names = [label_of(label, LABEL_ROOM) for label in labels]
    for place, (ax, direction) in enumerate(zip(axes.flat, directions, strict=False)):
        reached.append(_draw(ax, points, place, direction, names))
        set_title(ax, f"to hear {labels[place]}", text_width() / columns)
    _frame(axes, torch.cat(reached), points.max().item())
    return figure


def furthest_out(points: Tensor, place: int) -> Tensor:
    """Return the unit vector along which a point leads the others and the origin by most.

    Along z it leads a rival r by z · (point - r). The smallest of its leads is largest where z runs
    to the point from one rival, or where two rivals are equal: at a right angle to the line between
    them. So these are tried. Raises ValueError if no direction gives it a lead.
    """
    points = points / points.max().clamp(min=1e-300)
    others = torch.arange(len(points)) != place
    rivals = torch.cat([points[others], points.new_zeros(1, 2)])
    ahead = points[place] - rivals
    between = (rivals[:, None] - rivals).flatten(0, 1)
    upright = torch.stack([-between[:, 1], between[:, 0]], dim=1)  # both ways round are in it
    tried = normalize(torch.cat([ahead, upright]))
    leads = (tried @ ahead.T).min(dim=1).values
    best = leads.argmax()
    if leads[best] <= ROUNDING:
        raise ValueError(
            "weights must let each place lie furthest out in some direction, beyond the others and "
            f"0, but place {place} does in none"
        )
    return tried[best]


def _draw(ax: Axes, points: Tensor, place: int, direction: Tensor, names: Sequence[str]) -> Tensor:
    """Draw all points and their feet on one direction; return what ends the line, [2, 2]."""
    ax.axhline(0, color=palette.LINE, linewidth=0.8)
    ax.axvline(0, color=palette.LINE, linewidth=0.8)
    along = points @ direction  # [places]
    feet = along[:, None] * direction
    room = points.max() * torch.tensor([-0.15, 0.3])
    ends = (torch.stack([along.min().clamp(max=0), along.max()]) + room)[:, None] * direction
    arrow = {"arrowstyle": "-|>", "color": palette.QUERY_COLOR, "linewidth": 1.6}
    start, end = (tuple(xy) for xy in ends.tolist())
    ax.annotate("", end, start, arrowprops={**arrow, "shrinkA": 0, "shrinkB": 0})
    for i, (point, foot) in enumerate(zip(points, feet, strict=True)):
        this = i == place
        ax.plot(*torch.stack([point, foot]).T.numpy(), ":", color=palette.MUTED, linewidth=1.2)
        ax.plot(*foot.numpy(), "o", color=palette.QUERY_COLOR, markersize=6.5 if this else 3.5)
        color = palette.KEY_COLOR if this else palette.MUTED
        ax.plot(*point.numpy(), "o", color=color, markersize=7 if this else 5)
        away = point - foot
        if away.norm() <= CLOSE * points.max():
            away = torch.stack([direction[1], -direction[0]])
        _name(ax, names[i], point, away / away.norm(), color)
    return ends


def _name(ax: Axes, name: str, point: Tensor, away: Tensor, color: str) -> None:
    """Write a point's name beside it, on the side to which the unit vector `away` leads."""
    x, y = away.tolist()
    side = 0 if abs(x) < 0.3 else 1 if x > 0 else -1
    ax.annotate(
        plain_text(name), tuple(point.tolist()), (8 * x, 15 * y), textcoords="offset points",
        ha=("right", "center", "left")[side + 1], va="center", color=color, fontsize=9,
        **font_of(name),
    )  # fmt: skip


def _frame(axes: np.ndarray, reached: Tensor, largest: float) -> None:
    """Give all panels the same room, and ticks where weights can be."""
    low, high = reached.min().item(), reached.max().item()
    room = 0.08 * (high - low)
    limits = (low - room, high + room)
    ticks = [tick for tick in TICKS.tick_values(0, largest) if 0 <= tick <= largest]
    for ax in axes.flat:
        ax.set(xlim=limits, ylim=limits, aspect="equal")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
    for ax in axes[-1]:
        ax.set_xlabel("weight in head 1", color=palette.head_color(0))
    for ax in axes[:, 0]:
        ax.set_ylabel("weight in head 2", color=palette.head_color(1))
