"""How large the numbers in a stack are, layer by layer."""

import math
from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from torch import Tensor

from attnlib import palette
from attnlib._checks import require_tensor
from attnlib.plotting.style import new_figure

BINS = 60


def plot_size_histograms(stacks: Mapping[str, Sequence[Tensor]], *, columns: int = 3) -> Figure:
    """Draw a histogram of the numbers' sizes at each layer of each stack, on one logarithmic axis.

    Each row of a panel is one layer, the input on top; its height is the share of numbers of that
    size, scaled to the panel's tallest.

    Args:
        stacks: title -> the tensors after each layer, the input first.
        columns: panels a line.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: something that isn't a tensor, or one without any number but 0, or
            no stack at all.
    """
    if not stacks:
        raise ValueError("stacks must hold at least one stack of tensors, got none")
    logs = {title: [_log_size(layer) for layer in layers] for title, layers in stacks.items()}
    # The few numbers that happen to be almost 0 would stretch the axis without telling anything.
    ends = torch.tensor(
        [layer.quantile(torch.tensor([0.005, 0.9999], dtype=layer.dtype)).tolist()
         for layers in logs.values() for layer in layers]
    )  # fmt: skip
    low, high = math.floor(ends.min()), math.ceil(ends.max())
    lines = math.ceil(len(stacks) / columns)
    figure, axes = new_figure(
        height=2.6 * lines + 0.3, nrows=lines, ncols=columns, sharex=True, squeeze=False
    )
    for ax in axes.flat[len(stacks) :]:
        ax.set_axis_off()
    for number, (ax, (title, layers)) in enumerate(zip(axes.flat, logs.items(), strict=False)):
        shares = [torch.histc(x, BINS, low, high) / x.numel() for x in layers]
        tallest = max(share.max() for share in shares)
        centers = [low + (high - low) * (i + 0.5) / BINS for i in range(BINS)]
        for depth, share in enumerate(shares):
            ridge = depth - 1.6 * share / tallest  # upwards, as the axis is turned round
            options = {"facecolor": palette.head_color(number), "edgecolor": palette.PAPER}
            ax.fill_between(centers, depth, ridge, linewidth=0.5, zorder=depth + 2, **options)
        ax.invert_yaxis()
        ax.set_title(title)
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda power, _: f"$10^{{{power:.0f}}}$"))
        ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        ax.tick_params(axis="x", labelbottom=True)
        ax.grid(axis="x")
    figure.supxlabel("size of a number", fontsize=9.5)
    figure.supylabel("block (0 is the input)", fontsize=9.5)
    return figure


def _log_size(layer: Tensor) -> Tensor:
    """log10 |number| of all numbers that aren't 0, flat."""
    require_tensor("layer", layer)
    sizes = layer.detach().to("cpu", torch.float64).abs().flatten()
    sizes = sizes[sizes > 0]
    if not len(sizes):
        raise ValueError("each layer must hold a number that isn't 0: it has no size to draw")
    return sizes.log10()
