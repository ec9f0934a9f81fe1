"""Logs of training beside each other, on a phone as well."""

import math
from collections.abc import Collection, Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator
from torch import Tensor

from attnlib import palette
from attnlib.checks import checked_list, require_text
from attnlib.plotting.checks import checked_mapping, checked_tensor, require_same_names
from attnlib.plotting.layout_limits import require_height
from attnlib.plotting.page import drawn_for_phones, on_phone, text_width
from attnlib.plotting.style import new_figure
from attnlib.plotting.text import font_of, plain_text, set_title, title_lines

PANEL_HEIGHT = 1.35  # inches
WIDEST_PANEL, PHONE_PANEL = 2.1, 0.8  # three panels and their numbers fit a page's text, a phone
BESIDE, BELOW = 0.72, 0.6  # inches, for names and numbers
MOST_LOGS = 6
MOST_NUMBERS = 5  # on a logarithmic axis


@drawn_for_phones
def plot_logs(
    logs: Mapping[str, Mapping[str, Tensor]], *, x_label: str = "step", log: Collection[str] = ()
) -> Figure:
    """Draw logs side by side, a line of panels per measurement, so that no curve hides another.

    Thin lines are seeds, the thick one is their median. Panels of a line share their scale.

    Args:
        logs: name -> {measurement: tensor [steps, seeds]}, the same measurements for all; at most
            six logs.
        x_label: what the steps are.
        log: measurements whose axis is logarithmic.

    Returns:
        A figure at most two inches wide per log, about one on a phone; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: something that isn't a tensor [steps, seeds], logs that differ in
            measurements or steps, unknown measurements in log, or numbers that aren't above 0
            there.
    """
    values = {
        name: checked_mapping(f"logs[{name!r}]", measured, "tensor")
        for name, measured in checked_mapping("logs", logs, "log").items()
    }
    if len(values) > MOST_LOGS:
        raise ValueError(f"logs must hold at most {MOST_LOGS} logs, got {len(values)}")
    measurements = list(next(iter(values.values())))
    require_same_names("logs", values, "measurements")
    require_text("x_label", x_label)
    log = checked_list("log", log)
    unknown = [name for name in log if name not in measurements]
    if unknown:
        raise ValueError(f"log must hold measurements of logs, got {unknown}")
    lines = [_checked_line(values, measurement, measurement in log) for measurement in measurements]
    height = PANEL_HEIGHT * len(lines) + BELOW
    require_height("logs", height, "draw fewer measurements at a time")
    room = min(WIDEST_PANEL, (text_width() - BESIDE) / len(values))
    panel = PHONE_PANEL if on_phone() else room
    width = panel * len(values) + BESIDE
    figure, axes = new_figure(
        width, height, nrows=len(lines), ncols=len(values), sharex=True, sharey="row", squeeze=False
    )
    for ax, name in zip(axes[0], values, strict=True):
        set_title(ax, name, panel)
    for row, measurement, line in zip(axes, measurements, lines, strict=True):
        for i, (ax, curves) in enumerate(zip(row, line, strict=True)):
            _draw_curves(ax, curves, palette.head_color(i))
        text = "\n".join(title_lines(measurement, PANEL_HEIGHT))
        row[0].set_ylabel(plain_text(text), **font_of(text))
        if measurement in log:
            _set_powers_of_ten(row[0], line)
    axes[-1][0].xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10], integer=True))
    figure.supxlabel(plain_text(x_label), fontsize=9.5, **font_of(x_label))
    return figure


def _checked_line(
    values: Mapping[str, Mapping[str, Tensor]], measurement: str, is_log: bool
) -> list[Tensor]:
    """Return one measurement of every log, [steps, seeds] each, or raise if it can't be drawn."""
    line: list[Tensor] = []
    for log, measured in values.items():
        name = f"logs[{log!r}][{measurement!r}]"
        numbers = checked_tensor(name, measured[measurement], "steps seeds", integers=True)
        if line and len(numbers) != len(line[0]):
            raise ValueError(f"{name} must have {len(line[0])} steps, got {len(numbers)}")
        if is_log and not (numbers > 0).all():
            raise ValueError(f"{name} must be above 0 on a logarithmic axis, got {numbers.min():g}")
        line.append(numbers)
    return line


def _draw_curves(ax: Axes, curves: Tensor, color: str) -> None:
    """Draw each seed of curves [steps, seeds], and their median."""
    for seed in curves.T:
        ax.plot(seed, linewidth=0.6, color=color)
    ax.plot(curves.median(dim=1).values, linewidth=1.8, color=color)
    ax.grid(axis="y")


def _set_powers_of_ten(ax: Axes, line: list[Tensor]) -> None:
    """Make a line's axis logarithmic, from a power of ten to a power of ten, with a few numbers."""
    ends = [end for curves in line for end in (curves.min().item(), curves.max().item())]
    low, high = math.floor(math.log10(min(ends))), math.ceil(math.log10(max(ends)))
    high = max(high, low + 1)
    ax.set_yscale("log")
    ax.set_ylim(10.0**low, 10.0**high)
    every = math.ceil((high - low + 1) / MOST_NUMBERS)
    ax.set_yticks([10.0**power for power in range(low, high + 1, every)])
    ax.yaxis.set_minor_locator(NullLocator())
