"""Every page with cells can be downloaded as a notebook that is complete in any program.

Its texts are what the page says: measured numbers, numbers of figures, titles of exercises and
citations are words, not MyST. Its cells are as the build executed them, each figure with its
caption below, solutions folded. The first cell installs attnlib: from the wheel that the site
serves once its address is set (html: baseurl: in _config.yml), or from the repository once that has
an address. Until then it says how to install a copy.
"""

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import nbformat
from docutils import nodes
from jupyter_cache import get_cache
from myst_nb.core.render import WIDGET_STATE_MIMETYPE, WIDGET_VIEW_MIMETYPE
from myst_nb.core.utils import coalesce_streams
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from pybtex.plugin import find_plugin
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from course.exercises import STUB
from course.markdown_writer import MarkdownWriter, joined
from course.pages import when_written
from course.widgets import counted, in_plain_words, put_code_back, renamed

FOLDED = {"hide-input", "remove-input", "remove-cell", "exercise-solution"}
SVG = "image/svg+xml"
INSTALL = '%pip install -q "attnlib[lessons] @ {source}"'
FROM_CHECKOUT = """\
*This notebook computes with `attnlib`, the small package of this course. If it isn't installed:
in a copy of the course, run `pip install -e ".[lessons]"`.*"""


def executed_notebook(app: Sphinx, page: str) -> NotebookNode:
    """Return a page as the build executed it, with widgets' code of today.

    The copy that myst-nb leaves lacks outputs, so they are taken from the cache again.
    """
    copy = (Path(app.outdir).parent / "jupyter_execute" / page).with_suffix(".ipynb")
    cache = get_cache(app.env.metadata[page]["execution_cache"])
    _, executed = cache.merge_match_into_notebook(nbformat.read(copy, as_version=4))
    if "widgets" in executed.metadata:
        put_code_back(executed.metadata.widgets[WIDGET_STATE_MIMETYPE]["state"])
    return executed


def address_from(page: str, app: Sphinx, reference: nodes.reference) -> str:
    """Return where a link leads; empty for another page of a site without an address."""
    if "refid" in reference:
        return f"#{reference['refid']}"
    address = reference.get("refuri", "")
    if not reference.get("internal"):
        return address
    file, _, anchor = address.partition("#")
    here = Path(app.builder.get_target_uri(page))
    if file in ("", here.name):
        return f"#{anchor}"
    site = app.config.html_baseurl
    return f"{site.rstrip('/')}/{here.parent.as_posix()}/{address}" if site else ""


def resolved_cells(
    writer: MarkdownWriter, doctree: nodes.document, executed: list[NotebookNode]
) -> Iterator[NotebookNode]:
    """Yield the page's texts, and between them every code cell in its order.

    A code cell that the page doesn't show comes right after the one before it.
    """
    given, texts = 0, []  # cells of `executed`; texts that wait for the next cell
    for block in joined(writer.blocks(doctree)):
        if isinstance(block, str):
            texts.append(block)
            continue
        hidden, shown = executed[given : block.index], executed[block.index]
        yield from as_page_shows(hidden)
        yield from map(new_markdown_cell, texts)
        yield from as_page_shows([shown])
        given, texts = block.index + 1, [*block.captions]
    yield from as_page_shows(executed[given:])
    yield from map(new_markdown_cell, texts)


def as_page_shows(cells: list[NotebookNode]) -> Iterator[NotebookNode]:
    """Yield the code cells among some: folded where the page folds them, stubs without verdicts."""
    for cell in cells:
        if cell.cell_type != "code":
            continue
        tags = cell.metadata.get("tags", [])
        if FOLDED & {*tags}:
            cell.metadata["jupyter"] = {"source_hidden": True}
        cell.metadata.pop("mystnb", None)  # the caption is text now
        cell.outputs = coalesce_streams(cell.outputs)  # as on the page: nb_merge_streams
        for output in cell.outputs:
            output.get("metadata", {}).pop(SVG, None)  # the drawing for phones
        if STUB in tags:
            cell.outputs, cell.execution_count = [], None  # a reader's first verdict is their own
        yield cell


def tell_what_widgets_show(cells: list[NotebookNode], state: dict) -> list[str]:
    """Add words to widgets' outputs, for programs that draw no widget; return the widgets' ids."""
    shown = []
    for output in (output for cell in cells for output in cell.get("outputs", ())):
        if view := output.get("data", {}).get(WIDGET_VIEW_MIMETYPE):
            shown.append(view["model_id"])
            output.data["text/plain"] = in_plain_words(state[view["model_id"]]["state"])
    return shown


def cited_works(app: Sphinx, page: str) -> Iterator[str]:
    cited = {
        key.strip()
        for reference in app.env.get_doctree(page).findall(pending_xref)
        if reference["refdomain"] == "cite"
        for key in reference["reftarget"].split(",")
    }
    backend = find_plugin("pybtex.backends", "markdown")()
    for citation in app.env.get_domain("cite").citations:
        if citation.key in cited:
            yield citation.formatted_entry.text.render(backend)


def build_wheel(app):
    if not app.config.html_baseurl:
        return
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", Path(app.outdir) / "_static", app.srcdir]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if result.returncode:
        raise ExtensionError(f"attnlib's wheel can't be built:\n{result.stderr}")


def first_cell(app) -> NotebookNode:
    if site := app.config.html_baseurl:
        text = Path(app.srcdir, "pyproject.toml").read_text(encoding="utf-8")
        project = tomllib.loads(text)["project"]
        wheel = f"{project['name']}-{project['version']}-py3-none-any.whl"
        return new_code_cell(INSTALL.format(source=f"{site.rstrip('/')}/_static/{wheel}"))
    if repository := app.config.html_theme_options.get("repository_url"):
        return new_code_cell(INSTALL.format(source=f"git+{repository}"))
    return new_markdown_cell(FROM_CHECKOUT)


def write_notebook(app, doctree, page):
    if "kernelspec" not in app.env.metadata.get(page, {}):
        return
    notebook = executed_notebook(app, page)
    numbers = app.env.toc_fignumbers.get(page, {})
    writer = MarkdownWriter(doctree, partial(address_from, page, app), numbers)
    title, *cells = resolved_cells(writer, doctree, notebook.cells)
    works = "\n".join(f"* {work}" for work in cited_works(app, page))
    end = [new_markdown_cell(f"## Works cited\n\n{works}")] if works else []
    notebook.cells = [title, first_cell(app), *cells, *end]
    for place, cell in enumerate(notebook.cells):
        cell.id = f"cell-{place}"  # the same in every build
    if widgets := notebook.metadata.get("widgets"):
        state = widgets[WIDGET_STATE_MIMETYPE]["state"]
        names = counted(state, tell_what_widgets_show(notebook.cells, state))
        notebook = nbformat.reads(renamed(nbformat.writes(notebook), names), as_version=4)
    target = (Path(app.outdir) / "_sources" / page).with_suffix(".ipynb")
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)


def offer_notebook(app, pagename, templatename, context, doctree):
    """Have the theme list the notebook beside the page's text, as it does with a launch service."""
    if "kernelspec" in app.env.metadata.get(pagename, {}):
        context["ipynb_source"] = f"{pagename}.ipynb"


def setup(app):
    # Before any extension changes the page.
    app.connect("doctree-resolved", write_notebook, priority=400)
    app.connect("html-page-context", offer_notebook)  # the theme draws buttons at priority 501
    when_written(app, build_wheel)
