"""A cell that fails doesn't keep the site from its readers: it is told at its place and at the end.

All pages are written. At the failing cell stands a box with the error, also where the page shows
nothing of the cell; a figure that wasn't drawn says so, and references to it lead there. At its end
the build names every failing cell, and its exit status is 1. The next build tries them again.
"""

import ast
import re
from contextlib import suppress
from itertools import count
from typing import NamedTuple

from docutils import nodes
from myst_nb.core.render import strip_ansi
from nbformat import NotebookNode
from prediction_covers import is_cell
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
FAILED = "This cell failed when the page was built"
MISSING = "Numbers and figures that hang on it may be missing, here and on other pages."
NOT_DRAWN = "Not drawn, because a cell of this page failed when it was built."
TOLD = 5  # of each page; what fails after so many mostly lacks what these should have made
LINE = re.compile(r"^Cell In\[\d+\], line (\d+)", re.M)


class Failure(NamedTuple):
    """A cell that failed when its page was executed."""

    index: int  # among all cells of its page
    line: int  # of the page's text, where its code begins
    name: str  # "cell 32 (total = sum(row))": its number among those with code, its first line
    error: str  # "AssertionError: the row doesn't sum to 1"
    traceback: str


def failures_of(notebook: NotebookNode) -> list[Failure]:
    """Return the cells of an executed page that failed."""
    failures, numbers = [], count(1)
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        number, lines = next(numbers), cell.source.splitlines()
        begin = next((one for one in lines if not one.startswith(("#", " "))), "")
        for output in cell.get("outputs", ()):
            if output.output_type == "error":
                trace = strip_ansi("\n".join(output.traceback))
                message = output.evalue or assertion_in(cell.source, trace)
                error = f"{output.ename}: {message}" if message else output.ename
                line = notebook.metadata.source_map[index] + 1
                failures.append(Failure(index, line, f"cell {number} ({begin})", error, trace))
    return failures


def assertion_in(code: str, trace: str) -> str:
    """Return the assertion at which some code failed; empty if it was something else."""
    lines = [int(line) for line in LINE.findall(trace)]
    with suppress(SyntaxError):  # commands of IPython
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Assert) and node.lineno <= max(lines, default=0):
                if any(node.lineno <= line <= node.end_lineno for line in lines):
                    return ast.unparse(node)
    return ""


def failed_cells(env) -> dict[str, list[Failure]]:
    """Return page -> its failing cells, of all pages that have some."""
    return vars(env).setdefault("failed_cells", {})


def try_again(app, env, added, changed, removed):
    """Have pages with failing cells read again, and so executed again."""
    return [*failed_cells(env).keys() & env.found_docs]


class FailureBoxes(SphinxTransform):
    """Put the boxes into a page, and figures that stand in for those that weren't drawn."""

    default_priority = 480

    def apply(self):
        """Walk the failing cells, then the cells that have a figure."""
        failures = failed_cells(self.env).get(self.env.docname, ())
        cells = {cell["cell_index"]: cell for cell in self.document.findall(is_cell)}
        for failure in failures:
            if failure.index in cells:
                put_into(cells[failure.index], box_of(failure))
            else:
                put_at_line(self.document, failure.line, box_of(failure))
        for cell in cells.values() if failures else ():
            name = cell["cell_metadata"].get("mystnb", {}).get("figure", {}).get("name")
            if name and name not in self.document.nameids:
                caption = nodes.caption(NOT_DRAWN, NOT_DRAWN)
                figure = nodes.figure("", caption, names=[name])
                self.document.note_explicit_target(figure)
                cell += figure


def box_of(failure: Failure) -> nodes.admonition:
    """Return the box that says what happened; its traceback is folded."""
    name, _, message = failure.error.partition(": ")
    box = nodes.admonition(classes=["error"])
    box += nodes.title("", FAILED)
    box += nodes.paragraph("", "", nodes.strong("", name), nodes.Text(message and f": {message}"))
    box += nodes.paragraph("", MISSING)
    if failure.traceback:
        summary = "<details><summary>Where it failed</summary>"
        box += nodes.raw("", summary, format="html")
        box += nodes.literal_block(failure.traceback, failure.traceback, language="ipythontb")
        box += nodes.raw("", "</details>", format="html")
    return box


def put_into(cell: nodes.Element, box: nodes.Element):
    """Put a box below a cell's other outputs, in place of the bare traceback."""
    for block in list(cell.findall(nodes.literal_block)):
        if "traceback" in block["classes"]:
            block.parent.remove(block)
    cell += box


def put_at_line(document: nodes.document, line: int, box: nodes.Element):
    """Put a box where a cell would stand that the page doesn't show."""
    blocks = (node for node in document.findall() if isinstance(node.parent, nodes.section))
    above = [node for node in blocks if not isinstance(node, nodes.section)]
    above = [node for node in above if node.line and node.line < line] or above[:1]
    parent = above[-1].parent
    hidden = nodes.compound("", box)  # the notebook passes over it: it has the error with the cell
    parent.insert(parent.index(above[-1]) + 1, hidden)


def tell(app, exception):
    """Name every failing cell, and have the build end as a failure."""
    pages = {name: found for name, found in failed_cells(app.env).items() if found}
    if not pages:
        return
    app.statuscode = 1
    lines = ["Cells failed. On its page a box stands at each of these:"]
    for name, failures in sorted(pages.items()):
        for failure in failures[:TOLD]:
            place = f"{name}.md:{failure.line}, {failure.name}"
            lines.append(f"{place}: {' '.join(failure.error.split())}")
        if later := [failure.name.split()[1] for failure in failures[TOLD:]]:
            lines.append(f"{name}.md, then cells {', '.join(later)}")
    with logging.skip_warningiserror():  # or only the first line would be told
        LOGGER.error("%s", "\n".join(lines))


def setup(app):
    """Show and tell; the pages are executed by execute_pages."""
    app.connect("env-get-outdated", try_again)
    app.connect("build-finished", tell, priority=900)  # last, so that it is read
    app.add_transform(FailureBoxes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
