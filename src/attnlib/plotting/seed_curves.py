"""Measurements as curves: every seed a dot, a line through their medians."""

import math
from collections.abc import Collection, Mapping, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from attnlib import palette
from attnlib._checks import require_tensor, shape_of
from attnlib.plotting.style import new_figure

MARKERS = "osD^vPX*"  # color is never the only difference
FEW = 8  # so many points stand apart; more make a dense curve
DASHES = ["-", "--", "-.", ":", (0, (5, 1.5, 1, 1.5, 1, 1.5))]


def plot_seed_curves(
    x: Sequence[float],
    panels: Mapping[str, Mapping[str, Tensor]],
    *,
    x_label: str,
    log: Collection[str] = (),
    columns: int = 2,
) -> Figure:
    """Draw several measurements over x, one panel each, with every seed shown.

    Args:
        x: where was measured; N numbers.
        panels: title of the panel -> {name of the curve: tensor [N, seeds]}.
        x_label: what x is.
        log: titles of the panels whose vertical axis is logarithmic.
        columns: panels a line.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: something that isn't a tensor [N, seeds], or an unknown title in log.
    """
    unknown = set(log) - set(panels)
    if unknown:
        raise ValueError(f"log must hold titles of panels, got {sorted(unknown)}")
    lines = math.ceil(len(panels) / columns)
    figure, axes = new_figure(
        height=2.4 * lines + 0.5, nrows=lines, ncols=columns, sharex=True, squeeze=False
    )
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    for ax, (title, curves) in zip(axes.flat, panels.items(), strict=False):
        for i, (name, values) in enumerate(curves.items()):
            require_tensor(name, values)
            if values.dim() != 2 or len(values) != len(x):
                raise ValueError(f"{name} must be [{len(x)}, seeds], got {shape_of(values)}")
            _draw_curve(ax, x, values.detach().to("cpu", torch.float64), name, i)
        ax.set_title(title)
        ax.set_yscale("log" if title in log else "linear")
        ax.grid(axis="y")
        if len(x) <= FEW:
            ax.set_xscale("log")
            ax.set_xticks(x, [f"{value:g}" for value in x])
            ax.minorticks_off()
    for ax in axes[-1]:
        ax.set_xlabel(x_label)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), handlelength=3)
    return figure


def _draw_curve(ax: Axes, x: Sequence[float], values: Tensor, name: str, number: int) -> None:
    """Draw the median of values [N, seeds] as a line, and each seed."""
    color, marker = palette.head_color(number), MARKERS[number % len(MARKERS)]
    marker = marker if len(x) <= FEW else ""  # a dense curve needs no markers
    ax.plot(
        x, values.median(dim=1).values, label=name, color=color, marker=marker, markersize=4.5,
        linestyle=DASHES[number % len(DASHES)], linewidth=1.6,
    )  # fmt: skip
    for seed in values.T:
        if marker:
            ax.plot(x, seed, linestyle="none", marker=marker, markersize=3, color=color)
        else:
            ax.plot(x, seed, linewidth=0.6, color=color)
