"""Traits that are fixed."""

import traitlets


def summary_trait(sentence: str) -> traitlets.Unicode:
    """Return the fixed trait that says in a sentence what a widget shows, where no script runs."""
    return traitlets.Unicode(sentence, read_only=True).tag(sync=True)


def kept_trait(*names: str) -> traitlets.List:
    """Return the fixed trait that lists which traits a reader's browser keeps, on a page."""
    return traitlets.List(traitlets.Unicode(), list(names), read_only=True).tag(sync=True)


def set_fixed(widget: traitlets.HasTraits, values: dict[str, object]) -> None:
    """Set traits that nobody may change later.

    Done before ipywidgets' own `__init__`, so that the browser gets them with the first state.
    """
    for name, value in values.items():
        widget.set_trait(name, value)
