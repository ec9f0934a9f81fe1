"""Scores of several seeds, each beside what the best fixed offset reaches."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from torch import Tensor

from attnlib import palette
from attnlib.plotting.checks import checked_items, checked_mapping, checked_number, checked_tensor
from attnlib.plotting.layout_limits import require_height
from attnlib.plotting.page import PHONE_WIDTH, drawn_for_phones
from attnlib.plotting.style import new_figure
from attnlib.plotting.text import font_of, label_of, plain_text

ROW = 0.27  # inches


@drawn_for_phones
def plot_beside_baselines(scores: Mapping[str, Tensor], baselines: Sequence[float]) -> Figure:
    """Draw a line per pattern: a dot for every seed's score, and a bar at the baseline.

    Args:
        scores: what was scored -> shares from 0 to 1, one per seed.
        baselines: for each the share that the best fixed offset reaches.

    Returns:
        A figure as wide as the text; see `attnlib.plotting`.

    Raises:
        TypeError, ValueError: something that isn't a tensor [seeds], shares below 0 or above 1, or
            more lines than a figure of 24 inches holds.
    """
    lines = {
        name: checked_tensor(f"scores[{name!r}]", values, "seeds")
        for name, values in checked_mapping("scores", scores, "tensor").items()
    }
    found = checked_items("baselines", baselines, len(lines), "line of scores")
    bars = [checked_number("each of baselines", bar) for bar in found]
    for name, values in lines.items():
        _require_shares(f"scores[{name!r}]", values.tolist())
    _require_shares("baselines", bars)
    height = ROW * len(lines) + 1.0
    require_height("scores", height, "draw fewer lines at a time")
    figure, ax = new_figure(height=height)
    for place, (values, bar) in enumerate(zip(lines.values(), bars, strict=True)):
        options = {"color": palette.head_color(0), "markersize": 5, "alpha": 0.75}
        dots = ax.plot(values, [place] * len(values), "o", linestyle="none", **options)
        ax.plot([bar, bar], [place - 0.36, place + 0.36], color=palette.INK, linewidth=2)
    labels = [label_of(name, PHONE_WIDTH / 2) for name in lines]
    ax.set_yticks(range(len(labels)), [plain_text(label) for label in labels], **font_of(*labels))
    ax.set(xlim=(-0.02, 1.04), ylim=(len(labels) - 0.5, -0.5), xlabel="mass on the true partner")
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    figure.legend(
        [dots[0], ax.lines[1]], ["best head, a dot per seed", "best fixed offset"],
        loc="outside upper left", ncols=1,
    )  # fmt: skip
    return figure


def _require_shares(name: str, values: Sequence[float]) -> None:
    if min(values) < 0 or max(values) > 1:
        raise ValueError(
            f"{name} must hold shares from 0 to 1, got {min(values):g} to {max(values):g}"
        )
