"""Exercises without doubled ids: sphinx-exercise gives every box's content the same one."""

from docutils import nodes

DOUBLED = {"exercise-content", "solution-content"}


def drop_ids(app, doctree, docname):
    """Take those ids away; nothing refers to them."""
    for section in doctree.findall(nodes.section):
        section["ids"] = [name for name in section["ids"] if name not in DOUBLED]


def setup(app):
    """Run when references are resolved."""
    app.connect("doctree-resolved", drop_ids)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
