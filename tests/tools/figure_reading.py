"""Reading what a figure shows."""

import torch


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
    """Return the texts of the legends below a figure."""
    return [text.get_text() for box in figure.legends for text in box.get_texts()]


def titles(figure):
    """Return the titles of the panels that have one."""
    return [ax.get_title() for ax in figure.axes if ax.get_title()]
