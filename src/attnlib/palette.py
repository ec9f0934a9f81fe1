"""The colors of the course, as plain data.

Figures, widgets and the site's style sheet take their colors from here, so that a head, a query or
a weight looks the same everywhere.
"""

from attnlib.checks import require_count

# Attention weights from 0 to 1: viridis, which is perceptually uniform and readable for
# color-blind readers. Drawing code interpolates linearly between the 17 stops.
WEIGHT_SCALE = [
    "#440154", "#48186a", "#472d7b", "#424086", "#3b528b", "#33638d", "#2c728e", "#26828e",
    "#21918c", "#1fa088", "#28ae80", "#3fbc73", "#5ec962", "#84d44b", "#addc30", "#d8e219",
    "#fde725",
]  # fmt: skip

# Tensors that are not attention, from negative over zero to positive.
SIGNED_SCALE = ["#8c510a", "#d8a24a", "#f5f1e8", "#5aa9a0", "#01665e"]

# Head i is always HEAD_COLORS[i % 8].
HEAD_COLORS = [
    "#0a8f6c", "#c2569b", "#c98500", "#3f93cf", "#7a62c9", "#b5534f", "#6d8f1f", "#5f7480",
]  # fmt: skip

QUERY_COLOR = "#c2500a"  # who looks: rows
KEY_COLOR = "#0a68a8"  # what is looked at: columns

INK = "#1f2328"  # text and axes
MUTED = "#626b75"  # secondary text, grid, masked cells
PAPER = "#ffffff"  # figure background
LINE = "#d0d7de"  # hairlines

# What each color becomes in a figure's dark copy. Colors that read well on both stay.
DARK = {
    INK: "#e6e8eb",
    MUTED: "#9aa4af",
    PAPER: "none",
    LINE: "#4a525c",
    QUERY_COLOR: "#f08a4b",
    KEY_COLOR: "#5cb3f0",
    HEAD_COLORS[0]: "#2fc79d",
    HEAD_COLORS[1]: "#e58cc6",
    HEAD_COLORS[2]: "#e8ab3a",
    HEAD_COLORS[3]: "#72b8ea",
    HEAD_COLORS[4]: "#a994ee",
    HEAD_COLORS[5]: "#e08580",
    HEAD_COLORS[6]: "#a3c64f",
    HEAD_COLORS[7]: "#9fb2bd",
}


def head_color(head: int) -> str:
    """Return the color of head number `head` (0-based), the same in every figure and widget.

    Raises:
        TypeError, ValueError: `head` isn't a whole number of at least 0.
    """
    require_count("head", head)
    return HEAD_COLORS[head % len(HEAD_COLORS)]
