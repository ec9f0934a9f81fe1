"""All widgets of attncourse, found by themselves, and what the test file of each says about it."""

from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from attncourse import widgets

FOLDER = Path(__file__).parents[1] / "attncourse" / "browser"

# What the test file of a widget has to hold, and what for.
NEEDED = {
    "example": "a function that returns a small one, in which every text is the one it is given",
    "largest": "a function that does so for one that needs all the room it can get",
    "PLACES": "a set of all places in which the texts of example() are seen or spoken, as "
    "NOTE_PLACES in test_every_widget.py names them",
    "KEY": "a control's selector and a key that changes a trait when it is pressed there",
    "DAMAGES": "a dict from what the page is to say to values of traits that so damage the state "
    "of example(), or to a function that does: it gets the state and its buffers",
}


def name_of(widget: type) -> str:
    """Return the name of a widget's folder: "head_explorer"."""
    return widget.__module__.split(".")[-2]


NAMES = [name_of(getattr(widgets, name)) for name in widgets.__all__]


def what_is_missing(name: str) -> str:
    """Say what a widget's test file lacks; nothing if it is complete."""
    file = f"test_{name}.py"
    found = vars(about(name)) if (FOLDER / file).exists() else {}
    lacking = [f"{what}, {why}" for what, why in NEEDED.items() if what not in found]
    return f"tests/attncourse/browser/{file} must hold {'; '.join(lacking)}" if lacking else ""


@cache
def about(name: str) -> ModuleType:
    """Return what stands in the test file of a widget, as a module."""
    spec = spec_from_file_location(f"browser.test_{name}", FOLDER / f"test_{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMPLETE = [name for name in NAMES if not what_is_missing(name)]
