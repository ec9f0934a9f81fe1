"""Reading what a figure shows."""

from dataclasses import dataclass
from unittest import mock

import torch
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def panels(figure):
    """Return the axes that show a heatmap."""
    return [ax for ax in figure.axes if ax.images]


def images(figure):
    """Return the heatmaps."""
    return [ax.images[0] for ax in panels(figure)]


def drawn_maps(figure):
    """Return the numbers of each heatmap, whether they are drawn or blank."""
    return [torch.tensor(image.get_array().data) for image in images(figure)]


def drawn(image):
    """Return a heatmap's numbers, -1 where nothing is drawn."""
    return torch.tensor(image.get_array().filled(-1))


def hatched(ax):
    """Return from which to which row an axes is hatched."""
    boxes = [p.get_bbox() for p in ax.patches if p.get_hatch()]
    return [(box.y0, box.y1) for box in boxes]


def legend(figure):
    """Return the marks of the legends below a figure, by their texts."""
    pairs = [zip(box.texts, box.legend_handles, strict=True) for box in figure.legends]
    return {text.get_text(): mark for box in pairs for text, mark in box}


def ticks(axis):
    """Return the labels along an axis."""
    return [label.get_text() for label in axis.get_ticklabels()]


def written_in(ax):
    """Return what is written into the cells of a map: (row, column) -> text."""
    places = {text.get_position()[::-1]: text.get_text() for text in ax.texts}
    assert len(places) == len(ax.texts)  # no two numbers in one cell
    return places


def titles(figure):
    """Return the titles of the panels that have one."""
    return [ax.get_title() for ax in figure.axes if ax.get_title()]


@dataclass(frozen=True)
class Written:
    """A text as a figure shows it: its box in inches from the lower left, its size in points."""

    text: str
    box: Bbox
    size: float


def written(figure):
    """Return the texts that a figure draws, with their places."""
    found = []
    draw = Text.draw

    def note(text, renderer, *args, **kwargs):
        if text.get_visible() and text.get_text().strip():
            found.append(text)
        return draw(text, renderer, *args, **kwargs)

    with mock.patch.object(Text, "draw", note):
        figure.draw_without_rendering()
    inches = figure.dpi_scale_trans.inverted()
    return [
        Written(t.get_text(), t.get_window_extent().transformed(inches), t.get_fontsize())
        for t in found
    ]


def overlaps(texts, touch=0.02):
    """Return the pairs of written texts that lie on each other by more than `touch` inches."""
    pairs = [(a, b) for i, a in enumerate(texts) for b in texts[:i]]
    return [
        (a.text, b.text)
        for a, b in pairs
        if min(a.box.x1, b.box.x1) - max(a.box.x0, b.box.x0) > touch
        and min(a.box.y1, b.box.y1) - max(a.box.y0, b.box.y0) > touch
    ]
