"""Pages that are made of all lessons: what is often said, questions for a class, usual mistakes.

`{myths}`: what is often said, what is true, which cell shows it. A page has a myth in a row of a
table whose first column is headed "what is said", or in the header of the cell that refutes it in
passing (see CONTRIBUTING). What is true can contain a measured number, by `{eval}`. Each myth links
to what settles it: its cell, the figures and sections that it names, or else its table.

`{class-questions}`: all predictions of the lessons, taken from the boxes that they show, each with
its choices, the answer in a fold, and a link to the section where it stands.

`{usual-mistakes}`: what goes wrong in each exercise, as its check knows it. Only the first sentence
of a hint is shown: it says what happened; the rest helps to go on.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from nbformat import NotebookNode
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from course import pages
from course.counts import prefix_of
from course.widgets import ASKED, inline, written_question

LOGGER = logging.getLogger(__name__)

HEAD = "what is said"
TABLE = "what-is-often-said-and-what-is-true"  # the heading over it
BAR = re.compile(r"(?<!\\)\|")
CELL = re.compile(r"\bcell (\d+)\b")
LABEL = re.compile(r"# cell (\d+)\b")
GLUED = re.compile(r"\{eval\}`(\w+)`")
OWN_PAGE = re.compile(r"\]\((?=#(?!exhibit-))")  # a heading; all pages know an exhibit's label
LEADS_SOMEWHERE = re.compile(r"\{(?:num)?ref\}`|\]\((?!https?:)")
MYTH = {"said", "truth"}
EXERCISE = re.compile(
    r"^`+\{exercise-start\} (.+)\n:label: (\S+)\n((?:.*\n)*?)`+\{exercise-end\}", re.M
)
CHECK = re.compile(r"\bcheck\.(\w+)\(")
SENTENCE = re.compile(r"(?:[^.?!]* right\. )?.{20,}?[.?!](?=\s|$)|.+", re.S)
# "Not all." says nothing alone, nor does "The queries are right."
FOLD = '<details class="course-class"><summary>{title}</summary>'
QUESTIONS = "<!-- all questions -->"  # keeps their place until all lessons are read


class Myth(NamedTuple):
    """What is said and what is true, both as Markdown that can stand on any page."""

    said: str
    truth: str


def short_name(page: str) -> str:
    """Return "l04" for "book/L04_Multi_Head_Attention"."""
    return "".join(prefix_of(page)).lower()


class CellAnchors(SphinxTransform):
    """Name cells that settle something: `l04-cell-1` by the code, `l04-myth-57` by the place."""

    default_priority = 500

    def apply(self):
        prefix = short_name(self.env.docname)
        for cell in filter(pages.is_cell, self.document.findall(nodes.container)):
            labels = dict.fromkeys(LABEL.findall(cell.astext()))  # once; a traceback has it again
            names = [f"{prefix}-cell-{label}" for label in labels]
            if cell["cell_metadata"].get("myths"):
                names.append(f"{prefix}-myth-{cell['cell_index']}")
            if names:
                cell["names"] += names
                self.document.note_explicit_target(cell)


def rows_of(text: str) -> Iterator[list[str]]:
    """Yield the cells of each row of a text's tables of myths."""
    inside = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in BAR.split(line)[1:-1]]
        if cells and cells[0] == HEAD:
            inside = True
        elif not cells:
            inside = False
        elif inside and set(line) - set("|-: "):
            yield cells


def myth_of_row(cells: list[str], page: str) -> Myth:
    name, file = short_name(page), f"{page.split('/')[-1]}.md"
    said, truth = cells
    truth = CELL.sub(rf"{{ref}}`cell \1 <{name}-cell-\1>`", truth)
    truth = OWN_PAGE.sub(f"]({file}", truth)
    if not LEADS_SOMEWHERE.search(truth):
        truth += f" ([{name.upper()}]({file}#{TABLE}))"
    return Myth(said.strip('"'), truth)


def myths_of_header(cell: NotebookNode, name: str) -> Iterator[Myth]:
    """Yield the myths of a cell's header, or raise ValueError; `name` is the cell's own."""
    figure = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
    link = f"{{numref}}`{figure}`" if figure else f"{{ref}}`the cell <{name}>`"
    told = cell.metadata.myths
    for one in told if isinstance(told, list) else [told]:
        if not isinstance(one, dict) or {*one} != MYTH:
            raise ValueError(f"myths: wanted a list, each with said: and truth:, got {one!r}")
        yield Myth(one["said"], f"{one['truth']} ({link})")


