"""A widget in one HTML file: its code, its style and its state, and nothing from anywhere else."""

import base64
import json
import re
import zlib
from html import escape
from pathlib import Path

import anywidget

from attncourse.widgets._browser_code import page_script

MARK = re.compile("<!-- ([a-z]+) -->")
# What only a notebook needs of a widget.
JUPYTERS = {*anywidget.AnyWidget.class_trait_names(sync=True), "_anywidget_id", "_esm", "_css"}
PAGE = Path(__file__).parent / "_standalone.html"


def standalone_page(widget: anywidget.AnyWidget, *, title: str, notes: str = "") -> str:
    """Return a page with one of the course's widgets as it stands, with notes (HTML) below it.

    Its bytes travel compressed, one after the other, as base64.
    """
    state = widget.get_state()
    name = state["_anywidget_id"].split(".")[-3]
    traits = {key: value for key, value in state.items() if key not in JUPYTERS}
    buffers = {key: value for key, value in traits.items() if isinstance(value, bytes)}
    content = {
        "module": f"{name}/widget.js",
        "state": {key: value for key, value in traits.items() if key not in buffers},
        "sizes": {key: len(value) for key, value in buffers.items()},
    }
    packed = zlib.compress(b"".join(buffers.values()), level=9)
    parts = {
        "title": _plain(escape(title)),
        "heading": _plain(f"<h1>{escape(title)}</h1>"),
        "sheet": f"<style>{widget._css}</style>",
        "summary": _plain(escape(traits["summary"])),
        "notes": _plain(notes),
        "state": _script("application/json", json.dumps(content).replace("<", "\\u003c")),
        "bytes": _script("text/plain", base64.b64encode(packed).decode()),
        "code": _script("text/javascript", page_script(name)),
    }
    return MARK.sub(lambda mark: parts[mark[1]], PAGE.read_text(encoding="utf-8"))


def _script(kind: str, text: str) -> str:
    """Return a script element, which nothing in its text ends."""
    safe = text.replace("</script", "<\\/script")
    return f'<script type="{kind}">{safe}</script>'


def _plain(html: str) -> str:
    """Return HTML in ASCII, also where a text holds half of a pair, which no file can."""
    return html.encode("ascii", "xmlcharrefreplace").decode()
