"""Pages are executed when they have to be, side by side, before Sphinx reads them.

A page is executed again when its own cells change, or our packages, or a library that computes or
draws. Two parts of our packages don't count: browser code, which the build reads from the packages
itself, and the folders of lessons (`lessons/l05`) whose exercises the page doesn't check; a test
shows that it imports nothing from them. Jupyter Book's cache compares the cells of a page. The
folder of a page's cache is named for all else.

A cell that fails doesn't keep the site from its readers. The cells after it are executed, and all
pages are written. A box with the error stands at the failing cell, or below the page's title if the
page doesn't show the cell; a figure that wasn't drawn says so, and references to it lead there. At
its end the build names every failing cell, and its exit status is 1. The next build tries them
again.
"""

import hashlib
import logging as python_logging
import os
import platform
import re
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from textwrap import shorten
from time import perf_counter
from typing import NamedTuple

from docutils import nodes
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from myst_nb.core.render import strip_ansi
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from course.pages import PACKAGES, html, is_cell, lesson_checked_on, read_notebook, source_folder

LOGGER = logging.getLogger(__name__)

# What computes, draws and writes the outputs, besides our packages.
LIBRARIES = ("torch", "numpy", "safetensors", "matplotlib", "ipython", "ipywidgets", "anywidget")
LIBRARIES += ("transformers", "myst-nb")  # a reader's own models; glue
WITHOUT_EFFECT = {".css", ".js", ".pyc"}  # suffixes of files that no output depends on

MOST_KERNELS = 4  # each takes more than half a gigabyte
KERNEL_VARIABLES = {
    # Tensors of lessons are small. On a busy machine a second thread makes a lesson several times
    # slower, because each of the two keeps waiting for the other.
    "OMP_NUM_THREADS": "1",
    "TQDM_DISABLE": "1",  # a progress bar isn't an output
}

FAILED = "This cell failed when the page was built"
MISSING = "Numbers and figures that depend on it may be missing, here and on other pages."
NOT_DRAWN = "Not drawn, because a cell of this page failed when it was built."
LONGEST, LONGEST_TRACE = 300, 10_000  # characters of an error and of its traceback


