"""How large the numbers in a stack are, layer by layer."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from torch import Tensor

from attnlib import palette
from attnlib._checks import require_positive_int
from attnlib.plotting._checks import checked_mapping, checked_tensors
from attnlib.plotting._page import drawn_for_phones, on_phone, text_width
from attnlib.plotting._text import set_title
from attnlib.plotting.style import new_figure

BINS = 60


@drawn_for_phones
def plot_size_histograms(
    stacks: Mapping[str, Sequence[Tensor]], *, columns: int = 3, every: int = 1
) -> Figure:
    """Draw a histogram of the numbers' sizes at layers of each stack, on one logarithmic axis.

    Each row of a panel is one layer, the input on top; its height is the share of numbers of that
    size, scaled to the panel's tallest.

    Args:
        stacks: title -> the tensors after each layer, the input first.
        columns: panels per line.
        every: 3 draws the input and every third layer, whose histograms are then taller.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: something that isn't a tensor, numbers that aren't finite, a tensor
            without any number but 0, or no stack at all.
    """
    logs = {
        title: _log_sizes(f"stacks[{title!r}]", layers)
        for title, layers in checked_mapping("stacks", stacks, "stack of tensors").items()
    }
    require_positive_int("columns", columns)
    require_positive_int("every", every)
    logs = {title: layers[::every] for title, layers in logs.items()}
    low, high = _limits([layer for layers in logs.values() for layer in layers])
    columns = 1 if on_phone() else columns
    lines = math.ceil(len(logs) / columns)
    figure, axes = new_figure(
        height=2.6 * lines + 0.3, nrows=lines, ncols=columns, sharex=True, squeeze=False
    )
    for ax in axes.flat[len(logs) :]:
        ax.set_axis_off()
    for number, (ax, (title, layers)) in enumerate(zip(axes.flat, logs.items(), strict=False)):
        shares = [torch.histc(x, BINS, low, high) / x.numel() for x in layers]
        tallest = max(share.max() for share in shares)
        centers = [low + (high - low) * (i + 0.5) / BINS for i in range(BINS)]
        places = range(0, every * len(layers), every)
        for depth, share in zip(places, shares, strict=True):
            ridge = depth - 1.6 * every * share / tallest  # upwards, as the axis is turned round
            options = {"facecolor": palette.head_color(number), "edgecolor": palette.PAPER}
            ax.fill_between(centers, depth, ridge, linewidth=0.5, zorder=depth + 2, **options)
        ax.invert_yaxis()
        set_title(ax, title, text_width() / columns)
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda power, _: f"$10^{{{power:.0f}}}$"))
        if every == 1:
            ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        else:
            ax.set_yticks(places)
        ax.tick_params(axis="x", labelbottom=True)
        ax.grid(axis="x")
    figure.supxlabel("size of a number", fontsize=9.5)
    figure.supylabel("block (0 is the input)", fontsize=9.5)
    return figure


def _log_sizes(name: str, layers: Sequence[Tensor]) -> list[Tensor]:
    """Return log10 |number| of all numbers of each layer that aren't 0, flat."""
    logs = []
    for i, layer in enumerate(checked_tensors(name, layers, "...")):
        sizes = layer[layer != 0].abs()
        if not len(sizes):
            raise ValueError(f"{name}[{i}] must hold a number that isn't 0: it has no size to draw")
        logs.append(sizes.log10())
    return logs


def _limits(layers: Sequence[Tensor]) -> tuple[int, int]:
    """Return the powers of ten between which almost all sizes lie.

    The few numbers that happen to be almost 0 would stretch the axis without telling anything.
    """
    ends = np.array([np.quantile(layer.numpy(), [0.005, 0.9999]) for layer in layers])
    low, high = math.floor(ends.min()), math.ceil(ends.max())
    return (low, high) if low < high else (low - 1, high + 1)
