"""How soon HeadLab shows what it is for: a model that learns, answers, and is repeated.

    python benchmarks/headlab.py            # about five minutes
    python benchmarks/headlab.py --runs 1 --changes 5

The widget stands alone in a page that is opened from a folder, in Chromium, as readers have it:
fresh for each training, told to train by its button.

Trainings: for 2, 4, 8 and 16 heads, with as many seeds as there are runs, how soon at least .91 of
the answers verb > object are right on the page, and how soon the training is at its end. Seconds
are those of the browser's process, page and worker together; what else the machine does hardly
counts. Those on the wall count it. A long task keeps the page from answering for more than 50 ms.

Changes: a word is chosen, a head is muted, on a page that a processor four times slower draws (so
Chromium's developer tools slow it; workers are not slowed). Computed: from the question that goes
to the worker to its answer. Painted: from the reader's event to the frame that shows the answer.
The goals are held against p95. Muting is followed by a new evaluation of all held-out sentences,
which is told apart.

Repeat it: all numbers of heads with five seeds each, to the first dot and to the last, on the wall.
"""

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from measuring import Goal, Summary, p95, save, show, show_goals

ROOT = Path(__file__).parents[1]
# For the tools that tests share with this program.
sys.path += [str(ROOT / "tests"), str(ROOT / "book" / "extensions")]

from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402
from tools.browsing import FLAGS, HOW_TO_GET_ONE, find_browser  # noqa: E402
from tools.widget_pages import page_source  # noqa: E402

from attncourse.widgets import HeadLab  # noqa: E402

HEADS = (2, 4, 8, 16)
THROTTLED = 4
PASSED_S, ENDED_S, LONG_TASK_MS = 5, 15, 50
COMPUTED_MS, PAINTED_MS = 50, 150
FIRST_DOT_S, REPEATED_S = 10, 180
PATIENCE = 600_000  # ms

WATCH_TASKS = """window.longest = 0;
new PerformanceObserver((list) => {
  for (const {duration} of list.getEntries()) longest = Math.max(longest, duration);
}).observe({type: "longtask"})"""

# Press Train, and note when the page shows that verb > object is learned, and that all is over.
TRAIN = """() => {
  const rows = [...document.querySelectorAll(".attn-score")];
  const row = rows.find(({textContent}) => textContent.includes("verb → object"));
  const share = row.querySelector(".attn-number");
  const progress = document.querySelector(".attn-progress-text");
  window.passed = window.ended = window.longest = 0;
  const start = performance.now();
  const seconds = () => (performance.now() - start) / 1000;
  new MutationObserver(() => {
    if (Number(share.textContent) > 0.9) window.passed ||= seconds();
    if (progress.textContent.startsWith("Trained")) window.ended ||= seconds();
  }).observe(document.body, {subtree: true, childList: true, characterData: true});
  document.querySelector(".attn-main").click();
}"""

# Runs before the page's own scripts: notes what workers are asked, how long they take, and when the
# frame with an answer is there.
WATCH_WORKERS = """(() => {
  window.asked = {answers: [], evaluation: []};
  window.painted = [];
  let touched = 0;
  const questions = new Map();
  for (const kind of ["change", "click"]) {
    addEventListener(kind, ({timeStamp}) => { touched = timeStamp; }, {capture: true});
  }
  window.Worker = class extends Worker {
    constructor(...args) {
      super(...args);
      this.addEventListener("message", ({data}) => {
        if (data.kind !== "reply") return;
        const {question, at} = questions.get(data.id);
        asked[question].push(performance.now() - at);
        if (question !== "answers") return;
        const {port1, port2} = new MessageChannel(); // a frame's message comes behind it
        port2.onmessage = () => painted.push(performance.now() - touched);
        requestAnimationFrame(() => port1.postMessage(0));
      });
    }
    postMessage(message) {
      const {id, question} = message;
      if (message.kind === "ask") questions.set(id, {question, at: performance.now()});
      super.postMessage(message);
    }
  };
})()"""


@dataclass(frozen=True)
class Training:
    """Seconds until verb > object is learned (None: never) and until the end, of the browser's
    process and on the wall; the page's longest task in ms, 0 if none is long.
    """

    passed: float | None
    ended: float
    passed_on_the_wall: float | None
    ended_on_the_wall: float
    longest_task: float


@dataclass(frozen=True)
class Repeated:
    """Seconds on the wall to the first dot and to the last; the page's longest task in ms."""

    first_dot: float
    all: float
    longest_task: float


@contextmanager
def opened(browser: Browser, widget: HeadLab, before: str = "") -> Iterator[Page]:
    """Open a widget in a page of its own, from a folder; `before` is run first."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    with tempfile.TemporaryDirectory() as folder:
        (file := Path(folder) / "page.html").write_text(page_source(widget), encoding="utf-8")
        page = context.new_page()
        page.add_init_script(WATCH_TASKS)
        if before:
            page.add_init_script(before)
        page.goto(file.as_uri())
        page.locator(".attn-widget").wait_for()
        yield page
    context.close()


def seconds_of(browser: Browser) -> float:
    """Return how much processor time the pages' processes have taken."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return sum(process["cpuTime"] for process in processes if process["type"] == "renderer")


