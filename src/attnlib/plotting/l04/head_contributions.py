"""What each head adds to the output."""

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from attnlib import palette
from attnlib.plotting._checks import checked_labels, checked_tensor
from attnlib.plotting._page import drawn_for_phones, on_phone
from attnlib.plotting._text import entries_abreast, label_of, name_entries
from attnlib.plotting.style import new_figure


@drawn_for_phones
def plot_head_contributions(
    parts: Tensor, output: Tensor, *, labels: Sequence[str] | None = None
) -> Figure:
    """Draw one token's output as the sum of what the heads add: stacked bars, one a number.

    Positive and negative parts are stacked away from zero; a dot marks their sum.

    Args:
        parts: [h, d], the addition of each head.
        output: [d], which must be the parts' sum.
        labels: h labels; "head 1", "head 2", ... if left out.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: shapes that don't fit, or parts that don't sum to `output`.
    """
    parts = checked_tensor("parts", parts, "h d")
    h, d = parts.shape
    output = checked_tensor("output", output, "d", d=d)
    if labels is None:
        labels = [f"head {i + 1}" for i in range(h)]
    labels = checked_labels("labels", labels, h, "head")
    gap = (parts.sum(0) - output).abs().max().item()
    if gap > 1e-4 * (1 + output.abs().max().item()):
        raise ValueError(
            f"parts must sum to output, but they differ by up to {gap:.3g}: "
            "is the bias of W_o among the parts?"
        )
    figure, ax = new_figure(height=2.6)
    places = range(1, d + 1)
    above, below = torch.zeros(d).double(), torch.zeros(d).double()
    for i in range(h):
        bottom = torch.where(parts[i] >= 0, above, below)
        color = palette.head_color(i)
        ax.bar(places, parts[i].numpy(), 0.6, bottom=bottom.numpy(), color=color, label=labels[i])
        above, below = above + parts[i].clamp(min=0), below + parts[i].clamp(max=0)
    style = {"color": palette.INK, "markeredgecolor": palette.PAPER, "markersize": 8}
    ax.plot(places, output.numpy(), "o", label="output", linestyle="none", **style)
    ax.axhline(0, color=palette.MUTED, linewidth=0.8)
    ax.set_xlabel("number of the output")
    ax.set_ylabel("value")
    if d <= 16:
        ax.set_xticks(places)
    entries = ["output", *labels]
    abreast = entries_abreast([label_of(entry) for entry in entries]) if on_phone() else 6
    legend = figure.legend(
        [*ax.lines[:1], *ax.containers], ["output", *map(str, range(h))],
        loc="outside upper left", ncols=min(h + 1, abreast),
    )  # fmt: skip
    name_entries(legend, entries)
    return figure
