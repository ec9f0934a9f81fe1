"""What a reader predicts: covers hide answers, and browsers keep what was done.

What gives a prediction's answer away is covered in its place until its reader has committed.
CONTRIBUTING says how a page marks such an answer. An answer belongs to the last Predict box before
it. A cell's cover hides only what the cell prints or draws. Without script nothing is covered. See
prediction-covers.js.

Every widget that has a trait `kept` gets a mark made of what it asks, so that an answer that a
browser kept is never shown for an edited question. Each page knows the marks of all pages: the
sidebar says how much of each page is done. See progress.js.
"""

import json
from pathlib import Path

from docutils import nodes
from sphinx.util import logging

from course import pages
from course.widgets import mark_of

LOGGER = logging.getLogger(__name__)
ANSWERS = {"answer", "tag_answer"}  # classes: of a text, of a cell
COVER = '<div class="course-cover" data-until="{model}">{press}<div class="course-answer">'
PRESS = '<button type="button" hidden><span>Your guess first, or press to see</span></button>'
UNCOVERED = (nodes.caption, nodes.legend)  # of a figure
MARKS_FILE = "asked.js"
WORDS = {"predict": "predictions", "answer": "exercises on the page"}  # for the sidebar


def answers(doctree: nodes.document, state: dict) -> list[tuple[nodes.Element, str | None]]:
    """Return what a page marks as answers, each with the model of the Predict box it belongs to."""
    found, model = [], None
    for node in doctree.findall(nodes.Element):
        if pages.is_cell(node):
            shown = [one for _, one in pages.shown_widgets(node)]
            asked = [one for one in shown if state[one]["state"].get("_module") == "predict"]
            model = asked[0] if asked else model
        if ANSWERS.intersection(node.get("classes", ())):
            found.append((node, model))
    return found


def covered(answer: nodes.Element) -> list[list[nodes.Element]]:
    """Return what a text or a cell has to cover: rows of nodes that stand side by side."""
    if not pages.is_cell(answer):
        return [[answer]]
    if any(pages.shown_widgets(answer)):
        LOGGER.warning("a widget is never covered", location=answer)
    outputs = [part for part in answer if part.get("nb_element") == "cell_code_output"]
    rows = []
    for part in (part for output in outputs for part in output.children):
        figures = [*part.findall(nodes.figure)]  # a cell may print beside them
        rows += [[one for one in f.children if not isinstance(one, UNCOVERED)] for f in figures]
        rows += [] if figures else [[part]]
    return rows


def add_covers(app, doctree, page):
    """Put what answers into covers; neighbors share one."""
    end = None  # of the last cover
    for answer, model in answers(doctree, pages.state_of(app.env, page)):
        if model is None:
            LOGGER.warning("this answers no prediction: none stands before it", location=answer)
            continue
        for row in covered(answer):
            box = row[0].parent
            place = box.index(row[0])
            if end and end[1] == model and box[place - 1] is end[0]:
                box.insert(place + len(row) - 1, box.pop(place - 1))
                continue
            begin = pages.html(COVER.format(model=model, press=PRESS))
            end = pages.html("</div></div>"), model
            box[place : place + len(row)] = [begin, *row, end[0]]


def mark_page(app, doctree):
    marks = {words: [] for words in WORDS.values()}
    with pages.changing_state(app.env, app.env.docname) as entries:
        for _, model in pages.shown_widgets(doctree):
            entry = entries.get(model)
            if entry and "kept" in entry["state"]:
                mark, earlier = mark_of(entry), mark_of(entry, told=frozenset())
                entry["state"] |= {"_asked": mark, "_earlier_mark": earlier}
                known = marks[WORDS[entry["state"]["_module"]]]
                known += [mark] if mark not in known else []
    pages.note(app, "asked", {words: known for words, known in marks.items() if known})


def write_marks(env, name: str) -> str:
    """Write the marks of all pages into a file; where it changes, pages name it anew."""
    marks = json.dumps(dict(sorted(pages.noted(env, name).items())))
    text = f"globalThis.courseAsked = {marks};\n"
    folder = Path(env.app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKS_FILE).write_text(text, encoding="utf-8")
    return text


def load_progress(app, pagename, templatename, context, doctree):
    app.add_css_file("progress.css")
    app.add_js_file(MARKS_FILE, priority=390)
    app.add_js_file("progress.js", priority=391, **{"data-page": pagename})


def setup(app):
    app.connect("doctree-read", mark_page)
    pages.write_again_with(app, "asked", write_marks)
    app.connect("doctree-resolved", add_covers)
    pages.load_where(app, ("course-cover",), "prediction-covers.js")
    app.connect("html-page-context", load_progress)
