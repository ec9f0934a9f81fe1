"""What a reader can predict and answer on each page, for the script that keeps what they did.

Every widget that has a trait `kept` gets a mark made of what it asks, so that an edited question is
never answered by what a browser kept of the old one. All pages know the marks of all: the sidebar
says of each how much of it is done. See progress.js.
"""

import hashlib
import json
import struct
from base64 import b64decode
from pathlib import Path

from page_widgets import changing_state, shown_widgets

FILE = "asked.js"
WORDS = {
    "predict": "predictions",
    "answer": "exercises on the page",
}  # what the sidebar calls the widgets
NOT_ASKED = {"layout", "tabbable", "tooltip"}  # what every widget has, some of it by chance


def mark_of(entry: dict) -> str:
    """Return a short mark of what a widget asks, whatever a reader has answered."""
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


def mark_page(app, doctree):
    """Mark the widgets that a page shows, and remember the marks."""
    page = app.env.docname
    marks: dict[str, list[str]] = {words: [] for words in WORDS.values()}
    with changing_state(app.env, page) as entries:
        for _, model in shown_widgets(doctree):
            entry = entries.get(model)
            if entry and "kept" in entry["state"]:
                mark = entry["state"]["_asked"] = mark_of(entry)
                known = marks[WORDS[entry["state"]["_module"]]]
                known += [mark] if mark not in known else []
    app.env.metadata[page]["asked"] = {words: known for words, known in marks.items() if known}


def write_marks(app, env):
    """Write the marks of all pages; where they changed, all pages name that file anew."""
    if app.builder.format != "html":
        return []
    pages = {page: data["asked"] for page, data in env.metadata.items() if data.get("asked")}
    text = f"globalThis.courseAsked = {json.dumps(dict(sorted(pages.items())))};\n"
    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(text, encoding="utf-8")
    before = getattr(env, "asked", None)
    env.asked = text
    return [] if env.asked == before else list(env.found_docs)


def load_script(app, pagename, templatename, context, doctree):
    """Let every page load the marks and what they are for, before its widgets are started."""
    app.add_css_file("progress.css")
    app.add_js_file(FILE, priority=390)
    app.add_js_file("progress.js", priority=391, **{"data-page": pagename})


def setup(app):
    """Run behind widget_code, which says whose each widget is."""
    app.connect("doctree-read", mark_page, priority=600)
    app.connect("env-get-updated", write_marks)
    app.connect("html-page-context", load_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
