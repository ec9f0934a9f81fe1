"""Captions in JupyterLab: below each figure what its cell says of it.

On the site a caption is an option of the cell, in its metadata. JupyterLab shows none of it, and a
caption says whether a map is random, hand-built or trained. So the kernel looks them up in the file
that is open there. A downloaded notebook has its captions as text, and no such options.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

OPEN_FILE = "JPY_SESSION_NAME"  # a Jupyter server tells the kernel which file it was started for


def open_file() -> Path | None:
    """Return the notebook that this kernel was started for; None if there is none to be read."""
    name = Path(os.environ.get(OPEN_FILE, "")).name  # a kernel starts in the folder of its file
    path = Path.cwd() / name
    return path if name and path.is_file() else None


@lru_cache(maxsize=1)
def captions_in(path: Path, changed: float) -> dict[str, str]:
    """Return {code: caption} of the cells of a notebook that was changed at this time."""
    try:
        import jupytext  # type: ignore[import-untyped]  # which opened a lesson's text
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
    """Have each figure followed by its caption, where a Jupyter server has its file open."""
    if open_file() and show_caption not in shell.events.callbacks["post_run_cell"]:
        shell.events.register("post_run_cell", show_caption)
