"""`{eval}`name``: a number that the page measured and gave to its prose with attnlib's `glue`.

The role has the name that JupyterLab's MyST knows: there it asks the kernel for the variable, which
`glue` makes. Here it takes what `glue` left among the outputs, as myst-nb's `glue:text` does.
"""

from myst_nb.ext.glue.roles import PasteTextRole


def setup(app):
    """Take the role from myst-nb, whose own needs a kernel while pages are read."""
    app.setup_extension("myst_nb")  # first, or it would take the role back
    app.add_role("eval", PasteTextRole(), override=True)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
