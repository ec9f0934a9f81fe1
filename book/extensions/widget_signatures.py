"""The API pages show how a widget is made: traitlets would have them say `*args, **kwargs`."""

from sphinx.util.inspect import signature, stringify_signature
from traitlets import HasTraits


def show_arguments(app, what, name, documented, options, arguments, result):
    """Return the signature of a class with traits as its `__init__` has it."""
    if what != "class" or not issubclass(documented, HasTraits):
        return None
    taken = signature(documented.__init__, bound_method=True)
    shown = stringify_signature(taken, unqualified_typehints=True, show_return_annotation=False)
    return shown, None


def setup(app):
    """Look at every signature before it is written."""
    app.connect("autodoc-process-signature", show_arguments)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
