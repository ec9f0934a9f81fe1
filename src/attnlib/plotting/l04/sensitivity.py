"""How strongly each head reacts to each number of the input."""

from collections.abc import Mapping

import torch
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from torch import Tensor

from attnlib import palette
from attnlib._checks import require_floating, shape_of
from attnlib.plotting.style import SIGNED_MAP, new_figure


def plot_sensitivity(maps: Mapping[str, Tensor]) -> Figure:
    """Draw maps [h, d]: one row a head, one column an input number, darker = reacts more.

    Cells that are exactly 0 are left hatched: there the head reads nothing at all.

    Args:
        maps: title -> sizes of gradients [h, d], not negative.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: not a floating point tensor [h, d], or negative numbers.
    """
    arrays = {}
    for title, sizes in maps.items():
        require_floating(f"maps[{title!r}]", sizes)
        if sizes.dim() != 2 or sizes.min() < 0:
            raise ValueError(
                f"maps[{title!r}] must have shape [h, d] and no negative numbers, "
                f"got {shape_of(sizes)} with smallest {sizes.min().item():.3g}"
            )
        arrays[title] = sizes.detach().to("cpu", torch.float64)
    positive = torch.cat([a[a > 0] for a in arrays.values()])
    # The middle of the signed scale is pale, its upper half one hue.
    shades = SIGNED_MAP(torch.linspace(0.55, 1, 256).numpy())
    upper = LinearSegmentedColormap.from_list("upper", shades)
    norm = LogNorm(positive.quantile(0.02).item(), positive.max().item())
    figure, axes = new_figure(height=1.5 * len(arrays) + 0.6, nrows=len(arrays), squeeze=False)
    for ax, (title, sizes) in zip(axes[:, 0], arrays.items(), strict=True):
        h, d = sizes.shape
        ax.patch.set(facecolor=palette.PAPER, hatch="////", edgecolor=palette.LINE)
        hidden = torch.where(sizes > 0, sizes, torch.nan).numpy()
        ax.imshow(
            hidden, cmap=upper, norm=norm, aspect="auto",
            interpolation="none", extent=(0, d, h + 0.5, 0.5),
        )  # fmt: skip
        ax.set_title(title, loc="left")
        ax.set_yticks(range(1, h + 1))
        ax.set_ylabel("head")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    axes[-1, 0].set_xlabel("number of the embedding")
    bar = figure.colorbar(
        ScalarMappable(norm, upper), ax=axes, aspect=20, pad=0.02, label="size of the gradient"
    )
    bar.outline.set_visible(False)
    return figure
