"""The works that a page cites, each as the bibliography has it."""

from collections.abc import Iterator

from pybtex.plugin import find_plugin
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx


def cited_works(app: Sphinx, page: str) -> Iterator[str]:
    """Give Markdown for each work that a page cites, in the bibliography's order."""
    cited = {
        key.strip()
        for reference in app.env.get_doctree(page).findall(pending_xref)
        if reference["refdomain"] == "cite"
        for key in reference["reftarget"].split(",")
    }
    backend = find_plugin("pybtex.backends", "markdown")()
    for citation in app.env.get_domain("cite").citations:
        if citation.key in cited:
            yield citation.formatted_entry.text.render(backend)
