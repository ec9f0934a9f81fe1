"""Exercises and the code of a page: what its reader answers, what a coder writes and runs.

Lessons run with stubs in place of answers, and each check says "Not yet". A reader's first verdict
is their own: the page shows a stub without it, and the notebook has a cell that never ran.

A page shows only the output of a cell tagged `exercise-page`, in which its reader answers. Other
exercises are folds, with title, stars and minutes in their line. A fold comes open, for readers
without script, and code-switch.js closes it. The first has a line above it: how to run the page.

`{effort}`★★ 10 minutes`` is how hard an exercise is, one to three stars, and how long it takes.
JupyterLab doesn't know the role and shows its text, which can be read as it stands.

A switch above a page has two positions, Reading and Coding. Pages come with their code folded. Open
in both are cells of a few lines, and those tagged `stays-open`: what a lesson builds, and what its
reader checks by hand. Exercises that are answered in code and the list of goals follow the switch,
too. Only Coding shows the stubs of exercises that are answered on the page, and the code of the
drawing above the first heading. See code-switch.js.
"""

import re
from posixpath import dirname, relpath

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx_exercise.nodes import exercise_enumerable_node, solution_node

from course.pages import html, is_cell, load_where, writes

LOGGER = logging.getLogger(__name__)

STUB, ON_PAGE, DOUBLED = "exercise-stub", "exercise-page", "course-doubled"
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
CODE, ASIDE = "course-code", "tag_hide-input"
GOALS = "After this lesson you can"
FOLD = '<details class="course-goals"><summary>{words}</summary>'
FOLLOWERS = (CODE, ASIDE, "course-goals", "exercise admonition")  # of the switch, in a page's HTML


class Summary(nodes.title):
    """The title of a fold."""


def cells_with(tag: str, tree: nodes.Element) -> list[nodes.Element]:
    return [node for node in tree.findall(nodes.container) if f"tag_{tag}" in node["classes"]]


def how_to_run(app, page: str) -> nodes.raw:
    start, anchor, *_ = app.env.domains["std"].anonlabels.get(HOW_TO_RUN, (app.config.root_doc, ""))
    how = app.builder.get_relative_uri(page, start) + (anchor and f"#{anchor}")
    notebook = relpath(f"_sources/{page}.ipynb", dirname(page))
    return html(NOTEBOOK.format(notebook=notebook, how=how))


def draw_boxes(app, doctree, page):
    for section in doctree.findall(nodes.section):
        section["ids"] = [name for name in section["ids"] if name not in DOUBLED_IDS]
    for tag, unseen in ((STUB, "cell_code_output"), (ON_PAGE, "cell_code_source")):
        for cell in cells_with(tag, doctree):
            cell[:] = [child for child in cell if child.get("nb_element") != unseen]
    for solution in doctree.findall(solution_node):
        # Its title names its exercise. The script that folds solutions would fail at a link.
        for link in list(solution[0].findall(nodes.reference)):
            link.replace_self(nodes.Text(link.astext()))
    is_told = False
    for exercise in list(doctree.findall(exercise_enumerable_node)):
        efforts = [raw for raw in exercise.findall(nodes.raw) if "effort" in raw["classes"]]
        for effort in efforts[:1]:
            effort.parent.remove(effort)
            exercise[0] += effort
        solution = exercise.next_node(descend=False, siblings=True)
        if isinstance(solution, solution_node) and solution["target_label"] == exercise["label"]:
            solution.parent.remove(solution)
            exercise += solution
        if cells_with(ON_PAGE, exercise):
            for cell in cells_with(STUB, exercise):
                cell["classes"].append(DOUBLED)
            continue
        exercise[0] = Summary("", "", *exercise[0].children)
        if not is_told:
            is_told = True
            exercise.parent.insert(exercise.parent.index(exercise), how_to_run(app, page))


def begin_exercise(self, node):
    is_fold = isinstance(node[0], Summary)
    tag, attributes = ("details", {"open": ""}) if is_fold else ("div", {})
    self.body.append(self.starttag(node, tag, CLASS="admonition", **attributes))


def end_exercise(self, node):
    self.body.append("</details>\n" if isinstance(node[0], Summary) else "</div>\n")


def begin_summary(self, node):
    self.body.append(self.starttag(node, "summary", "", CLASS="admonition-title"))
    self.add_fignumber(node.parent)


class Effort(SphinxRole):
    """Stars, which a screen reader hears in words, and minutes."""

    def run(self):
        match = EFFORT.fullmatch(self.text)
        if not match:
            wanted = f"wanted 1 to {HARDEST} stars and minutes, such as {{effort}}`★★ 10 minutes`"
            message = f"{{effort}}`{self.text}`: {wanted}"
            LOGGER.warning("%s", message, location=self.get_location(), type="effort")
            return [nodes.Text(self.text)], []
        number = len(match[1])
        stars = "★" * number + "☆" * (HARDEST - number)
        time = f"about {match[2]} minute{'s' * (match[2] != '1')}"
        heard = f"difficulty {number} of {HARDEST}"
        shown = f'<span role="img" aria-label="{heard}">{stars}</span> · {time}'
        return [html(shown, classes=["effort"], words=f"*{stars} · {time}.*")], []


def fold_code(app, doctree):
    """Fold the code that stands open, as myst-nb folds that of cells tagged `hide-input`."""
    for cell in doctree.findall(is_cell):
        tags = cell["cell_metadata"].get("tags", [])
        code = [part.astext() for part in cell if part.get("nb_element") == "cell_code_source"]
        lines = [line for line in "\n".join(code).splitlines() if line.strip()]
        if "hide_mode" not in cell and len(lines) > FEW and STAYS_OPEN.isdisjoint(tags):
            cell["classes"].append(CODE)
            cell["hide_mode"] = "input"
            cell["prompt_show"] = app.config.nb_code_prompt_show
            cell["prompt_hide"] = app.config.nb_code_prompt_hide


def fold_goals(app, doctree, page):
    for paragraph in list(doctree.findall(nodes.paragraph)):
        goals = paragraph.next_node(descend=False, siblings=True)
        if paragraph.astext() == GOALS and isinstance(goals, nodes.bullet_list):
            paragraph.replace_self(html(FOLD.format(words=GOALS)))
            goals.parent.insert(goals.parent.index(goals) + 1, html("</details>"))


def setup(app):
    app.add_node(Summary, html=(begin_summary, writes("</summary>\n")))
    app.add_node(exercise_enumerable_node, override=True, html=(begin_exercise, end_exercise))
    app.add_role("effort", Effort())
    app.connect("doctree-read", fold_code)
    app.connect("doctree-resolved", fold_goals)
    app.connect("doctree-resolved", draw_boxes)
    load_where(app, FOLLOWERS, "code-switch.js", priority=499)  # before the widgets are started
