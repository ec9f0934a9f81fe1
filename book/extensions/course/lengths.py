"""How long a page of the built site is: what is counted stands there when it opens.

* words: its text with captions and tables, and what its predictions ask and explain; a formula is
  one word. Solutions, hints, code, what code prints, alt text and widgets don't count.
* lines: those of code that aren't empty, folded for coders too, or part of a solution.
* figures: those with a caption, outside solutions.
* minutes to read, without solving exercises: 200 words a minute, the rate at which people read to
  learn (Carver, "Reading Rate: Theory, Research, and Practical Implications", Journal of Reading
  36(2), 1992; for pleasure it is about 300). The rest we set ourselves: five seconds for a line of
  code, half a minute to look at a figure and to make up one's mind about a prediction.
"""

import copy
import json
from typing import NamedTuple

from bs4 import BeautifulSoup, Tag

WORDS_PER_MINUTE, LINES_PER_MINUTE, FIGURES_PER_MINUTE, PREDICTIONS_PER_MINUTE = 200, 12, 2, 2

STATE = 'script[type="application/vnd.jupyter.widget-state+json"]'
VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]'
ASIDE = ".solution, .hint"
FOLDED = "details:not([open], .course-code > *), .dropdown, .toggle"
NO_PROSE = (
    "pre, script, noscript, summary:not(.exercise > *), .headerlink, .verdict, .effort, "
    ".course-how-to-run, .course-cover > button"
)


class Length(NamedTuple):
    """What was counted on one page."""

    words: int
    lines: int
    figures: int
    predictions: int

    @property
    def minutes(self) -> int:
        """How long it takes to read."""
        return round(
            self.words / WORDS_PER_MINUTE
            + self.lines / LINES_PER_MINUTE
            + self.figures / FIGURES_PER_MINUTE
            + self.predictions / PREDICTIONS_PER_MINUTE
        )


def length_of(page: BeautifulSoup, name: str = "") -> Length:
    """Count what is on a built page, or in the section that has a name or is around it."""
    article = page.find(id=name) if name else page.select_one("article")
    if article.name not in ("article", "section"):
        article = article.find_parent("section")
    predictions = predictions_in(article, page)
    article = copy.copy(article)  # for the page stays as it is
    for aside in article.select(ASIDE):
        aside.decompose()
    figures = len(article.select("figure:has(figcaption)"))
    code = [
        block.text.splitlines()
        for block in article.select(".highlight pre")
        if not block.find_parent(class_="cell_output") and not block.css.closest(FOLDED)
    ]
    lines = sum(bool(line.strip()) for block in code for line in block)
    for part in article.select(NO_PROSE):
        part.decompose()
    for formula in article.select(".math"):
        formula.string = "formula"
    words = len(" ".join([article.text, *predictions]).split())
    return Length(words, lines, figures, len(predictions))


def predictions_in(part: Tag, page: BeautifulSoup) -> list[str]:
    """Return all that each prediction in a part of a page asks, offers and explains."""
    state = page.select_one(STATE)
    saved = json.loads(state.string)["state"] if state else {}
    shown = [json.loads(view.string)["model_id"] for view in part.select(VIEW)]
    values = [saved[model]["state"] for model in shown]
    asked = [found for found in values if found.get("_module") == "predict"]
    return [" ".join([one["question"], *one["choices"], one["explanation"]]) for one in asked]
