"""The theme's scripts ask a page for less.

Their own script reads and changes the sizes of all boxes that may scroll one by one, also those in
closed folds, when a page is read and whenever anything in it has changed: each costs a layout,
together most of the time in which a page comes alive. reachable.js does it instead.

Bootstrap, which comes with the theme, looks through the whole page at every click, for each of its
dozen listeners, to see whether one of the elements found was clicked. It asks the clicked element.

Of other editions of these scripts nothing is changed, and a test tells.
"""

import re
from pathlib import Path

BOXES = re.compile(r'document\.querySelectorAll\(\["pre",[^\]]*\]\.join\(", "\)\)')
# `found = root.querySelectorAll(selector)`, and the elements from the clicked one to the root.
SEARCH = re.compile(
    r"const (?P<found>\w+)=\w+\.querySelectorAll\((?P<selector>\w+)\);"
    r"(?P<upwards>for\(let\{target:(?P<one>\w+)\}=\w+;[^)]*\))"
    r"for\(const (?P<other>\w+) of (?P=found)\)if\((?P=other)===(?P=one)\)"
)

CHANGES = {
    "pydata-sphinx-theme.js": (BOXES, "[]"),
    "bootstrap.js": (SEARCH, r"\g<upwards>if(\g<one>.matches(\g<selector>))"),
}


def change(app, exception):
    """Let the theme find no such boxes, and not search at a click."""
    if exception is not None or app.builder.format != "html":
        return
    for name, (pattern, instead) in CHANGES.items():
        script = Path(app.outdir) / "_static" / "scripts" / name
        if script.is_file():
            text = script.read_text(encoding="utf-8")
            script.write_text(pattern.sub(instead, text), encoding="utf-8")


def setup(app):
    """Run when all files are in place."""
    app.connect("build-finished", change)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
