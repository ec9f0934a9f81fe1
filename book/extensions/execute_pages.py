"""Where several pages have to be executed, they are executed side by side, before they are read.

Sphinx reads one page after the other, and would wait for each kernel in turn. A page that fails
isn't kept. It is executed again when it is read, and the build says what is wrong as ever.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from execution_cache import folder_of, read_notebook
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import ExecutionResult, single_nb_execution
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from sphinx.util import logging

MOST = 4  # kernels at a time; each takes more than half a gigabyte


def execute(page: Path, folder: Path, timeout: int) -> tuple[NotebookNode, ExecutionResult]:
    """Execute a page, and keep it in this folder unless a cell fails."""
    notebook = read_notebook(page)
    result = single_nb_execution(
        notebook, cwd=str(page.parent), timeout=timeout, allow_errors=False
    )
    if result.err is None:
        bundle = CacheBundleIn(notebook, str(page), data={"execution_seconds": result.time})
        cache = get_cache(str(folder))
        cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    return notebook, result


def keep(page: Path, folder: Path, timeout: int) -> None:
    """Execute a page in a process of its own: what comes of it is in the folder, or nothing."""
    with suppress(DeadKernelError):
        execute(page, folder, timeout)


def is_kept(page: Path, folder: Path) -> bool:
    """Tell whether a page was executed as it stands."""
    try:
        get_cache(str(folder)).match_cache_notebook(read_notebook(page))
    except KeyError:
        return False
    return True


def execute_ahead(app, env, names):
    """Execute the pages that are to be read and aren't kept, if there are several."""
    if app.config.nb_execution_mode != "cache":
        return
    folders = {Path(env.doc2path(name)): folder_of(app, name) for name in names}
    due = {page: Path(folder) for page, folder in folders.items() if folder}
    due = {page: folder for page, folder in due.items() if not is_kept(page, folder)}
    processes = min(MOST, os.cpu_count() or 1, len(due))
    if processes < 2:
        return
    told = f"Executing {len(due)} pages, {processes} at a time"
    logging.getLogger(__name__).info(told)
    # The longest texts first: what begins last keeps the others waiting.
    by_length = sorted(due, key=lambda page: page.stat().st_size, reverse=True)
    with ProcessPoolExecutor(processes) as pool:
        one = partial(keep, timeout=app.config.nb_execution_timeout)
        list(pool.map(one, by_length, map(due.get, by_length)))


def setup(app):
    """Run before the first page is read."""
    app.connect("env-before-read-docs", execute_ahead)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
