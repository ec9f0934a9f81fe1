"""The whole model in one picture; each lesson lights up its part."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch

from attnlib import palette
from attnlib.checks import checked_list
from attnlib.plotting.page import drawn_for_phones, on_phone
from attnlib.plotting.style import new_figure

PARTS = (
    "tokens", "embeddings", "positions", "norm", "head", "attention", "residual", "feed-forward",
    "blocks", "readout",
)  # fmt: skip

LIT_COLOR = palette.KEY_COLOR  # as the widgets' controls
LABEL, SMALL_LABEL = 9.0, 8.0  # points, on a phone and in the one line of a page

# Inches.
HALF = 0.135  # half the height of a box
RING = 0.085  # radius of a "+"
SKIP = 0.2  # from a line up to its skip
HEAD, HEADS_APART = 0.1, 0.13  # size of a small head; from the left of one to that of the next

# A page shows one line, with the positions above it.
STRIP = (7.2, 0.72)  # width and height
LINE, ABOVE = 0.17, 0.56  # heights of the line and of the positions

# A phone shows four lines.
SCREEN = (2.98, 2.27)  # width and height
LINES = (2.12, 1.49, 0.88, 0.24)  # heights of the lines
TURN = 0.37  # from a line up to where the stream comes back from the line above
START = 0.1  # x where the stream begins a line
INPUT_SUM, SUM = 1.83, 2.53  # x where positions and where a sub-layer's result are added
NORM, SECOND = (0.22, 0.67), 0.8  # left and right of a norm; left of the line's next box
FRAME = (0.0, 2.7), (0.68, 1.78)  # left and right, bottom and top of the repeated block

Pair = tuple[float, float]


@drawn_for_phones
def plot_model(highlighted: Iterable[str] = ()) -> Figure:
    """Draw a language model from its tokens to the next word, with some of its parts lit.

    It is a pre-norm decoder, like GPT-2. The stream runs from left to right, on a phone in four
    lines; a "+" adds two lines; the block in the frame comes L times.

    Args:
        highlighted: names of parts: "tokens", "embeddings", "positions", "norm" (all three), "head"
            (one head of the attention), "attention", "residual" (both skips and sums),
            "feed-forward", "blocks" (the frame), "readout". The others are pale.

    Returns:
        A figure as wide as the text and lower than three lines of it; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: a single string, or an unknown name.
    """
    parts = _checked_parts(highlighted)
    size = SCREEN if on_phone() else STRIP
    figure, ax = new_figure(*size)
    figure.set_layout_engine("none")  # the axes fill the figure, so their unit is an inch
    ax.set_position((0, 0, 1, 1))
    ax.set(xlim=(0, size[0]), ylim=(0, size[1]))
    ax.set_axis_off()
    if on_phone():
        _draw_lines(_Pen(ax, parts, LABEL))
    else:
        _draw_strip(_Pen(ax, parts, SMALL_LABEL))
    return figure


def _checked_parts(highlighted: Iterable[str]) -> list[str]:
    if isinstance(highlighted, str):
        raise TypeError(
            f"highlighted must be a tuple of names, got the string {highlighted!r}: is it "
            f"({highlighted!r},) with a comma?"
        )
    parts = checked_list("highlighted", highlighted)
    for part in parts:
        if not isinstance(part, str) or part not in PARTS:
            raise ValueError(f"highlighted must name parts of {', '.join(PARTS)}; got {part!r}")
    return parts


@dataclass
class _Pen:
    """Draws pieces of the picture, lit if their part is."""

    ax: Axes
    highlighted: list[str]
    size: float  # of labels, in points

    def style(self, part: str) -> dict[str, Any]:
        """Return the style of a part's lines; the part "" is never lit."""
        lit = part in self.highlighted
        return {"color": LIT_COLOR if lit else palette.MUTED, "linewidth": 1.8 if lit else 0.8}

    def label(self, part: str, x: float, y: float, text: str) -> None:
        """Write a text centered at a place."""
        color = self.style(part)["color"]
        self.ax.text(x, y - self.size / 200, text, ha="center", color=color, fontsize=self.size)

    def outline(
        self, part: str, sides: Pair, heights: Pair, *, tint: float = 0.12, dashed: bool = False
    ) -> None:
        """Draw a box without its name, filled with the color at opacity `tint` if it is lit."""
        (left, right), (bottom, top) = sides, heights
        style = self.style(part)
        box = FancyBboxPatch(
            (left, bottom), right - left, top - bottom, edgecolor=style.pop("color"), **style,
            facecolor=(LIT_COLOR, tint) if part in self.highlighted else "none",
            boxstyle="round,pad=0,rounding_size=0.03", linestyle="dashed" if dashed else "solid",
        )  # fmt: skip
        self.ax.add_patch(box)

    def box(self, part: str, y: float, sides: Pair) -> None:
        """Draw a box with its name."""
        self.outline(part, sides, (y - HALF, y + HALF))
        self.label(part, sum(sides) / 2, y, part)

    def way(self, *places: Pair, part: str = "") -> None:
        """Draw straight lines from place to place, with an arrow's head at the end."""
        style = self.style(part)
        self.ax.plot(*zip(*places, strict=True), **style, solid_joinstyle="miter")
        head = {"arrowstyle": "-|>,head_width=0.15,head_length=0.3", "shrinkA": 0, "shrinkB": 0}
        self.ax.annotate("", places[-1], places[-2], arrowprops={**style, **head})

    def turn(self, x: float, y: float, below: float) -> None:
        """Lead the stream from a place on one line to the first norm on the next."""
        height = below + TURN
        start = [(x, y - RING), (x, height), (START, height), (START, below)]
        self.way(*start, (NORM[0], below))
        self.box("norm", below, NORM)
        self.way((NORM[1], below), (SECOND, below))

    def plus(self, x: float, y: float, part: str = "") -> None:
        """Draw where two lines are added."""
        style = self.style(part)
        for dx, dy in ((RING / 2, 0.0), (0.0, RING / 2)):
            self.ax.plot([x - dx, x + dx], [y - dy, y + dy], **style)
        self.ax.add_patch(Circle((x, y), RING, fill=False, **style))


