"""How quickly models train in the browser, beside torch on one thread.

    python benchmarks/engine.py            # about five minutes
    python benchmarks/engine.py --runs 1

Measured is the model that learns Concord (d = 64; 1, 4 and 16 heads; 400 steps of 32 sentences,
drawn as they are needed) in a worker of a page opened from a folder, in Chromium. The page is told
what a widget would show: losses, an evaluation of 300 sentences and a map every 25 steps.

Seconds are those of the browser's process, which does nothing else; what else the machine does
hardly counts. Those on the wall count it. torch takes as many steps, in turn with the browser, on
sentences that were drawn before. Long tasks keep the page from answering for more than 50 ms.
"""

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from measuring import Goal, Summary, save, show, show_goals

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))  # for the tools that tests share with this program

import torch  # noqa: E402
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402
from tools.browser_models import page_source  # noqa: E402
from tools.browsing import FLAGS, HOW_TO_GET_ONE, find_browser  # noqa: E402

from attncourse.tasks import concord, pack  # noqa: E402
from attncourse.training import RECIPES, answer_loss  # noqa: E402
from attnlib.model import TransformerModel  # noqa: E402

HEADS = (1, 4, 16)
RECIPE = RECIPES["concord"]
SECONDS = 10
TASK = {"name": "concord", "seed": 0, "heldOut": RECIPE.held_out, "evaluated": 300}

TRAIN = """(message) => new Promise((resolve, reject) => {
  let longest = 0;
  const observer = new PerformanceObserver((list) => {
    for (const {duration} of list.getEntries()) longest = Math.max(longest, duration);
  });
  observer.observe({type: "longtask"});
  const start = performance.now();
  const training = attnModules["engine/trainer.js"].startTraining(message, {
    done: ({seconds}) => {
      training.close();
      resolve({wall: (performance.now() - start) / 1000, steps: seconds, longest});
    },
    error: (reason) => reject(new Error(reason)),
  });
})"""


@dataclass(frozen=True)
class Training:
    """What one training took: seconds of the browser's process, its steps and the whole of it on
    the wall; seconds of torch for the same steps; the longest task of the page in ms, 0 if none is
    long.
    """

    seconds: float
    steps_on_the_wall: float
    on_the_wall: float
    torch: float
    longest_task: float


def torch_seconds(model: TransformerModel) -> float:
    """Take as many steps with torch; return the seconds."""
    sentences = concord.sentences(RECIPE.steps * RECIPE.batch, seed=0)
    batches = [pack(list(some)) for some in zip(*[iter(sentences)] * RECIPE.batch, strict=True)]
    optimizer = torch.optim.AdamW(model.parameters(), RECIPE.lr, RECIPE.betas)
    start = time.process_time()
    for batch in batches:
        logits = model(batch.tokens, key_mask=batch.key_mask).logits
        loss = answer_loss(logits, batch.answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return time.process_time() - start


def seconds_of(browser: Browser) -> float:
    """Return how much processor time the pages' processes have taken."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return sum(process["cpuTime"] for process in processes if process["type"] == "renderer")


def measure(browser: Browser, page: Page, num_heads: int) -> Training:
    """Train once in the browser and once with torch."""
    model = TransformerModel.of_sizes(concord, **RECIPE.model | {"num_heads": num_heads})
    sentence = concord.read("the king saw the big ball because it was too wet")
    message = {
        "spec": model.spec(),
        "recipe": RECIPE.as_json(),
        "task": TASK,
        "reports": {"shown": {"ids": list(sentence.ids)}},
    }
    before = seconds_of(browser)
    told = page.evaluate(TRAIN, message)
    seconds = seconds_of(browser) - before
    return Training(seconds, told["steps"], told["wall"], torch_seconds(model), told["longest"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    path = find_browser()
    if path is None:
        parser.error(f"no Chromium found: {HOW_TO_GET_ONE}")
    torch.set_num_threads(1)
    found: dict[int, list[Training]] = {num_heads: [] for num_heads in HEADS}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        version = browser.version
        (file := Path(folder) / "page.html").write_text(page_source(), encoding="utf-8")
        page = browser.new_page()
        page.goto(file.as_uri())
        for _ in range(runs):
            for num_heads in HEADS:
                found[num_heads].append(measure(browser, page, num_heads))
        browser.close()

    rows, goals = [], []
    for num_heads, trainings in found.items():
        seconds = statistics.median(training.seconds for training in trainings)
        ratio = statistics.median(training.seconds / training.torch for training in trainings)
        wall = statistics.median(training.on_the_wall for training in trainings)
        name = f"{num_heads} head{'s' * (num_heads > 1)}"
        per_step = 1000 * seconds / RECIPE.steps
        rows.append([name, *(f"{x:.2f}" for x in (seconds, per_step, wall, ratio))])
        goals.append(Goal(f"{name}: seconds for {RECIPE.steps} steps", seconds, SECONDS))
    show(
        f"{RECIPE.steps} steps, with evaluations and maps: medians of {runs}",
        ["", "s", "ms per step", "s on the wall", "as a multiple of torch's"],
        rows,
    )
    longest = max(training.longest_task for of in found.values() for training in of)
    goals.append(Goal("longest task of the page, ms (0: none above 50)", longest, 50))
    show_goals(goals)
    trained = {num_heads: Summary.of_fields(trainings) for num_heads, trainings in found.items()}
    record = {"chromium": version, "trainings, by heads": trained}
    save("engine", "cpu", record, goals)


if __name__ == "__main__":
    main()
