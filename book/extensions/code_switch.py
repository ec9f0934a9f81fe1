"""Reading or Coding: a switch above a page says whether it is read, or its code written and run.

Pages come with their code folded, each cell's behind a line that opens it, so that no script is
needed to see it. Open in both are cells of a few lines, which say what their output is, and those
tagged `stays-open`: what a lesson builds, and what its reader is to check by hand. Code that only
draws or asserts (tag `hide-input`) follows the switch, too, and so do exercises that are answered
in code (see exercise_boxes) and the list of what a lesson is good for.

Only coders see stubs of exercises that are answered on the page, and the code of the drawing that
opens a page. See code-switch.js.
"""

from docutils import nodes
from prediction_covers import is_cell

STAYS_OPEN = {"stays-open", "exercise-stub", "exercise-solution"}
FEW = 6  # lines
CLASS, ASIDE, OPENING = "course-code", "course-aside", "course-opening"
GOALS = "After this lesson you can"
FOLD = '<details class="course-goals"><summary>{words}</summary>'
FOLLOWERS = (CLASS, ASIDE, "course-goals", "exercise admonition")  # of the switch, in a page's HTML


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


def mark_opening(app, doctree):
    """Mark the cell of the drawing above a page's first heading, and its neighbors."""
    drawn = (cell for cell in doctree.findall(is_cell) if cell.next_node(nodes.figure))
    drawing = next(drawn, None)
    if drawing is None or not isinstance(drawing.parent.parent, nodes.document):
        return
    place = drawing.parent.index(drawing)
    for node in drawing.parent[place - 1 : place + 2]:
        if is_cell(node):
            node["classes"].append(OPENING)


def fold_goals(app, doctree, page):
    """Fold the list of what a reader can do after a lesson."""
    if app.builder.format != "html":
        return
    for paragraph in list(doctree.findall(nodes.paragraph)):
        goals = paragraph.next_node(descend=False, siblings=True)
        if paragraph.astext() == GOALS and isinstance(goals, nodes.bullet_list):
            paragraph.replace_self(nodes.raw(text=FOLD.format(words=GOALS), format="html"))
            place = goals.parent.index(goals) + 1
            goals.parent.insert(place, nodes.raw(text="</details>", format="html"))


def load_switch(app, pagename, templatename, context, doctree):
    """Let pages on which something follows the switch load it."""
    if any(name in context.get("body", "") for name in FOLLOWERS):
        app.add_css_file("code-switch.css")
        app.add_js_file("code-switch.js")


def setup(app):
    """Run when a page is read, when its outputs are chosen, and when it is written."""
    app.connect("doctree-read", fold_code)
    app.connect("doctree-read", mark_opening)
    app.connect("doctree-resolved", fold_goals)
    app.connect("html-page-context", load_switch)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
