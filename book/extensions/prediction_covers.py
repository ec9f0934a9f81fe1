"""What gives a prediction's answer away is covered in its place, until its reader has committed.

A page marks it: a cell by the tag `answer`, a paragraph, list or table by `{.answer}` on the line
above it, a formula by `:::{container} answer` around it. It belongs to the last Predict box before
it. Of a cell only what it prints or draws is covered; a figure's caption stays readable. All else
stands open: headings, code, widgets, prose.
Where no script runs nothing is covered. See prediction-covers.js.
"""

from docutils import nodes
from page_widgets import shown_widgets, state_of
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
MARKS = {"answer", "tag_answer"}  # classes: of a text, of a cell
COVER = '<div class="course-cover" data-until="{model}">{press}<div class="course-answer">'
PRESS = '<button type="button" hidden><span>Your guess first, or press to see</span></button>'
UNCOVERED = (nodes.caption, nodes.legend)  # of a figure


def prediction_in(node: nodes.Element, state: dict) -> str | None:
    """Return the model of the Predict box that a node shows; None if it shows none."""
    models = (model for _, model in shown_widgets(node))
    return next((one for one in models if state[one]["state"].get("_module") == "predict"), None)


def is_cell(node: nodes.Node) -> bool:
    """Tell a code cell from all else on a page."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def answers(doctree: nodes.document, state: dict) -> list[tuple[nodes.Element, str | None]]:
    """Return what a page marks, each with the model of the box that it answers."""
    found, model = [], None
    for node in doctree.findall(nodes.Element):
        if is_cell(node):
            model = prediction_in(node, state) or model
        if MARKS.intersection(node.get("classes", ())):
            found.append((node, model))
    return found


def covered(answer: nodes.Element) -> list[list[nodes.Element]]:
    """Return what a cover takes of a text or a cell: rows of nodes that stand side by side."""
    if not is_cell(answer):
        return [[answer]]
    if any(shown_widgets(answer)):
        LOGGER.warning("a widget is never covered", location=answer)
    outputs = [part for part in answer if part.get("nb_element") == "cell_code_output"]
    rows = []
    for part in (part for output in outputs for part in output.children):
        figures = part.findall(nodes.figure)  # a cell may print beside them
        rows += [
            [inner for inner in figure.children if not isinstance(inner, UNCOVERED)]
            for figure in figures
        ] or [[part]]
    return rows


def add_covers(app, doctree, page):
    """Put what answers into covers; neighbors share one."""
    state = state_of(app.env, page)
    if app.builder.format != "html":
        return
    end = None  # of the last cover
    for answer, model in answers(doctree, state or {}):
        if model is None:
            LOGGER.warning("this answers no prediction: none stands before it", location=answer)
            continue
        for row in covered(answer):
            box = row[0].parent
            place = box.index(row[0])
            if end and end[1] == model and box[place - 1] is end[0]:
                box.insert(place + len(row) - 1, box.pop(place - 1))
                continue
            begin = nodes.raw(text=COVER.format(model=model, press=PRESS), format="html")
            end = nodes.raw(text="</div></div>", format="html"), model
            box[place : place + len(row)] = [begin, *row, end[0]]


def load_script(app, pagename, templatename, context, doctree):
    """Let pages with covers load their script."""
    if "course-cover" in context.get("body", ""):
        app.add_js_file("prediction-covers.js")


def setup(app):
    """Run when a page's outputs are chosen, and when it is written."""
    app.connect("doctree-resolved", add_covers)
    app.connect("html-page-context", load_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
