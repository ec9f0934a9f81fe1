"""What search engines, chats and servers ask a published site for.

All of it needs the site's address, html: baseurl: in _config.yml; without one nothing here is done,
but for the icon and the root page.
"""

from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from site_pictures import CARD, TOUCH_ICON, draw_pictures

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


def name_touch_icon(app, pagename, templatename, context, doctree):
    """Say in a page's head which picture stands for it on a phone's home screen."""
    icon = context["pathto"](f"_static/{TOUCH_ICON}", resource=True)
    context["metatags"] = context.get("metatags", "") + TOUCH.format(icon=icon)


def write_robots(app, exception):
    """Lead search engines to the list of all pages."""
    if exception or app.builder.format != "html" or not app.config.html_baseurl:
        return
    lines = f"User-agent: *\nSitemap: {app.config.html_baseurl.rstrip('/')}/sitemap.xml\n"
    (Path(app.outdir) / "robots.txt").write_text(lines, encoding="utf-8")


def write_pictures(app, exception):
    """Draw the icon for phones and the picture for links."""
    if not exception and app.builder.format == "html":
        icon = Path(app.srcdir) / app.config.html_favicon
        draw_pictures(icon, app.config.html_title, Path(app.outdir) / "_static")


def write_root_page(app, exception):
    """Lead from the folder to the first page, with words where Jupyter Book would have none."""
    if not exception and app.builder.format == "html":
        first = escape(app.builder.get_target_uri(app.config.root_doc))
        text = ROOT_PAGE.format(title=escape(app.config.html_title), first=first)
        (Path(app.outdir) / "index.html").write_text(text, encoding="utf-8")


def setup(app):
    """Load libraries as soon as the settings are read; write files when all pages are."""
    app.connect("config-inited", load_libraries)
    app.connect("html-page-context", name_touch_icon)
    for write in (write_robots, write_pictures, write_root_page):
        app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