def train(browser: Browser, num_heads: int, seed: int) -> Training:
    """Train one model on a fresh page."""
    with opened(browser, HeadLab(num_heads, seed=seed)) as page:
        before = seconds_of(browser)
        page.evaluate(TRAIN)
        page.wait_for_function("passed || ended", timeout=PATIENCE)
        passed = seconds_of(browser) - before
        page.wait_for_function("ended", timeout=PATIENCE)
        ended = seconds_of(browser) - before
        passed_on_the_wall, ended_on_the_wall, longest = page.evaluate("[passed, ended, longest]")
    if not passed_on_the_wall:
        return Training(None, ended, None, ended_on_the_wall, longest)
    return Training(passed, ended, passed_on_the_wall, ended_on_the_wall, longest)


def change(browser: Browser, changes: int) -> dict[str, list[float]]:
    """Choose words and mute heads of a trained model; return what that took, in ms, by its name."""
    with opened(browser, HeadLab(4), WATCH_WORKERS) as page:
        page.evaluate(TRAIN)
        page.wait_for_function("ended", timeout=PATIENCE)
        session = page.context.new_cdp_session(page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": THROTTLED})
        page.wait_for_timeout(1000)
        page.evaluate("asked.answers.length = asked.evaluation.length = painted.length = 0")
        words = page.get_by_label("Word 3")
        head = page.get_by_label("head 2 works")
        for done in range(changes):
            words.select_option(["nun", "king"][done % 2])
            page.wait_for_function("done => painted.length === done", arg=2 * done + 1)
            head.set_checked(bool(done % 2))
            page.wait_for_function("done => painted.length === done", arg=2 * done + 2)
            page.wait_for_timeout(300)  # the evaluation
        found = page.evaluate("({...asked, painted})")
    return {
        "computed": found["answers"],
        "a word chosen, painted": found["painted"][::2],
        "a head muted, painted": found["painted"][1::2],
        "evaluated again": found["evaluation"],
    }


def repeat(browser: Browser) -> Repeated:
    """Train all numbers of heads with five seeds each, as the widget does."""
    with opened(browser, HeadLab()) as page:
        start = page.evaluate("window.longest = 0, performance.now()")
        page.get_by_role("button", name="Repeat it").click()
        seconds = f"(performance.now() - {start}) / 1000"
        dot = page.wait_for_function(
            f"document.querySelector('.attn-run-dot') && {seconds}", timeout=PATIENCE
        )
        whole = page.wait_for_function(
            "/^(\\d+) of \\1 /.test(document.querySelector('.attn-repeated').textContent)"
            f" && {seconds}",
            timeout=PATIENCE,
        )
        return Repeated(dot.json_value(), whole.json_value(), page.evaluate("longest"))


def median_of(seconds: Iterable[float | None]) -> float:
    """The median, where None is later than anything."""
    return statistics.median(math.inf if each is None else each for each in seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3, help="seeds of each number of heads (3)")
    parser.add_argument("--changes", type=int, default=20, help="words and heads changed (20)")
    options = parser.parse_args()
    path = find_browser()
    if path is None:
        parser.error(f"no Chromium found: {HOW_TO_GET_ONE}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        version = browser.version
        trainings = {h: [train(browser, h, seed) for seed in range(options.runs)] for h in HEADS}
        changes = change(browser, options.changes)
        repeated = repeat(browser)
        browser.close()

    rows, goals = [], []
    for num_heads, found in trainings.items():
        passed, ended, passed_on_the_wall, ended_on_the_wall = (
            median_of(getattr(training, name) for training in found)
            for name in ("passed", "ended", "passed_on_the_wall", "ended_on_the_wall")
        )
        times = (passed, ended, passed_on_the_wall, ended_on_the_wall)
        rows.append([f"{num_heads} heads", *(f"{time:.2f}" for time in times)])
        goals.append(Goal(f"{num_heads} heads: verb > object passes .9 (s)", passed, PASSED_S))
        goals.append(Goal(f"{num_heads} heads: trained (s)", ended, ENDED_S))
    columns = ["", "verb > object, s", "trained, s", "on the wall", "on the wall"]
    show(f"Medians of {options.runs} seeds", columns, rows)
    rows = [[n, f"{statistics.median(t):.0f}", f"{p95(t):.0f}"] for n, t in changes.items()]
    show(
        f"Changes of a model with 4 heads, page {THROTTLED}x slower", ["ms", "median", "p95"], rows
    )

    tasks = [t.longest_task for found in trainings.values() for t in found]
    longest = max(*tasks, repeated.longest_task)
    goals.append(Goal("longest task of the page, ms (0: none above 50)", longest, LONG_TASK_MS))
    goals.append(Goal("a change computed, p95 (ms)", p95(changes["computed"]), COMPUTED_MS))
    for name in ("a word chosen, painted", "a head muted, painted"):
        goals.append(Goal(f"{name}, throttled, p95 (ms)", p95(changes[name]), PAINTED_MS))
    goals.append(Goal("Repeat it: first dot (s on the wall)", repeated.first_dot, FIRST_DOT_S))
    goals.append(Goal("Repeat it: all models (s on the wall)", repeated.all, REPEATED_S))
    show_goals(goals)
    record = {
        "chromium": version,
        "throttled": THROTTLED,
        "trainings, by heads": {h: Summary.of_fields(found) for h, found in trainings.items()},
        "changes, ms": {name: Summary.of(times) for name, times in changes.items()},
        "repeated": repeated,
    }
    save("headlab", "cpu", record, goals)


if __name__ == "__main__":
    main()
