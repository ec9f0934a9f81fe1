"""The whole model in one picture; each lesson lights up its part."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch

from attnlib import palette
from attnlib.checks import checked_list
from attnlib.plotting.style import new_figure

PARTS = (
    "tokens", "embeddings", "positions", "norm", "head", "attention", "residual", "feed-forward",
    "blocks", "readout",
)  # fmt: skip

LIT_COLOR = palette.KEY_COLOR  # as the widgets' controls
LABEL = 9.0  # points

# Inches. A phone shows the same picture.
WIDTH, HEIGHT = 2.98, 2.27
LINES = (2.12, 1.49, 0.88, 0.24)  # heights of the four lines
HALF = 0.135  # half the height of a box
RING = 0.085  # radius of a "+"
SKIP = 0.2  # from a line up to its skip
TURN = 0.37  # from a line up to where the stream comes back from the line above
START = 0.1  # x where the stream begins a line
INPUT_SUM, SUM = 1.83, 2.53  # x where positions and where a sub-layer's result are added
NORM, SECOND = (0.22, 0.67), 0.8  # left and right of a norm; left of the line's next box
HEADS, HEAD = (1.54, 1.67, 1.8), 0.1  # left of three heads; their size
FRAME = (0.0, 2.7), (0.68, 1.78)  # left and right, bottom and top of the repeated block

Pair = tuple[float, float]


def plot_model(lit: Iterable[str] = ()) -> Figure:
    """Draw a language model from its tokens to the next word, with some of its parts lit.

    It is a pre-norm decoder, like GPT-2. The stream runs from left to right and continues in the
    next line; a "+" adds two lines; the block in the frame comes L times.

    Args:
        lit: names of parts: "tokens", "embeddings", "positions", "norm" (all three), "head" (one
            head of the attention), "attention", "residual" (both skips and sums), "feed-forward",
            "blocks" (the frame), "readout". The others are pale.

    Returns:
        A figure that a phone shows whole; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: a single string, or an unknown name.
    """
    parts = _checked_parts(lit)
    figure, ax = new_figure(WIDTH, HEIGHT)
    figure.set_layout_engine("none")  # the axes fill the figure, so their unit is an inch
    ax.set_position((0, 0, 1, 1))
    ax.set(xlim=(0, WIDTH), ylim=(0, HEIGHT))
    ax.set_axis_off()
    pen = _Pen(ax, parts)
    first, second, third, last = LINES
    _draw_input(pen, first)
    pen.turn(INPUT_SUM, first, second)
    _draw_attention(pen, second, 2.36)
    _draw_sublayer(pen, second, 2.36)
    pen.turn(SUM, second, third)
    pen.box("feed-forward", third, (SECOND, 1.71))
    _draw_sublayer(pen, third, 1.71)
    pen.turn(SUM, third, last)
    pen.box("readout", last, (SECOND, 1.46))
    pen.way((1.46, last), (1.63, last))
    pen.label("", 2.0, last, "next word")
    pen.outline("blocks", *FRAME, dashed=True)
    pen.label("blocks", FRAME[0][1] + 0.15, sum(FRAME[1]) / 2, "× L")
    return figure


def _checked_parts(lit: Iterable[str]) -> list[str]:
    if isinstance(lit, str):
        raise TypeError(
            f"lit must be a tuple of names, got the string {lit!r}: is it ({lit!r},) with a comma?"
        )
    parts = checked_list("lit", lit)
    for part in parts:
        if not isinstance(part, str) or part not in PARTS:
            raise ValueError(f"lit must name parts of {', '.join(PARTS)}; got {part!r}")
    return parts


@dataclass
class _Pen:
    """Draws pieces of the picture, lit if their part is."""

    ax: Axes
    lit: list[str]

    def style(self, part: str) -> dict[str, Any]:
        """Return the style of a part's lines; the part "" is never lit."""
        lit = part in self.lit
        return {"color": LIT_COLOR if lit else palette.MUTED, "linewidth": 1.8 if lit else 0.8}

    def label(self, part: str, x: float, y: float, text: str) -> None:
        """Write a text centered at a place."""
        color = self.style(part)["color"]
        self.ax.text(x, y - 0.045, text, ha="center", color=color, fontsize=LABEL)

    def outline(
        self, part: str, sides: Pair, heights: Pair, *, tint: float = 0.12, dashed: bool = False
    ) -> None:
        """Draw a box without its name, filled with the color at opacity `tint` if it is lit."""
        (left, right), (bottom, top) = sides, heights
        style = self.style(part)
        box = FancyBboxPatch(
            (left, bottom), right - left, top - bottom, edgecolor=style.pop("color"), **style,
            facecolor=(LIT_COLOR, tint) if part in self.lit else "none",
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


def _draw_input(pen: _Pen, y: float) -> None:
    """Draw embeddings plus positions."""
    pen.box("tokens", y, (0.0, 0.57))
    pen.way((0.57, y), (0.72, y))
    pen.box("embeddings", y, (0.72, 1.6))
    pen.way((1.6, y), (INPUT_SUM - RING, y))
    pen.plus(INPUT_SUM, y)
    pen.way((2.06, y), (INPUT_SUM + RING, y))
    pen.box("positions", y, (2.06, 2.78))


def _draw_sublayer(pen: _Pen, y: float, right: float) -> None:
    """Draw a skip past a sub-layer that ends at `right`, and their sum."""
    pen.way((START, y + SKIP), (SUM, y + SKIP), (SUM, y + RING), part="residual")
    pen.way((right, y), (SUM - RING, y))
    pen.plus(SUM, y, part="residual")


def _draw_attention(pen: _Pen, y: float, right: float) -> None:
    """Draw the attention with three heads in it; "head" lights the first."""
    pen.outline("attention", (SECOND, right), (y - HALF, y + HALF))
    pen.label("attention", (SECOND + HEADS[0]) / 2, y, "attention")
    first = "head" if "head" in pen.lit else "attention"
    pen.label(first, (HEADS[-1] + HEAD + right) / 2, y, "heads")
    for part, left in zip((first, "attention", "attention"), HEADS, strict=True):
        pen.outline(part, (left, left + HEAD), (y - HEAD / 2, y + HEAD / 2), tint=1.0)
