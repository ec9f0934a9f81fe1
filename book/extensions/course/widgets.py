"""The interactive figures of a page: their code, their ids, and what a reader can move in them.

A page's outputs come from the cache, and with them the state of its widgets, in which each carries
the code that it had when its cell ran. That copy is taken away. The site holds the code as it is
now, once for all pages, in classic scripts: browsers refuse modules in a page that is opened from a
folder. A page loads what its own widgets need. Restyling a widget executes no cell.

Jupyter gives each widget an id by chance, and keeps them in the order of these. On the page, and in
the notebook that readers download, they are counted instead, in the order in which they are shown.

A reader can move the traits of a widget's class that aren't read-only; widget-states.js links to
them. Questions and exercises have none here: progress.js keeps what a reader answers.
"""

import hashlib
import json
import re
import struct
from base64 import b64decode
from collections.abc import Iterable
from pathlib import Path

from docutils import nodes

from course.pages import (
    changing_state,
    html,
    note,
    noted,
    shown_widgets,
    state_of,
    to_write_again,
)
from course.without_script import fallback

FOLDER = "widgets"  # of the site's static files
OURS = "attncourse.widgets."
PART = "IPY_MODEL_"  # before the id of another model, such as the widget's layout
ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
PARTS = re.compile(rf"{PART}([0-9a-f]{{32}})")
NOT_ASKED = {"layout", "tabbable", "tooltip"}  # what every widget has, some of it by chance


# Ids.


def counted(state: dict, shown: Iterable[str]) -> dict[str, str]:
    """Return the new id of each widget in a saved state; those that nothing shows come last."""
    names: dict[str, str] = {}

    def count(name: str):
        if name in state and name not in names:
            names[name] = f"{len(names):032x}"
            for part in PARTS.findall(json.dumps(state[name])):
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


# Code.


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
    from attncourse import widgets  # loads torch, so only where a page has widgets

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

    A name is that of the widget's folder: "head_explorer".
    """
    from attncourse.widgets import _browser_code as code

    files = {"shared.css": code.shared_sheet(), "shared.js": code.shared_script()}
    if any(code.needs_labs(name) for name in names):
        files["labs.js"] = code.lab_script()
    for name in sorted(names):
        files[f"{name}.css"] = code.own_sheet(name)
        files[f"{name}.js"] = code.own_script(code.script_of(name))
    return files


def keep_code_apart(app, doctree):
    """Take the code out of a page's state, and note whose it was."""
    with changing_state(app.env, app.env.docname) as state:
        names = take_code_away(state)
        take_jupyters_away(state)
    note(app, "widgets", sorted(names))


def write_files(app, env):
    """Write the site's files; where they changed, pages name them anew, so that no copy is kept."""
    pages = noted(env, "widgets")
    if app.builder.format != "html" or not pages:
        return []
    files = static_files(set().union(*pages.values()))
    folder = Path(app.outdir) / "_static" / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    code = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    return to_write_again(env, "code of widgets", code, pages)


# States.


def mark_of(entry: dict) -> str:
    """Return a short mark of what a widget asks or shows at first, whatever a reader did with it.

    By it answers and links of an older edition are told from those of this one.
    """
    state = entry["state"]
    passed_over = NOT_ASKED | set(state.get("kept", ()))
    asked = {
        name: value for name, value in state.items() if name[0] != "_" and name not in passed_over
    }
    for buffer in entry.get("buffers", []):
        name = ".".join(map(str, buffer["path"]))
        asked[name] = buffer["data"]
        if name == "known":  # float64, whose last digits are the machine's
            numbers = struct.iter_unpack("<d", b64decode(buffer["data"]))
            asked[name] = [f"{number:.6g}" for (number,) in numbers]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]


def earlier_state(state: dict) -> dict | None:
    """Return the state of a Flow or a HeadExplorer as it was before they said what was trained.

    Links of that time have its mark. Other widgets have no such state.
    """
    if state["_module"] == "flow":
        return {name: value for name, value in state.items() if name != "trained"}
    if state["_module"] == "head_explorer":
        sources = [dict(source) for source in state["sources"]]
        for source in sources:
            del source["causal"]
        summary = state["summary"].partition(" Weights: ")[0]
        return state | {"sources": sources, "summary": summary, "token": state["T"] - 1}
    return None


def moved_traits(module: str) -> list[str]:
    """Return the traits that a reader can change, of the widget in this folder of widgets."""
    from attncourse import widgets  # loads torch, so only where a page has widgets

    kinds = (getattr(widgets, name) for name in widgets.__all__)
    kind = next(kind for kind in kinds if kind.__module__.split(".")[-2] == module)
    own = set(kind.class_own_traits(sync=True))
    return sorted(
        name for name, trait in kind.class_traits().items() if name in own and not trait.read_only
    )


def mark_figures(app, doctree):
    """Tell each figure which of its traits can be moved, and its marks."""
    with changing_state(app.env, app.env.docname) as entries:
        for entry in entries.values():
            state = entry["state"]
            if "_module" in state and "kept" not in state:
                state["_mark"] = mark_of(entry)
                if (earlier := earlier_state(state)) is not None:
                    state["_earlier_mark"] = mark_of(entry | {"state": earlier})
                state["_moved"] = moved_traits(state["_module"])
                note(app, "has_states", True)


def load_files(app, pagename, templatename, context, doctree):
    """Let a page with widgets load what they need, before the state that is drawn with it."""
    names = noted(app.env, "widgets").get(pagename)
    for name in static_files({*names}) if names else ():
        add = app.add_css_file if name.endswith(".css") else app.add_js_file
        add(f"{FOLDER}/{name}", priority=400)
    if pagename in noted(app.env, "has_states"):
        app.add_css_file("widget-states.css")
        app.add_js_file("widget-states.js", priority=392, **{"data-page": pagename})


def add_fallbacks(app, doctree, page):
    """Put a <noscript> behind each widget of a page."""
    entries = state_of(app.env, page)
    for view, model in shown_widgets(doctree):
        words = html(fallback(entries[model]["state"]))
        view.parent.insert(view.parent.index(view) + 1, words)


def setup(app):
    """Change a page's state when it is read, and write the code before any page is written."""
    for change in (rename_page, keep_code_apart, mark_figures):
        app.connect("doctree-read", change)
    app.connect("env-get-updated", write_files)
    app.connect("html-page-context", load_files)
    app.connect("doctree-resolved", add_fallbacks)
