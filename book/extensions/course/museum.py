"""The museum's walls: below the heading of each symptom a card for every exhibit.

A card shows the heatmaps of the exhibit's own figure, one pixel per cell, without labels and axes.
So nothing is drawn twice, and the cards need no script. museum.js opens one exhibit at a time.
"""

import re
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

from course.pages import html, load_where

# As matplotlib writes a heatmap. A color bar is one, too, but with more steps than a map has rows.
HEATMAP = re.compile(r'<image xlink:href="([^"]+)" id="\w+" width="\d+" height="(\d+)"')
MOST_ROWS = 16
CARD = (
    '<li><a href="#{anchor}"><span>{name}</span>'
    '<svg viewBox="0 0 {width} 10" role="img" aria-label="{words}">{places}{maps}</svg></a></li>'
)
PLACE = '<rect x="{}" width="10" height="10" />'
MAP = '<image x="{}" width="10" height="10" href="{}" />'
STEP = 11  # from one map to the next


def anchor_of(node: nodes.Node) -> str:
    """Return the target of an exhibit; "" for any other node."""
    ids = node["ids"] if isinstance(node, nodes.section) else []
    return next((one for one in ids if one.startswith("exhibit-")), "")


class Walls(SphinxTransform):
    """Put a wall into each section that has exhibits."""

    default_priority = 495  # before figures have copies

    def apply(self):
        for section in list(self.document.findall(nodes.section)):
            if exhibits := [*filter(anchor_of, section)]:
                wall = f'<ul class="course-wall">{"".join(map(self.card, exhibits))}</ul>'
                links = (f"[{one[0].astext()}](#{anchor_of(one)})" for one in exhibits)
                section.insert(1, html(wall, words=", ".join(links)))  # after its title

    def card(self, exhibit: nodes.section) -> str:
        """Return the card of an exhibit, with what its last figure shows.

        Where the figure has only the right map, since the broken attention raised an error, the
        second place stays empty.
        """
        maps, words = [], ""
        for image in [*exhibit.findall(nodes.image)][-1:]:  # none where its cell has failed
            svg = Path(self.app.srcdir, image["uri"].lstrip("/")).read_text(encoding="utf-8")
            maps = [source for source, rows in HEATMAP.findall(svg) if int(rows) <= MOST_ROWS]
            words = image.get("alt", "")
        places = range(0, STEP * max(2, len(maps)), STEP)
        return CARD.format(
            anchor=anchor_of(exhibit),
            name=escape(exhibit[0].astext()),
            words=escape(words),
            width=places.stop - 1,
            places="".join(map(PLACE.format, places)),
            maps="".join(map(MAP.format, places, (source.replace("\n", "") for source in maps))),
        )


def setup(app):
    app.add_transform(Walls)
    load_where(app, ("course-wall",), "museum.js")  # in the head: nothing moves when exhibits close
