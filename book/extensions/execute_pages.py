"""Pages that have to be executed are executed side by side, and once, before they are read.

Sphinx reads one page after the other, and would wait for each kernel in turn. A cell that fails
doesn't stop its page: what comes after it is executed, too, and failed_cells tells of it.
"""

import logging
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter

from execution_cache import folder_of, read_notebook
from failed_cells import Failure, failed_cells, failures_of
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output
from sphinx.util.logging import getLogger

MOST = 4  # kernels at a time; each takes more than half a gigabyte
# A kernel warns at its start of how it talks to this process, and complains when it is ended.
QUIET = ["--log-level=CRITICAL"]


def execute(page: Path, timeout: int) -> tuple[NotebookNode, float]:
    """Execute a page to its end, or to a cell that takes too long or ends its kernel.

    Returns:
        The page as it was executed, and the seconds that it took.
    """
    notebook, begun = read_notebook(page), []
    client = NotebookClient(
        notebook,
        resources={"metadata": {"path": str(page.parent)}},
        timeout=timeout,
        allow_errors=True,
        record_timing=False,  # in each cell's metadata, by which the cache would not know it
        extra_arguments=QUIET,
        on_cell_execute=lambda cell, cell_index: begun.append(cell),
    )
    start = perf_counter()
    try:
        client.execute()
    except (CellTimeoutError, DeadKernelError) as error:
        if not begun:
            raise
        took_long = isinstance(error, CellTimeoutError)
        what = f"it took longer than {timeout} seconds" if took_long else "its process ended"
        told = f"{what}, and what stands below it wasn't executed"
        output = new_output("error", ename=type(error).__name__, evalue=told, traceback=[])
        begun[-1].outputs = [output]
        client.set_widgets_metadata()
    return notebook, perf_counter() - start


def keep(page: Path, folder: Path, notebook: NotebookNode, seconds: float) -> list[Failure]:
    """Keep an executed page where it is read from; return its failing cells."""
    failures = failures_of(notebook)
    data = {"execution_seconds": seconds, "failed": bool(failures)}
    bundle = CacheBundleIn(notebook, str(page), data=data)
    get_cache(str(folder)).cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    return failures


def execute_and_keep(page: Path, folder: Path, timeout: int) -> list[Failure]:
    """Do both, in a process of its own."""
    return keep(page, folder, *execute(page, timeout))


def is_kept(page: Path, folder: Path) -> bool:
    """Tell whether a page was executed as it stands, and no cell failed."""
    try:
        record = get_cache(str(folder)).match_cache_notebook(read_notebook(page))
    except KeyError:
        return False
    return not record.data.get("failed")


def execute_ahead(app, env, names):
    """Execute the pages that are to be read and aren't kept."""
    if app.config.nb_execution_mode != "cache":
        return
    failed = failed_cells(env)
    for name in failed.keys() - (env.found_docs - {*names}):
        del failed[name]
    folders = {name: folder_of(app, name) for name in names}
    paths = {name: Path(env.doc2path(name)) for name, folder in folders.items() if folder}
    due = [name for name, page in paths.items() if not is_kept(page, Path(folders[name]))]
    if not due:
        return
    processes = min(MOST, os.cpu_count() or 1, len(due))
    told = f"Executing {len(due)} page{'s' * (len(due) > 1)}, {processes} at a time"
    getLogger(__name__).info(told)
    # The longest texts first: what begins last keeps the others waiting.
    due.sort(key=lambda name: paths[name].stat().st_size, reverse=True)
    with ProcessPoolExecutor(processes) as pool:
        one = partial(execute_and_keep, timeout=app.config.nb_execution_timeout)
        places = [paths[name] for name in due], [Path(folders[name]) for name in due]
        for name, failures in zip(due, pool.map(one, *places), strict=True):
            if failures:
                failed[name] = failures


def setup(app):
    """Run before the first page is read; the build says only what goes wrong, and what it does."""
    logging.basicConfig()  # or a11y_pygments does it, and has all libraries tell all they do
    logging.getLogger().setLevel(logging.WARNING)
    app.connect("env-before-read-docs", execute_ahead)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
