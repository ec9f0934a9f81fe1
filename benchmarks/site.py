"""How quickly the published pages come to life, and how much they weigh.

    jupyter-book build .
    python benchmarks/site.py                  # about five minutes
    python benchmarks/site.py path/to/html --runs 5

The site is served from this machine and opened in Chromium (1280 x 900, drawn without a GPU), each
time with an empty cache. No network is simulated: the times are what a processor needs, and the
weight says what a network would have to carry.

Ready: from DOMContentLoaded (negative if it comes earlier), or from the start of the navigation, to
the frame that shows the last widget of the page. A slider move: from the event that the page gets
when a key moves the slider of a HeadExplorer (24 tokens, d = 64) from 32 heads to 64, to the frame
after the one that shows it; it stands on a page of its own, made with the installed attnlib.
"Throttled" is a processor four times slower, as Chromium's developer tools slow it. Goals are held
against p95: the time that 95% of the runs don't exceed, of few runs the slowest. A page of the same
site that has no widgets is measured with the lessons: what any page costs on this machine.

Weight: all that a page loads, each file compressed as servers do (gzip, level 6) where that makes
it smaller, pictures apart. The widgets' share is the host's script, the files of the widgets' code
and style, and what the page would weigh less without their state.
"""

import argparse
import gzip
import math
import re
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
from tools.widget_pages import HOST, page_source  # noqa: E402
from widget_code import FOLDER  # noqa: E402

from attnlib.widgets import HeadExplorer  # noqa: E402

THROTTLED = 4
GOALS_MS = {"content": 500, "move": 100, "navigation": 1000}
GOALS_KB = {"page": 800, "widgets": 150}
TOKENS, HEADS = 24, 64
WITHOUT_WIDGETS = "notation"

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
  return [ready - domContentLoadedEventStart, ready];
}"""

TIME_MOVES = """() => {
  window.moves = [];
  addEventListener("input", () => {
    const start = performance.now();
    requestAnimationFrame(() => requestAnimationFrame(() => moves.push(performance.now() - start)));
  }, {capture: true});
}"""

# What myst-nb writes for widgets: one state for the page, one mark where a widget stands.
WIDGET_SCRIPT = re.compile(
    rb'<script type="application/vnd\.jupyter\.widget-(?:state|view)\+json">.*?</script>', re.DOTALL
)


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
    """Compressed kB (1000 bytes) that a page loads, pictures apart, and its widgets' share."""

    page: float
    widgets: float
    parts: dict[str, float]  # the page's kB by kind of file


@contextmanager
def fresh_page(browser: Browser, slower: float = 1) -> Iterator[Page]:
    """Open an empty page with nothing cached, on a processor that many times slower."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
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


def ready_times(browser: Browser, address: str, runs: int, slower: float) -> tuple[Times, Times]:
    """Measure when a page's widgets are ready, since DOMContentLoaded and since the navigation."""
    pairs = []
    for _ in range(runs):
        with fresh_page(browser, slower) as page:
            page.add_init_script(WATCH)
            page.goto(address, wait_until="domcontentloaded")
            pairs.append(page.evaluate(READY))
            page.wait_for_load_state("load")
            count_widgets(page)
    content, navigation = zip(*pairs, strict=True)
    return Times.of(content), Times.of(navigation)


def move_times(browser: Browser, moves: int) -> Times:
    """Measure moves of a throttled HeadExplorer's slider to 64 heads, by key."""
    torch.manual_seed(0)
    q, k = torch.randn(2, TOKENS, HEADS)
    widget = HeadExplorer([f"token{i}" for i in range(TOKENS)], q, k, num_heads=HEADS)
    with fresh_page(browser, THROTTLED) as page:
        page.set_content(page_source(widget))
        page.locator(".attn-tile").nth(HEADS - 1).wait_for()
        page.evaluate(TIME_MOVES)
        slider = page.get_by_role("slider")
        for done in range(2 * moves):
            slider.press("ArrowRight" if done % 2 else "ArrowLeft")
            page.wait_for_function("done => moves.length > done", arg=done)
        return Times.of(page.evaluate("moves")[1::2])


def compressed(content: bytes) -> float:
    """Return the kB of a file as servers send it."""
    return min(len(content), len(gzip.compress(content, 6))) / 1000


def weigh(browser: Browser, address: str) -> Weight:
    """Load a page to its end and weigh what came."""
    responses: list[Response] = []
    with fresh_page(browser) as page:
        page.on("response", lambda response: responses.append(response))
        page.goto(address, wait_until="networkidle")
        count_widgets(page)
        files = [
            (response.url, response.request.resource_type, response.body())
            for response in responses
            if response.url.startswith("http") and response.request.resource_type != "image"
        ]
    parts: dict[str, float] = {}
    for _, kind, content in files:
        parts[kind] = parts.get(kind, 0) + compressed(content)
    document = next(content for url, _, content in files if url == address)
    widgets = compressed(document) - compressed(WIDGET_SCRIPT.sub(b"", document))
    theirs = (HOST.name, f"_static/{FOLDER}/")
    widgets += sum(
        compressed(content) for url, _, content in files if any(t in url for t in theirs)
    )
    return Weight(sum(parts.values()), widgets, parts)


def measure(browser: Browser, address: str, name: str, runs: int) -> dict:
    """Measure everything of one page."""
    page = f"{address}book/{name}.html"
    content, _ = ready_times(browser, page, runs, THROTTLED)
    _, navigation = ready_times(browser, page, runs, 1)
    return {"content": content, "navigation": navigation, "weight": weigh(browser, page)}


def goals_of(measured: dict[str, dict], moves: Times) -> list[Goal]:
    """Compare what was found with what is wanted."""
    goals = []
    for page, found in measured.items():
        if page == WITHOUT_WIDGETS:
            continue
        name = page.split("_")[0]
        times = {
            "content": "widgets ready after DOMContentLoaded, throttled",
            "navigation": "widgets ready after navigation",
        }
        weights = {"page": "page without pictures", "widgets": "widgets' code and state"}
        goals += [
            Goal(f"{name}: {what} (ms)", found[key].p95, GOALS_MS[key])
            for key, what in times.items()
        ]
        goals += [
            Goal(f"{name}: {what} (kB)", getattr(found["weight"], key), GOALS_KB[key])
            for key, what in weights.items()
        ]
    what = f"slider moved to {HEADS} heads x {TOKENS} tokens, throttled (ms)"
    return [*goals, Goal(what, moves.p95, GOALS_MS["move"])]


def show_pages(measured: dict[str, dict], moves: Times) -> None:
    """Print what was measured, one page a row."""
    columns = ["page", "ready after content, throttled", "ready after navigation"]
    rows = [
        [page, str(m["content"]), str(m["navigation"])]
        + [f"{getattr(m['weight'], part):.0f}" for part in ("page", "widgets")]
        for page, m in measured.items()
    ]
    title = f"Times in ms: median / p95. Slider move: {moves}."
    show(title, [*columns, "page, kB", "widgets, kB"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("site", type=Path, nargs="?", default=ROOT / "_build" / "html")
    parser.add_argument("--runs", type=int, default=15, help="loads of each page (15)")
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
        pages = [*lessons, WITHOUT_WIDGETS]
        measured = {page: measure(browser, address, page, options.runs) for page in pages}
        browser.close()
    show_pages(measured, moves)
    goals = goals_of(measured, moves)
    show_goals(goals)
    record = {"chromium": version, "throttled": THROTTLED, "slider": moves, "pages": measured}
    save("site", "cpu", record, goals)


if __name__ == "__main__":
    main()
