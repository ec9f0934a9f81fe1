"""How quickly the published pages come to life and answer, how still they stand, what they weigh.

    jupyter-book build .
    python benchmarks/site.py                  # about ten minutes
    python benchmarks/site.py path/to/html --runs 5

The site is served from this machine and opened in Chromium (1280 x 900, drawn without a GPU), each
time with an empty cache. No network is simulated: the times are what a processor needs, and the
weight says what a network would have to carry. "Throttled" is a processor four times slower, as
Chromium's developer tools slow it. The start page is measured like a lesson. So is a page of the
same site that has no widgets: what any page costs on this machine.

Ready: from DOMContentLoaded (negative if it comes earlier) to the frame that shows the last widget
of the page, throttled; the goal is held against the median.

A click: from the moment that the browser was told of it to the frame after it, throttled. The
pointer is there before it, as a reader's is: what scrolling and hovering change is painted. Every
widget of a page is clicked, each time on the next of its controls. The goal is held
against p95 (the time that 95% of the clicks don't exceed, of few the slowest) of the slowest kind
of widget. A slider move: the same for a key that moves the slider of a HeadExplorer (24 tokens,
d = 64) from 32 heads to 64, on a page of its own, made with the installed attnlib.

Shift: how much of the page moves without being touched, as web vitals count it, while it loads and
while it is scrolled to its end; all shifts together, on a desktop or a phone (360 pixels wide),
whichever moves more.

Weight: all that a page loads before it is touched, each file compressed as servers do (gzip, level
6) where that makes it smaller, pictures apart. For who has read another lesson before, only the
files that the browser doesn't have yet.
"""

import argparse
import gzip
import math
import statistics
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from measuring import Goal, save, show, show_goals

ROOT = Path(__file__).parents[1]
# For the tools that tests share with this program, and where the site keeps its widgets.
sys.path += [str(ROOT / "tests"), str(ROOT / "book" / "extensions")]

import torch  # noqa: E402
from playwright.sync_api import Browser, Page, Response, sync_playwright  # noqa: E402
from tools.browsing import FLAGS, HOW_TO_GET_ONE, find_browser, serve  # noqa: E402
from tools.widget_pages import page_source  # noqa: E402

from attnlib.widgets import HeadExplorer  # noqa: E402

THROTTLED = 4
READY_MS, CLICK_MS, MOVE_MS = 300, 150, 100
PAGE_KB, NEXT_PAGE_KB = 280, 100
SHIFT = 0.05
TOKENS, HEADS = 24, 64
START, WITHOUT_WIDGETS = "index", "notation"

# Runs in the page before its own scripts, and watches the places of widgets as they are filled.
WATCH = """document.addEventListener("readystatechange", () => {
  const views = document.querySelectorAll('script[type$="widget-view+json"]');
  const isDrawn = ({nextElementSibling: place}) =>
    place?.className === "course-widget" && place.hasChildNodes();
  window.widgetsReady = new Promise((ready) => {
    const observer = new MutationObserver(look);
    observer.observe(document.body, {childList: true, subtree: true});
    look();
    function look() {
      if (![...views].every(isDrawn)) return;
      observer.disconnect();
      const {port1, port2} = new MessageChannel(); // a frame's message comes behind it
      port2.onmessage = () => ready(performance.now());
      requestAnimationFrame(() => port1.postMessage(0));
    }
  });
}, {once: true})"""

READY = """async () => {
  const ready = await window.widgetsReady;
  const [{domContentLoadedEventStart}] = performance.getEntriesByType("navigation");
  return ready - domContentLoadedEventStart;
}"""

# Notes for each event of a kind how long it took to the frame after it.
TIME_EVENTS = """(kind) => {
  window.times = [];
  addEventListener(kind, ({timeStamp}) => {
    const {port1, port2} = new MessageChannel();
    port2.onmessage = () => times.push(performance.now() - timeStamp);
    requestAnimationFrame(() => port1.postMessage(0));
  }, {capture: true});
}"""
PAINTED = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
CONTROLS = """:is(button, input, select):enabled:visible:not([aria-disabled="true"]),
  :is(summary, [tabindex="0"]):visible"""

# What predictions cover, until they are answered.
OPEN_COVERS = "for (const fold of document.querySelectorAll('.course-cover')) fold.open = true"

