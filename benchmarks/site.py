"""How quickly the published pages answer, how still they stand, what they weigh.

    jupyter-book build .
    python benchmarks/site.py                  # about ten minutes
    python benchmarks/site.py path/to/html --runs 5

The site is served from this machine and opened in Chromium (1280 x 900, drawn without a GPU), each
time with an empty cache. No network is simulated: the times are what a processor needs, and the
weight says what a network would have to carry. "Throttled" is a processor four times slower, as
Chromium's developer tools slow it. The start page is measured like a lesson.

A click: from the moment that the browser was told of it to the frame after it, throttled. The
pointer is there before it, as a reader's is: what scrolling and hovering change is painted. Every
widget of a page is clicked, each time on the next of its controls.

Shift: how much of the page moves without being touched, as web vitals count it, while it loads and
while it is scrolled to its end; all shifts together, on a desktop or a phone (360 pixels wide),
whichever moves more.

Weight: all that a page loads before it is touched, each file compressed as servers do (gzip, level
6) where that makes it smaller, pictures apart.

The budget: 400 kB a page; each kind of widget answers a click within 150 ms (median) and 300 ms
(p95, the time that 95% of its clicks don't exceed). Shifts add up to 0.05 at most.
"""

import argparse
import gzip
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measuring import Goal, Summary, p95, save, show, show_goals

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))  # for the tools that tests share with this program

from playwright.sync_api import Browser, Page, Response, sync_playwright  # noqa: E402
from tools.browsing import FLAGS, HOW_TO_GET_ONE, find_browser, serve  # noqa: E402

THROTTLED = 4
CLICK_MS, SLOW_CLICK_MS = 150, 300
PAGE_KB = 400
SHIFT = 0.05
START = "index"

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


def click_times(browser: Browser, address: str, rounds: int) -> dict[str, list[float]]:
    """Measure clicks on the widgets of a throttled page: kind of widget -> milliseconds."""
    times: dict[str, list[float]] = {}
    with fresh_page(browser, THROTTLED) as page:
        page.goto(address)
        page.evaluate(TIME_EVENTS, "click")
        widgets = [one for one in page.locator(".attn-widget").all() if one.is_visible()]
        for done in range(rounds):
            for widget in widgets:
                controls = widget.locator(CONTROLS)
                control = controls.nth(done % controls.count())
                control.hover()
                page.evaluate(PAINTED)
                control.click()
                page.wait_for_function("times.length > 0")
                kind = widget.get_attribute("class").removeprefix("attn-widget attn-")
                times.setdefault(kind, []).append(max(page.evaluate("times.splice(0)")))
    return dict(sorted(times.items()))


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


def weight_of(browser: Browser, address: str) -> dict[str, float]:
    """Load a page to its end; return the kB of each kind of file, pictures apart."""
    responses: list[Response] = []
    with fresh_page(browser) as page:
        page.on("response", lambda response: responses.append(response))
        page.goto(address, wait_until="networkidle")
        count_widgets(page)
        weight: dict[str, float] = {}
        for response in responses:
            kind = response.request.resource_type
            if response.url.startswith("http") and kind != "image":
                weight[kind] = weight.get(kind, 0) + compressed(response.body())
    return weight


def measure(browser: Browser, address: str, rounds: int) -> dict:
    """Measure everything of one page."""
    return {
        "kB": weight_of(browser, address),
        "shift": shift_of(browser, address),
        "clicks": click_times(browser, address, rounds),
    }


def goals_of(measured: dict[str, dict]) -> list[Goal]:
    """Compare what was found with what is wanted."""
    goals = []
    for page, found in measured.items():
        name = page.split("_")[0]
        clicks = found["clicks"].values()
        goals += [
            Goal(f"{name}: page without pictures (kB)", sum(found["kB"].values()), PAGE_KB),
            Goal(f"{name}: a click, median (ms)", max(map(statistics.median, clicks)), CLICK_MS),
            Goal(f"{name}: a click, p95 (ms)", max(map(p95, clicks)), SLOW_CLICK_MS),
            Goal(f"{name}: layout shift", found["shift"], SHIFT),
        ]
    return goals


def show_pages(measured: dict[str, dict]) -> None:
    """Print what was measured, one page a row."""
    rows = []
    for page, found in measured.items():
        told = "\n".join(
            f"{kind} {statistics.median(times):.0f} / {p95(times):.0f}"
            for kind, times in found["clicks"].items()
        )
        rows.append([page, f"{sum(found['kB'].values()):.0f}", f"{found['shift']:.3f}", told])
    show("Clicks in ms, throttled: median / p95.", ["page", "kB", "shift", "clicks"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("site", type=Path, nargs="?", default=ROOT / "_build" / "html")
    parser.add_argument("--runs", type=int, default=15, help="clicks on each widget (15)")
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
        measured = {
            page: measure(browser, f"{address}book/{page}.html", options.runs)
            for page in [*lessons, START]
        }
        browser.close()
    show_pages(measured)
    goals = goals_of(measured)
    show_goals(goals)
    pages = {
        page: found | {"clicks": {kind: Summary.of(of) for kind, of in found["clicks"].items()}}
        for page, found in measured.items()
    }
    record = {"chromium": version, "throttled": THROTTLED, "pages": pages}
    save("site", "cpu", record, goals)


if __name__ == "__main__":
    main()
