"""Numbers that pages show: of figures and exercises, of what was measured, of minutes.

* Figures and exercises are numbered within their page: Figure L04.3 is the third of L04. Sphinx
  numbers them through the whole book. Its numbers are replaced where captions, titles and
  references read them; before the next build they are put back, so that Sphinx finds what changed.

* `{eval}`name`` is a number that the page measured and gave to its prose with `attncourse.glue`.
  JupyterLab's MyST knows a role of this name, too: it asks the kernel for the variable, which
  `glue` makes. The site takes the number from the outputs, as myst-nb's `glue:text` does. Where a
  cell of the page failed and the number is missing, the text says so.

* `{counted}`L03`` is how long a lesson or a part of one takes, counted on the built pages. These
  can be counted; several, with spaces between them, are added up:

  * `L03`: minutes to read a lesson, as lengths.py counts them; `L03#three-roles`: one section;
  * `L03:exercises`: minutes that its exercises say they take; `ex-l03-row`: one of them;
  * `L03:predictions`: how many predictions it asks for;
  * `L09...`: this lesson and all after it, with or without `:exercises`.

  `{lesson-times}` is a table of all lessons.

* The sidebar shows how long each lesson takes to read, as the lesson's own page says.
"""

import re
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from myst_nb.core.variables import RetrievalError
from myst_nb.ext.glue.crossref import ReplacePendingGlueReferences
from myst_nb.ext.glue.roles import PasteTextRole
from myst_nb.ext.glue.utils import PendingGlueReference, retrieve_glue_data
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from course import pages
from course.execution import failed_cells
from course.lengths import length_of

LOGGER = logging.getLogger(__name__)

# For pages that aren't lessons. All other pages number without a prefix.
PREFIXES = {
    "museum": "M",
    "Positions_Inside_the_Scores": "P",
    "masks_in_pytorch": "T",
    "Heads_over_Devices": "D",
}
NOT_MEASURED = "[not measured]"
PLACE = '<span class="course-counted" data-of="{of}">?</span>'
PLACES = re.compile(r'(<span class="course-counted" data-of="([^"]*)">)[^<]*')
TARGET = re.compile(r"(L\d\d)(\.\.\.)?(?:#([\w-]+)|:(exercises|predictions))?")
EXERCISE = re.compile(r"ex-(l\d\d)-[\w-]+")
KINDS = ("", ":exercises", ":predictions")
EFFORT = re.compile(r"about (\d+) minute")
SAYS = re.compile(r"About (\d+) minutes to read\b")


def prefix_of(page: str) -> tuple[str, ...]:
    """Return what stands before the dot: ("L04",) for "book/L04_Multi_Head_Attention"."""
    prefix = pages.lesson_of(page) or PREFIXES.get(page.split("/")[-1])
    return (prefix,) if prefix else ()


def put_back(app, env):
    env.toc_fignumbers = getattr(env, "numbers_in_the_book", {})
    return []


def number_within_pages(app, env):
    """Count anew on each page: kind -> {id: ("L04", 3)}."""
    env.numbers_in_the_book = env.toc_fignumbers
    env.toc_fignumbers = {}
    for page, kinds in env.numbers_in_the_book.items():
        numbers = env.toc_fignumbers[page] = {}
        for kind, found in kinds.items():
            names = enumerate(sorted(found, key=found.get), start=1)
            numbers[kind] = {name: (*prefix_of(page), number) for number, name in names}
    return []


class Measured(PasteTextRole):
    """The role. On a page where no cell failed, a missing number is a mistake, as ever."""

    def run(self):
        env = self.document.settings.env
        if env.docname in failed_cells(env) and "::" not in self.text:
            try:
                retrieve_glue_data(self.document, self.text)
            except RetrievalError:
                return [nodes.Text(NOT_MEASURED)], []
        return super().run()


class NotMeasured(SphinxPostTransform):
    """Says so where a number comes from another page."""

    default_priority = ReplacePendingGlueReferences.default_priority - 1

    def run(self, **_):
        for number in list(self.document.findall(PendingGlueReference)):
            measured = self.env.nb_metadata.get(number.refdoc, {}).get("glue", ())
            if number.refdoc in failed_cells(self.env) and number.key not in measured:
                number.replace_self(nodes.Text(NOT_MEASURED))


