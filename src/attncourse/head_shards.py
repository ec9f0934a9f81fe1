"""Where the heads of one layer are, and the numbers that belong to them, on several devices."""

import attnlib.plotting  # noqa: F401  # first: it says what to install

# isort: split
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from attnlib import palette
from attnlib.checks import divisors_of, require_positive_int
from attnlib.plotting.layout_limits import require_height, require_seen
from attnlib.plotting.page import drawn_for_phones, on_phone, text_width
from attnlib.plotting.style import new_figure

ROW, TOP, BOTTOM = 0.85, 0.3, 0.35  # inches: a device, the words above all, those below
EDGE = 0.01  # inches left free at the sides
SIDE = 0.55  # inches of a matrix
RING = 0.085  # inches; radius of the "+"
LABEL = 8.5  # points


@drawn_for_phones
def plot_head_shards(num_heads: int, devices: int) -> Figure:
    """Draw which columns and rows of a layer's matrices each device holds: those of its own heads.

    Each head has its color. What lies on other devices is left empty.

    Args:
        num_heads: h, the heads of the layer.
        devices: how many share them; must divide h.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: no whole numbers of at least 1, devices that don't divide the heads,
            heads too narrow to be seen, or more devices than a figure of 24 inches holds.
    """
    require_positive_int("num_heads", num_heads)
    require_positive_int("devices", devices)
    require_seen(
        "num_heads", SIDE / num_heads, f"{num_heads} heads", "draw a layer with fewer heads"
    )
    if num_heads % devices:
        raise ValueError(
            f"devices must divide num_heads, got {devices} and num_heads={num_heads}: a head isn't "
            f"cut, so devices may be one of {divisors_of(num_heads)}"
        )
    height = TOP + ROW * devices + BOTTOM
    require_height("devices", height, "draw fewer of them")
    figure, ax = new_figure(height=height)
    figure.set_layout_engine("none")  # the axes nearly fill the figure, and their unit is an inch
    ax.set_position((EDGE / text_width(), 0, 1 - 2 * EDGE / text_width(), 1))
    ax.set(xlim=(EDGE, text_width() - EDGE), ylim=(0, height))
    ax.set_axis_off()
    left, middle, right, plus = (text_width() * share for share in (0.11, 0.39, 0.67, 0.95))
    side = SIDE if on_phone() else 1.3 * SIDE
    center = BOTTOM + ROW * devices / 2
    for x, words in ((left, "W_q, W_k, W_v"), (middle, "heads"), (right, "W_o")):
        _write(ax, x + side / 2, height - TOP / 2, words)
    own = num_heads // devices
    for device in range(devices):
        y = height - TOP - ROW * (device + 0.5)
        heads = range(device * own, (device + 1) * own)
        _write(
            ax, 2 * EDGE, y, str(device + 1) if on_phone() else f"device {device + 1}", align="left"
        )
        _draw_stripes(ax, left, y, side, num_heads, heads, columns=True)
        _draw_heads(ax, middle, y, side, heads)
        _draw_stripes(ax, right, y, side, num_heads, heads, columns=False)
        for start, end in ((left + side, middle), (middle + side, right)):
            _draw_arrow(ax, (start + 0.04, y), (end - 0.04, y))
        _draw_arrow(ax, (right + side + 0.04, y), (plus - RING, center))
    ax.add_patch(Circle((plus, center), RING, facecolor="none", edgecolor=palette.INK, lw=1))
    _write(ax, plus, center, "+")
    _write(ax, text_width() / 2, BOTTOM / 2, "the sum of all devices' results is the output")
    return figure


def _draw_stripes(
    ax: Axes, x: float, y: float, side: float, count: int, filled: range, *, columns: bool
) -> None:
    """Draw a matrix cut into columns or rows, some of them filled."""
    step = side / count
    for i in range(count):
        place = (x + i * step, y - side / 2) if columns else (x, y + side / 2 - (i + 1) * step)
        size = (step, side) if columns else (side, step)
        color = palette.head_color(i)
        fill = (color, 0.55) if i in filled else "none"
        ax.add_patch(Rectangle(place, *size, facecolor=fill, edgecolor=palette.LINE, lw=0.6))
    ax.add_patch(
        Rectangle((x, y - side / 2), side, side, facecolor="none", edgecolor=palette.MUTED, lw=1)
    )


def _draw_heads(ax: Axes, x: float, y: float, side: float, heads: range) -> None:
    """Draw the maps of a device's heads beside each other, one square each."""
    square = min(side / len(heads), 0.3)
    start = x + (side - square * len(heads)) / 2
    for place, head in enumerate(heads):
        color = palette.head_color(head)
        ax.add_patch(
            Rectangle(
                (start + place * square + 0.02, y - square / 2 + 0.02),
                max(square - 0.04, 0.2 * square), max(square - 0.04, 0.2 * square),
                facecolor=(color, 0.55), edgecolor=color, lw=1,
            )
        )  # fmt: skip


def _draw_arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    arrow = {"arrowstyle": "-|>", "color": palette.MUTED, "lw": 1.2, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops=arrow)


def _write(ax: Axes, x: float, y: float, words: str, align: str = "center") -> None:
    ax.text(x, y, words, ha=align, va="center", fontsize=LABEL, color=palette.INK)
