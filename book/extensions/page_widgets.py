"""The widgets of a page: where they stand, and their saved state, for the extensions that ask.

Jupyter saves the state of all widgets of a page as JSON in one script element.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from docutils import nodes
from myst_nb.core.render import WIDGET_VIEW_MIMETYPE
from myst_nb.sphinx_ import NbMetadataCollector

VIEW = re.compile(rf'<script type="{re.escape(WIDGET_VIEW_MIMETYPE)}">(.*)</script>', re.DOTALL)
State = dict[str, Any]  # the id of a widget's model -> {"state": ..., "buffers": ...}


def _script(env, page: str) -> dict[str, str] | None:
    """Return the attributes of the script element that holds a page's state, if it has one."""
    _, attributes = NbMetadataCollector.get_js_files(env, page).get("ipywidgets_state", (0, None))
    return attributes


def state_of(env, page: str) -> State:
    """Return the saved state of a page's widgets; an empty one if it has none."""
    script = _script(env, page)
    return json.loads(script["body"])["state"] if script else {}


@contextmanager
def changing_state(env, page: str) -> Iterator[State]:
    """Hand out the saved state of a page's widgets, and save what becomes of it."""
    script = _script(env, page)
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
