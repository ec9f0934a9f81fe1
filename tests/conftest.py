"""What all tests of lessons and site share: each lesson is executed once, the site built once.

Two processes run the tests. Those of lessons and site stay together in one of them, which holds
what they share; the package's fill the other.
"""

import os
from functools import cache

import pytest
import torch
from execution_cache import cache_folder
from hypothesis import settings
from tools import ROOT
from tools.browsing import FLAGS, HOW_TO_GET_ONE, find_browser, serve
from tools.lesson_runs import Run, all_notebooks, execute
from tools.site_builds import build
from xdist.scheduler import LoadScopeScheduling

torch.set_num_threads(1)  # two processes share the processor

# No test is timed: a busy machine must not decide one.
settings.register_profile("course", deadline=None)
settings.load_profile("course")


@pytest.fixture(autouse=True)
def same_numbers_every_time():
    """Seed torch for each test, so that chance decides none."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def build_folder(tmp_path_factory):
    """Return a fresh folder for this session's site: a stale _build can't decide a test."""
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="session")
def run_notebook(build_folder):
    """Return a function that executes a page the first time it is asked for it."""
    notebooks = cache_folder(build_folder / "_build")

    @cache
    def run(page: str) -> Run:
        return execute(ROOT / f"{page}.md", notebooks)

    return run


@pytest.fixture(scope="session")
def site_build(build_folder, run_notebook):
    """Build the whole site with warnings as errors, from the lessons as the tests executed them."""
    failed = [page for page in all_notebooks() if run_notebook(page).failure]
    if failed:
        pytest.fail(f"no site without {', '.join(failed)}: see tests/lessons", pytrace=False)
    result = build(ROOT, build_folder, "-W", "--keep-going")
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
def browser():
    """Return a Chromium that Playwright drives; without one skip, or fail where CI is set."""
    path = find_browser()
    if path is None:
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up(f"no Chromium found: {HOW_TO_GET_ONE}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


class BookAndPackage(LoadScopeScheduling):
    """Deals out the package's tests file by file; those of lessons and site stay together."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::")[0]
        return "book" if file.startswith(("tests/lessons/", "tests/site/")) else file


def pytest_xdist_make_scheduler(config, log):
    """Let two processes share the tests so that no lesson is executed twice."""
    return BookAndPackage(config, log)


def pytest_terminal_summary(terminalreporter):
    """Say how long each lesson took, and that pages went unseen if they did."""
    properties = [
        dict(report.user_properties)
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
    ]
    lessons = [found for found in properties if "lesson" in found]
    if lessons:
        terminalreporter.section("lessons: seconds")
        for found in lessons:
            terminalreporter.line(f"{found['seconds']:7.1f}  {found['lesson']}")
    skipped = [
        r for r in terminalreporter.getreports("skipped") if "no Chromium" in str(r.longrepr)
    ]
    if skipped:
        terminalreporter.section("NO PAGE WAS OPENED", sep="!", red=True, bold=True)
        terminalreporter.line(f"{len(skipped)} tests need a browser: {HOW_TO_GET_ONE}.")
