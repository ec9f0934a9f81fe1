"""An exercise's box: what a reader answers on the page, or a line that opens what is to be coded.

Lessons run with stubs in place of answers, and each check says "Not yet". No reader sees a verdict
over an exercise that they haven't touched: the page shows a stub without it, and the downloaded
notebook has it as a cell that never ran, so that the first verdict in it is the reader's own.

An exercise that is answered on the page has a cell with the tag exercise-page, of which the page
shows the output alone. Its stub asks the same again, for those who write code (see code_switch).
All others are folds with title, stars and minutes as their line. A fold comes open, for readers
without script, and code-switch.js closes it. Before the first of them stands how to run the page.
"""

from posixpath import dirname, relpath

from docutils import nodes
from nbformat import NotebookNode
from sphinx_exercise.nodes import exercise_enumerable_node, solution_node

STUB, ON_PAGE = "exercise-stub", "exercise-page"
DOUBLED = "course-doubled"
DOUBLED_IDS = {"exercise-content", "solution-content"}  # each box's content has the same one
HOW_TO_RUN = "how-to-run"  # the section's target on the start page
NOTEBOOK = (
    '<p class="course-how-to-run">To check what you write in code, <a href="{notebook}" download>'
    'download this page as a notebook</a> and <a href="{how}">run it</a>.</p>'
)


class Summary(nodes.title):
    """The title of a fold."""


def forget_run(cell: NotebookNode):
    """Take from a stub of a notebook what came of running it."""
    if STUB in cell.metadata.get("tags", []):
        cell.outputs, cell.execution_count = [], None


def cells_with(tag: str, tree: nodes.Element) -> list[nodes.Element]:
    """Return the cells with a tag."""
    return [node for node in tree.findall(nodes.container) if f"tag_{tag}" in node["classes"]]


def remove_part(cell: nodes.Element, part: str):
    """Remove "cell_code_source" or "cell_code_output" from a cell."""
    cell[:] = [child for child in cell if child.get("nb_element") != part]


def how_to_run(app, page: str) -> nodes.raw:
    """Return the line that tells how to get a page's exercises in code checked."""
    start, anchor, *_ = app.env.domains["std"].anonlabels.get(HOW_TO_RUN, (app.config.root_doc, ""))
    how = app.builder.get_relative_uri(page, start) + (anchor and f"#{anchor}")
    notebook = relpath(f"_sources/{page}.ipynb", dirname(page))
    return nodes.raw(text=NOTEBOOK.format(notebook=notebook, how=how), format="html")


def put_effort_into_title(exercise: nodes.Element):
    """Move stars and minutes to the end of an exercise's title."""
    for effort in exercise.findall(nodes.raw):
        if "effort" in effort["classes"]:
            effort.parent.remove(effort)
            exercise[0] += effort
            return


def take_in_solution(exercise: nodes.Element):
    """Make a solution that stands right below its exercise the last line in its box."""
    solution = exercise.next_node(descend=False, siblings=True)
    if isinstance(solution, solution_node) and solution["target_label"] == exercise["label"]:
        solution.parent.remove(solution)
        exercise += solution


def drop_links(title: nodes.title):
    """Put each link's text in its place.

    A solution's title names its exercise, which stands right above. As a link a press on it would
    lead away, and the script that folds solutions would fail.
    """
    for link in list(title.findall(nodes.reference)):
        link.replace_self(nodes.Text(link.astext()))


def draw_boxes(app, doctree, page):
    """Give each exercise what its readers need of it."""
    if app.builder.format != "html":
        return
    for section in doctree.findall(nodes.section):
        section["ids"] = [name for name in section["ids"] if name not in DOUBLED_IDS]
    for cell in cells_with(STUB, doctree):
        remove_part(cell, "cell_code_output")
    for cell in cells_with(ON_PAGE, doctree):
        remove_part(cell, "cell_code_source")
    for solution in doctree.findall(solution_node):
        drop_links(solution[0])
    is_told = False
    for exercise in list(doctree.findall(exercise_enumerable_node)):
        put_effort_into_title(exercise)
        take_in_solution(exercise)
        if cells_with(ON_PAGE, exercise):
            for cell in cells_with(STUB, exercise):
                cell["classes"].append(DOUBLED)
            continue
        exercise[0] = Summary("", "", *exercise[0].children)
        if not is_told:
            is_told = True
            exercise.parent.insert(exercise.parent.index(exercise), how_to_run(app, page))


def is_fold(exercise: nodes.Element) -> bool:
    """Tell whether an exercise's title opens it."""
    return isinstance(exercise[0], Summary)


def begin_exercise(self, node):
    """Open a box, or a fold that looks like one."""
    if is_fold(node):
        self.body.append(self.starttag(node, "details", CLASS="admonition", open=""))
    else:
        self.body.append(self.starttag(node, "div", CLASS="admonition"))


def end_exercise(self, node):
    """Close it."""
    self.body.append("</details>\n" if is_fold(node) else "</div>\n")


def begin_summary(self, node):
    """Open the line that is pressed."""
    self.body.append(self.starttag(node, "summary", "", CLASS="admonition-title"))
    self.add_fignumber(node.parent)


def end_summary(self, node):
    """Close it."""
    self.body.append("</summary>\n")


def setup(app):
    """Run when references are resolved, after sphinx-exercise at priority 500."""
    app.setup_extension("sphinx_exercise")
    app.add_node(Summary, html=(begin_summary, end_summary))
    app.add_node(exercise_enumerable_node, override=True, html=(begin_exercise, end_exercise))
    app.connect("doctree-resolved", draw_boxes, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