def _draw_strip(pen: _Pen) -> None:
    """Draw the model in one line."""
    y = LINE
    pen.box("tokens", y, (0.01, 0.46))
    pen.way((0.46, y), (0.54, y))
    pen.box("embeddings", y, (0.54, 1.24))
    pen.way((1.24, y), (1.39 - RING, y))
    pen.box("positions", ABOVE, (1.09, 1.69))
    pen.way((1.39, ABOVE - HALF), (1.39, y + RING))
    pen.plus(1.39, y)
    pen.way((1.39 + RING, y), (1.75, y))
    pen.box("norm", y, (1.75, 2.15))
    pen.way((2.15, y), (2.23, y))
    _draw_attention(pen, y, (2.23, 3.28))
    _draw_sum(pen, y, 1.65, 3.28, 3.43)
    pen.way((3.43 + RING, y), (3.69, y))
    pen.box("norm", y, (3.69, 4.09))
    pen.way((4.09, y), (4.17, y))
    pen.box("feed-forward", y, (4.17, 4.96))
    _draw_sum(pen, y, 3.59, 4.96, 5.11)
    pen.way((5.11 + RING, y), (5.55, y))
    pen.outline("blocks", (1.58, 5.27), (0.01, y + SKIP + 0.04), dashed=True)
    pen.label("blocks", 5.18, ABOVE, "× L")
    pen.box("norm", y, (5.55, 5.95))
    pen.way((5.95, y), (6.03, y))
    pen.box("readout", y, (6.03, 6.55))
    pen.way((6.55, y), (6.65, y))
    pen.label("", 6.91, y, "next word")


def _draw_lines(pen: _Pen) -> None:
    """Draw the model in four lines."""
    first, second, third, last = LINES
    pen.box("tokens", first, (0.0, 0.57))
    pen.way((0.57, first), (0.72, first))
    pen.box("embeddings", first, (0.72, 1.6))
    pen.way((1.6, first), (INPUT_SUM - RING, first))
    pen.plus(INPUT_SUM, first)
    pen.way((2.06, first), (INPUT_SUM + RING, first))
    pen.box("positions", first, (2.06, 2.78))
    pen.turn(INPUT_SUM, first, second)
    _draw_attention(pen, second, (SECOND, 2.1))
    _draw_sum(pen, second, START, 2.1, SUM)
    pen.turn(SUM, second, third)
    pen.box("feed-forward", third, (SECOND, 1.71))
    _draw_sum(pen, third, START, 1.71, SUM)
    pen.turn(SUM, third, last)
    pen.box("readout", last, (SECOND, 1.46))
    pen.way((1.46, last), (1.63, last))
    pen.label("", 2.0, last, "next word")
    pen.outline("blocks", *FRAME, dashed=True)
    pen.label("blocks", FRAME[0][1] + 0.15, sum(FRAME[1]) / 2, "× L")


def _draw_sum(pen: _Pen, y: float, start: float, end: float, x: float) -> None:
    """Draw a skip from `start` past a sub-layer that ends at `end`, and their sum at `x`."""
    pen.way((start, y), (start, y + SKIP), (x, y + SKIP), (x, y + RING), part="residual")
    pen.way((end, y), (x - RING, y))
    pen.plus(x, y, part="residual")


def _draw_attention(pen: _Pen, y: float, sides: Pair) -> None:
    """Draw the attention with three heads in it; "head" lights the first."""
    left, right = sides
    first = right - 3 * HEADS_APART - 0.04
    pen.outline("attention", sides, (y - HALF, y + HALF))
    pen.label("attention", (left + first) / 2, y, "attention")
    for i, part in enumerate(
        ("head" if "head" in pen.highlighted else "attention", *["attention"] * 2)
    ):
        x = first + i * HEADS_APART
        pen.outline(part, (x, x + HEAD), (y - HEAD / 2, y + HEAD / 2), tint=1.0)
