r"""Writing tokens and other texts of the caller so that every character can be read.

Matplotlib would read dollar signs as mathematics, and draw a box for what its font lacks. Here
characters that the course's font lacks are drawn in other installed fonts, and those that no font
has as an escape such as \u4e2d, with a warning.
"""

import re
import textwrap
import unicodedata
import warnings
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.legend import Legend

from attnlib.plotting.page import on_phone, text_width
from attnlib.plotting.style import COURSE_FONT, FALLBACK_FONT

# Fonts for other scripts, on Linux, macOS and Windows; after them every Noto Sans is tried. Others
# aren't: macOS's LastResort claims to have every character, and draws a box.
OTHER_FONTS = [
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "WenQuanYi Zen Hei",
    "Hiragino Sans GB", "Hiragino Sans", "Apple SD Gothic Neo", "Arial Unicode MS",
    "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Leelawadee UI", "Nirmala UI", "Ebrima",
    "Noto Emoji", "Symbola", "Segoe UI Emoji", "Segoe UI Symbol",
]  # fmt: skip

LETTER = 0.075  # inches; about the width of a label's letter
LONGEST_LABEL = 1.8  # inches; longer ones would leave no room for the maps
TITLE_LETTER = 0.079  # inches
MOST_TITLE_LINES = 3

PICTURES = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥"})
PICTURED = re.compile(r"^ +| +\Z|[\n\t]")  # spaces at the ends, line breaks and tabs
# Joiners and variation selectors, which shape their neighbors and are invisible themselves.
JOINERS = {"\u200c", "\u200d", *map(chr, range(0xFE00, 0xFE10))}


def plain_text(text: str) -> str:
    """Escape dollar signs and what can't be drawn, for matplotlib; line breaks break lines."""
    drawn = [*map(_drawable, text)]
    if drawn != [*text]:  # a joiner beside an escape would join a letter of the escape
        drawn = [_escape(c) if c in JOINERS else c for c in drawn]
    return "".join(drawn).replace("$", r"\$")


def font_of(*texts: str) -> dict[str, Any]:
    """Return the fonts for these texts, as keywords of a matplotlib text.

    Warns about characters that no installed font has.
    """
    families = [COURSE_FONT]
    for character in dict.fromkeys("".join(texts)):
        family = _family_with(character)
        if family is not None and family not in families:
            families.append(family)
    _warn_of_unreadable(texts)
    return {"family": families}


def label_of(token: str, room: float = LONGEST_LABEL) -> str:
    """Return a token as a label of at most `room` inches that shows every character.

    Spaces at its ends, line breaks and tabs become symbols; a lone accent stands on a circle.
    """
    letters = max(int(room / LETTER), 2)
    label = PICTURED.sub(lambda found: found[0].translate(PICTURES), token)
    if label and set(label) <= JOINERS:
        label = "".join(map(_escape, label))
    elif label and unicodedata.category(label[0]).startswith("M"):
        label = "◌" + label
    if _letters(label) > letters:
        kept = label[: 4 * letters]  # enough for three accents on each letter
        while _letters(kept) >= letters:
            kept = kept[:-1]
        label = kept + "…"
    return label


def longest(labels: Sequence[str]) -> int:
    """Return the width of the longest label in letters; those of some scripts count twice."""
    return max(map(_letters, labels))


def set_title(ax: Axes, title: str, width: float, **style: Any) -> None:
    """Write a title over a panel of `width` inches, in lines; style goes to `Axes.set_title`."""
    text = "\n".join(title_lines(title, width))
    ax.set_title(plain_text(text), **font_of(text), **style)


def title_lines(title: str, width: float) -> list[str]:
    """Return the lines of a title over a panel of `width` inches, at most three."""
    letters = width / TITLE_LETTER
    lines = []
    for line in title.splitlines():
        wide = _letters(line) / max(len(line), 1)
        lines += textwrap.wrap(line, max(int(letters / max(wide, 1)), 8)) or [""]
    if len(lines) > MOST_TITLE_LINES:
        lines = [*lines[: MOST_TITLE_LINES - 1], lines[MOST_TITLE_LINES - 1][:-1] + "…"]
    return lines or [""]


def entries_abreast(labels: Sequence[str]) -> int:
    """Return how many entries of a legend, with these labels, fit into a line."""
    mark = 0.65 if on_phone() else 0.7  # inches for the symbol before each label
    if sum(LETTER * longest([label]) + mark for label in labels) <= text_width():
        return len(labels)
    return max(1, int(text_width() / (LETTER * longest(labels) + mark)))


def name_entries(legend: Legend, names: Sequence[str]) -> None:
    """Name the entries of a legend."""
    for entry, name in zip(legend.get_texts(), names, strict=True):
        label = label_of(name)
        entry.set(text=plain_text(label), **font_of(label))


def _drawable(character: str) -> str:
    """Return a character, or an escape if it is invisible or no installed font has it."""
    if character == "\n" or _family_with(character) is not None:
        return character
    return _escape(character)


def _escape(character: str) -> str:
    """Return a character as an escape, as Python's `ascii` writes it."""
    return ascii(character)[1:-1]


def _letters(text: str) -> int:
    """Return the width of a drawn text in letters."""
    width = 0
    for character in text:
        drawn = _drawable(character)
        if drawn != character:
            width += len(drawn)
        elif unicodedata.east_asian_width(character) in "WF":
            width += 2
        elif not unicodedata.category(character).startswith("M"):
            width += 1
    return width


def _family_with(character: str) -> str | None:
    """Return the first installed font that has a character, or None if none has it."""
    return _found_family(character, len(fontManager.ttflist))  # searches again with more fonts


@lru_cache(maxsize=4096)
def _found_family(character: str, _: int) -> str | None:
    if unicodedata.category(character)[0] in "CZ" and character not in {" ", *JOINERS}:
        return None  # invisible, or a space that looks like the usual one
    others = (font.name for font in fontManager.ttflist if font.name.startswith("Noto Sans "))
    families = chain([COURSE_FONT, FALLBACK_FONT], OTHER_FONTS, others)
    return next((family for family in families if has_character(family, character)), None)


def has_character(family: str, character: str) -> bool:
    """Return whether a font is installed and has a character."""
    try:
        path = findfont(FontProperties(family=[family]), fallback_to_default=False)
    except ValueError:
        return False
    return get_font(path).get_char_index(ord(character)) != 0


def _warn_of_unreadable(texts: Sequence[str]) -> None:
    """Warn about the first text with a character that no font has."""
    for text in texts:
        lost = [c for c in text if c.isprintable() and _family_with(c) is None]
        if lost:
            _warn_once(
                f"no installed font has {lost[0]!r} of {text!r}: {_escape(lost[0])} is drawn "
                "instead. Fonts such as Noto Sans have the letters of its script"
            )
            break


@cache
def _warn_once(message: str) -> None:
    """Warn once, not for every map; matplotlib resets Python's own memory of warnings."""
    warnings.warn(message, stacklevel=4)
