"""Blocks as diagrams, read off the block itself."""

import math
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from attnlib import palette
from attnlib.blocks import TransformerBlock
from attnlib.plotting.checks import checked_mapping
from attnlib.plotting.page import drawn_for_phones, on_phone, text_width
from attnlib.plotting.style import new_figure
from attnlib.plotting.text import set_title

SKIP_COLOR = palette.head_color(4)
WIDEST = 1.6  # inches for a block
STEP, HALF = 1.0, 0.3  # distance between two boxes of a column; half the height of a box
SPINE, SIDE = 0.0, 1.15  # where the stream runs, and where a skip runs beside it
COLORS = {
    "norm": palette.head_color(2), "attention": palette.head_color(3),
    "feed-forward": palette.head_color(0),
}  # fmt: skip

RING = {
    "boxstyle": "circle,pad=0.15", "facecolor": palette.PAPER, "edgecolor": SKIP_COLOR,
    "linewidth": 1.6,
}  # fmt: skip


def block_parts(block: TransformerBlock) -> list[str]:
    """Return what lies on a token's way through a block: "split" is where a skip leaves it."""
    sublayers = ["attention"] if block.feed_forward is None else ["attention", "feed-forward"]
    parts = []
    for sublayer in sublayers:
        if block.residual:
            parts.append("split")
        if block.norm_position == "pre":
            parts.append("norm")
        parts.append(sublayer)
        if block.residual:
            parts.append("+")
        if block.norm_position == "post":
            parts.append("norm")
    return parts


@drawn_for_phones
def plot_blocks(blocks: Mapping[str, TransformerBlock]) -> Figure:
    """Draw blocks side by side; tokens run from the bottom to the top.

    Args:
        blocks: title -> block, whose sub-layers, `norm_position` and `residual` are drawn.

    Returns:
        A figure as wide as its blocks, at most as the text: a phone shows two of them whole.

    Raises:
        TypeError, ValueError: something that isn't a TransformerBlock, or none at all.
    """
    for title, block in checked_mapping("blocks", blocks, "TransformerBlock").items():
        if not isinstance(block, TransformerBlock):
            raise TypeError(
                f"blocks[{title!r}] must be a TransformerBlock, got {type(block).__name__}"
            )
    columns = {title: block_parts(block) for title, block in blocks.items()}
    longest = max(len(parts) for parts in columns.values())
    abreast = min(len(blocks), 2) if on_phone() else len(blocks)
    lines = math.ceil(len(blocks) / abreast)
    column = min(WIDEST, text_width() / abreast)
    figure, axes = new_figure(
        column * abreast, lines * (0.42 * longest + 1.2), nrows=lines, ncols=abreast, squeeze=False
    )
    for ax in axes.flat[len(blocks) :]:
        ax.set_axis_off()
    for ax, (title, parts) in zip(axes.flat, columns.items(), strict=False):
        _draw_block(ax, parts, longest)
        set_title(ax, title, column)
    return figure


def _draw_block(ax: Axes, parts: list[str], longest: int) -> None:
    start = 0.0  # height at which the skip left the stream
    _draw_stream(ax, parts)
    for number, part in enumerate(parts):
        height = number * STEP
        if part == "split":
            start = height
        elif part == "+":
            skip: dict[str, Any] = {"color": SKIP_COLOR, "linewidth": 2.0, "zorder": 2}
            ax.plot([SPINE, SIDE, SIDE], [start, start, height], **skip)
            ax.annotate(
                "", (SPINE + 0.2, height), (SIDE, height), zorder=2,
                arrowprops={"arrowstyle": "->", "shrinkA": 0, "shrinkB": 0, **skip},
            )  # fmt: skip
            ax.text(SIDE + 0.1, (start + height) / 2, "x", color=SKIP_COLOR, va="center")
            ax.text(SPINE, height, "+", ha="center", va="center", fontsize=13, zorder=5, bbox=RING)
        else:
            _box(ax, height, part)
    ax.text(SPINE + 0.15, -STEP, "tokens in", va="center")
    ax.text(SPINE + 0.15, (len(parts) + 0.1) * STEP, "tokens out", va="center")
    ax.set(xlim=(-1.15, 1.65), ylim=(-1.4 * STEP, (longest + 0.5) * STEP))
    ax.set_axis_off()


def _box(ax: Axes, height: float, part: str) -> None:
    ax.add_patch(
        FancyBboxPatch(
            (SPINE - 0.92, height - HALF), 1.84, 2 * HALF, linewidth=2, zorder=3,
            boxstyle="round,pad=0,rounding_size=0.12", facecolor="none", edgecolor=COLORS[part],
        )
    )  # fmt: skip
    ax.text(SPINE, height, part, ha="center", va="center", zorder=4)


def _draw_stream(ax: Axes, parts: list[str]) -> None:
    """Draw the line through a block, which stops at each box: no dark box hides it."""
    line: dict[str, Any] = {"color": palette.INK, "linewidth": 1.4}
    bottom = -STEP
    for number, part in enumerate(parts):
        if part in COLORS:
            height = number * STEP
            ax.plot([SPINE, SPINE], [bottom, height - HALF], **line, zorder=1)
            bottom = height + HALF
    top = (len(parts) + 0.1) * STEP
    arrow = {"arrowstyle": "->", **line, "shrinkA": 0}
    ax.annotate("", (SPINE, top), (SPINE, bottom), arrowprops=arrow, zorder=1)
