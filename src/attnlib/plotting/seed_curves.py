"""Measurements as curves: a dot for every seed, a line through their medians."""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from attnlib import palette
from attnlib.checks import checked_list, require_flag, require_text
from attnlib.plotting.checks import (
    checked_mapping,
    checked_number,
    checked_tensor,
    require_columns,
    require_same_names,
)
from attnlib.plotting.layout_limits import require_height
from attnlib.plotting.page import drawn_for_phones, on_phone, text_width
from attnlib.plotting.style import new_figure
from attnlib.plotting.text import (
    entries_abreast,
    font_of,
    label_of,
    name_entries,
    plain_text,
    set_title,
)

MARKERS = "osD^vPX*"  # color is never the only difference
FEW = 8  # points with markers; more make a dense curve
MOST_COLUMNS = 6  # panels a line
DASHES = ["-", "--", "-.", ":", (0, (5, 1.5, 1, 1.5, 1, 1.5))]


@drawn_for_phones
def plot_seed_curves(
    x: Sequence[float],
    panels: Mapping[str, Mapping[str, Tensor]],
    *,
    x_label: str,
    log: Collection[str] = (),
    linear_x: bool = False,
    columns: int = 2,
) -> Figure:
    """Draw several measurements over x, one panel each, with every seed shown.

    With at most eight points the horizontal axis is logarithmic, unless `linear_x`. NaN and
    infinity leave a gap.

    Args:
        x: N numbers.
        panels: title of the panel -> {name of the curve: tensor [N, seeds]}, the same names in all.
        x_label: what x is.
        log: titles of the panels whose vertical axis is logarithmic.
        linear_x: whether x only counts, as for the layers of a model; then its axis is linear.
        columns: panels a line, at most 6.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: something that isn't a tensor [N, seeds], panels with other curves,
            numbers not above 0 on a logarithmic axis, an unknown title in log, or more panels than
            fit into 24 inches.
    """
    require_flag("linear_x", linear_x)
    places = _checked_places(x, linear_x)
    drawn = {
        title: _checked_curves(f"panels[{title!r}]", curves, len(places))
        for title, curves in checked_mapping("panels", panels, "dict of curves").items()
    }
    require_text("x_label", x_label)
    log = checked_list("log", log)
    unknown = [title for title in log if not isinstance(title, str) or title not in drawn]
    if unknown:
        raise ValueError(f"log must hold titles of panels, got {unknown}")
    for title in log:
        for name, values in drawn[title].items():
            if (values <= 0).any():
                raise ValueError(
                    f"panels[{title!r}][{name!r}] must be above 0 on a logarithmic axis, got "
                    f"{values.nan_to_num(torch.inf).min():g}"
                )
    require_same_names("panels", drawn, "curves")
    require_columns(columns, MOST_COLUMNS)
    columns = 1 if on_phone() else columns
    lines = math.ceil(len(drawn) / columns)
    names = list(next(iter(drawn.values())))
    abreast = entries_abreast([label_of(name) for name in names])
    below = 0.2 * (math.ceil(len(names) / abreast) - 1)  # inches for further lines of the legend
    height = (2.1 if on_phone() else 2.4) * lines + 0.5 + below
    require_height("panels", height, "draw fewer panels or curves at a time")
    panel = text_width() - 0.5 if on_phone() else text_width() / columns  # inches for a title
    figure, axes = new_figure(height=height, nrows=lines, ncols=columns, sharex=True, squeeze=False)
    for ax in axes.flat[len(drawn) :]:
        ax.set_axis_off()
    for ax, (title, curves) in zip(axes.flat, drawn.items(), strict=False):
        for i, values in enumerate(curves.values()):
            _draw_curve(ax, places, values, i)
        set_title(ax, title, panel)
        ax.set_yscale("log" if title in log else "linear")
        ax.grid(axis="y")
        if len(places) <= FEW:
            ax.set_xscale("linear" if linear_x else "log")
            ax.set_xticks(places, [f"{place:g}" for place in places])
            ax.minorticks_off()
    for ax in axes[-1]:
        ax.set_xlabel(plain_text(x_label), **font_of(x_label))
    handles, places_of_names = axes.flat[0].get_legend_handles_labels()
    legend = figure.legend(
        handles, places_of_names, loc="outside lower center", ncols=min(len(names), abreast),
        handlelength=2.4 if on_phone() else 3,
    )  # fmt: skip
    name_entries(legend, names)
    return figure


def _checked_places(x: Sequence[float], linear_x: bool) -> list[float]:
    """Return x as numbers, or raise unless its axis can show them."""
    numbers = checked_list("x", x.tolist() if isinstance(x, Tensor | np.ndarray) else x)
    places = [checked_number("each of x", number) for number in numbers]
    if not places:
        raise ValueError("x must hold at least one number, got none")
    if len(places) <= FEW and min(places) <= 0 and not linear_x:
        raise ValueError(
            f"x must be above 0 with at most {FEW} points, which stand on a logarithmic axis, "
            f"got {min(places):g}"
        )
    return places


def _checked_curves(name: str, curves: Mapping[str, Tensor], points: int) -> dict[str, Tensor]:
    """Return a panel's curves, or raise unless each has a value per point and seed."""
    return {
        title: checked_tensor(
            f"{name}[{title!r}]", values, "len(x) seeds",
            integers=True, nan=True, infinity=True, **{"len(x)": points},
        )
        for title, values in checked_mapping(name, curves, "tensor").items()
    }  # fmt: skip


def _draw_curve(ax: Axes, x: Sequence[float], values: Tensor, number: int) -> None:
    """Draw values [N, seeds]: their median as a line, and each seed."""
    color, marker = palette.head_color(number), MARKERS[number % len(MARKERS)]
    marker = marker if len(x) <= FEW else ""
    ax.plot(
        x, values.median(dim=1).values, label=str(number), color=color, marker=marker,
        markersize=4.5, linestyle=DASHES[number % len(DASHES)], linewidth=1.6,
    )  # fmt: skip
    for seed in values.T:
        if marker:
            ax.plot(x, seed, linestyle="none", marker=marker, markersize=3, color=color)
        else:
            ax.plot(x, seed, linewidth=0.6, color=color)
