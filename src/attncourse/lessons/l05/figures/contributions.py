"""The residual stream as the sum of what each sub-layer wrote into it."""

from collections.abc import Mapping

import torch
from matplotlib.figure import Figure
from torch import Tensor

from attnlib import palette
from attnlib.checks import shape_of
from attnlib.plotting.cells import label_axis
from attnlib.plotting.checks import checked_mapping, checked_tensor
from attnlib.plotting.layout_limits import PHONE_PANEL
from attnlib.plotting.page import drawn_for_phones, on_phone
from attnlib.plotting.style import new_figure
from attnlib.plotting.text import label_of, set_title


def stream_shares(contributions: Mapping[str, Tensor]) -> Tensor:
    """Return how much of the final stream each contribution is; the shares sum to 1.

    The final stream is the sum of the contributions. A contribution's share is its projection on
    that sum, `contribution . sum / |sum|^2`, taken over all tokens at once. It is negative for a
    contribution that points against the result.

    Args:
        contributions: name -> tensor [T, d] (or any one shape).

    Returns:
        The shares, one a contribution, in their order.

    Raises:
        TypeError, ValueError: something that isn't a tensor, numbers that aren't finite, shapes
            that differ, none at all, or contributions that sum to nothing.
    """
    stacked = _stacked(contributions)
    total = stacked.sum(0)
    squares = total.square().sum()
    if not squares:
        raise ValueError("contributions must not sum to 0: nothing can be a share of that")
    return (stacked * total).reshape(len(stacked), -1).sum(1) / squares


@drawn_for_phones
def plot_contributions(contributions: Mapping[str, Tensor]) -> Figure:
    """Draw what each sub-layer wrote: its size, the stream's size so far, its share of the result.

    Args:
        contributions: name -> tensor [T, d], in the order in which they are added.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: as `stream_shares`.
    """
    shares = stream_shares(contributions)
    values = _stacked(contributions)
    sizes = [_rms(value) for value in values]
    so_far = [_rms(total) for total in values.cumsum(0)]
    places, names = range(len(values)), [label_of(name) for name in contributions]
    height = 0.24 * len(values) + (1.8 if on_phone() else 1.1)
    figure, (left, right) = new_figure(height=height, ncols=2, sharey=True)
    left.barh(places, sizes, color=palette.head_color(3), label="this contribution")
    line = {"color": palette.head_color(4), "marker": "o", "markersize": 4}
    left.plot(so_far, places, label="stream after it", **line)
    left_title = "size (root mean square)"
    right_title = f"share of the final stream (sum {shares.sum():.2f})"
    if on_phone():  # the panels are too small for a legend and long titles
        figure.legend(loc="outside upper center")
        set_title(left, left_title, PHONE_PANEL, fontsize=9)
        set_title(right, right_title, PHONE_PANEL, fontsize=9)
    else:
        left.legend(loc="best")
        left.set_title(left_title)
        right.set_title(right_title)
    right.barh(places, shares.tolist(), color=palette.head_color(0))
    right.axvline(0, color=palette.MUTED, linewidth=0.8)
    label_axis(left.yaxis, names, len(names))
    left.invert_yaxis()  # the stream runs downwards
    for ax in (left, right):
        ax.grid(axis="x")
        ax.tick_params(axis="y", length=0)
    return figure


def _stacked(contributions: Mapping[str, Tensor]) -> Tensor:
    """Return contributions [n, ...] in float64, or raise unless they can be added."""
    values = {
        name: checked_tensor(f"contributions[{name!r}]", value, "...", integers=True)
        for name, value in checked_mapping("contributions", contributions, "tensor").items()
    }
    first, shape = next((name, shape_of(value)) for name, value in values.items())
    for name, value in values.items():
        if shape_of(value) != shape:
            raise ValueError(
                f"contributions must share one shape, got {shape} in {first!r} "
                f"and {shape_of(value)} in {name!r}"
            )
    return torch.stack(list(values.values()))


def _rms(x: Tensor) -> float:
    return x.square().mean().sqrt().item()
