"""Captions below figures in JupyterLab.

A caption says whether a map is random, hand-built or trained. It is an option in the metadata of
its cell, which the site shows and JupyterLab doesn't. So the kernel reads the captions from the
file that is open there. Downloaded notebooks have their captions as text instead.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

OPEN_FILE = "JPY_SESSION_NAME"  # set by a Jupyter server to the file that it started a kernel for


def open_file() -> Path | None:
    """Return the notebook that this kernel was started for, or None if there is no such file."""
    name = Path(os.environ.get(OPEN_FILE, "")).name  # a kernel starts in the folder of its file
    path = Path.cwd() / name
    return path if name and path.is_file() else None


@lru_cache(maxsize=1)
def captions_in(path: Path, changed: float) -> dict[str, str]:
    """Return {code: caption} of a notebook's cells; `changed`, its time, makes the cache fresh."""
    try:
        import jupytext  # type: ignore[import-untyped]  # JupyterLab opens lessons with it
    except ImportError:
        return {}
    figures = {
        cell.source.strip(): cell.metadata.get("mystnb", {}).get("figure", {})
        for cell in jupytext.read(path).cells
        if cell.cell_type == "code"
    }
    return {
        code: f"**{figure['name']}.** {figure['caption']}"
        for code, figure in figures.items()
        if {"name", "caption"} <= figure.keys()
    }


def show_caption(result: "ExecutionResult") -> None:
    """Show the caption of the cell that just ran, if it has one."""
    from IPython.display import Markdown, display

    path = open_file()
    if path is None or result.info is None or not result.success:
        return
    captions = captions_in(path, path.stat().st_mtime)
    if caption := captions.get(result.info.raw_cell.strip()):
        display(Markdown(caption))


def show_captions(shell: "InteractiveShell") -> None:
    """Show each figure's caption after it, if a Jupyter server started this kernel for a file."""
    if open_file() and show_caption not in shell.events.callbacks["post_run_cell"]:
        shell.events.register("post_run_cell", show_caption)
