"""Code has a mark where its color changes, and looks as Pygments marks it."""

import re

import pytest
from code_colors import FewMarks, plainest
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonConsoleLexer, PythonLexer
from pygments.styles import get_style_by_name
from pygments.token import STANDARD_TYPES, Generic, Text, string_to_tokentype

NAMES = ["a11y-high-contrast-light", "a11y-high-contrast-dark"]
STYLES = tuple(map(get_style_by_name, NAMES))
CODE = '''import torch.nn as nn

@cache
def split(x, num_heads: int = 4):  # [B, T, d]
    """Cut x."""
    return f"{x:.2f} of {len(x)}" + "<b>" if x is not None else self.y @ 2.5
'''
MARK = re.compile(r'<span class="(\w+)">([^<]*)</span>')


def written(code, lexer=PythonLexer):
    return highlight(code, lexer(), FewMarks(STYLES))


@pytest.mark.parametrize("kind", sorted(map(str, STANDARD_TYPES)))
def test_a_kind_is_marked_as_one_that_looks_the_same(kind):
    kind = string_to_tokentype(kind.removeprefix("Token").removeprefix("."))
    shown = plainest(kind, STYLES)
    assert all(s.style_for_token(shown) == s.style_for_token(kind) for s in STYLES)
    assert shown is Text or kind in shown


def test_the_text_is_the_same():
    plain = [
        re.sub("<[^>]*>", "", html)
        for html in (written(CODE), highlight(CODE, PythonLexer(), HtmlFormatter()))
    ]
    assert plain[0] == plain[1]


def test_what_looks_like_plain_text_has_no_mark_and_neighbors_share_theirs():
    marks = MARK.findall(written(CODE))
    assert not {"n", "p", "w", "nn", "s2", "si", "sa", "mi", "mf", "kn"} & {
        kind for kind, _ in marks
    }
    assert ("k", "import") in marks and ("nf", "split") in marks and ("c", "# [B, T, d]") in marks
    assert ("s", '"""Cut x."""') in marks
    assert not re.search(r'class="(\w+)">[^<]*</span><span class="\1"', written(CODE))
    assert len(marks) <= 26  # of 60 without it


def test_what_a_session_prints_keeps_its_marks():
    """The button that copies a listing leaves prompts and outputs out by their marks."""
    assert '<span class="gp">&gt;&gt;&gt; </span>' in written(">>> 1 + 1\n2\n", PythonConsoleLexer)
    assert plainest(Generic.Output, STYLES) is Generic.Output
