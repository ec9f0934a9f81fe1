"""The site's own scripts and style sheets are published without their comments and indents."""

import re
from pathlib import Path

import rjsmin

ASSETS = Path("book", "assets")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
SPACE = re.compile(r"(?<=[{};:,]) | (?=[{}])")  # that parts nothing; " :is(...)" needs its own


def lean_sheet(text: str) -> str:
    """Return a sheet without comments and indents.

    Not by a kept library: rcssmin 1.2 takes rules within @container for declarations, and makes one
    selector of the two in `.attn-widget :is(p)`.
    """
    return SPACE.sub("", " ".join(COMMENT.sub("", text).split()))


MAKE_LEAN = {".js": rjsmin.jsmin, ".css": lean_sheet}


def write_lean(app, exception):
    """Write them anew."""
    if exception is not None or app.builder.format != "html":
        return
    for source in Path(app.srcdir, ASSETS).iterdir():
        if make_lean := MAKE_LEAN.get(source.suffix):
            published = Path(app.outdir, "_static", source.name)
            published.write_text(make_lean(source.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app):
    """Run when all files are in place."""
    app.connect("build-finished", write_lean)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
