"""The interactive figures of a page: their code, their ids, and what a reader can move in them.

A page's outputs come from the cache, and with them the state of its widgets, which holds each
widget's code as it was when the cell ran. The build removes that copy. The site holds the code as
it is now, once for all pages, in classic scripts: browsers refuse modules in a page that is opened
from a folder. So a new style of a widget executes no cell. Jupyter's random ids become numbers.

A reader can move the traits of a widget's class that aren't read-only; widget-states.js links to
them. Questions and exercises have no such links: progress.js keeps what a reader answers.

Where no widget is drawn, words from its saved state stand in for it: a question with its answer
folded; for an exercise that is answered on the page, what there is to fill in, to choose from or to
put in order.
"""

import hashlib
import json
import re
import struct
from base64 import b64decode
from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from itertools import islice
from pathlib import Path
from string import ascii_uppercase

from docutils import nodes
from rjsmin import jsmin

from course import pages

small = cache(jsmin)
FOLDER = "widgets"  # of the site's static files
OURS = "attncourse.widgets."
ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
PARTS = re.compile(r"IPY_MODEL_([0-9a-f]{32})")  # other models, such as the widget's layout
NOT_ASKED = {"layout", "tabbable", "tooltip"}  # what every widget has, some of it by chance
# What a reader sees only after answering. `table` says which answer has which of the `verdicts`;
# `groups` are the shapes of the `known` numbers, whose first row is the right one.
TOLD = frozenset({"explanation", "verdicts", "table", "known", "groups"})
ASKED = ("question", "choices", "answers", "explanation")  # of a prediction

# Of a text, in which `code` and *emphasis* are the only markup, this makes HTML.
inline = pages.names_in("attndoctor/support/check_result.py")["marked_up"]


def counted(state: dict, shown: Iterable[str]) -> dict[str, str]:
    """Return the new id of each widget in a saved state; widgets that nothing shows come last."""
    names: dict[str, str] = {}

    def count(name: str):
        if name in state and name not in names:
            names[name] = f"{len(names):032x}"
            for part in PARTS.findall(json.dumps(state[name])):
                count(part)

    for name in [*shown, *sorted(state, key=lambda name: ID.sub("", json.dumps(state[name])))]:
        count(name)
    return names


def renamed(text: str, names: dict[str, str]) -> str:
    return ID.sub(lambda match: names.get(match[0], match[0]), text)


def ours(state: dict) -> Iterator[tuple[dict, list[str]]]:
    """Yield the values of the course's widgets in a saved state, each with its kind's name."""
    for values in (entry["state"] for entry in state.values()):
        if (kind := values.get("_anywidget_id", "")).startswith(OURS):
            yield values, kind.removeprefix(OURS).split(".")  # ["flow", "widget", "Flow"]


def take_code_away(state: dict) -> set[str]:
    """Let each of the course's widgets in a saved state name its code; return those names."""
    for values, (module, *_) in ours(state):
        values.pop("_esm", None)
        values.pop("_css", None)
        values["_module"] = module
    return {module for _, (module, *_) in ours(state)}


def put_code_back(state: dict):
    """Give each of the course's widgets in a saved state the code of the package as it is now."""
    from attncourse import widgets  # loads torch, so only where a page has widgets

    for values, (*_, name) in ours(state):
        widget = getattr(widgets, name)
        values |= {"_esm": widget._esm, "_css": widget._css}


def static_files(names: set[str]) -> dict[str, str]:
    """Return the files that widgets of these names need, in the order to load them: name -> text.

    A name is that of the widget's folder: "head_explorer". Scripts come without white space.
    """
    from attncourse.widgets import _browser_code as code

    files = {"shared.css": code.shared_sheet(), "shared.js": code.shared_script()}
    if any(code.needs_labs(name) for name in names):
        files["labs.js"] = code.lab_script()
    for name in sorted(names):
        files[f"{name}.css"] = code.own_sheet(name)
        files[f"{name}.js"] = code.own_script(code.script_of(name))
    return {name: small(text) if name.endswith(".js") else text for name, text in files.items()}


def write_code(env, name: str) -> dict[str, str]:
    """Write the site's files; where they change, pages name them anew, so that no copy is kept."""
    names = set().union(*pages.noted(env, name).values())
    files = static_files(names) if names else {}
    folder = Path(env.app.outdir) / "_static" / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return files


def mark_of(entry: dict, *, told: frozenset = TOLD) -> str:
    """Return a mark of what a widget asks or shows at first: older answers and links lack it.

    What a reader is told after answering isn't part of it, but for the right numbers: it can be
    said better, and their answer stays. Earlier marks had all of it in them: told=frozenset().
    """
    state = entry["state"]
    told = told if "kept" in state else frozenset()
    passed_over = NOT_ASKED | told | set(state.get("kept", ()))
    names = [name for name in state if name[0] != "_" and name not in passed_over]
    asked = {name: state[name] for name in names}
    for buffer in entry.get("buffers", []):
        name = ".".join(map(str, buffer["path"]))
        if name not in told:
            asked[name] = buffer["data"]
        if name == "known":  # float64, whose last digits depend on the machine
            numbers = struct.iter_unpack("<d", b64decode(buffer["data"]))
            right = sum(fields for _, fields in state["groups"][:1]) if told else None
            asked[name] = [f"{number:.6g}" for (number,) in islice(numbers, right)]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]


