"""`{effort}`★★ 10 minutes``: how hard an exercise is, of three stars, and about how long it takes.

JupyterLab doesn't know the role and shows its text, which can be read as it stands.
"""

import re

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

LOGGER = logging.getLogger(__name__)
HARDEST = 3
EFFORT = re.compile(rf"(★{{1,{HARDEST}}}) ([1-9]\d*) minutes?")


def stars_and_time(match: re.Match) -> tuple[int, str, str]:
    """Return 2, "★★☆" and "about 10 minutes"."""
    stars = len(match[1])
    time = f"about {match[2]} minute{'s' * (match[2] != '1')}"
    return stars, "★" * stars + "☆" * (HARDEST - stars), time


class Effort(SphinxRole):
    """Stars, which a screen reader is told in words, and minutes."""

    def run(self):
        """Return the line, or warn of text that is neither."""
        match = EFFORT.fullmatch(self.text)
        if not match:
            LOGGER.warning(
                "{effort}`%s`: wanted 1 to %d stars and minutes, such as {effort}`★★ 10 minutes`",
                self.text, HARDEST, location=self.get_location(), type="effort",
            )  # fmt: skip
            return [nodes.Text(self.text)], []
        number, stars, time = stars_and_time(match)
        heard = f"difficulty {number} of {HARDEST}"
        shown = f'<span role="img" aria-label="{heard}">{stars}</span> · {time}'
        words = f"*{stars} · {time}.*"
        return [nodes.raw(text=shown, format="html", classes=["effort"], words=words)], []


def setup(app):
    """Offer the role to the pages."""
    app.add_role("effort", Effort())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
