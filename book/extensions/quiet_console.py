"""The console of a page stays empty, so that whatever does appear there is a fault.

Scripts that come with the theme report their progress there; their copies on the site don't.
"""

from pathlib import Path

FILES = (
    "_static/scripts/pydata-sphinx-theme.js",
    "_static/scripts/sphinx-book-theme.js",
    "_static/togglebutton.js",
    "search.html",
)


def silence(app, exception):
    """Turn each console.log(...) into an expression that does nothing."""
    if exception is not None or app.builder.format != "html":
        return
    for name in FILES:
        script = Path(app.outdir) / name
        text = script.read_text(encoding="utf-8")
        script.write_text(text.replace("console.log(", "void("), encoding="utf-8")


def setup(app):
    """Run when all files are in place."""
    app.connect("build-finished", silence)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
