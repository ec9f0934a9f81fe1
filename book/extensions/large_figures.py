"""Pages with drawings load what shows a drawing on the whole screen: large-figures.js."""


def load_script(app, pagename, templatename, context, doctree):
    """Let such pages load it."""
    if '<div class="drawing' in context.get("body", ""):
        app.add_js_file("large-figures.js", loading_method="defer")
        app.add_css_file("large-figures.css")


def setup(app):
    """Run when a page is written."""
    app.connect("html-page-context", load_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
