"""The console of a page stays empty, so that whatever does appear there is a fault.

Two scripts that come with the theme report their progress there; their copies on the site don't.
"""

from pathlib import Path

SCRIPTS = ("scripts/pydata-sphinx-theme.js", "scripts/sphinx-book-theme.js", "togglebutton.js")


def silence(app, exception):
    """Turn each console.log(...) into an expression that does nothing."""
    if exception is not None or app.builder.format != "html":
        return
    for name in SCRIPTS:
        script = Path(app.outdir) / "_static" / name
        text = script.read_text(encoding="utf-8")
        script.write_text(text.replace("console.log(", "void("), encoding="utf-8")


def setup(app):
    """Run when all files are in place."""
    app.connect("build-finished", silence)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
