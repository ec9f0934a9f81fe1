"""The modules of the course's packages."""

from importlib import import_module
from pkgutil import walk_packages

from course.pages import PACKAGES


def names_of_modules() -> list[str]:
    """Return the name of every module that can be imported everywhere."""
    found = [*PACKAGES]
    for package in map(import_module, PACKAGES):
        found += [module.name for module in walk_packages(package.__path__, f"{package.__name__}.")]
    found.remove("attnlib.heatmap._triton")  # needs Triton
    return found
