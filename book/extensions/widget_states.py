"""What a reader can move in each interactive figure of a page, for the script that links to it.

That are the traits of its class that aren't fixed. Questions and exercises have none here: what a
reader answers is kept by progress.js. A mark made of what a figure shows at its start tells links
of an older edition. See widget-states.js.
"""

from page_widgets import changing_state
from progress import mark_of

SCRIPT = "widget-states.js"


def moved_traits(module: str) -> list[str]:
    """Return the traits that a reader can change, of the widget in a module of attnlib.widgets."""
    from attnlib import widgets  # loads torch, so only where a page has widgets

    kinds = (getattr(widgets, name) for name in widgets.__all__)
    kind = next(kind for kind in kinds if kind.__module__.rpartition(".")[2] == module)
    own = set(kind.class_own_traits(sync=True))
    return sorted(
        name for name, trait in kind.class_traits().items() if name in own and not trait.read_only
    )


def mark_figures(app, doctree):
    """Tell each figure which of its traits can be moved, and its mark."""
    with changing_state(app.env, app.env.docname) as entries:
        for entry in entries.values():
            state = entry["state"]
            if "_module" in state and "kept" not in state:
                state["_mark"] = mark_of(entry)
                state["_moved"] = moved_traits(state["_module"])
                app.env.metadata[app.env.docname]["has_states"] = True


def load_script(app, pagename, templatename, context, doctree):
    """Let pages with such figures load the script before these are started."""
    if app.env.metadata.get(pagename, {}).get("has_states"):
        app.add_css_file("widget-states.css")
        app.add_js_file(SCRIPT, priority=392, **{"data-page": pagename})


def setup(app):
    """Run behind widget_code, which says whose each widget is."""
    app.connect("doctree-read", mark_figures, priority=650)
    app.connect("html-page-context", load_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
