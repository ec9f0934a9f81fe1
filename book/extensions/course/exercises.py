"""Exercises and the code of a page: what its reader answers, what a coder writes and runs.

Lessons run with stubs in place of answers, and each check says "Not yet". No reader sees a verdict
over an exercise that they haven't touched: the page shows a stub without it, and the downloaded
notebook has it as a cell that never ran, so that the first verdict in it is the reader's own.

An exercise that is answered on the page has a cell with the tag exercise-page, of which the page
shows the output alone. Its stub asks the same again, for those who write code. All others are folds
with title, stars and minutes as their line. A fold comes open, for readers without script, and
code-switch.js closes it. Before the first of them stands how to run the page.

`{effort}`★★ 10 minutes`` is how hard an exercise is, of three stars, and about how long it takes.
JupyterLab doesn't know the role and shows its text, which can be read as it stands.

A switch above a page says whether it is read, or its code written and run: Reading or Coding. Pages
come with their code folded, each cell's behind a line that opens it, so that no script is needed to
see it. Open in both are cells of a few lines, which say what their output is, and those tagged
`stays-open`: what a lesson builds, and what its reader is to check by hand. Code that only draws or
asserts (tag `hide-input`) follows the switch, too, and so do exercises that are answered in code
and the list of what a lesson is good for. Only coders see stubs of exercises that are answered on
the page, and the code of the drawing that opens a page. See code-switch.js.
"""

import re
from posixpath import dirname, relpath

from docutils import nodes
from nbformat import NotebookNode
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx_exercise.nodes import exercise_enumerable_node, solution_node

from course.pages import change_pages, html, is_cell, load_where, writes

LOGGER = logging.getLogger(__name__)

STUB, ON_PAGE = "exercise-stub", "exercise-page"
DOUBLED = "course-doubled"
DOUBLED_IDS = {"exercise-content", "solution-content"}  # each box's content has the same one
HOW_TO_RUN = "how-to-run"  # the section's target on the start page
NOTEBOOK = (
    '<p class="course-how-to-run">To check what you write in code, <a href="{notebook}" download>'
    'download this page as a notebook</a> and <a href="{how}">run it</a>.</p>'
)

HARDEST = 3
EFFORT = re.compile(rf"(★{{1,{HARDEST}}}) ([1-9]\d*) minutes?")

STAYS_OPEN = {"stays-open", STUB, "exercise-solution"}
FEW = 6  # lines
CODE, ASIDE, OPENING = "course-code", "course-aside", "course-opening"
GOALS = "After this lesson you can"
FOLD = '<details class="course-goals"><summary>{words}</summary>'
FOLLOWERS = (CODE, ASIDE, "course-goals", "exercise admonition")  # of the switch, in a page's HTML


# Boxes.


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
    return html(NOTEBOOK.format(notebook=notebook, how=how))


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


def begin_exercise(self, node):
    """Open a box, or a fold that looks like one."""
    is_fold = isinstance(node[0], Summary)
    tag, attributes = ("details", {"open": ""}) if is_fold else ("div", {})
    self.body.append(self.starttag(node, tag, CLASS="admonition", **attributes))


def end_exercise(self, node):
    self.body.append("</details>\n" if isinstance(node[0], Summary) else "</div>\n")


def begin_summary(self, node):
    """Open the line that is pressed."""
    self.body.append(self.starttag(node, "summary", "", CLASS="admonition-title"))
    self.add_fignumber(node.parent)


class Effort(SphinxRole):
    """Stars, which a screen reader is told in words, and minutes."""

    def run(self):
        match = EFFORT.fullmatch(self.text)
        if not match:
            LOGGER.warning(
                "{effort}`%s`: wanted 1 to %d stars and minutes, such as {effort}`★★ 10 minutes`",
                self.text, HARDEST, location=self.get_location(), type="effort",
            )  # fmt: skip
            return [nodes.Text(self.text)], []
        number = len(match[1])
        stars = "★" * number + "☆" * (HARDEST - number)
        time = f"about {match[2]} minute{'s' * (match[2] != '1')}"
        heard = f"difficulty {number} of {HARDEST}"
        shown = f'<span role="img" aria-label="{heard}">{stars}</span> · {time}'
        return [html(shown, classes=["effort"], words=f"*{stars} · {time}.*")], []


# What follows the switch.


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
            cell["classes"].append(CODE)
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
    for paragraph in list(doctree.findall(nodes.paragraph)):
        goals = paragraph.next_node(descend=False, siblings=True)
        if paragraph.astext() == GOALS and isinstance(goals, nodes.bullet_list):
            paragraph.replace_self(html(FOLD.format(words=GOALS)))
            goals.parent.insert(goals.parent.index(goals) + 1, html("</details>"))


def setup(app):
    """Fold code when a page is read; draw boxes on the way out, when sphinx-exercise is done."""
    app.add_node(Summary, html=(begin_summary, writes("</summary>\n")))
    app.add_node(exercise_enumerable_node, override=True, html=(begin_exercise, end_exercise))
    app.add_role("effort", Effort())
    app.connect("doctree-read", fold_code)
    app.connect("doctree-read", mark_opening)
    change_pages(app, fold_goals)
    change_pages(app, draw_boxes)
    load_where(app, FOLLOWERS, "code-switch.js", priority=499)  # before the widgets are started