def counted_role(name, rawtext, text, *_):
    """Return a place for a number, which is filled in when all pages are written."""
    return [pages.html(PLACE.format(of=escape(text)))], []


def lesson_times(env) -> Iterator[str]:
    yield from ("| lesson | read | solve | predictions |", "|---|--:|--:|--:|")
    for page in sorted(env.found_docs):
        if lesson := pages.lesson_of(page):
            of = (f"{{counted}}`{lesson}{kind}`" for kind in KINDS)
            yield f"| [](/{page}.md) | {' | '.join(of)} |"


class Counter:
    """Counts on the pages of a site."""

    def __init__(self, site: Path):
        found = sorted((site / "book").glob("L[0-9][0-9]_*.html"))
        self.pages = {pages.lesson_of(page.name): page for page in found}  # "L03" -> its page
        self.read, self.count_in = cache(self._read), cache(self._count_in)

    def _read(self, lesson: str) -> BeautifulSoup:
        if lesson not in self.pages:
            raise ValueError(f"there is no lesson {lesson}")
        page = BeautifulSoup(self.pages[lesson].read_text(encoding="utf-8"), "html.parser")
        for code in page.select("pre"):  # a tag for each coloured word is most of a page
            code.string = code.text
        return page

    def count(self, what: str) -> int:
        """Return a number for "L03#three-roles ex-l03-row", or raise ValueError."""
        return sum(map(self._count_one, what.split()))

    def _count_one(self, one: str) -> int:
        if exercise := EXERCISE.fullmatch(one):
            return self.count_in(exercise[1].upper(), one, "exercises")
        target = TARGET.fullmatch(one)
        if target is None:
            wanted = "L03, L03#section, L03:exercises, L03:predictions or an exercise's label"
            raise ValueError(f"{{counted}}: wanted {wanted}, got {one}")
        lesson, onward, section, kind = target.groups()
        lessons = [other for other in self.pages if other >= lesson] if onward else [lesson]
        return sum(self.count_in(each, section, kind) for each in lessons)

    def _count_in(self, lesson: str, name: str | None, kind: str | None) -> int:
        page = self.read(lesson)
        part = page.find(id=name) if name else page
        if part is None:
            raise ValueError(f"{lesson} has nothing called {name}")
        if kind == "exercises":
            return sum(int(EFFORT.search(line.text)[1]) for line in part.select(".effort"))
        length = length_of(page, name or "")
        return length.predictions if kind else length.minutes


def fill_in(app):
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


def note_minutes(app, doctree):
    """Note the minutes that a page gives itself."""
    texts = (paragraph.astext() for paragraph in doctree.findall(nodes.paragraph))
    found = next(filter(None, map(SAYS.match, texts)), None)
    pages.note(app, "minutes", int(found[1]) if found else None)


def add_minutes(app, pagename, templatename, context, doctree):
    """Put a line below each link of the sidebar to a page that has minutes."""
    sidebar_of = context["generate_toctree_html"]
    places = {}
    for page, number in pages.noted(app.env, "minutes").items():
        address = app.builder.get_relative_uri(pagename, page) if page != pagename else "#"
        places[address] = f'<span class="course-minutes">{number} minutes</span>'

    def with_minutes(kind, **options):
        found = sidebar_of(kind, **options)
        if kind != "sidebar":
            return found
        soup = BeautifulSoup(str(found), "html.parser")
        for link in soup.select("a[href]"):
            link.insert_after(BeautifulSoup(places.get(link["href"], ""), "html.parser"))
        return str(soup)

    context["generate_toctree_html"] = with_minutes


def setup(app):
    """Number around Sphinx, which does it at priority 500; change the sidebar after the theme."""
    app.connect("env-get-updated", put_back, priority=400)
    app.connect("env-get-updated", number_within_pages, priority=600)
    app.add_role("eval", Measured(), override=True)  # myst-nb's own needs a kernel in the build
    app.add_post_transform(NotMeasured)
    app.add_role("counted", counted_role)
    pages.add_written(app, "lesson-times", lesson_times)
    pages.when_written(app, fill_in)
    app.connect("doctree-read", note_minutes)
    pages.write_again_with(app, "minutes")
    app.connect("html-page-context", add_minutes, priority=900)
