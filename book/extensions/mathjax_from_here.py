"""Formulas are typeset by MathJax that the site itself serves.

The files come from the package sphinx-mathjax-offline. Its own extension would copy all 15 MB; a
page needs the component that turns TeX into HTML, its fonts, and (loaded when a formula uses one)
the small TeX extensions, such as color.
"""

import shutil
from importlib.util import find_spec
from pathlib import Path

NEEDED = ("tex-chtml.js", "output/chtml/fonts/woff-v2", "input/tex/extensions")

# Text and widgets are shown before MathJax begins, which keeps the page busy for a while.
SHOW_FIRST = """window.MathJax = {...window.MathJax, startup: {async pageReady() {
  await new Promise((shown) => requestAnimationFrame(() => setTimeout(shown)));
  return MathJax.startup.defaultPageReady();
}}};"""


def copy_mathjax(app):
    """Copy what pages need to the site's static folder."""
    if app.builder.format != "html":
        return
    package = Path(find_spec("sphinx-mathjax-offline").origin).parent
    for name in NEEDED:
        source = package / "static" / "mathjax" / name
        target = Path(app.outdir) / "_static" / "mathjax" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, target)


def setup(app):
    """Use the copy, without the menu whose entries would need the rest of MathJax."""
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.config.mathjax3_config = {"options": {"enableMenu": False}}
    app.add_js_file(None, body=SHOW_FIRST, priority=600)  # behind that configuration
    app.connect("builder-inited", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
