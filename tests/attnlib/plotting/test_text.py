"""Texts of any script are drawn so that they can be read, or said to be unreadable."""

import warnings

import pytest
import torch
from matplotlib.cbook import is_math_text
from matplotlib.text import Text
from tools.figure_examples import EXAMPLES
from tools.figures import FIGURES

from attnlib import plotting
from attnlib.plotting import text as texts
from attnlib.plotting.text import COURSE_FONT, font_of, label_of, plain_text, title_lines


@pytest.fixture
def install(monkeypatch):
    """Return a function that installs fonts, {family: characters}; the course's has ASCII."""

    def has_character(family, character):
        if family == COURSE_FONT:
            return character.isascii() or character in "…␣↵⇥◌é\u0301\u200dעא"
        return character in fonts.get(family, "")

    def forget():
        texts._found_family.cache_clear()
        texts._warn_once.cache_clear()

    fonts = {}
    monkeypatch.setattr(texts, "has_character", has_character)
    forget()
    yield fonts.update
    forget()


def test_what_the_course_s_font_lacks_is_drawn_in_one_that_has_it(install):
    install({"Noto Sans CJK JP": "中国", "Symbola": "😀中"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert font_of("the", "中国") == {"family": [COURSE_FONT, "Noto Sans CJK JP"]}
        assert font_of("😀", "a") == {"family": [COURSE_FONT, "Symbola"]}
        assert font_of("the") == {"family": [COURSE_FONT]}
    assert plain_text("中国😀") == "中国😀"


def test_what_no_font_has_is_an_escape_and_is_told_once(install):
    install({"Noto Sans CJK JP": "中"})
    with pytest.warns(UserWarning, match="'国' of '中国'"):
        figure = plotting.plot_heads(torch.eye(2), ["中国", "ক"])
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["中\\u56fd", "\\u0995"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert font_of("中国") == {"family": [COURSE_FONT, "Noto Sans CJK JP"]}


@pytest.mark.parametrize(
    ("token", "drawn"),
    [
        (" the", "␣the"), ("the  ", "the␣␣"), ("a b", "a b"), ("\n", "↵"),
        ("a\tb", "a⇥b"), ("", ""), ("\x00", "\\x00"), ("\ud800", "\\ud800"), ("\xa0", "\\xa0"),
        ("\u0301", "◌\u0301"), ("e\u0301", "e\u0301"), ("$x$", r"\$x\$"),
        ("\\$", "\\\\$"), ("中\u200d国", "\\u4e2d\\u200d\\u56fd"),
    ],
)  # fmt: skip
def test_every_character_of_a_token_is_seen(install, token, drawn):
    install({})
    assert plain_text(label_of(token)) == drawn


def test_a_label_has_the_room_that_it_is_given(install):
    install({"Symbola": "中"})
    assert label_of("x" * 100, room=0.75) == "x" * 9 + "…"
    assert label_of("中" * 100, room=0.75) == "中" * 4 + "…"  # as wide as two letters each
    assert label_of("e\u0301" * 10, room=0.75) == "e\u0301" * 10  # an accent has no width
    assert label_of("國" * 9, room=0.75) == "國…"  # which no font has: its escape is cut nowhere


def test_titles_are_broken_where_they_are_wider_than_their_panel():
    assert title_lines("a title", 2.0) == ["a title"]
    assert title_lines("one\ntwo", 2.0) == ["one", "two"]
    assert title_lines("said by one head", 1.0) == ["said by one", "head"]
    assert len(title_lines("word " * 100, 1.0)) == 3


NOT_WRITTEN = {"numbers", "highlighted"}  # a pattern and names of parts: they say what is drawn


def spoiled(value):
    """Return an argument with mathematics in each of its texts."""
    if isinstance(value, str):
        return f"$x${value}$y$"
    if isinstance(value, list):
        return [spoiled(item) for item in value]
    if isinstance(value, dict):
        return {spoiled(title): spoiled(item) for title, item in value.items()}
    return value


@pytest.mark.parametrize("name", EXAMPLES)
def test_dollars_are_text_in_every_figure(name):
    good = EXAMPLES[name].arguments
    arguments = {k: v if k in NOT_WRITTEN else spoiled(v) for k, v in good.items()}
    figure = FIGURES[name](**arguments)
    figure.draw_without_rendering()
    texts = [text.get_text() for text in figure.findobj(Text)]
    ours = [text for text in texts if "x" in text and "y" in text and "$" in text]
    assert not [text for text in ours if is_math_text(text)]
    assert bool(ours) == ("$x$" in str(arguments))
