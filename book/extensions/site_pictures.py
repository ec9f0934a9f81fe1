"""The site's icon as pictures: for a phone's home screen, and beside a link in a chat.

Neither takes SVG. So the icon's squares are drawn once more.
"""

import re
import textwrap
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

TOUCH_ICON, CARD = "touch-icon.png", "card.png"
SIDE = 8  # of the icon, in its own units
GROUND = re.compile(r'<rect [^>]*fill="(#\w+)"')
SQUARES = re.compile(r'<path fill="(#\w+)" d="([^"]+)"')
SQUARE = re.compile(r"M(\d) (\d)h(\d)v\d")


def squares(icon: Path) -> list[tuple[str, int, int, int]]:
    """Return the color, the corner and the side of each square, the largest first."""
    text = icon.read_text(encoding="utf-8")
    found = [(GROUND.search(text)[1], 0, 0, SIDE)]
    for color, path in SQUARES.findall(text):
        found += [(color, *map(int, numbers)) for numbers in SQUARE.findall(path)]
    return found


def draw_icon(figure: Figure, box: tuple[float, float, float, float], icon: Path):
    """Draw the icon into a part of a figure: left, bottom, width, height."""
    axes = figure.add_axes(box, xlim=(0, SIDE), ylim=(SIDE, 0))
    axes.axis("off")
    for color, x, y, side in squares(icon):
        axes.add_patch(Rectangle((x, y), side, side, color=color, linewidth=0))


def draw_pictures(icon: Path, title: str, folder: Path):
    """Write both, the card in the size that chats ask for, 1200 x 630."""
    figure = Figure(figsize=(1.8, 1.8))
    draw_icon(figure, (0, 0, 1, 1), icon)
    figure.savefig(folder / TOUCH_ICON, dpi=100, metadata={"Software": None})
    card = Figure(figsize=(12, 6.3), facecolor="white")
    draw_icon(card, (0.06, 0.5 - 0.4 / 6.3 * 5.25, 0.35, 0.8 / 6.3 * 5.25), icon)
    card.text(0.46, 0.5, textwrap.fill(title, 18), fontsize=44, va="center")
    card.savefig(folder / CARD, dpi=100, metadata={"Software": None})
