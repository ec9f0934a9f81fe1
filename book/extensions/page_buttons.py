"""The buttons above a page that lead to the repository.

They appear when its address is set in _config.yml, and never lead nowhere.
"""


def link_repository(app, config):
    """Show the theme's repository buttons where there is a repository."""
    options = config.html_theme_options
    if options.get("repository_url"):
        for button in ("repository", "issues", "edit_page"):
            options[f"use_{button}_button"] = True


def setup(app):
    """Run when the settings are read."""
    app.connect("config-inited", link_repository)
    return {"parallel_read_safe": True}