def fingerprint(lesson: str, source: Path) -> str:
    """Return a short hash of all that decides a page's outputs except its own cells.

    Args:
        lesson: "l04" if the page checks exercises of that lesson, "" if it checks none.
    """
    digest = hashlib.sha256(f"{platform.python_version()} {KERNEL_VARIABLES}".encode())
    for name in LIBRARIES:
        digest.update(f"{name} {version(name)}".encode())
    files = (path for package in PACKAGES for path in sorted((source / package).rglob("*")))
    for path in files:
        name = path.relative_to(source).as_posix()
        folder = re.search(r"/(l\d\d)/", name)
        is_elsewhere = folder and folder[1] != lesson  # in the folder of another lesson
        if path.is_file() and path.suffix not in WITHOUT_EFFECT and not is_elsewhere:
            digest.update(name.encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def cache_folder(build_folder: Path, page: Path) -> Path | None:
    """Return where a page that was executed with these packages is kept; None without cells."""
    if read_notebook(page) is None:
        return None
    lesson = lesson_checked_on(page.read_text(encoding="utf-8"))
    key = fingerprint(lesson, source_folder())
    return build_folder / ".jupyter_cache" / f"{page.stem}-{key}"


@cache
def folder_of(app, name: str) -> str:
    """Return the folder of a page's cache; empty if it has no cells."""
    return str(cache_folder(Path(app.outdir).parent, Path(app.env.doc2path(name))) or "")


def choose_cache(app, name, source):
    folder = app.env.metadata[name]["execution_cache"] = folder_of(app, name)
    app.env.mystnb_config = app.env.mystnb_config.copy(execution_cache_path=folder)


def pages_to_read_again(app, env, added, changed, removed):
    """Return the pages whose outputs may be others now, and those with failing cells."""
    read = env.found_docs - added - changed
    used = {name for name in read if folder_of(app, name) != env.metadata[name]["execution_cache"]}
    return [*(used | (failed_cells(env).keys() & env.found_docs))]


class Failure(NamedTuple):
    """A cell that failed when its page was executed."""

    index: int  # among all cells of its page
    line: int  # of the page's text, where its code begins
    name: str  # "cell 32 (total = sum(row))": its number among those with code, its first line
    error: str  # "AssertionError: the row doesn't sum to 1"
    traceback: str


def execute(page: Path, timeout: int) -> tuple[NotebookNode, float]:
    """Execute a page until a cell takes too long or ends its kernel; return it, and the seconds."""
    notebook, begun = read_notebook(page), []
    client = NotebookClient(
        notebook,
        resources={"metadata": {"path": str(page.parent)}},
        timeout=timeout,
        allow_errors=True,
        record_timing=False,  # it would stand in the cells, which the cache compares
        extra_arguments=["--log-level=CRITICAL"],  # or the kernel complains when it is ended
        on_cell_execute=lambda cell, cell_index: begun.append(cell),
        on_cell_executed=show_error,
    )
    start = perf_counter()
    try:
        client.execute()
    except (CellTimeoutError, DeadKernelError) as error:
        if not begun:
            raise
        took_long = isinstance(error, CellTimeoutError)
        what = f"it took longer than {timeout} seconds" if took_long else "its process ended"
        words = f"{what}, and what stands below it wasn't executed"
        output = new_output("error", ename=type(error).__name__, evalue=words, traceback=[])
        begun[-1].outputs.append(output)
        client.set_widgets_metadata()
    return notebook, perf_counter() - start


def show_error(cell: NotebookNode, cell_index: int, execute_reply: dict):
    """Give a failed cell an error as output. Some errors come only in the kernel's reply."""
    told = execute_reply["content"]
    if told["status"] == "error" and all(one.output_type != "error" for one in cell.outputs):
        name, message = told.get("ename", "Error"), told.get("evalue", "")
        cell.outputs.append(new_output("error", ename=name, evalue=message, traceback=[]))


def keep(page: Path, folder: Path, notebook: NotebookNode, seconds: float) -> list[Failure]:
    failures = failures_of(notebook)
    data = {"execution_seconds": seconds, "failed": bool(failures)}
    bundle = CacheBundleIn(notebook, str(page), data=data)
    get_cache(str(folder)).cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    return failures


def execute_and_keep(page: Path, folder: Path, timeout: int) -> list[Failure]:
    return keep(page, folder, *execute(page, timeout))


def is_kept(page: Path, folder: Path) -> bool:
    """Return whether a page was executed as it stands, and no cell failed."""
    with suppress(KeyError):
        record = get_cache(str(folder)).match_cache_notebook(read_notebook(page))
        return not record.data.get("failed")
    return False


def prepare_kernels():
    os.environ.update(KERNEL_VARIABLES)


def execute_ahead(app, env, names):
    if app.config.nb_execution_mode != "cache":
        return
    failed = failed_cells(env)
    for name in failed.keys() - (env.found_docs - {*names}):
        del failed[name]
    cached = [name for name in names if folder_of(app, name)]
    places = {name: (Path(env.doc2path(name)), Path(folder_of(app, name))) for name in cached}
    due = [name for name, place in places.items() if not is_kept(*place)]
    if not due:
        return
    processes = min(MOST_KERNELS, os.cpu_count() or 1, len(due))
    LOGGER.info(f"Executing {len(due)} page{'s' * (len(due) > 1)}, {processes} at a time")
    # The longest pages first: one that begins last would keep the build waiting.
    due.sort(key=lambda name: places[name][0].stat().st_size, reverse=True)
    with ProcessPoolExecutor(processes) as pool:
        one = partial(execute_and_keep, timeout=app.config.nb_execution_timeout)
        found = pool.map(one, *zip(*map(places.get, due), strict=True))
        failed |= {name: some for name, some in zip(due, found, strict=True) if some}


def failures_of(notebook: NotebookNode) -> list[Failure]:
    failures = []
    code = [(index, one) for index, one in enumerate(notebook.cells) if one.cell_type == "code"]
    for number, (index, cell) in enumerate(code, start=1):
        lines = (one for one in cell.source.splitlines() if not one.startswith(("#", " ")))
        errors = (one for one in cell.get("outputs", ()) if one.output_type == "error")
        if output := next(errors, None):
            trace = strip_ansi("\n".join(output.traceback))
            error = shorten(f"{output.ename}: {output.evalue}".removesuffix(": "), LONGEST)
            line = notebook.metadata.source_map[index] + 1
            name = f"cell {number} ({shorten(next(lines, ''), LONGEST)})"
            failures.append(Failure(index, line, name, error, trace[-LONGEST_TRACE:]))
    return failures


def failed_cells(env) -> dict[str, list[Failure]]:
    return vars(env).setdefault("failed_cells", {})


class FailureBoxes(SphinxTransform):
    """Put the boxes into a page, and figures that stand in for those that weren't drawn."""

    default_priority = 480

    def apply(self):
        failures = failed_cells(self.env).get(self.env.docname, ())
        top = next(self.document.findall(nodes.section), self.document)
        cells = {cell["cell_index"]: cell for cell in self.document.findall(is_cell)}
        for failure in reversed(failures):
            if cell := cells.get(failure.index):
                for block in list(cell.findall(nodes.literal_block)):
                    if "traceback" in block["classes"]:
                        block.parent.remove(block)
                cell += box_of(failure)
            else:  # The notebook passes over a compound: it has the error with the cell.
                top.insert(1, nodes.compound("", box_of(failure)))
        for cell in cells.values() if failures else ():
            name = cell["cell_metadata"].get("mystnb", {}).get("figure", {}).get("name")
            if name and name not in self.document.nameids:
                figure = nodes.figure("", nodes.caption(NOT_DRAWN, NOT_DRAWN), names=[name])
                self.document.note_explicit_target(figure)
                cell += figure


def box_of(failure: Failure) -> nodes.admonition:
    name, _, message = failure.error.partition(": ")
    box = nodes.admonition(classes=["error"])
    box += nodes.title("", FAILED)
    box += nodes.paragraph("", "", nodes.strong("", name), nodes.Text(message and f": {message}"))
    box += nodes.paragraph("", MISSING)
    if failure.traceback:
        trace = nodes.literal_block(failure.traceback, failure.traceback, language="ipythontb")
        box += [html("<details><summary>Where it failed</summary>"), trace, html("</details>")]
    return box


def report_failures(app, exception):
    lines = [
        f"{name}.md:{failure.line}, {failure.name}: {failure.error}"
        for name, failures in sorted(failed_cells(app.env).items())
        for failure in failures
    ]
    if lines:
        app.statuscode = 1
        lines.insert(0, "Cells failed. On its page a box stands at each of these:")
        with logging.skip_warningiserror():  # or only the first line would be printed
            LOGGER.error("%s", "\n".join(lines))


def setup(app):
    python_logging.basicConfig()  # or a11y_pygments does it, and libraries log all that they do
    python_logging.getLogger().setLevel(python_logging.WARNING)
    prepare_kernels()
    app.connect("env-get-outdated", pages_to_read_again)
    app.connect("env-before-read-docs", execute_ahead)
    app.connect("source-read", choose_cache)
    app.add_transform(FailureBoxes)
    app.connect("build-finished", report_failures, priority=900)
