"""The code and style of the widgets come from the package when the site is built.

A page's outputs come from the cache, and with them the state of its widgets, in which each carries
the code that it had when its cell ran. That copy is taken away. The site holds the code as it is
now, once for all pages, in classic scripts: browsers refuse modules in a page that is opened from a
folder. A page loads what its own widgets need.
Restyling a widget executes no cell.
"""

import hashlib
import json
from pathlib import Path

from page_widgets import changing_state

FOLDER = "widgets"  # of the site's static files
OURS = "attnlib.widgets."
PART = "IPY_MODEL_"  # before the name of another model


def take_code_away(state: dict) -> set[str]:
    """Let each of the course's widgets in a saved state name its code; return those names."""
    names = set()
    for entry in state.values():
        values = entry["state"]
        kind = values.get("_anywidget_id", "")
        if kind.startswith(OURS):
            values.pop("_esm", None)
            values.pop("_css", None)
            values["_module"] = kind.removeprefix(OURS).partition(".")[0]
            names.add(values["_module"])
    return names


def put_code_back(state: dict):
    """Give each of the course's widgets in a saved state the code of the package as it is now."""
    from attnlib import widgets  # loads torch, so only where a page has widgets

    for entry in state.values():
        values = entry["state"]
        kind = values.get("_anywidget_id", "")
        if kind.startswith(OURS):
            widget = getattr(widgets, kind.rpartition(".")[2])
            values |= {"_esm": widget._esm, "_css": widget._css}


def take_jupyters_away(state: dict):
    """Leave out what only a notebook asks of the course's widgets: their views and layouts."""
    from anywidget import AnyWidget

    every_widgets = {*AnyWidget.class_trait_names(sync=True), "_anywidget_id"}
    layouts = set()
    for entry in state.values():
        values = entry["state"]
        if "_module" in values:
            layouts.add(values["layout"].removeprefix(PART))
            for name in every_widgets:
                values.pop(name, None)
    for name in layouts:
        del state[name]


def static_files(names: set[str]) -> dict[str, str]:
    """Return the files that widgets of these names need, in the order to load them: name -> text.

    A name is that of the widget's module: "head_explorer".
    """
    from attnlib.widgets import _browser_code as code

    files = {"shared.css": code.shared_sheet(), "shared.js": code.shared_script()}
    if any(code.needs_labs(f"{name}.js") for name in names):
        files["labs.js"] = code.lab_script()
    for name in sorted(names):
        files[f"{name}.css"] = code.own_sheet(f"{name}.css")
        files[f"{name}.js"] = code.own_script(f"{name}.js")
    return files


def read_page(app, doctree):
    """Take the code out of a page's state, and remember whose it was."""
    with changing_state(app.env, app.env.docname) as state:
        names = take_code_away(state)
        take_jupyters_away(state)
    app.env.metadata[app.env.docname]["widgets"] = sorted(names)


def pages_with_widgets(env) -> dict[str, list[str]]:
    """Return the names of the widgets on each page that has some."""
    return {page: data["widgets"] for page, data in env.metadata.items() if data.get("widgets")}


def write_files(app, env):
    """Write the site's files; where they changed, pages name them anew, so that no copy is kept."""
    pages = pages_with_widgets(env)
    if app.builder.format != "html" or not pages:
        return []
    files = static_files(set().union(*pages.values()))
    folder = Path(app.outdir) / "_static" / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    before = getattr(env, "widget_code", None)
    env.widget_code = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    return [] if env.widget_code == before else list(pages)


def load_files(app, pagename, templatename, context, doctree):
    """Let a page with widgets load what they need, before the state that is drawn with it."""
    names = pages_with_widgets(app.env).get(pagename)
    if names:
        for name in static_files(set(names)):
            add = app.add_css_file if name.endswith(".css") else app.add_js_file
            add(f"{FOLDER}/{name}", priority=400)


def setup(app):
    """Register all three."""
    app.connect("doctree-read", read_page)
    app.connect("env-get-updated", write_files)
    app.connect("html-page-context", load_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
