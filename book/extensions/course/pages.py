"""What the modules share: the parts of a page, notes about pages, and when to act on them."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from myst_nb.core.config import NbParserConfig
from myst_nb.core.read import create_nb_reader
from myst_nb.core.render import WIDGET_VIEW_MIMETYPE
from myst_nb.sphinx_ import NbMetadataCollector
from myst_parser.config.main import MdParserConfig
from nbformat import NotebookNode
from sphinx.util.docutils import SphinxDirective

PACKAGES = ("attnlib", "attndoctor", "attncourse")
LESSON = re.compile(r"L\d\d(?=_)")
CHECKS = re.compile(r"^from attncourse\.lessons import (l\d\d) as check$", re.M)
VIEW = re.compile(rf'<script type="{re.escape(WIDGET_VIEW_MIMETYPE)}">(.*)</script>', re.DOTALL)
State = dict[str, Any]  # the id of a widget's model -> {"state": ..., "buffers": ...}


def source_folder() -> Path:
    """Return the folder that holds the packages that the lessons import, without importing them."""
    return Path(find_spec(PACKAGES[0]).origin).parents[1]


def lesson_of(page: str) -> str:
    """Return "L04" for "book/L04_Multi_Head_Attention"; nothing for a page that is no lesson."""
    lesson = LESSON.match(page.split("/")[-1])
    return lesson[0] if lesson else ""


def lesson_checked_on(text: str) -> str:
    """Return "l04" for a page's text that calls the checks of that lesson; nothing for others."""
    imported = CHECKS.search(text)
    return imported[1] if imported else ""


def read_notebook(page: Path) -> NotebookNode | None:
    """Return a page as a notebook, read as the site's build reads it; None if it has no cells."""
    return deepcopy(_parsed(str(page), page.read_text(encoding="utf-8")))


@lru_cache(maxsize=64)  # a build asks for each page several times, and parsing takes long
def _parsed(page: str, text: str) -> NotebookNode | None:
    reader = create_nb_reader(page, MdParserConfig(), NbParserConfig(), text)
    return reader and reader.read(text)


def is_cell(node: nodes.Node) -> bool:
    """Tell a code cell from all else on a page."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def html(text: str, **attributes) -> nodes.raw:
    """Return a node that is written as this HTML."""
    return nodes.raw(text=text, format="html", **attributes)


def writes(text: str) -> Callable:
    """Return a function that writes a node's beginning or end."""
    return lambda translator, node: translator.body.append(text)


def add_written(app, name: str, lines: Callable):
    """Offer a directive that stands for the Markdown which `lines(env)` gives.

    What a page's source has as its content is for those who read the source.
    """

    class Written(SphinxDirective):
        has_content = True

        def run(self):
            self.env.note_reread()  # what it is made of can change while the page stays the same
            section, text = nodes.section(), StringList([*lines(self.env)], self.get_location())
            self.state.nested_parse(text, 0, section, match_titles=True)
            return section.children

    app.add_directive(name, Written)


# The widgets of a page. Jupyter saves the state of all as JSON in one script element.


def _state_script(env, page: str) -> dict[str, str] | None:
    _, attributes = NbMetadataCollector.get_js_files(env, page).get("ipywidgets_state", (0, None))
    return attributes


def state_of(env, page: str) -> State:
    """Return the saved state of a page's widgets; an empty one if it has none."""
    script = _state_script(env, page)
    return json.loads(script["body"])["state"] if script else {}


@contextmanager
def changing_state(env, page: str) -> Iterator[State]:
    """Hand out the saved state of a page's widgets, and save what becomes of it."""
    script = _state_script(env, page)
    if script is None:
        yield {}
        return
    saved = json.loads(script["body"])
    yield saved["state"]
    script["body"] = json.dumps(saved).replace("<", "\\u003c")  # nothing in it ends the script


def shown_widgets(node: nodes.Element) -> list[tuple[nodes.raw, str]]:
    """Return where widgets stand within a node, in order, and the ids of their models."""
    places = ((view, VIEW.fullmatch(view.astext())) for view in node.findall(nodes.raw))
    return [(view, json.loads(match[1])["model_id"]) for view, match in places if match]


# What is noted about pages while they are read.


def note(app, name: str, value):
    """Note something about the page that is being read."""
    app.env.metadata[app.env.docname][name] = value


def noted(env, name: str) -> dict[str, Any]:
    """Return what is noted about each page under a name, of pages where that is something."""
    return {page: data[name] for page, data in env.metadata.items() if data.get(name)}


def to_write_again(env, name: str, value, pages: Iterable[str] | None = None) -> list[str]:
    """Return the pages that show a value if it isn't that of the last build; all if none are named.

    This is what a handler of `env-get-updated` returns.
    """
    values = vars(env).setdefault("values_on_pages", {})
    before, values[name] = values.get(name), value
    if before == value:
        return []
    return [*(env.found_docs if pages is None else pages)]


def write_again_with(app, name: str, shown_by: str = ""):
    """Have pages written again when what is noted under a name changes.

    Args:
        shown_by: what is noted about the pages that show it; without it all pages do.
    """

    def changed_pages(app, env):
        shown = noted(env, shown_by) if shown_by else None
        return to_write_again(env, name, noted(env, name), shown)

    app.connect("env-get-updated", changed_pages)


# When something is done.


def change_pages(app, change: Callable, **priority: int):
    """Have `change(app, doctree, page)` change each page of the site before it is written."""

    def run(app, doctree, page):
        if app.builder.format == "html":
            change(app, doctree, page)

    app.connect("doctree-resolved", run, **priority)


def load_where(app, marks: tuple[str, ...], script: str, **options):
    """Let pages whose text has one of these marks load a script, and its style if it has one."""
    style = Path(__file__).parents[2] / "assets" / script.replace(".js", ".css")

    def load(app, pagename, templatename, context, doctree):
        if any(mark in context.get("body", "") for mark in marks):
            app.add_js_file(script, **options)
            if style.exists():
                app.add_css_file(style.name)

    app.connect("html-page-context", load)


def when_written(app, *functions: Callable):
    """Have each `function(app)` called when all pages of a site are written."""

    def run(app, exception):
        if exception is None and app.builder.format == "html":
            for function in functions:
                function(app)

    app.connect("build-finished", run)
