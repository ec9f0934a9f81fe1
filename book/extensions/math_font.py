"""The font of the formulas: what of it the pages need, and a warning if it lacks something.

Not every character that is drawn stands in the text: a browser draws a letter of its own for an
italic one, and a root's sign around what is under it.
"""

import re
from html import unescape
from pathlib import Path
from unicodedata import name, normalize

from cut_fonts import cut
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
FONT = Path("fonts", "course-math.woff2")
FORMULA = re.compile(r"<math\b.*?</math>", re.DOTALL)
LETTER = re.compile(r"<mi>([^<&])</mi>")  # MathML Core, section 2.2: it becomes italic
ROOT = "√"
UNSEEN = set("\u2061\u2062\u2063\u2064\ufe00\ufe01")  # operators without a sign, choices of a shape

_ITALICS = [chr(i) for i in range(0x1D434, 0x1D7CC)] + ["ℎ"]
ITALIC = {
    normalize("NFKC", italic): italic
    for italic in _ITALICS
    if name(italic, "").startswith(("MATHEMATICAL ITALIC ", "PLANCK "))
}


def characters_of(html: str) -> set[str]:
    """Return all that a browser draws for the formulas of a page."""
    drawn = {ROOT}
    for formula in FORMULA.findall(html):
        drawn.update(unescape(re.sub("<[^>]*>", "", formula)))
        drawn.update(ITALIC.get(letter, letter) for letter in LETTER.findall(formula))
    return drawn - UNSEEN


def cut_font(app, exception):
    """Leave in the site's font what its pages need."""
    if exception is not None or app.builder.format != "html":
        return
    pages = {}  # character -> a page that needs it
    for page in Path(app.outdir).rglob("*.html"):
        pages |= dict.fromkeys(characters_of(page.read_text(encoding="utf-8")), page.stem)
    source = Path(__file__).parents[1] / "assets" / FONT
    for character in cut(source, Path(app.outdir) / "_static" / FONT, set(pages), "CourseMath"):
        LOGGER.warning("%s: the formulas' font lacks %s", pages[character], character)


def setup(app):
    """Run when all pages are written."""
    app.connect("build-finished", cut_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
