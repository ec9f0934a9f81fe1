"""What the browser tests of HeadLab's forms share: train, listen to the worker, read answers."""

import torch
from playwright.sync_api import expect

from attncourse.tasks import concord
from attncourse.training import RECIPES
from attnlib.model import TransformerModel
from tools.widget_pages import press

HELD_OUT_SEED = 2**31
LONGEST = (
    "this very strange new princess that this waitress liked gave this quite strange strange "
    "princess yesterday their very strange strange waitress ."
)


def train(page):
    """Press Train, and wait until the model is trained."""
    press(page, "Train")
    trained(page)


def trained(page):
    expect(page.locator(".attn-progress-text")).to_contain_text("Trained", timeout=60_000)


def begun(page):
    """Press Train, and wait until the model has made its first steps."""
    press(page, "Train")
    page.wait_for_function("document.querySelector('progress').value > 0")


def tells(page, text):
    """Wait until a lab says something, of a model or of its answers."""
    expect(page.locator("output.attn-live")).to_contain_text(text, timeout=60_000)


def kept(page, number):
    """Wait until so many models are trained and kept; return their names."""
    expect(page.locator(".attn-kept tbody tr")).to_have_count(number, timeout=60_000)
    return page.locator(".attn-kept button").all_inner_texts()


def answered(page):
    """Wait for what the model that was begun last has been asked by now, and is asked then."""
    for _ in range(2):  # a worker replies in order
        page.evaluate("lastTraining.ask('weights')")


def later(page):
    """Let a second go by on the page's clock, which `lab` has set up."""
    page.clock.run_for(1000)


def bars(page):
    """The shares of right answers, as written beside the bars."""
    return page.locator(".attn-relation + .attn-bar-track + .attn-number").all_inner_texts()


# The texts of a table's rows.
CELLS = "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"


def with_numbers_of(page, model):
    """Give a model of torch's the weights that a page has trained last."""
    weights = page.evaluate("lastTraining.ask('weights')")
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    assert list(weights) == list(shapes)
    numbers = {name: torch.tensor(value).view(shapes[name]) for name, value in weights.items()}
    model.load_state_dict(numbers)
    return model.eval()


def model_of(page, num_heads):
    """Torch's copy of the model of Concord that a page has trained last."""
    recipe = RECIPES["concord"]
    model = TransformerModel.of_sizes(recipe.task, **{**recipe.model, "num_heads": num_heads})
    return with_numbers_of(page, model)


# Keep what HeadLab starts at hand, and count it.
LISTEN = """() => {
  window.workers = 0;
  const Own = window.Worker;
  window.Worker = class extends Own {
    constructor(...args) {
      super(...args);
      window.workers += 1;
      window.lastWorker = this;
    }
    terminate() {
      window.workers -= 1;
      super.terminate();
    }
  };
  let asked = 1e6;
  window.lastTraining = {ask: (question, about = {}) => new Promise((resolve) => {
    const id = ++asked;
    const own = lastWorker.onmessage;
    lastWorker.onmessage = (event) => {
      if (event.data.id !== id) return own(event);
      lastWorker.onmessage = own;
      resolve(JSON.parse(JSON.stringify(event.data.reply,
        (_, value) => ArrayBuffer.isView(value) ? Array.from(value) : value)));
    };
    lastWorker.postMessage({kind: "ask", id, question, ...about});
  })};
}"""


def answers_on(page, words=".attn-card"):
    """What the page says of each word: a list of (answer, is right) for each."""
    return page.locator(words).evaluate_all(
        """cards => cards.map((card) => [...card.querySelectorAll(".attn-slot")].map((slot) =>
             [slot.querySelector(".attn-given").textContent,
              slot.querySelector(".attn-mark").textContent.includes("✓")]))"""
    )


def answers_of(model, sentence, muted=()):
    """The same of torch's model."""
    mask = torch.ones(model.blocks[0].attention.num_heads)
    mask[list(muted)] = 0
    logits = model(torch.tensor([sentence.ids]), head_masks=[mask]).logits
    found = [[] for _ in sentence.words]
    for readout, answers in concord.readouts.items():
        for word, right in enumerate(sentence.answers[readout]):
            if right is not None:
                given = int(logits[readout][0, word].argmax())
                found[word].append([answers[given], given == right])
    return found