def earlier_state(state: dict) -> dict | None:
    """Return a widget's state as older links know it.

    A Flow's and a HeadExplorer's had less on training; GptSteps stood at the end of its token 3.
    """
    if state["_module"] == "flow":
        return {name: value for name, value in state.items() if name != "trained"}
    if state["_module"] == "gpt_steps":
        return state | {"token": 2, "line": "chances"}
    if state["_module"] != "head_explorer":
        return None
    sources = [{k: v for k, v in source.items() if k != "causal"} for source in state["sources"]]
    summary = state["summary"].partition(" Weights: ")[0]
    return state | {"sources": sources, "summary": summary, "token": state["T"] - 1}


def moved_traits(module: str) -> list[str]:
    """Return the traits that a reader can change, of the widget in this folder of widgets."""
    from attncourse import widgets  # loads torch, so only where a page has widgets

    kinds = (getattr(widgets, name) for name in widgets.__all__)
    kind = next(kind for kind in kinds if kind.__module__.split(".")[-2] == module)
    own = kind.class_own_traits(sync=True)
    return sorted(name for name, trait in own.items() if not trait.read_only)


def prepare_state(app, doctree):
    """Give a page's widgets ids, names of their code, marks, and names of traits that move."""
    shown = pages.shown_widgets(doctree)
    with pages.changing_state(app.env, app.env.docname) as state:
        names = counted(state, [model for _, model in shown])
        with_new_ids = json.loads(renamed(json.dumps(state), names))
        state.clear()
        state.update(sorted(with_new_ids.items()))
        pages.note(app, "widgets", sorted(take_code_away(state)))
        for entry in state.values():
            module = entry["state"].get("_module")
            if module and "kept" not in entry["state"]:
                earlier = earlier_state(entry["state"])
                entry["state"] |= {"_mark": mark_of(entry), "_moved": moved_traits(module)}
                if earlier is not None:
                    entry["state"]["_earlier_mark"] = mark_of(entry | {"state": earlier})
                pages.note(app, "has_states", True)
    for view, _ in shown:
        view[:] = [nodes.Text(renamed(view.astext(), names))]


def load_files(app, pagename, templatename, context, doctree):
    """Let a page with widgets load what they need, before the state from which they are drawn."""
    names = pages.noted(app.env, "widgets").get(pagename)
    for name in static_files({*names}) if names else ():
        add = app.add_css_file if name.endswith(".css") else app.add_js_file
        add(f"{FOLDER}/{name}", priority=400)
    if pagename in pages.noted(app.env, "has_states"):
        app.add_css_file("widget-states.css")
        app.add_js_file("widget-states.js", priority=392, **{"data-page": pagename})
        app.add_css_file("wide-labs.css")
        app.add_js_file("wide-labs.js", loading_method="defer")


def add_fallbacks(app, doctree, page):
    entries = pages.state_of(app.env, page)
    for view, model in pages.shown_widgets(doctree):
        words = pages.html(fallback(entries[model]["state"]))
        view.parent.insert(view.parent.index(view) + 1, words)


def paragraphs(text: str) -> str:
    """Return a <p> for each part of a text between empty lines."""
    return "".join(f"<p>{inline(part)}</p>" for part in re.split(r"\n\s*\n", text.strip()))


def written_question(asked: dict) -> str:
    """Return a question with its choices, and the answer in a fold."""
    choices = "".join(f"<li>{inline(choice)}</li>" for choice in asked["choices"])
    letters = ", ".join(ascii_uppercase[i] for i in asked["answers"])
    answer = paragraphs(f"{letters}. {asked['explanation']}")
    return (
        f'{paragraphs(asked["question"])}<ol type="A">{choices}</ol>'
        f"<details><summary>The answer</summary>{answer}</details>"
    )


def written_exercise(state: dict) -> str:
    """Return what an exercise offers for an answer, part by part, and where it is checked."""
    parts = []
    for title, labels in zip(state["titles"], state["labels"], strict=True):
        parts += [paragraphs(title)] if title else []
        if state["kind"] == "lines":
            lines = (f"{i:>3}  {escape(line)}\n" for i, line in enumerate(labels, start=1))
            parts.append(f"<pre>{''.join(lines)}</pre>")
        else:
            parts.append(f"<ul>{''.join(f'<li>{inline(label)}</li>' for label in labels)}</ul>")
    words = f"Here an answer is checked; it needs JavaScript. {state['summary']}"
    return f"{''.join(parts)}<p>{escape(words, quote=False)}</p>"


def fallback(state: dict) -> str:
    if {*ASKED} <= state.keys():
        title = '<p class="admonition-title">Predict</p>'
        inside = f'<div class="admonition predict">{title}{written_question(state)}</div>'
    elif {"kind", "titles", "labels", "summary"} <= state.keys():
        inside = f'<div class="course-without-script">{written_exercise(state)}</div>'
    else:
        said = state.get("summary", "")
        words = f"Here stands an interactive figure; it needs JavaScript. {said}"
        inside = f'<p class="course-without-script">{escape(words.strip(), quote=False)}</p>'
    return f"<noscript>{inside}</noscript>"


def in_plain_words(state: dict) -> str:
    """Return the lines that stand in a notebook where no widget is drawn."""
    if "kind" in state:
        return "Run this cell for fields to answer in."
    if "question" not in state:
        return f"Run this cell for an interactive figure. {state.get('summary', '')}".strip()
    choices = "".join(f"\n  - {choice}" for choice in state["choices"])
    return f"Predict: {state['question']}{choices}\nRun this cell to commit to an answer."


def setup(app):
    app.connect("doctree-read", prepare_state)
    pages.write_again_with(app, "widgets", write_code)
    app.connect("html-page-context", load_files)
    app.connect("doctree-resolved", add_fallbacks)
