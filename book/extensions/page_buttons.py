"""The buttons above a page that need the repository's address, repository: url: in _config.yml.

They lead to the page's source, and open its notebook where it runs without an installation. The
notebooks stand on a branch of their own, which .github/workflows/course.yml fills. Without an
address there are none, so none leads nowhere.
"""

NOTEBOOKS = "notebooks"  # the branch
GITHUB = "https://github.com/"
PROGRAMS = {
    "Colab": "https://colab.research.google.com/github/{repository}/blob/{branch}/{page}.ipynb",
    "Binder": "https://mybinder.org/v2/gh/{repository}/{branch}?urlpath=lab/tree/{page}.ipynb",
}


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


def setup(app):
    """Run when the settings are read, and when the theme has begun its list of buttons."""
    app.connect("config-inited", link_repository)
    app.connect("html-page-context", open_elsewhere, priority=502)
    return {"parallel_read_safe": True}