def myths_of(notebook: NotebookNode, page: str) -> Iterator[Myth]:
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            yield from (myth_of_row(cells, page) for cells in rows_of(cell.source))
        elif "myths" in cell.metadata:
            yield from myths_of_header(cell, f"{short_name(page)}-myth-{place}")


def title_of(text: str) -> str:
    return re.search(r"^# (.+)$", text, re.M)[1]


def all_myths(env) -> Iterator[str]:
    """Yield the myths of all pages, each page's below a heading."""
    for page in sorted(env.found_docs):
        notebook = pages.read_notebook(Path(env.doc2path(page)))
        try:
            found = [*myths_of(notebook, page)] if notebook else []
        except ValueError as error:
            LOGGER.warning("%s", error, location=page, type="myths")
            continue
        if found:
            yield from ("", f"## {title_of(notebook.cells[0].source)}", "")
        of_page = rf"{{eval}}`{page.split('/')[-1]}.md::\1:s`"  # as it is: a text
        for myth in found:
            yield from (f'"{myth.said}"', f": {GLUED.sub(of_page, myth.truth)}", "")


def note_questions(app, doctree):
    """Note the questions of a lesson, or of another page with exercises, each with its section."""
    page = app.env.docname
    text = Path(app.env.doc2path(page)).read_text(encoding="utf-8")
    if not (pages.lesson_of(page) or pages.lesson_checked_on(text)):
        return
    state, found = pages.state_of(app.env, page), []
    for view, model in pages.shown_widgets(doctree):
        asked = state[model]["state"]
        if asked.get("_module") == "predict":
            section = view
            while not isinstance(section, nodes.section):
                section = section.parent
            title = section.next_node(nodes.title).astext()
            place = {"id": section["ids"][0], "title": title}
            found.append({name: asked[name] for name in ASKED} | place)
    pages.note(app, "questions", found)


def show_questions(app, doctree, page):
    for place in [raw for raw in doctree.findall(nodes.raw) if raw.astext().strip() == QUESTIONS]:
        folds = []
        for lesson, asked in sorted(pages.noted(app.env, "questions").items()):
            address = app.builder.get_relative_uri(page, lesson)
            items = ""
            for one in asked:
                link = f'<a href="{address}#{one["id"]}">{inline(one["title"])}</a>'
                items += f"<li>{written_question(one)}<p>In the lesson: {link}</p></li>"
            title = inline(app.env.titles[lesson].astext())
            number = f"{len(asked)} question{'s' * (len(asked) != 1)}"
            begin = FOLD.format(title=f"{title} ({number})")
            folds.append(f"{begin}<ol>{items}</ol></details>")
        place.replace_self(pages.html("".join(folds)))


def usual_mistakes(env) -> Iterator[str]:
    """Yield a fold for each lesson, and in it one for each exercise."""
    from attncourse.lessons import lessons  # loads torch, which only this page's reading needs

    modules = lessons()
    for page in sorted(env.found_docs):
        text = Path(env.doc2path(page)).read_text(encoding="utf-8")
        module = modules.get(pages.lesson_checked_on(text))
        if module is None:
            continue
        yield from (FOLD.format(title=inline(title_of(text))), "")
        for title, label, body in EXERCISE.findall(text):
            check = getattr(module, CHECK.search(body)[1])
            sentences = dict.fromkeys(SENTENCE.match(mistake.hint)[0] for mistake in check.mistakes)
            yield from (FOLD.format(title=inline(title)), "", f"{{ref}}`{label}`:", "")
            items = (f"<li><p>{inline(one)}</p></li>" for one in sentences)
            yield from ('<ul class="simple">', *items, "</ul>", "</details>", "")
        yield from ("</details>", "")


def setup(app):
    pages.add_written(app, "myths", all_myths)
    pages.add_written(app, "class-questions", lambda env: [QUESTIONS])
    pages.add_written(app, "usual-mistakes", usual_mistakes)
    app.add_transform(CellAnchors)
    app.connect("doctree-read", note_questions)
    pages.write_again_with(app, "questions")
    app.connect("doctree-resolved", show_questions)
