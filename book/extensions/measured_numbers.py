"""`{eval}`name``: a number that the page measured and gave to its prose with attnlib's `glue`.

The role has the name that JupyterLab's MyST knows: there it asks the kernel for the variable, which
`glue` makes. Here it takes what `glue` left among the outputs, as myst-nb's `glue:text` does. Where
a cell of the page failed and the number is missing, the text says so.
"""

from docutils import nodes
from failed_cells import failed_cells
from myst_nb.core.variables import RetrievalError
from myst_nb.ext.glue.crossref import ReplacePendingGlueReferences
from myst_nb.ext.glue.roles import PasteTextRole
from myst_nb.ext.glue.utils import PendingGlueReference, retrieve_glue_data
from sphinx.transforms.post_transforms import SphinxPostTransform

NOT_MEASURED = "[not measured]"


class Measured(PasteTextRole):
    """The role; on a page on which no cell failed a missing number is a mistake, as ever."""

    def run(self):
        """Return the number, or what stands in its place."""
        env = self.document.settings.env
        if env.docname in failed_cells(env) and "::" not in self.text:
            try:
                retrieve_glue_data(self.document, self.text)
            except RetrievalError:
                return [nodes.Text(NOT_MEASURED)], []
        return super().run()


class NotMeasured(SphinxPostTransform):
    """Says so of the numbers of other pages."""

    default_priority = ReplacePendingGlueReferences.default_priority - 1

    def run(self, **_):
        """Walk the numbers that other pages were asked for."""
        for number in list(self.document.findall(PendingGlueReference)):
            measured = self.env.nb_metadata.get(number.refdoc, {}).get("glue", ())
            if number.refdoc in failed_cells(self.env) and number.key not in measured:
                number.replace_self(nodes.Text(NOT_MEASURED))


def setup(app):
    """Take the role from myst-nb, whose own needs a kernel while pages are read."""
    app.setup_extension("myst_nb")  # first, or it would take the role back
    app.add_role("eval", Measured(), override=True)
    app.add_post_transform(NotMeasured)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
