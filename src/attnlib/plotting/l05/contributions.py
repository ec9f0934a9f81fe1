"""The residual stream as the sum of what each sub-layer wrote into it."""

from collections.abc import Mapping

import torch
from matplotlib.figure import Figure
from torch import Tensor

from attnlib import palette
from attnlib._checks import require_tensor, shape_of
from attnlib.plotting.style import new_figure


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
        TypeError, ValueError: something that isn't a tensor, shapes that differ, or none at all.
    """
    if not contributions:
        raise ValueError("contributions must hold at least one tensor, got none")
    first = next(iter(contributions))
    for name, value in contributions.items():
        require_tensor(f"contributions[{name!r}]", value)
        if value.shape != contributions[first].shape:
            raise ValueError(
                f"contributions must share one shape, got {shape_of(contributions[first])} in "
                f"{first!r} and {shape_of(value)} in {name!r}"
            )
    stacked = torch.stack([c.detach().to("cpu", torch.float64) for c in contributions.values()])
    total = stacked.sum(0)
    return (stacked * total).flatten(1).sum(1) / total.square().sum()


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
    values = [c.detach().to("cpu", torch.float64) for c in contributions.values()]
    sizes = [_rms(value) for value in values]
    so_far = [_rms(total) for total in torch.stack(values).cumsum(0)]
    places, names = range(len(values)), list(contributions)
    figure, (left, right) = new_figure(height=0.24 * len(values) + 1.1, ncols=2, sharey=True)
    left.barh(places, sizes, color=palette.head_color(3), label="this contribution")
    line = {"color": palette.head_color(4), "marker": "o", "markersize": 4}
    left.plot(so_far, places, label="stream after it", **line)
    left.set_title("size (root mean square)")
    left.legend(loc="best")
    right.barh(places, shares.tolist(), color=palette.head_color(0))
    right.axvline(0, color=palette.MUTED, linewidth=0.8)
    right.set_title(f"share of the final stream (sum {shares.sum():.2f})")
    left.set_yticks(places, names)
    left.invert_yaxis()  # the stream runs downwards
    for ax in (left, right):
        ax.grid(axis="x")
        ax.tick_params(axis="y", length=0)
    return figure


def _rms(x: Tensor) -> float:
    return x.square().mean().sqrt().item()
