"""The picture of the whole model: its parts in their order, and only the lit ones lit."""

import io
import re

import matplotlib
import pytest
from matplotlib.colors import same_color
from matplotlib.patches import Circle
from matplotlib.transforms import Bbox

from attnlib import palette, plotting
from attnlib.plotting.model import LABEL, LIT_COLOR, PARTS
from attnlib.plotting.page import phone_copy
from attnlib.plotting.style import STYLE

PHONE = 312  # pixels; the width of the text on a phone of 360
PIXELS = 96 / 72  # per point


def artists(figure):
    """Return all that is drawn: texts, boxes, lines and arrows."""
    (ax,) = figure.axes
    return [*ax.texts, *ax.patches, *ax.lines]


def color_of(artist):
    arrow = getattr(artist, "arrow_patch", None)
    if arrow is not None:
        return arrow.get_edgecolor()
    return artist.get_edgecolor() if hasattr(artist, "get_edgecolor") else artist.get_color()


def lit(figure):
    return [same_color(color_of(artist), LIT_COLOR) for artist in artists(figure)]


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
    page = plotting.plot_model()
    assert words(page, lit=False) == ["positions", "× L", *line]  # those two stand above it
    on_phone = words(phone_copy(page), lit=False)
    assert on_phone == [*line[:2], "positions", *line[2:4], "× L", *line[4:]]


@pytest.mark.parametrize(
    ("part", "named"),
    [
        *((part, [part]) for part in ("tokens", "embeddings", "positions", "readout")),
        ("feed-forward", ["feed-forward"]),
        ("norm", ["norm"] * 3),
        ("attention", ["attention"]),
        ("blocks", ["× L"]),
        ("head", []),
        ("residual", []),
    ],
)
def test_a_lit_part_is_lit_and_nothing_else(part, named):
    figure = plotting.plot_model((part,))
    assert words(figure, lit=True) == named
    assert 0 < sum(lit(figure)) < len(lit(figure)) / 2


def test_one_head_is_one_of_the_attention_s():
    head, attention = (lit(plotting.plot_model((part,))) for part in ("head", "attention"))
    assert sum(head) == 1  # square
    assert all(whole for one, whole in zip(head, attention, strict=True) if one)
    assert lit(plotting.plot_model(("head", "attention"))) == attention


def test_the_residual_is_both_skips_and_where_they_are_added():
    ax = plotting.plot_model(("residual",)).axes[0]
    circles = [patch for patch in ax.patches if isinstance(patch, Circle)]
    assert [same_color(circle.get_edgecolor(), LIT_COLOR) for circle in circles] == [0, 1, 1]
    skips = [line for line in ax.lines if len(line.get_xdata()) == 4]
    assert [same_color(skip.get_color(), LIT_COLOR) for skip in skips] == [1, 1]


def test_parts_are_lit_together_and_without_any_the_whole_is_pale():
    separate = [lit(plotting.plot_model((part,))) for part in PARTS]
    assert lit(plotting.plot_model(PARTS)) == [any(alike) for alike in zip(*separate, strict=True)]
    assert not any(lit(plotting.plot_model()))


def test_a_phone_shows_it_whole_and_in_the_dark_too():
    svg = io.StringIO()
    with matplotlib.rc_context(STYLE):
        phone = phone_copy(plotting.plot_model(PARTS[:5]))
        phone.savefig(svg, format="svg", bbox_inches="tight")
    width = float(re.search(r'width="([\d.]+)pt"', svg.getvalue())[1])
    assert width * PIXELS <= PHONE
    assert LABEL * PIXELS >= 9
    strokes = set(re.findall(r"(?:stroke|fill): (#\w+)", svg.getvalue()))
    assert strokes - {palette.PAPER} == {LIT_COLOR, palette.MUTED} <= set(palette.DARK)


@pytest.mark.parametrize("figure", [plotting.plot_model(), phone_copy(plotting.plot_model())])
def test_every_label_has_room(figure):
    figure.draw_without_rendering()
    ax = figure.axes[0]
    words = [text.get_window_extent() for text in ax.texts if text.get_text()]
    boxes = [patch.get_window_extent() for patch in ax.patches]
    edges = [Bbox.from_extents(x, box.y0, x, box.y1) for box in boxes for x in (box.x0, box.x1)]
    for word in words:
        assert figure.bbox.x0 <= word.x0 and word.x1 <= figure.bbox.x1
        assert not any(word.overlaps(other) for other in words if other is not word)
        assert not any(word.overlaps(edge) for edge in edges)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ("head", TypeError, r"lit must be a tuple of names, got the string 'head'.*\('head',\)"),
        (3, TypeError, "lit must be a list, got int"),
        (("haed",), ValueError, "lit must name parts of tokens, .*readout; got 'haed'"),
        ((None,), ValueError, "lit must name parts of .*; got None"),
    ],
)
def test_what_is_no_part_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        plotting.plot_model(wrong)
