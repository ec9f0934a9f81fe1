"""Scripts that a page can do without until it stands are loaded then, by later-scripts.js."""

import re
from pathlib import PurePosixPath

LATER = ("clipboard.min.js", "copybutton.js", "sphinx_highlight.js")  # the second needs the first
SOURCE = re.compile(r'src="([^"]+)"')


def load_later(app, pagename, templatename, context, doctree):
    """Take them from the page's scripts, and name them to the one that loads them."""
    if templatename == "search.html":  # its own script marks words, too
        return
    scripts = context["script_files"]
    named = {PurePosixPath(script.filename or "").name: script for script in scripts}
    later = [named[name] for name in LATER if name in named]
    scripts[:] = [script for script in scripts if script not in later]
    sources = [SOURCE.search(context["js_tag"](script))[1] for script in later]
    attributes = {"data-scripts": " ".join(sources)}
    app.add_js_file("later-scripts.js", loading_method="defer", **attributes)


def setup(app):
    """Run when a page is written, and after Sphinx has said how scripts are named on it."""
    app.connect("html-page-context", load_later, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
