"""Measured numbers for the prose of a page."""

from importlib.util import find_spec

__all__ = ["glue"]

HIDDEN = "application/papermill.record/"  # no program shows outputs of such a type


def glue(name: str, value: str | int) -> None:
    """Give a measured number to the page's prose, where the role `{eval}` shows it by its name.

    The site finds it among the cell's outputs, where the ``glue`` of myst-nb would have put it;
    JupyterLab asks the kernel for the variable `name`, which this makes. Outside a notebook nothing
    happens.

    Args:
        name: the page's own name for the number, such as "l04_outside".
        value: the number as a page shows it: a text such as ``f"{loss:.2f}"``, or a whole number.

    Raises:
        TypeError: `value` is neither; a float doesn't say how many of its digits matter.
        ValueError: `name` can't be a variable.
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TypeError(
            f"value of {name!r} must be a text or a whole number, got {type(value).__name__} "
            f"({value!r}): format it first, as in f'{{value:.2f}}'"
        )
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"name must be one that a variable can have, got {name!r}")
    if find_spec("IPython") is None:
        return
    from IPython import get_ipython
    from IPython.display import display

    if (shell := get_ipython()) is None:
        return
    shell.user_ns[name] = text = str(value)
    scrapbook = {"name": name, "mime_prefix": HIDDEN}
    quoted = repr(text)  # myst-nb reads Python: the text 1.50 would be the number 1.5
    display({f"{HIDDEN}text/plain": quoted}, raw=True, metadata={"scrapbook": scrapbook})
