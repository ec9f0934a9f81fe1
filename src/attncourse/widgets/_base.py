"""What the widgets are made of: their class, and their traits."""

from collections.abc import Callable
from typing import Any

import anywidget
import numpy as np
import traitlets
from torch import Tensor

from attncourse.widgets._browser_code import browser_code, style_sheet
from attncourse.widgets._inputs import float32_bytes, from_float32_bytes


class CourseWidget(anywidget.AnyWidget):
    """A widget of the course: its read-only traits are set once, when it is made."""

    def __init__(self, **values: object) -> None:
        known = self.traits()
        # Before ipywidgets' own `__init__`, so that the browser gets them with the first state.
        for name in [name for name in values if known[name].read_only]:
            self.set_trait(name, _plain(values.pop(name)))
        super().__init__(**values)

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, _plain(value))


def _plain(value: Any) -> Any:
    """Return numpy's numbers as Python's, which traits and JSON want, also within lists, dicts."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if type(value) is list else value


class Numbers(traitlets.Bytes):
    """A fixed trait: a tensor's numbers row by row, in a dtype of numpy's; float32 if left out.

    Set to a tensor, it holds the bytes that the browser reads.
    """

    def __init__(self, dtype: str = "<f4") -> None:
        super().__init__(read_only=True)
        self.tag(sync=True)
        self.dtype = dtype

    def validate(self, obj: Any, value: Any) -> bytes | None:
        """Return a tensor's bytes; bytes stay as they are."""
        if isinstance(value, Tensor):
            value = value.detach().cpu().numpy().astype(self.dtype).tobytes()
        return super().validate(obj, value)


def tensor_trait(shape: Callable[[Any], tuple[int, ...]]) -> traitlets.Instance:
    """Return the trait of a float32 tensor that a reader changes; it travels as bytes.

    Args:
        shape: a function from the widget to the tensor's shape.
    """
    return traitlets.Instance(Tensor).tag(
        sync=True,
        to_json=lambda value, widget: float32_bytes(value),
        from_json=lambda value, widget: from_float32_bytes(value, shape(widget)),
    )


def browser_files(name: str) -> tuple[str, str]:
    """Return a widget's `_esm` and `_css`, by the name of its folder."""
    return browser_code(name), style_sheet(name)


def summary_trait(sentence: str) -> traitlets.Unicode:
    """Return the fixed trait that says in a sentence what a widget shows, where no script runs."""
    return traitlets.Unicode(sentence, read_only=True).tag(sync=True)


def kept_trait(*names: str) -> traitlets.List:
    """Return the fixed trait that lists which traits a reader's browser keeps, on a page."""
    return traitlets.List(traitlets.Unicode(), list(names), read_only=True).tag(sync=True)
