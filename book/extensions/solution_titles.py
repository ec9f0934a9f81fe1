"""The title of a solution opens it wherever it is pressed: it names its exercise without a link.

sphinx-exercise makes the name a link up to the exercise. The script that folds solutions knows
nothing of links in titles: a press would lead away and fail. The exercise stands just above.
"""

from docutils import nodes
from sphinx_exercise.nodes import solution_node


def drop_links(app, doctree, docname):
    """Put each link's text in its place."""
    for solution in doctree.findall(solution_node):
        title = solution.next_node(nodes.title)
        for link in list(title.findall(nodes.reference)):
            link.replace_self(nodes.Text(link.astext()))


def setup(app):
    """Run when references are resolved, after sphinx-exercise at priority 500."""
    app.connect("doctree-resolved", drop_links, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
