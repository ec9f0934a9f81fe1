"""What comes back for four contents of two boxes: on a line, or in a plane."""

from collections.abc import Mapping, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from attnlib import palette
from attnlib.plotting.checks import checked_labels, checked_mapping, checked_tensor
from attnlib.plotting.layout_limits import require_height
from attnlib.plotting.page import drawn_for_phones, on_phone, text_width
from attnlib.plotting.style import new_figure
from attnlib.plotting.text import font_of, label_of, plain_text, set_title

PANEL_HEIGHT = 1.9  # inches
LABEL_ROOM = 1.1  # inches for a label beside its point
RAISED, EXCHANGED = (0, 3), (1, 2)  # which of the four contents an arrow leads from and to


@drawn_for_phones
def plot_contents(panels: Mapping[str, Tensor], labels: Sequence[str]) -> Figure:
    """Draw what four contents of two boxes bring back, and the two changes that the proof compares.

    The contents are: both boxes low; only the second high; only the first high; both high. What
    they bring back is drawn in the plane that its two changes span, the line from the first to the
    last content lying level and as long as one unit.

    Args:
        panels: title -> what comes back, [4, d].
        labels: the four contents.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: something that isn't a tensor [4, d], the first and the last of them
            equal, or more panels than a figure of 24 inches holds.
    """
    drawn = {
        title: _in_plane(f"panels[{title!r}]", points)
        for title, points in checked_mapping("panels", panels, "tensor").items()
    }
    labels = [label_of(text, LABEL_ROOM) for text in checked_labels("labels", labels, 4, "content")]
    columns = 1 if on_phone() else min(2, len(drawn))
    lines = -(-len(drawn) // columns)
    require_height("panels", PANEL_HEIGHT * lines + 0.5, "draw fewer panels at a time")
    figure, axes = new_figure(
        height=PANEL_HEIGHT * lines + 0.5, nrows=lines, ncols=columns, squeeze=False,
        sharex=True, sharey=True,
    )  # fmt: skip
    for ax in axes.flat[len(drawn) :]:
        ax.set_axis_off()
    for ax, (title, points) in zip(axes.flat, drawn.items(), strict=False):
        _draw(ax, points, labels)
        set_title(ax, title, text_width() / columns)
    reach = max(points[:, 1].abs().max().item() for points in drawn.values())
    axes.flat[0].set(xlim=(-0.55, 1.55), ylim=(-reach - 0.45, reach + 0.45))
    handles = [
        axes.flat[0].plot([], [], color=color, linewidth=1.8)[0]
        for color in (palette.MUTED, palette.QUERY_COLOR)
    ]
    figure.legend(handles, ["raise both", "exchange"], loc="outside lower center", ncols=2)
    return figure


def _in_plane(name: str, points: Tensor) -> Tensor:
    """Return points [4, d] in the plane of the proof's two changes, [4, 2]."""
    points = checked_tensor(name, points, "4 d")
    start, raised = points[RAISED[0]], points[RAISED[1]] - points[RAISED[0]]
    length = raised.norm()
    if not length > 0:
        raise ValueError(f"{name} must bring back something else for the last content than first")
    exchanged = points[EXCHANGED[1]] - points[EXCHANGED[0]]
    level = raised / length
    upright = exchanged - (exchanged @ level) * level
    if upright.norm() <= 1e-5 * length:  # nothing but rounding
        upright = torch.zeros_like(upright)
    upright = -upright / upright.norm().clamp(min=1e-12)  # the second box high: above the line
    return torch.stack([(points - start) @ level, (points - start) @ upright], dim=1) / length


def _draw(ax: Axes, points: Tensor, labels: Sequence[str]) -> None:
    ax.set_axis_off()
    for (start, end), color in ((RAISED, palette.MUTED), (EXCHANGED, palette.QUERY_COLOR)):
        arrow = {"arrowstyle": "-|>", "color": color, "linewidth": 1.8, "shrinkA": 4, "shrinkB": 4}
        if start == EXCHANGED[0] and not points[:, 1].any():
            arrow["connectionstyle"] = "arc3,rad=-0.35"  # it would lie on the other one
        ax.annotate(
            "", tuple(points[end].tolist()), tuple(points[start].tolist()), arrowprops=arrow
        )
    ax.plot(*points.T.numpy(), "o", color=palette.KEY_COLOR, markersize=6)
    for i, (text, (x, y)) in enumerate(zip(labels, points.tolist(), strict=True)):
        above = i in EXCHANGED and y >= 0  # below, next to the line, are the ends of the raise
        side = 0 if 0.25 < x < 0.75 else 1 if x > 0.5 else -1
        ax.annotate(
            plain_text(text), (x, y), (8 * side, 10 if above else -12),
            textcoords="offset points", ha=("right", "center", "left")[side + 1], va="center",
            color=palette.INK, fontsize=9, **font_of(text),
        )  # fmt: skip
