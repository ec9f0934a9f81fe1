"""The sidebar says of each lesson how long it takes to read, as the lesson's own page does."""

import re

from bs4 import BeautifulSoup
from docutils import nodes

SAYS = re.compile(r"About (\d+) minutes to read\b")


def remember(app, doctree):
    """Note the minutes that a page gives itself."""
    texts = (paragraph.astext() for paragraph in doctree.findall(nodes.paragraph))
    found = next(filter(None, map(SAYS.match, texts)), None)
    app.env.metadata[app.env.docname]["minutes"] = int(found[1]) if found else None


def minutes_of(env) -> dict[str, int]:
    """Return the minutes of each page that gives itself some."""
    return {page: data["minutes"] for page, data in env.metadata.items() if data.get("minutes")}


def show_everywhere(app, env):
    """Write all pages anew where a page's minutes changed, for all say them."""
    before = getattr(env, "minutes", None)
    env.minutes = minutes_of(env)
    return [] if env.minutes == before else list(env.found_docs)


def add_minutes(app, pagename, templatename, context, doctree):
    """Put a line below each link of the sidebar to a page that has minutes."""
    sidebar_of = context["generate_toctree_html"]
    target = app.builder.get_relative_uri
    minutes = {
        "#" if page == pagename else target(pagename, page): number
        for page, number in minutes_of(app.env).items()
    }

    def with_minutes(kind, **options):
        found = sidebar_of(kind, **options)
        if kind != "sidebar":
            return found
        soup = BeautifulSoup(str(found), "html.parser")
        for link in soup.select("a[href]"):
            if link["href"] in minutes:
                line = soup.new_tag("span", attrs={"class": "course-minutes"})
                line.string = f"{minutes[link['href']]} minutes"
                link.insert_after(line)
        return str(soup)

    context["generate_toctree_html"] = with_minutes


def setup(app):
    """Run when a page is read, and behind the theme, which makes the sidebar."""
    app.connect("doctree-read", remember)
    app.connect("env-get-updated", show_everywhere)
    app.connect("html-page-context", add_minutes, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
