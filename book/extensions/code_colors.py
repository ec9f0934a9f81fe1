"""Code has a mark where its color changes, and no others.

Pygments marks every name, bracket and space, though both styles of the theme show them as plain
text, and a string in up to four pieces of one color: half of all elements of a lesson. Here what
looks like plain text isn't marked, and a kind that looks like the one it belongs to is marked as
that, so that neighbors become one. What a session prints keeps its marks: scripts ask for them.
"""

from collections.abc import Iterable
from functools import cache, partial

from pygments.formatters import HtmlFormatter
from pygments.style import StyleMeta
from pygments.styles import get_style_by_name
from pygments.token import STANDARD_TYPES, Generic, Text, _TokenType

Styles = tuple[StyleMeta, ...]


@cache
def plainest(kind: _TokenType, styles: Styles) -> _TokenType:
    """Return the most general kind of token that looks like this one in all styles."""
    if kind not in STANDARD_TYPES or kind in Generic:
        return kind
    looks = [style.style_for_token(kind) for style in styles]

    def looks_alike(other: _TokenType) -> bool:
        return [style.style_for_token(other) for style in styles] == looks

    if looks_alike(Text):
        return Text
    while kind.parent and looks_alike(kind.parent):
        kind = kind.parent
    return kind


class FewMarks(HtmlFormatter):
    """Writes code as HTML; neighbors of one kind share their mark."""

    def __init__(self, themes: Styles, **options):
        """Take the styles of the page's themes, beside what any formatter takes."""
        super().__init__(**options)
        self.themes = themes

    def format_unencoded(self, tokensource: Iterable[tuple[_TokenType, str]], outfile) -> None:
        """Write tokens, each as the most general kind that looks like it."""
        alike = ((plainest(kind, self.themes), text) for kind, text in tokensource)
        super().format_unencoded(alike, outfile)


def use_few_marks(app):
    """Have the builder write code so, in the styles that the theme's sheet is made of."""
    if app.builder.format != "html":
        return
    options = app.builder.theme.get_options(app.config.html_theme_options)
    names = (options[f"pygments_{theme}_style"] for theme in ("light", "dark"))
    styles = tuple(map(get_style_by_name, names))
    app.builder.highlighter.formatter = partial(FewMarks, styles)


def setup(app):
    """Run when the builder and its theme are there."""
    app.connect("builder-inited", use_few_marks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