WATCH_SHIFTS = """window.shift = 0;
new PerformanceObserver((list) => {
  for (const {value, hadRecentInput} of list.getEntries()) if (!hadRecentInput) shift += value;
}).observe({type: "layout-shift", buffered: true})"""
SCROLL = """async () => {
  for (let y = 0; y < document.body.scrollHeight; y += innerHeight) {
    scrollTo(0, y);
    await new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)));
  }
  return window.shift;
}"""


@dataclass(frozen=True)
class Times:
    """Milliseconds of several runs."""

    runs: list[float]

    @classmethod
    def of(cls, measured: Iterable[float]) -> "Times":
        return cls([round(time, 1) for time in measured])

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    @property
    def p95(self) -> float:
        return sorted(self.runs)[math.ceil(0.95 * len(self.runs)) - 1]

    def __str__(self) -> str:
        return f"{self.median:.0f} / {self.p95:.0f}"


@dataclass(frozen=True)
class Weight:
    """Compressed kB (1000 bytes) that a page loads, pictures apart."""

    page: float
    next_page: float  # where another lesson was read before
    parts: dict[str, float]  # the page's kB by kind of file


@contextmanager
def fresh_page(browser: Browser, slower: float = 1, width: int = 1280) -> Iterator[Page]:
    """Open an empty page with nothing cached, on a processor that many times slower."""
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slower})
    yield page
    context.close()


def count_widgets(page: Page) -> int:
    """Count the widgets that live on a page; raise RuntimeError if one doesn't."""
    wanted = page.locator('script[type$="widget-view+json"]').count()
    alive = page.locator(".course-widget > .attn-widget").count()
    if alive != wanted:
        raise RuntimeError(f"{page.url}: {alive} of {wanted} widgets are alive")
    return alive


def ready_times(browser: Browser, address: str, runs: int) -> Times:
    """Measure when a throttled page's widgets are ready, since DOMContentLoaded."""
    times = []
    for _ in range(runs):
        with fresh_page(browser, THROTTLED) as page:
            page.add_init_script(WATCH)
            page.goto(address, wait_until="domcontentloaded")
            times.append(page.evaluate(READY))
            page.wait_for_load_state("load")
            count_widgets(page)
    return Times.of(times)


def click_times(browser: Browser, address: str, rounds: int) -> dict[str, Times]:
    """Measure clicks on the widgets of a throttled page: kind of widget -> times."""
    times: dict[str, list[float]] = {}
    with fresh_page(browser, THROTTLED) as page:
        page.goto(address)
        page.evaluate(OPEN_COVERS)
        page.evaluate(TIME_EVENTS, "click")
        widgets = [one for one in page.locator(".attn-widget").all() if one.is_visible()]
        for done in range(rounds):
            for widget in widgets:
                page.evaluate(OPEN_COVERS)  # whoever thinks again closes one
                controls = widget.locator(CONTROLS)
                control = controls.nth(done % controls.count())
                control.hover()
                page.evaluate(PAINTED)
                control.click()
                page.wait_for_function("times.length > 0")
                kind = widget.get_attribute("class").removeprefix("attn-widget attn-")
                times.setdefault(kind, []).append(max(page.evaluate("times.splice(0)")))
    return {kind: Times.of(measured) for kind, measured in sorted(times.items())}


def move_times(browser: Browser, moves: int) -> Times:
    """Measure moves of a throttled HeadExplorer's slider to 64 heads, by key."""
    torch.manual_seed(0)
    q, k = torch.randn(2, TOKENS, HEADS)
    widget = HeadExplorer([f"token{i}" for i in range(TOKENS)], q, k, num_heads=HEADS)
    with fresh_page(browser, THROTTLED) as page:
        page.set_content(page_source(widget))
        page.locator(".attn-tile").nth(HEADS - 1).wait_for()
        page.evaluate(TIME_EVENTS, "input")
        slider = page.get_by_role("slider")
        for done in range(2 * moves):
            slider.press("ArrowRight" if done % 2 else "ArrowLeft")
            page.wait_for_function("done => times.length > done", arg=done)
        return Times.of(page.evaluate("times")[1::2])


def shift_of(browser: Browser, address: str) -> float:
    """Measure how much a page moves by itself, where it moves more: on a desktop or a phone."""
    shifts = []
    for width in (1280, 360):
        with fresh_page(browser, width=width) as page:
            page.add_init_script(WATCH_SHIFTS)
            page.goto(address, wait_until="networkidle")
            shifts.append(page.evaluate(SCROLL))
    return round(max(shifts), 4)


