"""Fixtures: each lesson is executed once, the site built once, and two small sites as well.

That holds for all processes of a run together: the first that needs something makes it and leaves
it in a folder that they share; others that need it meanwhile wait. A lock goes with its process, so
nobody waits for one that crashed.
"""

import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from filelock import FileLock, Timeout
from tools import ROOT, everyday
from tools.browsing import serve
from tools.lesson_runs import Run, all_notebooks, execute
from tools.site_builds import build, small_project
from tools.small_pages import ADDRESS, REPOSITORY, RIGHT, WRONG


def once(path: Path, make: Callable, *, wait: bool = True):
    """Return what `make` returned in the first process that asked; it is kept at `path`.

    Raises:
        Timeout: another process is at it, and this one doesn't want to wait.
    """
    with FileLock(f"{path}.lock", blocking=wait):
        if not path.exists():
            path.write_bytes(pickle.dumps(make()))
    return pickle.loads(path.read_bytes())


@pytest.fixture(scope="session")
def build_folder(request, tmp_path_factory):
    """Return a fresh folder for this run's site: a stale _build can't decide a test."""
    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):  # one of several processes: their folders' folder
        folder = folder.parent
    folder = folder / "site"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def run_notebook(request, build_folder):
    """Return a function that executes a page the first time that any process asks for it.

    Every day the lessons share the cache of the reader's own builds: a page is executed again when
    it, a package or a library has changed.
    """
    again = everyday.asks_everything(request.config)
    if not again:
        with FileLock(build_folder / "cache.lock"):
            share_cache(build_folder / "_build")

    @cache
    def run(page: str, *, wait: bool = True) -> Run:
        path, kept = ROOT / f"{page}.md", build_folder / f"{Path(page).name}.run"
        return once(kept, lambda: execute(path, build_folder / "_build", again=again), wait=wait)

    return run


def share_cache(folder: Path):
    """Let a folder for builds have the cache of those that readers make here."""
    ours, shared = folder / ".jupyter_cache", ROOT / "_build/.jupyter_cache"
    if not ours.exists():
        folder.mkdir(exist_ok=True)
        shared.mkdir(parents=True, exist_ok=True)
        ours.symlink_to(shared, target_is_directory=True)


@pytest.fixture(scope="session")
def site_build(build_folder, run_notebook):
    """Build the whole site with warnings as errors, from the lessons as the tests executed them."""
    for page in all_notebooks():
        with suppress(Timeout):  # another process is at it: go on with the next
            run_notebook(page, wait=False)
    failed = [page for page in all_notebooks() if run_notebook(page).failure]
    if failed:
        pytest.fail(f"no site without {', '.join(failed)}: see tests/site/lessons", pytrace=False)
    result = once(build_folder / "site.build", lambda: build(ROOT, build_folder))
    if result.returncode:
        pytest.fail(f"the site doesn't build:\n{result.stderr}", pytrace=False)
    return result


@pytest.fixture(scope="session")
def site(site_build, build_folder):
    """Return the folder of the built site."""
    return build_folder / "_build" / "html"


@pytest.fixture(scope="session")
def site_address(site):
    """Serve the site on this machine and return its address, which ends with a slash."""
    with serve(site) as address:
        yield address


@pytest.fixture(scope="session")
def small(build_folder):
    """Return the folder of the pages of a small published site in which nothing is wrong."""
    folder = build_folder.parent / "small"

    def build_it():
        project = small_project(folder / "it", RIGHT, address=ADDRESS, repository=REPOSITORY)
        (folder / "course").symlink_to("it/_build/html")
        return build(project)

    result = once(folder.with_suffix(".build"), build_it)
    if result.returncode:
        pytest.fail(f"the small site doesn't build:\n{result.stderr}", pytrace=False)
    return folder / "course/book"


@pytest.fixture(scope="session")
def small_address(small):
    """Serve that site on this machine and return the address of its pages."""
    with serve(small.parents[1]) as address:
        yield f"{address}course/book/"


@pytest.fixture(scope="session")
def warnings(build_folder):
    """Return what a build says of a site that is made of mistakes."""
    folder = build_folder.parent / "mistakes"
    result = once(folder.with_suffix(".build"), lambda: build(small_project(folder, WRONG)))
    assert result.returncode
    return result.stderr
