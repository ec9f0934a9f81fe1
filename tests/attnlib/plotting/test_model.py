"""The picture of the whole model: its parts in their order, and only the lit ones lit."""

import io
import re

import matplotlib
import pytest
from matplotlib.colors import same_color
from matplotlib.patches import Circle
from matplotlib.transforms import Bbox
from tools.figure_reading import overlaps, written

from attnlib import palette, plotting
from attnlib.plotting.model import LIT_COLOR, PARTS
from attnlib.plotting.page import phone_copy
from attnlib.plotting.style import STYLE


def drawing(parts, on_phone):
    figure = plotting.plot_model(parts)
    return phone_copy(figure) if on_phone else figure


def lit(figure):
    """Return what of all that is drawn is lit: texts, boxes, lines and arrows."""
    (ax,) = figure.axes
    found = []
    for artist in (*ax.texts, *ax.patches, *ax.lines):
        artist = getattr(artist, "arrow_patch", None) or artist
        outlined = hasattr(artist, "get_edgecolor")
        color = artist.get_edgecolor() if outlined else artist.get_color()
        found.append(same_color(color, LIT_COLOR))
    return found


def words(figure, *, lit):
    """Return the texts that are lit, or those that aren't, in reading order."""
    texts = [text for text in figure.axes[0].texts if text.get_text()]
    texts.sort(key=lambda text: (-text.get_position()[1], text.get_position()[0]))
    return [t.get_text() for t in texts if same_color(t.get_color(), LIT_COLOR) == lit]


def test_the_model_is_read_from_the_tokens_to_the_next_word():
    line = [
        "tokens", "embeddings", "norm", "attention", "norm", "feed-forward", "norm", "readout",
        "next word",
    ]  # fmt: skip
    page, phone = drawing((), False), drawing((), True)
    assert words(page, lit=False) == ["positions", "× L", *line]  # those two stand above it
    assert words(phone, lit=False) == [*line[:2], "positions", *line[2:4], "× L", *line[4:]]
    assert not any(lit(page)) and not any(lit(phone))


NAMED = {"norm": ["norm"] * 3, "blocks": ["× L"], "head": [], "residual": []}


@pytest.mark.parametrize("on_phone", [False, True])
def test_a_lit_part_is_lit_and_nothing_else(on_phone):
    figures = {part: drawing((part,), on_phone) for part in PARTS}
    separate = {part: lit(figure) for part, figure in figures.items()}
    for part, figure in figures.items():
        assert words(figure, lit=True) == NAMED.get(part, [part])
        assert 0 < sum(separate[part]) < len(separate[part]) / 2
    assert sum(separate["head"]) == 1  # square, one of the attention's
    assert separate["attention"][separate["head"].index(True)]
    (ax,) = figures["residual"].axes  # both skips, and where they are added
    circles = [patch for patch in ax.patches if isinstance(patch, Circle)]
    assert [same_color(circle.get_edgecolor(), LIT_COLOR) for circle in circles] == [0, 1, 1]
    skips = [line for line in ax.lines if same_color(line.get_color(), LIT_COLOR)]
    assert [len(skip.get_xdata()) for skip in skips].count(4) == 2


def test_all_its_colors_have_others_in_the_dark():
    svg = io.StringIO()
    with matplotlib.rc_context(STYLE):
        drawing(PARTS[:5], True).savefig(svg, format="svg")
    strokes = set(re.findall(r"(?:stroke|fill): (#\w+)", svg.getvalue()))
    assert strokes - {palette.PAPER} == {LIT_COLOR, palette.MUTED} <= set(palette.DARK)


@pytest.mark.parametrize("on_phone", [False, True])
def test_every_label_has_room_and_no_line_leaves_the_figure(on_phone):
    figure = drawing((), on_phone)
    (ax,), texts = figure.axes, written(figure)
    assert overlaps(texts) == []
    inches = figure.dpi_scale_trans.inverted()
    boxes = [patch.get_window_extent().transformed(inches) for patch in ax.patches]
    edges = [Bbox.from_extents(x, box.y0, x, box.y1) for box in boxes for x in (box.x0, box.x1)]
    for text in texts:
        assert figure.bbox_inches.count_contains(text.box.corners()) == 4
        assert not text.box.count_overlaps(edges)
    for line in ax.lines:
        assert ((line.get_xydata() >= 0) & (line.get_xydata() <= figure.get_size_inches())).all()
