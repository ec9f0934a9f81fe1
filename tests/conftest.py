"""What all tests share: seeds, one browser a process, the order in which several processes go.

    pytest                           # what is asked every day, in one process
    pytest -n auto                   # in as many as there are cores
    pytest -n auto --thorough        # everything: see tools/everyday.py
    pytest --pdb tests/attnlib

Long things start first: lessons, then the site's build, while other processes go on with the
package. Each file of tests stays in one process, which holds what the file shares; what is asked of
every page is dealt out page by page.
"""

import gc
import re

import pytest
import torch
from hypothesis import settings
from tools import everyday
from tools.browsing import FLAGS, HOW_TO_GET_ONE, find_browser
from tools.engines import NEEDED, find_engine, started
from tools.installed import go_without

torch.set_num_threads(1)  # several processes share the processor

# No test is timed: a busy machine must not decide one.
settings.register_profile("course", deadline=None)
settings.load_profile("course")


@pytest.fixture(autouse=True)
def same_numbers_every_time():
    """Seed torch for each test, so that chance decides none."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def playwright():
    """Return what drives browsers; a process can have but one."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def browser(playwright):
    """Return a Chromium that Playwright drives."""
    path = find_browser()
    if path is None:
        go_without(f"no Chromium found: {HOW_TO_GET_ONE}")
    chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
    yield chromium
    chromium.close()


@pytest.fixture(scope="session", params=NEEDED)
def engine(request, playwright):
    """Return a page in each of the other engines."""
    name = request.param
    if find_engine(name) is None:
        go_without(f"no {name} found: {NEEDED[name][1]}")
    with started(name, playwright) as page:
        yield page


def pytest_addoption(parser):
    parser.addoption(
        "--thorough", action="store_true",
        help="leave nothing out: all pages and widgets, in every browser",
    )  # fmt: skip


def pytest_configure(config):
    """Have several processes take the tests in the order below, not the largest groups first."""
    config.option.loadscopereorder = False


def turn(item) -> int:
    """Return when a test's turn is: lessons, the site's build, the packages, pages."""
    for order, fixture in ((3, "site"), (1, "site_build"), (0, "run_notebook")):
        if fixture in item.fixturenames:
            return order
    return 2


def pytest_collection_modifyitems(config, items):
    """Leave out what isn't asked every day, and sort the rest."""
    everyday.mark_all(items)
    if not everyday.asks_everything(config):
        everyday.leave_out(config, items)
    items.sort(key=turn)


def pytest_collection_finish():
    """Have garbage looked for in what the tests make, and more seldom.

    The tests and all that they import stay until the end. To go through them again and again took a
    third of the time that the figures' tests took.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Deal out tests file by file, and those of pages page by page."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFileOrPage(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            if file.startswith("tests/site/lessons/"):
                return file + "".join(test.partition("[")[1:])
            page = re.search(r"\[book/\w+", test)  # whose looks are opened once for all
            return file + page[0] if page else file

    return ByFileOrPage(config, log)


def pytest_terminal_summary(terminalreporter):
    """Say that pages went unseen if they did, and what was left out."""
    for reason, heading in (
        ("no Chromium", "NO PAGE WAS OPENED"), ("no Firefox", "NO PAGE WAS OPENED IN FIREFOX"),
        ("no WebKit", "NO PAGE WAS OPENED IN WEBKIT"), ("no linter", "NO BROWSER CODE WAS READ"),
    ):  # fmt: skip
        skipped = [r for r in terminalreporter.getreports("skipped") if reason in str(r.longrepr)]
        if skipped:
            terminalreporter.section(heading, sep="!", red=True, bold=True)
            why = skipped[0].longrepr[2].removeprefix("Skipped: ")
            terminalreporter.line(f"{len(skipped)} tests were skipped: {why}.")
    everyday.tell(terminalreporter)
