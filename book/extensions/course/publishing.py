"""The site around the text: heads and buttons, and what programs are told about a page.

Search engines, chats, servers and screen readers are such programs. Previews of links, the list of
pages and the page for lost readers need the site's address, html: baseurl: in _config.yml. Buttons
that lead to a page's source, or open its notebook where it runs without an installation, need the
repository's address, repository: url:. The notebooks stand on a branch of their own, which
.github/workflows/course.yml fills. Without an address a page has no such button.
"""

import re
from html import escape
from pathlib import Path
from textwrap import shorten
from urllib.parse import urlsplit

from docutils import nodes

from course.pages import when_written

WIDTH = re.compile(r'<meta name="viewport"[^>]*>\s*')
DESCRIPTION = '<meta name="description" content="{words}">\n'
MOST = 200  # characters: search engines show fewer
NOTEBOOKS = "notebooks"  # the branch
GITHUB = "https://github.com/"
PROGRAMS = {
    "Colab": "https://colab.research.google.com/github/{repository}/blob/{branch}/{page}.ipynb",
    "Binder": "https://mybinder.org/v2/gh/{repository}/{branch}?urlpath=lab/tree/{page}.ipynb",
}
NOT_FOUND = """
<h1>There is no such page</h1>
<p>It may have moved. Look for it by a word of its text, or begin at the <a href="{home}">start
page</a>.</p>
<form role="search" action="{home}search.html"><input type="search" name="q"
aria-label="Search the course"> <button type="submit">Search</button></form>
"""
REPLACEMENTS = {  # where screen readers or keys fail in the theme's HTML -> ours
    'class="bd-sidebar-primary bd-sidebar': (
        'role="complementary" aria-label="Course" class="bd-sidebar-primary bd-sidebar'
    ),
    ' role="doc-biblioentry"': "",
    ' aria-label="Toggle hidden content"': "",
    'href="#main-content"': 'href="#course-text"',
    '<article class="bd-article">': '<article class="bd-article" id="course-text">',
    '<div class="bd-search-container">': '<div class="bd-search-container" id="course-text">',
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    '<dl>\n<dd><em class="sig-param">': '<dl role="presentation">\n<dd><em class="sig-param">',
}


def prose_of(page: nodes.document) -> str:
    """Return the sentences of a page without formulas, captions, boxes, lists and outputs."""
    parts = (
        part for part in page.findall(nodes.paragraph) if isinstance(part.parent, nodes.section)
    )
    texts = (part.findall(nodes.Text) for part in parts if not part.next_node(nodes.math))
    shown = ([text for text in some if not isinstance(text.parent, nodes.raw)] for some in texts)
    return " ".join(map("".join, shown))


def describe_page(app, pagename, templatename, context, doctree):
    """Leave one width, and add a description, where libraries that run later find it."""
    tags = WIDTH.sub("", context.get("metatags", ""))
    if words := escape(shorten(prose_of(doctree), MOST, placeholder=" …")) if doctree else "":
        tags += DESCRIPTION.format(words=words)
        context["meta"] = {**(context.get("meta") or {}), "og:description": words}
    context["metatags"] = tags
    context["root_title"] = "Start"  # in the list of pages; its title says what one does there


def link_repository(app, config):
    options = config.html_theme_options
    if options.get("repository_url"):
        for button in ("repository", "issues", "edit_page"):
            options[f"use_{button}_button"] = True


def open_elsewhere(app, pagename, templatename, context, doctree):
    """Offer to open a page's notebook; both programs read notebooks from GitHub."""
    address = app.config.html_theme_options.get("repository_url", "")
    if not address.startswith(GITHUB) or "kernelspec" not in app.env.metadata.get(pagename, {}):
        return
    repository = address.removeprefix(GITHUB).strip("/")
    group = {"type": "group", "tooltip": "Run this page", "icon": "fas fa-rocket"}
    group |= {"buttons": [], "label": "launch-buttons"}
    for name, link in PROGRAMS.items():
        url = link.format(repository=repository, branch=NOTEBOOKS, page=pagename)
        button = {"type": "link", "text": name, "icon": "fas fa-play", "url": url}
        group["buttons"].append(button | {"tooltip": f"Open this page's notebook in {name}"})
    context["header_buttons"].append(group)


def load_libraries(app, config):
    if not config.html_baseurl:
        return
    for library in ("notfound.extension", "sphinx_sitemap", "sphinxext.opengraph"):
        app.setup_extension(library)
    config.notfound_urls_prefix = path = urlsplit(config.html_baseurl).path.rstrip("/") + "/"
    config.notfound_context = {"title": "Page not found", "body": NOT_FOUND.format(home=path)}
    config.ogp_site_url = config.html_baseurl
    config.ogp_site_name = config.html_title
    config.ogp_image = "_static/card.png"
    config.ogp_image_alt = (
        f"{config.html_title}. Arcs lead from a verb to two words, one from each head"
    )
    config.sitemap_url_scheme = "{link}"  # one language, one version
    config.sitemap_excludes = ["404.html", "genindex.html", "search.html"]


def mend(app):
    for page in Path(app.outdir).rglob("*.html"):
        text = mended = page.read_text(encoding="utf-8")
        for theirs, ours in REPLACEMENTS.items():
            if not ours or ours not in text:  # a page may stand from an earlier build
                mended = mended.replace(theirs, ours)
        if mended != text:
            page.write_text(mended, encoding="utf-8")


def setup(app):
    app.connect("config-inited", link_repository)
    app.connect("config-inited", load_libraries)
    app.connect("html-page-context", describe_page)  # after the theme, which is set up before
    app.connect("html-page-context", open_elsewhere, priority=502)  # after the theme's buttons
    when_written(app, mend)
