"""The theme's icons: the site publishes those it uses, of a thousand and a half.

A class `fa-...` in a page or a script uses an icon; so does a style sheet that names its character,
as an escape or as itself. The fonts and the rules of the other icons are left out. It starts from
the theme's own files each time, for a page written later may use another icon.
"""

import re
from pathlib import Path

import pydata_sphinx_theme
from cut_fonts import cut

THEME = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static"
SHEET = Path("styles", "pydata-sphinx-theme.css")
FONTS = Path("vendor", "fontawesome", "webfonts")

CLASS = re.compile(r"\bfa-[\w-]+")
RULE = re.compile(r'(?<=\})((?:\.fa-[\w-]+:before,?)+)\{content:"[^"]*"\}')  # of all its names
OLDER_FORMAT = re.compile(r',url\([^)]*\.ttf\) format\("truetype"\)')  # of the same fonts
CHARACTER = re.compile(r"\\([0-9a-fA-F]{1,6})|([\ue000-\uf8ff])")


def used_rules(sheet: str, used: set[str]) -> str:
    """Return a style sheet without the rules of icons that aren't used."""
    return RULE.sub(lambda rule: rule[0] if used & {*CLASS.findall(rule[1])} else "", sheet)


def characters_in(sheet: str) -> set[str]:
    """Return the characters that a style sheet names by escapes, and those of private use."""
    return {chr(int(code, 16)) if code else itself for code, itself in CHARACTER.findall(sheet)}


def cut_icons(app, exception):
    """Leave in the site's fonts and in the theme's sheet what pages, scripts and sheets use."""
    if exception is not None or app.builder.format != "html":
        return
    site, static = Path(app.outdir), Path(app.outdir) / "_static"
    files = (*site.rglob("*.html"), *static.rglob("*.js"))
    used = set().union(*(CLASS.findall(file.read_text(encoding="utf-8")) for file in files))
    sheet = used_rules((THEME / SHEET).read_text(encoding="utf-8"), used)
    (static / SHEET).write_text(OLDER_FORMAT.sub("", sheet), encoding="utf-8")
    sheets = (file.read_text(encoding="utf-8") for file in static.rglob("*.css"))
    characters = set().union(*map(characters_in, sheets))
    for font in (THEME / FONTS).glob("*.woff2"):
        cut(font, static / FONTS / font.name, characters, "CourseIcons")
        (static / FONTS / font.with_suffix(".ttf").name).unlink(missing_ok=True)


def setup(app):
    """Run when all pages are written."""
    app.connect("build-finished", cut_icons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