def compressed(content: bytes) -> float:
    """Return the kB of a file as servers send it."""
    return min(len(content), len(gzip.compress(content, 6))) / 1000


def files_of(page: Page, address: str) -> dict[str, tuple[str, float]]:
    """Load a page to its end; return each file's kind and kB, pictures apart."""
    responses: list[Response] = []
    page.on("response", lambda response: responses.append(response))
    page.goto(address, wait_until="networkidle")
    count_widgets(page)
    return {
        response.url: (response.request.resource_type, compressed(response.body()))
        for response in responses
        if response.url.startswith("http") and response.request.resource_type != "image"
    }


def weigh(browser: Browser, address: str, other: str) -> Weight:
    """Weigh a page, alone and after another."""
    with fresh_page(browser) as page:
        files = files_of(page, address)
    with fresh_page(browser) as page:
        known = files_of(page, other)
    parts: dict[str, float] = {}
    for kind, size in files.values():
        parts[kind] = parts.get(kind, 0) + size
    added = (size for url, (_, size) in files.items() if url not in known)
    return Weight(sum(parts.values()), sum(added), parts)


def measure(browser: Browser, address: str, other: str, runs: int) -> dict:
    """Measure everything of one page."""
    return {
        "weight": weigh(browser, address, other),
        "shift": shift_of(browser, address),
        "ready": ready_times(browser, address, runs),
        "clicks": click_times(browser, address, runs),
    }


def goals_of(measured: dict[str, dict], moves: Times) -> list[Goal]:
    """Compare what was found with what is wanted."""
    goals = []
    for page, found in measured.items():
        if page == WITHOUT_WIDGETS:
            continue
        name = page.split("_")[0]
        slowest = max(clicks.p95 for clicks in found["clicks"].values())
        goals += [
            Goal(f"{name}: page without pictures (kB)", found["weight"].page, PAGE_KB),
            Goal(f"{name}: read after another (kB)", found["weight"].next_page, NEXT_PAGE_KB),
            Goal(f"{name}: ready after the content, median (ms)", found["ready"].median, READY_MS),
            Goal(f"{name}: a click painted, p95 (ms)", slowest, CLICK_MS),
            Goal(f"{name}: layout shift", found["shift"], SHIFT),
        ]
    what = f"slider moved to {HEADS} heads x {TOKENS} tokens, throttled, p95 (ms)"
    return [*goals, Goal(what, moves.p95, MOVE_MS)]


def show_pages(measured: dict[str, dict], moves: Times) -> None:
    """Print what was measured, one page a row."""
    rows = []
    for page, found in measured.items():
        weight, clicks = found["weight"], found["clicks"].items()
        told = "\n".join(f"{kind} {times}" for kind, times in clicks)
        numbers = [f"{weight.page:.1f}", f"{weight.next_page:.1f}", f"{found['shift']:.3f}"]
        rows.append([page, *numbers, str(found["ready"]), told])
    columns = ["page", "kB", "kB after another", "shift", "ready after content", "clicks"]
    show(f"Times in ms, throttled: median / p95. Slider move: {moves}.", columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("site", type=Path, nargs="?", default=ROOT / "_build" / "html")
    parser.add_argument(
        "--runs", type=int, default=15, help="loads of each page, clicks on each widget (15)"
    )
    parser.add_argument("--moves", type=int, default=100, help="moves of the slider (100)")
    options = parser.parse_args()
    lessons = sorted(path.stem for path in options.site.glob("book/L*.html"))
    if not lessons:
        parser.exit(1, f"no lessons in {options.site}: build the site, `jupyter-book build .`\n")
    chromium = find_browser()
    if chromium is None:
        parser.exit(1, f"no Chromium found: {HOW_TO_GET_ONE}\n")
    with serve(options.site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        version = browser.version
        moves = move_times(browser, options.moves)
        measured = {}
        for i, page in enumerate([*lessons, START, WITHOUT_WIDGETS]):
            before = lessons[min(i, len(lessons)) - 1]
            here, other = (f"{address}book/{name}.html" for name in (page, before))
            measured[page] = measure(browser, here, other, options.runs)
        browser.close()
    show_pages(measured, moves)
    goals = goals_of(measured, moves)
    show_goals(goals)
    record = {"chromium": version, "throttled": THROTTLED, "slider": moves, "pages": measured}
    save("site", "cpu", record, goals)


if __name__ == "__main__":
    main()
