"""`{counted}`L03` minutes``: how long a lesson or a part of one takes, counted on the built pages.

What may be counted, several with spaces between them, which are added up:

* `L03`: minutes to read a lesson, as page_lengths.py counts them; `L03#three-roles`: one section;
* `L03:exercises`: minutes that its exercises say they take; `ex-l03-row`: one of them;
* `L03:predictions`: how many predictions it asks for;
* `L09...`: this lesson and all after it, with or without `:exercises`.

Numbers are filled in when all pages are written. `{lesson-times}` is a table of all lessons.
"""

import json
import re
from functools import cache
from html import escape
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from docutils import nodes
from docutils.statemachine import StringList
from lesson_numbers import LESSON
from page_lengths import STATE, Length, length_of
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

LOGGER = logging.getLogger(__name__)
PLACE = '<span class="course-counted" data-of="{of}">'
PLACES = re.compile(r'(<span class="course-counted" data-of="([^"]*)">)[^<]*')
TARGET = re.compile(r"(L\d\d)(\.\.\.)?(?:(#[\w-]+)|:(exercises|predictions))?")
EXERCISE = re.compile(r"ex-(l\d\d)-[\w-]+")
KINDS = ("", ":exercises", ":predictions")
WIDGETS = "application/vnd.jupyter.widget-state+json"
VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]'
EFFORT = re.compile(r"about (\d+) minute")


class Counted(SphinxRole):
    """A number that is filled in later."""

    def run(self):
        """Return its place."""
        place = PLACE.format(of=escape(self.text))
        return [nodes.raw(text=f"{place}?</span>", format="html")], []


class LessonTimes(SphinxDirective):
    """`{lesson-times}`; its content is for those who read the page's source."""

    has_content = True

    def run(self):
        """Write the table as if the page had it."""
        self.env.note_reread()  # a new lesson has a line
        lines = [
            "| lesson | read | solve | predictions |",
            "|---|--:|--:|--:|",
        ]
        for page in sorted(self.env.found_docs):
            name = page.split("/")[-1]
            if lesson := LESSON.match(name):
                of = (f"{{counted}}`{lesson[0]}{kind}`" for kind in KINDS)
                lines.append(f"| [](/{page}.md) | {' | '.join(of)} |")
        table = nodes.section()
        self.state.nested_parse(StringList(lines), 0, table)
        return table.children


class Counter:
    """Counts on the pages of a site."""

    def __init__(self, site: Path):
        """Find its lessons: "L03" -> the page."""
        found = sorted((site / "book").glob("L[0-9][0-9]_*.html"))
        self.pages = {LESSON.match(page.name)[0]: page for page in found}
        self.read = cache(self._read)
        self.length = cache(self._length)

    def _read(self, lesson: str) -> BeautifulSoup:
        if lesson not in self.pages:
            raise ValueError(f"there is no lesson {lesson}")
        return BeautifulSoup(self.pages[lesson].read_text(encoding="utf-8"), "html.parser")

    def count(self, what: str) -> int:
        """Return a number for "L03#three-roles ex-l03-row".

        Raises:
            ValueError: it names what isn't there, or can't be read.
        """
        return sum(map(self._count_one, what.split()))

    def _count_one(self, one: str) -> int:
        if exercise := EXERCISE.fullmatch(one):
            return effort_in(self._part(exercise[1].upper(), one))
        target = TARGET.fullmatch(one)
        if target is None:
            wanted = "L03, L03#section, L03:exercises, L03:predictions or an exercise's label"
            raise ValueError(f"{{counted}}: wanted {wanted}, got {one}")
        lesson, onward, section, kind = target.groups()
        lessons = [other for other in self.pages if other >= lesson] if onward else [lesson]
        return sum(self._count_in(each, section, kind) for each in lessons)

    def _count_in(self, lesson: str, section: str | None, kind: str | None) -> int:
        if kind == "exercises":
            return effort_in(self.read(lesson))
        length = self.length(lesson, section)
        return length.predictions if kind else length.minutes

    def _length(self, lesson: str, section: str | None) -> Length:
        return length_of(self._alone(lesson, section[1:]) if section else str(self.read(lesson)))

    def _part(self, lesson: str, name: str) -> Tag:
        part = self.read(lesson).find(id=name)
        if part is None:
            raise ValueError(f"{lesson} has nothing called {name}")
        return part

    def _alone(self, lesson: str, name: str) -> str:
        """Return a page of one section, with the predictions that stand in it."""
        part = self._part(lesson, name)
        section = part if part.name == "section" else part.find_parent("section")
        shown = {json.loads(view.string)["model_id"] for view in section.select(VIEW)}
        state = self.read(lesson).select_one(STATE)
        saved = json.loads(state.string)["state"] if state else {}
        kept = {"state": {model: entry for model, entry in saved.items() if model in shown}}
        text = json.dumps(kept).replace("<", "\\u003c")  # nothing in it ends the script
        return f'<article>{section}</article><script type="{WIDGETS}">{text}</script>'


def effort_in(part: Tag) -> int:
    """Return the minutes that the exercises within a part of a page say they take."""
    lines = (line.text for line in part.select(".effort"))
    return sum(int(EFFORT.search(line)[1]) for line in lines)


def fill_in(app, exception):
    """Count what the pages ask for."""
    if exception is not None or app.builder.format != "html":
        return
    counter = Counter(Path(app.outdir))

    def counted(place: re.Match) -> str:
        try:
            return f"{place[1]}{counter.count(place[2])}"
        except ValueError as error:
            LOGGER.warning("%s", error, type="counted")
            return place[0]

    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        if PLACES.search(text):
            page.write_text(PLACES.sub(counted, text), encoding="utf-8")


def setup(app):
    """Offer role and table, and count when all pages are written."""
    app.add_role("counted", Counted())
    app.add_directive("lesson-times", LessonTimes)
    app.connect("build-finished", fill_in)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
