"""Executing lessons the way the site's build does, into the cache that it reads."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from execute_pages import execute as execute_page
from execute_pages import keep
from execution_cache import cache_folder, code_of, read_notebook
from failed_cells import failures_of
from nbformat import NotebookNode
from no_progress_bars import hide_progress_bars
from one_thread import use_one_thread

from tools import ROOT
from tools.readers_packages import missing_modules
from tools.told_kernels import kernels_are_told
from tools.watched import Watched, watched_kernel

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


# Watching makes a kernel half as slow again, so two quick pages stand for all. Whoever changes the
# rule of used_files.py watches all once: watched_pages = all_notebooks.
def watched_pages() -> list[str]:
    """Return the pages whose kernels note which files of attnlib they use."""
    return ["book/index", "book/notation"]


def all_lessons() -> list[str]:
    """Return the lessons: "book/L03_...", ..."""
    return [page for page in all_notebooks() if re.match(r"L\d\d_", page.split("/")[-1])]


def trains(page: str) -> bool:
    """Tell whether a page trains: by attnlib's own loop, or by one that stands on the page."""
    code = code_of(read_notebook(ROOT / f"{page}.md"))
    return re.search(r"(?<![\w.])train\(|torch\.optim\.", code) is not None


@dataclass
class Run:
    """What came of executing one lesson."""

    notebook: NotebookNode
    seconds: float
    failure: str | None  # which cells and which errors, for a person to read
    watched: Watched | None  # the files of attnlib that it used

    def outputs_of(self, tag: str) -> list[str]:
        """Return the text that each cell with this tag printed and returned."""
        cells = [c for c in self.notebook.cells if tag in c.metadata.get("tags", [])]
        return ["\n".join(map(_text_of, cell.outputs)) for cell in cells]


def execute(path: Path, build_folder: Path) -> Run:
    """Execute the lesson at `path` and put it into the build's cache.

    Its kernel has what the lesson's readers have installed, and nothing else.
    """
    timeout = CONFIG["execute"]["timeout"]
    is_watched = f"book/{path.stem}" in watched_pages()
    with readers_kernels(), watched_kernel() if is_watched else nullcontext() as watched:
        notebook, seconds = execute_page(path, timeout)
    failures = keep(path, cache_folder(build_folder, path), notebook, seconds)
    told = [f"{path.stem}, {one.name}: {one.error}\n{one.traceback}" for one in failures]
    return Run(notebook, seconds, "\n\n".join(told) or None, watched)


def execute_elsewhere(path: Path, **variables: str) -> tuple[list[str], float]:
    """Execute a page to its end in another environment, and keep nothing of it.

    Returns:
        Which cells fail and how, in words; and the seconds that it took.
    """
    with readers_kernels(**variables):
        notebook, seconds = execute_page(path, CONFIG["execute"]["timeout"])
    return [f"{one.name}: {one.error}" for one in failures_of(notebook)], seconds


@contextmanager
def readers_kernels(**variables: str) -> Iterator[None]:
    """Have the kernels that are started meanwhile be a reader's, with these variables."""
    use_one_thread()
    hide_progress_bars()
    with kernels_are_told(COURSE_MISSING=" ".join(missing_modules()), **variables):
        yield


def _text_of(output: NotebookNode) -> str:
    return output.get("text") or output.get("data", {}).get("text/plain", "")
