"""Reading or Coding: a switch above a page folds or opens the code of all pages at once.

Pages come with their code folded, each cell's behind a line that opens it, so that no script is
needed to see it. Open in both are the stubs of exercises, solutions, cells of a few lines, which
say what their output is, and those tagged `stays-open`: what a lesson builds, and what its reader
is to check by hand. Code that only draws or asserts (tag `hide-input`) follows the switch, too.
See code-switch.js.
"""

from docutils import nodes
from prediction_covers import is_cell

STAYS_OPEN = {"stays-open", "exercise-stub", "exercise-solution"}
FEW = 6  # lines
CLASS, ASIDE = "course-code", "course-aside"


def lines_of(cell: nodes.Element) -> int:
    """Return how many lines of code a cell shows, without empty ones."""
    shown = [part for part in cell.children if part.get("nb_element") == "cell_code_source"]
    return sum(bool(line.strip()) for part in shown for line in part.astext().splitlines())


def fold_code(app, doctree):
    """Fold the code that stands open, as myst-nb folds that of cells tagged `hide-input`."""
    for cell in doctree.findall(is_cell):
        tags = cell["cell_metadata"].get("tags", [])
        if cell.get("hide_mode") == "input":
            cell["classes"].append(ASIDE)
        elif "hide_mode" not in cell and lines_of(cell) > FEW and STAYS_OPEN.isdisjoint(tags):
            cell["classes"].append(CLASS)
            cell["hide_mode"] = "input"
            cell["prompt_show"] = app.config.nb_code_prompt_show
            cell["prompt_hide"] = app.config.nb_code_prompt_hide


def load_switch(app, pagename, templatename, context, doctree):
    """Let pages with such code load the switch."""
    if CLASS in context.get("body", "") or ASIDE in context.get("body", ""):
        app.add_css_file("code-switch.css")
        app.add_js_file("code-switch.js")


def setup(app):
    """Run when a page is read, and when it is written."""
    app.connect("doctree-read", fold_code)
    app.connect("html-page-context", load_switch)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
