"""Executing lessons the way the site's build does, into the cache that it reads."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from course.execution import cache_folder, is_kept, keep, prepare_kernels
from course.execution import execute as execute_page
from course.pages import lesson_checked_on, read_notebook
from jupyter_cache import get_cache
from nbformat import NotebookNode

from tools import ROOT
from tools.readers_packages import missing_in_notebooks

KERNELS = Path(__file__).with_name("kernels")
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))

# What makes a text file a notebook: the first lines of every lesson.
NOTEBOOK = """---
jupytext:
  text_representation: {extension: .md, format_name: myst, format_version: 0.13}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""


def all_pages() -> list[str]:
    """Return every page of _toc.yml, the root first: "book/index", ..."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"], *_files_below(toc)]


def _files_below(entry: dict) -> Iterator[str]:
    for level in ("parts", "chapters", "sections"):
        for inner in entry.get(level, ()):
            yield from [inner["file"]] if "file" in inner else []
            yield from _files_below(inner)


@cache
def all_notebooks() -> list[str]:
    """Return the pages that have cells."""
    return [page for page in all_pages() if read_notebook(ROOT / f"{page}.md") is not None]


def all_lessons() -> list[str]:
    """Return the lessons: "book/L03_...", ..."""
    return [page for page in all_notebooks() if re.match(r"L\d\d_", page.split("/")[-1])]


def all_on_the_path() -> list[str]:
    """Return the pages that a learner takes in order: the first part of _toc.yml."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [*_files_below(toc["parts"][0])]


def all_with_exercises() -> list[str]:
    """Return the lessons, and the pages beside them that have exercises, too."""
    return [page for page in all_notebooks() if lesson_checked_on(code_of(page))]


def code_of(page: str) -> str:
    """Return what a page's cells execute, as one text."""
    cells = read_notebook(ROOT / f"{page}.md").cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


@dataclass
class Run:
    """What came of executing one lesson."""

    notebook: NotebookNode
    failure: str | None  # which cells and which errors, for a person to read


def execute(path: Path, build_folder: Path, *, again: bool = True) -> Run:
    """Execute the lesson at `path` and put it into the build's cache.

    Its kernel has what the lesson's readers have installed, and nothing else. Unless it is to be
    executed `again`, what the cache holds of this very lesson, packages and libraries is taken.
    """
    folder = cache_folder(build_folder, path)
    if not again and is_kept(path, folder):
        _, notebook = get_cache(str(folder)).merge_match_into_notebook(read_notebook(path))
        return Run(notebook, None)
    timeout = CONFIG["execute"]["timeout"]
    with readers_kernels():
        notebook, seconds = execute_page(path, timeout)
    failures = keep(path, folder, notebook, seconds)
    told = [f"{path.stem}, {one.name}: {one.error}\n{one.traceback}" for one in failures]
    return Run(notebook, "\n\n".join(told) or None)


@contextmanager
def readers_kernels(**variables: str) -> Iterator[None]:
    """Have the kernels that are started meanwhile be a reader's, with these variables.

    At their start they read kernels/sitecustomize.py.
    """
    prepare_kernels()
    before = dict(os.environ)
    path = [str(KERNELS), *filter(None, [before.get("PYTHONPATH")])]
    os.environ["COURSE_MISSING"] = " ".join(missing_in_notebooks())
    os.environ |= {**variables, "PYTHONPATH": os.pathsep.join(path)}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
