"""What the modules share: the parts of a page, notes about pages, and when to act on them."""

import json
import re
import runpy
from collections.abc import Callable, Iterator
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


def names_in(file: str) -> dict[str, Any]:
    """Return what one file of the packages defines, without importing its package, and so torch."""
    return runpy.run_path(str(source_folder() / file))


def lesson_of(page: str) -> str:
    """Return "L04" for "book/L04_Multi_Head_Attention"; "" for a page that is no lesson."""
    lesson = LESSON.match(page.split("/")[-1])
    return lesson[0] if lesson else ""


def lesson_checked_on(text: str) -> str:
    """Return "l04" for a page's text that calls the checks of that lesson; "" for others."""
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
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def html(text: str, **attributes) -> nodes.raw:
    return nodes.raw(text=text, format="html", **attributes)


def writes(text: str) -> Callable:
    """Return a function that writes a node's beginning or end."""
    return lambda translator, node: translator.body.append(text)


def add_written(app, name: str, lines: Callable):
    """Offer a directive that stands for the Markdown which `lines(env)` yields.

    Its content in a page's source is for those who read the source.
    """

    class Written(SphinxDirective):
        has_content = True

        def run(self):
            self.env.note_reread()  # what it is made of can change while the page stays the same
            section, text = nodes.section(), StringList([*lines(self.env)], self.get_location())
            self.state.nested_parse(text, 0, section, match_titles=True)
            return section.children

    app.add_directive(name, Written)


@contextmanager
def changing_state(env, page: str) -> Iterator[State]:
    """Yield the saved state of a page's widgets, and save the changes made to it."""
    _, script = NbMetadataCollector.get_js_files(env, page).get("ipywidgets_state", (0, {}))
    saved = json.loads(script.get("body", '{"state": {}}'))
    yield saved["state"]
    script["body"] = json.dumps(saved).replace("<", "\\u003c")  # nothing in it ends the script


def state_of(env, page: str) -> State:
    """Return the saved state of a page's widgets; an empty one if it has none."""
    with changing_state(env, page) as state:
        return state


def shown_widgets(node: nodes.Element) -> list[tuple[nodes.raw, str]]:
    """Return where widgets stand within a node, in order, and the ids of their models."""
    places = ((view, VIEW.fullmatch(view.astext())) for view in node.findall(nodes.raw))
    return [(view, json.loads(match[1])["model_id"]) for view, match in places if match]


def note(app, name: str, value):
    app.env.metadata[app.env.docname][name] = value


def noted(env, name: str) -> dict[str, Any]:
    """Return what is noted under a name about each page that has such a note."""
    return {page: data[name] for page, data in env.metadata.items() if data.get(name)}


def write_again_with(app, name: str, value: Callable = noted):
    """Have all pages written again when `value(env, name)` differs from the last build's."""

    def changed_pages(app, env):
        values = vars(env).setdefault("values_on_pages", {})
        before, values[name] = values.get(name), value(env, name)
        return [] if before == values[name] else [*env.found_docs]

    app.connect("env-get-updated", changed_pages)


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
    """Call each `function(app)` when all pages of a site are written."""

    def run(app, exception):
        if exception is None and app.builder.format == "html":
            for function in functions:
                function(app)

    app.connect("build-finished", run)
