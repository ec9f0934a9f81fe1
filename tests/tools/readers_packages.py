"""What a reader hasn't got who has installed only some packages."""

import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import ROOT


def missing_in_notebooks() -> list[str]:
    """Return what a reader hasn't got who has installed attnlib[lessons] and Jupyter's kernel."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lessons = project["optional-dependencies"]["lessons"]
    return missing_beside(*project["dependencies"], *lessons, "ipykernel")


@cache
def missing_beside(*wanted: str) -> list[str]:
    """Return the modules that are installed here, but not where pip installs only these."""
    installed = {name for text in wanted for name in _with_what_it_needs(Requirement(text))}
    owners = {
        name: set(map(canonicalize_name, found)) for name, found in packages_distributions().items()
    }
    return sorted(module for module, found in owners.items() if not installed & found)


def _with_what_it_needs(requirement: Requirement, seen: set | None = None) -> set[str]:
    """Return the packages that pip would install for it."""
    seen = set() if seen is None else seen
    for extra in ["", *requirement.extras]:
        key = (canonicalize_name(requirement.name), extra)
        if key in seen:
            continue
        seen.add(key)
        for text in _needs(requirement.name):
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                _with_what_it_needs(needed, seen)
    return {name for name, _ in seen}


def _needs(name: str) -> list[str]:
    try:
        return requires(name) or []
    except PackageNotFoundError:  # this system goes without it
        return []
