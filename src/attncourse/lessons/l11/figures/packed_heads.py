"""Where the heads are in GPT-2's two matrices of attention."""

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from attnlib import palette
from attnlib.checks import require_divisible
from attnlib.plotting.cells import add_color_bar
from attnlib.plotting.checks import checked_tensor
from attnlib.plotting.layout_limits import line_gap, require_height, require_seen
from attnlib.plotting.page import drawn_for_phones, on_phone, text_width
from attnlib.plotting.style import SIGNED_MAP, new_figure, signed_norm
from attnlib.plotting.text import entries_abreast

PARTS = ("queries", "keys", "values")
STRIP = 0.09  # of a matrix's height: how thick the heads' colors are
SIDES = 0.9  # inches beside the matrices
AROUND = 0.95  # inches above and below them


@drawn_for_phones
def plot_packed_heads(c_attn: Tensor, c_proj: Tensor, num_heads: int) -> Figure:
    """Draw the matrices of one layer in GPT-2's layout, the heads' columns and rows in color.

    Args:
        c_attn: [d, 3 d], a column per number of the queries, the keys and the values.
        c_proj: [d, d], a row per number that the heads found.
        num_heads: h; a head has d / h neighboring columns in each third, and as many rows.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: shapes that aren't [d, 3 d] and [d, d], heads that don't divide d, or
            matrices too large for their cells to be seen.
    """
    d = len(checked_tensor("c_attn", c_attn, "d columns"))
    packed = checked_tensor("c_attn", c_attn, "d columns", d=d, columns=3 * d)
    back = checked_tensor("c_proj", c_proj, "d d", d=d)
    require_divisible(d, num_heads)
    cell = (text_width() - SIDES) / (3 * d if on_phone() else 4 * d)
    require_seen("c_attn", cell, f"{d} rows", "draw a narrower model")
    entries = [f"head {i + 1}" for i in range(num_heads)]
    abreast = entries_abreast(entries)
    height = (2 if on_phone() else 1) * (1.1 * d * cell + AROUND) + 0.2 * -(-num_heads // abreast)
    require_height("num_heads", height, "draw a layer of fewer heads")
    layout = {"nrows": 2} if on_phone() else {"ncols": 2, "width_ratios": (3.0, 1 + STRIP)}
    figure, (left, right) = new_figure(height=height, gap=line_gap(), **layout)
    norm = signed_norm(max(packed.abs().max().item(), back.abs().max().item()))
    for ax, matrix, title in ((left, packed, "c_attn"), (right, back, "c_proj")):
        ax.imshow(matrix.numpy(), cmap=SIGNED_MAP, norm=norm, interpolation="none", origin="upper")
        ax.set(title=title, xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    thick = max(STRIP * d, 1)
    _mark_columns(left, d, num_heads, thick)
    _mark_rows(right, d, num_heads, thick)
    add_color_bar(figure, [left, right], ScalarMappable(norm, SIGNED_MAP), shrink=0.8)
    figure.legend(
        left.patches[:num_heads], entries, loc="outside lower center", ncols=abreast,
        handlelength=1.2,
    )  # fmt: skip
    return figure


def _mark_columns(ax: Axes, d: int, num_heads: int, thick: float) -> None:
    """Color the heads above their columns, and name the thirds below."""
    for part in range(len(PARTS)):
        for head in range(num_heads):
            x = part * d + head * d / num_heads - 0.5
            color = palette.head_color(head)
            ax.add_patch(Rectangle((x, -0.5 - thick), d / num_heads, 0.8 * thick, color=color))
        if part:
            ax.axvline(part * d - 0.5, color=palette.INK, linewidth=1)
    ax.set_ylim(d - 0.5, -0.5 - thick)
    ax.set_xticks([(part + 0.5) * d - 0.5 for part in range(len(PARTS))], PARTS)
    ax.tick_params(length=0)


def _mark_rows(ax: Axes, d: int, num_heads: int, thick: float) -> None:
    """Color the heads beside the rows that read them."""
    for head in range(num_heads):
        y = head * d / num_heads - 0.5
        color = palette.head_color(head)
        ax.add_patch(Rectangle((-0.5 - thick, y), 0.8 * thick, d / num_heads, color=color))
    ax.set_xlim(-0.5 - thick, d - 0.5)
    ax.set_ylim(d - 0.5, -0.5 - thick)
    ax.set_xticks([(d - 1) / 2], ["the stream"])
    ax.tick_params(length=0)
