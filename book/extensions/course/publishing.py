"""The site around the text: heads, buttons and scripts of pages, icons, and what others are told.

Others are search engines, chats, servers and screen readers. Links to the site, its list of pages
and its page for lost readers need the site's address, html: baseurl: in _config.yml. Buttons that
lead to a page's source, or open its notebook where it runs without an installation, need the
repository's, repository: url:. The notebooks stand on a branch of their own, which
.github/workflows/course.yml fills. Without an address there are none, so none leads nowhere.
"""

import re
from html import escape
from pathlib import Path, PurePosixPath
from textwrap import shorten
from urllib.parse import urlsplit

import pydata_sphinx_theme
from docutils import nodes

from course.formulas import cut
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

# Scripts that a page can do without until it stands. The second needs the first.
LATER = ("clipboard.min.js", "copybutton.js", "sphinx_highlight.js")
SOURCE = re.compile(r'src="([^"]+)"')

NOT_FOUND = """
<h1>There is no such page</h1>
<p>It may have moved. Look for it by a word of its text, or begin at the <a href="{home}">start
page</a>.</p>
<form role="search" action="{home}search.html"><input type="search" name="q"
aria-label="Search the course"> <button type="submit">Search</button></form>
"""
ROOT_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<meta http-equiv="refresh" content="0; url={first}">
<p>The course begins on its <a href="{first}">start page</a>.</p>
</html>
"""
TOUCH = '<link rel="apple-touch-icon" href="{icon}">'

TOUCH_ICON, CARD = "touch-icon.png", "card.png"  # of book/assets

THEME = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static"
SHEET = Path("styles", "pydata-sphinx-theme.css")
FONTS = Path("vendor", "fontawesome", "webfonts")

CLASS = re.compile(r"\bfa-[\w-]+")
RULE = re.compile(r'(?<=\})((?:\.fa-[\w-]+:before,?)+)\{content:"[^"]*"\}')  # of all its names
OLDER_FORMAT = re.compile(r',url\([^)]*\.ttf\) format\("truetype"\)')  # of the same fonts
CHARACTER = re.compile(r"\\([0-9a-fA-F]{1,6})|([\ue000-\uf8ff])")

REPLACEMENTS = {
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


# The head of a page.


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


def name_touch_icon(app, pagename, templatename, context, doctree):
    """Say in a page's head which picture stands for it on a phone's home screen."""
    icon = context["pathto"](f"_static/{TOUCH_ICON}", resource=True)
    context["metatags"] = context.get("metatags", "") + TOUCH.format(icon=icon)


# Buttons and scripts.


def link_repository(app, config):
    """Show the theme's repository buttons where there is a repository."""
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
    links = [
        {
            "type": "link",
            "text": name,
            "tooltip": f"Open this page's notebook in {name}",
            "icon": "fas fa-play",
            "url": link.format(repository=repository, branch=NOTEBOOKS, page=pagename),
        }
        for name, link in PROGRAMS.items()
    ]
    context["header_buttons"].append(
        {
            "type": "group",
            "tooltip": "Run this page",
            "icon": "fas fa-rocket",
            "buttons": links,
            "label": "launch-buttons",
        }
    )


def load_later(app, pagename, templatename, context, doctree):
    """Take them from the page's scripts, and name them to the one that loads them."""
    if templatename == "search.html":  # its own script marks words, too
        return
    scripts = context["script_files"]
    named = {PurePosixPath(script.filename or "").name: script for script in scripts}
    later = [named[name] for name in LATER if name in named]
    scripts[:] = [script for script in scripts if script not in later]
    sources = [SOURCE.search(context["js_tag"](script))[1] for script in later]
    attributes = {"data-scripts": " ".join(sources)}
    app.add_js_file("later-scripts.js", loading_method="defer", **attributes)


# What a published site is asked for.


def load_libraries(app, config):
    """Load them where there is an address, told what they need to know."""
    if not config.html_baseurl:
        return
    for library in ("notfound.extension", "sphinx_sitemap", "sphinxext.opengraph"):
        app.setup_extension(library)
    config.notfound_urls_prefix = path = urlsplit(config.html_baseurl).path.rstrip("/") + "/"
    config.notfound_context = {"title": "Page not found", "body": NOT_FOUND.format(home=path)}
    config.ogp_site_url = config.html_baseurl
    config.ogp_site_name = config.html_title
    config.ogp_image = f"_static/{CARD}"
    config.ogp_image_alt = f"{config.html_title}, beside a small heatmap"
    config.sitemap_url_scheme = "{link}"  # one language, one version
    config.sitemap_excludes = ["404.html", "genindex.html", "search.html"]


def write_robots(app):
    """Lead search engines to the list of all pages."""
    if not app.config.html_baseurl:
        return
    lines = f"User-agent: *\nSitemap: {app.config.html_baseurl.rstrip('/')}/sitemap.xml\n"
    (Path(app.outdir) / "robots.txt").write_text(lines, encoding="utf-8")


def write_root_page(app):
    """Lead from the folder to the first page, with words where Jupyter Book would have none."""
    first = escape(app.builder.get_target_uri(app.config.root_doc))
    text = ROOT_PAGE.format(title=escape(app.config.html_title), first=first)
    (Path(app.outdir) / "index.html").write_text(text, encoding="utf-8")


# The theme's icons, and its markup.


def used_rules(sheet: str, used: set[str]) -> str:
    """Return a style sheet without the rules of icons that aren't used."""
    return RULE.sub(lambda rule: rule[0] if used & {*CLASS.findall(rule[1])} else "", sheet)


def characters_in(sheet: str) -> set[str]:
    """Return the characters that a style sheet names by escapes, and those of private use."""
    return {chr(int(code, 16)) if code else itself for code, itself in CHARACTER.findall(sheet)}


def cut_icons(app):
    """Leave in the site's fonts and in the theme's sheet what pages, scripts and sheets use."""
    site, static = Path(app.outdir), Path(app.outdir) / "_static"
    files = (*site.rglob("*.html"), *static.rglob("*.js"))
    used = set().union(*(CLASS.findall(file.read_text(encoding="utf-8")) for file in files))
    sheet = used_rules((THEME / SHEET).read_text(encoding="utf-8"), used)
    (static / SHEET).write_text(OLDER_FORMAT.sub("", sheet), encoding="utf-8")
    sheets = (file.read_text(encoding="utf-8") for file in static.rglob("*.css"))
    characters = set().union(*map(characters_in, sheets))
    for font in (THEME / FONTS).glob("*.woff2"):
        cut(font, static / FONTS / font.name, characters, "CourseIcons")
        (static / FONTS / font.with_suffix(".ttf").name).unlink(missing_ok=True)


def mend(app):
    """Replace the markup on every page."""
    for page in Path(app.outdir).rglob("*.html"):
        text = mended = page.read_text(encoding="utf-8")
        for theirs, ours in REPLACEMENTS.items():
            if not ours or ours not in text:  # a page may stand from an earlier build
                mended = mended.replace(theirs, ours)
        if mended != text:
            page.write_text(mended, encoding="utf-8")


def setup(app):
    """Read the settings, complete each page's head and buttons, and write files at the end."""
    app.connect("config-inited", link_repository)
    app.connect("config-inited", load_libraries)
    app.connect("html-page-context", write_head)
    app.connect("html-page-context", name_touch_icon)
    app.connect("html-page-context", open_elsewhere, priority=502)  # behind the theme's buttons
    app.connect("html-page-context", load_later, priority=600)  # when Sphinx knows all scripts
    when_written(app, cut_icons, mend, write_robots, write_root_page)
