"""The theme doesn't ask for the sizes of all boxes that may scroll: reachable.js does.

The theme's script reads and changes them one by one, also those in closed folds, when a page is
read and whenever anything in it has changed: each costs a layout, together most of the time in
which a page comes alive. Of another edition of that script nothing is taken out, and a test tells.
"""

import re
from pathlib import Path

BOXES = re.compile(r'document\.querySelectorAll\(\["pre",[^\]]*\]\.join\(", "\)\)')


def leave_out(app, exception):
    """Let the theme find no such boxes."""
    if exception is not None or app.builder.format != "html":
        return
    script = Path(app.outdir) / "_static" / "scripts" / "pydata-sphinx-theme.js"
    if script.is_file():
        text = script.read_text(encoding="utf-8")
        script.write_text(BOXES.sub("[]", text), encoding="utf-8")


def setup(app):
    """Run when all files are in place."""
    app.connect("build-finished", leave_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
