"""How strongly each head reacts to each number of the input."""

from collections.abc import Mapping

import torch
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from torch import Tensor

from attnlib import palette
from attnlib.plotting.cells import add_color_bar
from attnlib.plotting.checks import checked_mapping, checked_tensor
from attnlib.plotting.page import drawn_for_phones, on_phone, text_width
from attnlib.plotting.style import SIGNED_MAP, new_figure
from attnlib.plotting.text import set_title


@drawn_for_phones
def plot_sensitivity(maps: Mapping[str, Tensor]) -> Figure:
    """Draw maps [h, d]: one row a head, one column an input number, darker = reacts more.

    Cells that are exactly 0 are left hatched: there the head reads nothing at all.

    Args:
        maps: title -> sizes of gradients [h, d], not negative.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: not a floating point tensor [h, d], negative numbers, or zeros alone.
    """
    arrays = {}
    for title, sizes in checked_mapping("maps", maps, "tensor").items():
        arrays[title] = checked_tensor(f"maps[{title!r}]", sizes, "h d")
        if (smallest := arrays[title].min()) < 0:
            raise ValueError(
                f"maps[{title!r}] must hold no negative number, got {smallest.item():.3g}: "
                "were the gradients' absolute values forgotten?"
            )
    positive = torch.cat([a[a > 0] for a in arrays.values()])
    if not len(positive):
        raise ValueError("maps must hold a number above 0, got zeros alone: no head reads anything")
    # The middle of the signed scale is pale, its upper half one hue.
    shades = SIGNED_MAP(torch.linspace(0.55, 1, 256).numpy())
    upper = LinearSegmentedColormap.from_list("upper", shades)
    low, high = positive.quantile(0.02).item(), positive.max().item()
    norm = LogNorm(low, high)
    figure, axes = new_figure(height=1.5 * len(arrays) + 0.6, nrows=len(arrays), squeeze=False)
    for ax, (title, sizes) in zip(axes[:, 0], arrays.items(), strict=True):
        h, d = sizes.shape
        ax.patch.set(facecolor=palette.PAPER, hatch="////", edgecolor=palette.LINE)
        hidden = torch.where(sizes > 0, sizes, torch.nan).numpy()
        ax.imshow(
            hidden, cmap=upper, norm=norm, aspect="auto",
            interpolation="none", extent=(0, d, h + 0.5, 0.5), origin="upper",
        )  # fmt: skip
        set_title(ax, title, text_width(), loc="left")
        ax.set_yticks(range(1, h + 1))
        ax.set_ylabel("head")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    axes[-1, 0].set_xlabel("number of the embedding")
    bar = add_color_bar(figure, axes, ScalarMappable(norm, upper), label="size of the gradient")
    if on_phone():  # where powers of ten and their multiples would lie on each other
        bar.set_ticks([low, high], labels=[f"{low:.1g}", f"{high:.1g}"])
        bar.minorticks_off()
    return figure
