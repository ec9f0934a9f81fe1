"""Two builds of a page give its widgets the same ids.

Jupyter gives each widget an id by chance, and keeps them in the order of these. On the page, and in
the notebook that readers download, they are counted instead, in the order in which they are shown.
"""

import json
import re
from collections.abc import Iterable

from docutils import nodes
from page_widgets import changing_state, shown_widgets

ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
PART = re.compile(r"IPY_MODEL_([0-9a-f]{32})")  # such as its layout


def counted(state: dict, shown: Iterable[str]) -> dict[str, str]:
    """Return the new id of each widget in a saved state; those that nothing shows come last."""
    names: dict[str, str] = {}

    def count(name: str):
        if name in state and name not in names:
            names[name] = f"{len(names):032x}"
            for part in PART.findall(json.dumps(state[name])):
                count(part)

    def without_ids(name: str) -> str:
        return ID.sub("", json.dumps(state[name]))

    for name in [*shown, *sorted(state, key=without_ids)]:
        count(name)
    return names


def renamed(text: str, names: dict[str, str]) -> str:
    """Return a text with the new ids."""
    return ID.sub(lambda match: names.get(match[0], match[0]), text)


def rename_page(app, doctree):
    """Rename a page's widgets, in their state and where they are shown."""
    shown = shown_widgets(doctree)
    with changing_state(app.env, app.env.docname) as state:
        names = counted(state, [model for _, model in shown])
        with_new_ids = json.loads(renamed(json.dumps(state), names))
        state.clear()
        state.update(sorted(with_new_ids.items()))
    for view, _ in shown:
        view[:] = [nodes.Text(renamed(view.astext(), names))]


def setup(app):
    """Run before any other extension looks at a page's widgets."""
    app.connect("doctree-read", rename_page, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
