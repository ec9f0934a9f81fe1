"""`{kept-weights}`: a table of the trained weights, and of what sweeps found, that attnlib keeps.

Their cards are read, not the package, which would load torch. The directive's content is for those
who read the page's source.
"""

import json

from docutils import nodes
from docutils.statemachine import StringList
from execution_cache import package_folder
from sphinx.util.docutils import SphinxDirective


class KeptWeights(SphinxDirective):
    """Reads the cards."""

    has_content = True

    def run(self):
        """Write the table as if the page had it."""
        self.env.note_reread()  # a new card changes this page, which itself stays the same
        lines = ["| file | the command that made it | date |", "|---|---|---|"]
        folder = package_folder() / "data"
        for file in sorted(folder.rglob("*.json")):
            card = json.loads(file.read_text(encoding="utf-8"))
            name = file.relative_to(folder).as_posix()
            lines.append(f"| `{name}` | `{card['command']}` | {card['date']} |")
        table = nodes.section()
        self.state.nested_parse(StringList(lines), 0, table)
        return table.children


def setup(app):
    """Offer the directive to the pages."""
    app.add_directive("kept-weights", KeptWeights)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
