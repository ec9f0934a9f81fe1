"""What is to be seen of weights: their colors on a canvas, arcs, and two decimals."""

import numpy as np
import torch

from attnlib import palette


def short(number, digits=2) -> str:
    """Return a number as widgets write weights: "0.25"."""
    return f"{number:.{digits}f}"


def tiny(number) -> str:
    """Return a number as small cells and tiles have it: ".25"."""
    return short(number).removeprefix("0")


def painted(canvas) -> torch.Tensor:
    """Return the pixels [rows, columns, 4] of a canvas."""
    pixels, *sizes = canvas.evaluate("""(c) => {
        const {data} = c.getContext("2d").getImageData(0, 0, c.width, c.height);
        return [Array.from(data), c.height, c.width];
    }""")
    return torch.tensor(pixels, dtype=torch.float64).view(*sizes, 4)


def color_of(shares: torch.Tensor) -> torch.Tensor:
    """Return the palette's colors [..., 3] of shares, linear between its stops."""
    stops = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in palette.WEIGHT_SCALE])
    places = np.linspace(0, 1, len(stops))
    colors = [np.interp(shares.numpy(), places, stops[:, channel]) for channel in range(3)]
    return torch.from_numpy(np.stack(colors, -1))


def shows(canvas, shares: torch.Tensor, within: float = 1, where=...) -> bool:
    """Return whether a canvas has the colors of shares, which are whole numbers in a canvas."""
    difference = painted(canvas)[..., :3] - color_of(shares)
    return bool(difference[where].abs().max() <= within)


def arcs(page) -> torch.Tensor:
    """Return the weights of all arcs on a page."""
    weights = page.locator(".attn-arc").evaluate_all(
        "all => all.map((arc) => Number(arc.style.getPropertyValue('--weight')))"
    )
    return torch.tensor(weights, dtype=torch.float64)
