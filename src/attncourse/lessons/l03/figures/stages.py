"""One head from input to output: every matrix on the way, as one strip."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from torch import Tensor

from attnlib.functional import scaled_dot_product_attention
from attnlib.plotting.cells import draw_arrow, draw_matrix, label_axis, short_pattern
from attnlib.plotting.checks import checked_labels, checked_tensor
from attnlib.plotting.page import drawn_for_phones, on_phone, text_width
from attnlib.plotting.style import new_figure, signed_norm
from attnlib.plotting.text import label_of
from attnlib.plotting.weights import draw_weights

GAP = 0.36  # inches between two stages; an arrow must fit
NARROW_GAP = 0.2  # inches between stages side by side on a phone, where arrows run downwards
LABELS = 0.65  # inches for the tokens at the left
MARGIN = 0.08  # inches at the right and at the bottom
HEADROOM = 0.34  # inches above each matrix, for its title
SHORT, LARGER = 4, 1.3  # numbers of so few letters are written so much larger
LARGEST = 0.4  # inches; the largest cell
ARROWS = [tuple(pair) for pair in ("XQ", "XK", "XV", "QS", "KS", "SA", "AO", "VO")]
# Inches: a cell, from one stage to the one below, and each stage's left side; and how many stages
# down each stands.
Layout = tuple[float, float, dict[str, float], dict[str, float]]


@drawn_for_phones
def plot_stages(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, tokens: Sequence[str] | None = None
) -> Figure:
    """Draw what one head computes: X, then Q, K and V, the scores, the weights and the output.

    The stages are computed here, by `scaled_dot_product_attention`, so they belong together. The
    weights are drawn on the scale of weights, everything else on one signed scale.

    Args:
        x: [T, d].
        w_q, w_k: [d, d_k].
        w_v: [d, d_v].
        tokens: T labels of the rows.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: tensors of other shapes, or labels that don't fit.
    """
    x = checked_tensor("x", x, "T d")
    w_q = checked_tensor("w_q", w_q, "d d_k", d=x.shape[1])
    w_k = checked_tensor("w_k", w_k, "d d_k", d=x.shape[1], d_k=w_q.shape[1])
    w_v = checked_tensor("w_v", w_v, "d d_v", d=x.shape[1])
    if tokens is not None:
        tokens = checked_labels("tokens", tokens, len(x), "row of x")
        tokens = [label_of(token, LABELS) for token in tokens]
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    output, weights = scaled_dot_product_attention(q, k, v)
    scores = q @ k.T / q.shape[1] ** 0.5
    stages = {"X": x, "Q": q, "K": k, "V": v, "S": scores, "A": weights, "O": output}
    titles = {"S": "scores", "A": "weights", "O": "output"}

    cell, row, lefts, downs = _below_each_other(stages) if on_phone() else _side_by_side(stages)
    width, height = text_width(), (max(downs.values()) + 1) * row + MARGIN

    figure, axes = new_figure(height=height, ncols=len(stages))
    figure.set_layout_engine("none")  # the places below are exact
    norm = signed_norm(max(t.abs().max().item() for name, t in stages.items() if name != "A"))
    panels = dict(zip(stages, axes, strict=True))
    for name, matrix in stages.items():
        ax, bottom = panels[name], height - (downs[name] + 1) * row
        size = matrix.shape[1] * cell / width, len(x) * cell / height
        ax.set_position((lefts[name] / width, bottom / height, *size))
        pattern = "{:.2f}" if name == "A" else short_pattern(matrix)
        letters = max(len(pattern.format(number)) for number in matrix.flatten().tolist())
        room = LARGER * cell if letters <= SHORT and not on_phone() else cell
        if name == "A":
            draw_weights(ax, matrix, None, None, cell=room, numbers=True)
        else:
            draw_matrix(ax, matrix, norm, room, pattern)
        ax.set_title(titles.get(name, name), pad=3)
    label_axis(panels["X"].yaxis, tokens, len(x), cell)
    for start, end in ARROWS:
        draw_arrow(figure, panels[start], panels[end], down=on_phone())
    return figure


def _side_by_side(stages: Mapping[str, Tensor]) -> Layout:
    """Return how the stages stand on a page, from left to right."""
    widths = {name: matrix.shape[1] for name, matrix in stages.items()}
    columns = {names: max(widths[name] for name in names) for names in ("X", "QKV", "S", "A", "O")}
    total = sum(columns.values())
    cell = min((text_width() - LABELS - MARGIN - 4 * GAP) / total, LARGEST)
    lefts: dict[str, float] = {}
    left = LABELS
    for names, width in columns.items():
        lefts |= dict.fromkeys(names, left)
        left = left + width * cell + GAP
    # The scores stand between Q and K, the output beside K.
    downs = {"X": 1, "Q": 0, "K": 1, "V": 2, "S": 0.5, "A": 0.5, "O": 1}
    return cell, len(stages["X"]) * cell + HEADROOM, lefts, downs


def _below_each_other(stages: Mapping[str, Tensor]) -> Layout:
    """Return how the stages stand on a phone: Q, K and V side by side below X, the rest below."""
    widths = {name: matrix.shape[1] for name, matrix in stages.items()}
    room, total = text_width() - 2 * MARGIN, sum(widths[name] for name in "QKV")
    cell = min((room - 2 * NARROW_GAP) / total, (room - LABELS) / widths["X"], LARGEST)
    lefts: dict[str, float] = {}
    left = (text_width() - total * cell - 2 * NARROW_GAP) / 2
    for name in "QKV":
        lefts[name] = left
        left += widths[name] * cell + NARROW_GAP
    middles = {name: lefts[name] + widths[name] * cell / 2 for name in "QKV"}
    middles["S"] = middles["A"] = (middles["Q"] + middles["K"]) / 2
    middles["O"] = (middles["A"] + middles["V"]) / 2
    lefts |= {name: middles[name] - widths[name] * cell / 2 for name in "SAO"}
    lefts["X"] = max(LABELS, (text_width() - widths["X"] * cell) / 2)
    downs: dict[str, float] = {"X": 0, "Q": 1, "K": 1, "V": 1, "S": 2, "A": 3, "O": 4}
    return cell, len(stages["X"]) * cell + HEADROOM + GAP, lefts, downs
