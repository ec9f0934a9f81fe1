"""What a page's head says of the page: once how wide it is, and with what words it begins.

docutils writes the width that Sphinx has written already. The first words of the text are what a
search engine shows below the page's title, and a chat below a link to it.
"""

import re
from html import escape
from textwrap import shorten

from docutils import nodes

WIDTH = re.compile(r'<meta name="viewport"[^>]*>\s*')
DESCRIPTION = '<meta name="description" content="{words}">\n'
MOST = 200  # characters: search engines show fewer


def first_words(doctree) -> str:
    """Return the beginning of a page's text: no captions, boxes, lists or outputs."""
    paragraphs = doctree.findall(nodes.paragraph)
    text = " ".join(part.astext() for part in paragraphs if isinstance(part.parent, nodes.section))
    return shorten(text, MOST, placeholder=" …")


def write_head(app, pagename, templatename, context, doctree):
    """Leave one width, and add a description, which libraries that run later find."""
    tags = WIDTH.sub("", context.get("metatags", ""))
    words = escape(first_words(doctree)) if doctree else ""
    if words:
        tags += DESCRIPTION.format(words=words)
        context["meta"] = {**(context.get("meta") or {}), "og:description": words}
    context["metatags"] = tags


def setup(app):
    """Run before each page is written."""
    app.connect("html-page-context", write_head)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
