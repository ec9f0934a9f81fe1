"""What answers a prediction stands in a fold, which the page's script closes at first.

That is all that follows a Predict box up to the next heading, exercise or Predict box. Once the
reader has committed there the fold opens; by hand it opens at any time. Where no script runs it is
open and nothing is seen of it. See prediction-covers.js.
"""

from itertools import takewhile

from docutils import nodes
from page_widgets import shown_widgets, state_of

OPEN = """<details class="course-cover" data-until="{model}" open><summary>
<span class="course-closed">Show the answer and what follows</span>
<span class="course-open">Hide the answer and what follows</span></summary>"""


def prediction_in(node: nodes.Element, state: dict) -> str | None:
    """Return the model of the Predict box that a node shows; None if it shows none."""
    models = (model for _, model in shown_widgets(node))
    return next((one for one in models if state[one]["state"].get("_module") == "predict"), None)


def answer_below(box: nodes.Element, state: dict) -> list[nodes.Element]:
    """Return what stands below a Predict box and belongs to it."""

    def belongs(node: nodes.Element) -> bool:
        is_exercise = {"exercise", "solution"} & set(node.get("classes", ()))
        is_heading = isinstance(node, nodes.section)
        return not (is_heading or is_exercise or prediction_in(node, state))

    below = box.parent[box.parent.index(box) + 1 :]
    answer = list(takewhile(belongs, below))
    while answer and isinstance(answer[-1], nodes.target):
        answer.pop()  # it names the next heading
    return answer


def is_cell(node: nodes.Node) -> bool:
    """Tell a code cell from all else on a page."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def add_covers(app, doctree, page):
    """Put the answers into folds."""
    state = state_of(app.env, page)
    if app.builder.format != "html" or not state:
        return
    for box in list(doctree.findall(is_cell)):
        model = prediction_in(box, state)
        answer = answer_below(box, state) if model else []
        if answer:
            begin = nodes.raw(text=OPEN.format(model=model), format="html")
            end = nodes.raw(text="</details>", format="html")
            place = box.parent.index(box) + 1
            box.parent[place : place + len(answer)] = [begin, *answer, end]


def load_script(app, pagename, templatename, context, doctree):
    """Let pages with such folds load their script."""
    if "course-cover" in context.get("body", ""):
        app.add_js_file("prediction-covers.js")


def setup(app):
    """Run when a page's outputs are chosen, and when it is written."""
    app.connect("doctree-resolved", add_covers)
    app.connect("html-page-context", load_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
