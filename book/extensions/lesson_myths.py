"""The page of myths is made of the lessons: what is often said, what is true, which cell shows it.

A page tells of a myth in one of two ways:

* a row of a table whose first column is headed "often said" or "it is said". "Cell 2" in the row,
  or a 2 in a third column, is the code cell below that has `# cell 2` in its code;
* where it is refuted in passing, the header of that cell says so: `myths:`, a list, each with
  `said:` and `truth:` in Markdown.

What is true may tell what the page measured, by `{eval}`.

`{myths}` puts all of them on its page, under the title of the page that they are from, each with
links to what settles it: its cell, the figures and sections that it names, or else its table.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from docutils.statemachine import StringList
from execution_cache import read_notebook
from lesson_numbers import prefix_of
from nbformat import NotebookNode
from prediction_covers import is_cell
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER = logging.getLogger(__name__)
HEADS = ("often said", "it is said")
TABLE = "what-is-often-said-and-what-is-true"  # the heading over it
BAR = re.compile(r"(?<!\\)\|")
CELL = re.compile(r"\bcell (\d+)\b")
LABEL = re.compile(r"# cell (\d+)\b")
GLUED = re.compile(r"\{eval\}`(\w+)`")
OWN_PAGE = re.compile(r"\]\((?=#(?!exhibit-))")  # a heading; an exhibit's label holds anywhere
LEADS_SOMEWHERE = re.compile(r"\{(?:num)?ref\}`|\]\((?!https?:)")
MYTH = {"said", "truth"}


class Myth(NamedTuple):
    """A sentence, and what is true, both as Markdown that can stand on any page."""

    said: str
    truth: str


def short_name(page: str) -> str:
    """Return "l04" for "book/L04_Multi_Head_Attention"."""
    return "".join(prefix_of(page)).lower()


class CellAnchors(SphinxTransform):
    """Name cells that settle something: `l04-cell-1` by the code, `l04-myth-57` by the place."""

    default_priority = 500

    def apply(self):
        """Walk the cells that the page shows."""
        prefix = short_name(self.env.docname)
        for cell in filter(is_cell, self.document.findall(nodes.container)):
            labels = dict.fromkeys(LABEL.findall(cell.astext()))  # once; a traceback has it again
            names = [f"{prefix}-cell-{label}" for label in labels]
            if cell["cell_metadata"].get("myths"):
                names.append(f"{prefix}-myth-{cell['cell_index']}")
            if names:
                cell["names"] += names
                self.document.note_explicit_target(cell)


def rows_of(text: str) -> Iterator[list[str]]:
    """Give the cells of each row of a text's tables of myths."""
    inside = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in BAR.split(line)[1:-1]]
        if cells and cells[0] in HEADS:
            inside = True
        elif not cells:
            inside = False
        elif inside and set(line) - set("|-: "):
            yield cells


def myth_of_row(cells: list[str], page: str) -> Myth:
    """Return what a row says, with a link to what settles it."""
    name, file = short_name(page), f"{page.split('/')[-1]}.md"
    said, truth, *number = cells
    if number and number[0]:
        truth += f" (cell {number[0]})"
    truth = CELL.sub(rf"{{ref}}`cell \1 <{name}-cell-\1>`", truth)
    truth = OWN_PAGE.sub(f"]({file}", truth)
    if not LEADS_SOMEWHERE.search(truth):
        truth += f" ([{name.upper()}]({file}#{TABLE}))"
    return Myth(said.strip('"'), truth)


def myths_of_header(cell: NotebookNode, name: str) -> Iterator[Myth]:
    """Give the myths that a cell's header says it settles; `name` is the cell's own.

    Raises:
        ValueError: the header isn't a list of sentences and truths.
    """
    figure = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
    link = f"{{numref}}`{figure}`" if figure else f"{{ref}}`the cell <{name}>`"
    told = cell.metadata.myths
    for one in told if isinstance(told, list) else [told]:
        if not isinstance(one, dict) or {*one} != MYTH:
            raise ValueError(f"myths: wanted a list, each with said: and truth:, got {one!r}")
        yield Myth(one["said"], f"{one['truth']} ({link})")


def myths_of(notebook: NotebookNode, page: str) -> Iterator[Myth]:
    """Give all myths of a page in its order."""
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            yield from (myth_of_row(cells, page) for cells in rows_of(cell.source))
        elif "myths" in cell.metadata:
            yield from myths_of_header(cell, f"{short_name(page)}-myth-{place}")


def title_of(notebook: NotebookNode) -> str:
    """Return a page's title."""
    return re.search(r"^# (.+)$", notebook.cells[0].source, re.M)[1]


class Myths(SphinxDirective):
    """`{myths}`; its content is for those who read the page's source, and not shown on the site."""

    has_content = True

    def run(self):
        """Read all pages' myths as if this page had them, each page's below a heading."""
        self.env.note_reread()  # an edited lesson changes this page, which itself stays the same
        lines = []
        for page in sorted(self.env.found_docs):
            notebook = read_notebook(Path(self.env.doc2path(page)))
            try:
                found = [*myths_of(notebook, page)] if notebook else []
            except ValueError as error:
                LOGGER.warning("%s", error, location=page, type="myths")
                continue
            if found:
                lines += ["", f"## {title_of(notebook)}", ""]
            of_page = rf"{{eval}}`{page.split('/')[-1]}.md::\1:s`"  # as it is: a text
            for myth in found:
                lines += [f'"{myth.said}"', f": {GLUED.sub(of_page, myth.truth)}", ""]
        section = nodes.section()
        self.state.nested_parse(
            StringList(lines, self.get_location()), 0, section, match_titles=True
        )
        return section.children


def setup(app):
    """Offer the directive to the pages, and name the cells."""
    app.add_directive("myths", Myths)
    app.add_transform(CellAnchors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
