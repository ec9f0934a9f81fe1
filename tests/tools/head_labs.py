"""What the browser tests of HeadLab's forms share: train, listen to the worker, read answers."""

import torch
from playwright.sync_api import expect

from attncourse.tasks import concord
from attncourse.training import RECIPES
from attncourse.widgets import HeadLab
from attnlib.model import TransformerModel
from tools.widget_pages import press

HELD_OUT_SEED = 2**31
WAIT = 240_000  # milliseconds; a training takes long on a machine that does much else
SLIDER, PROGRESS = ".attn-track input", ".attn-progress-text"
BARS = ".attn-relation + .attn-bar-track + .attn-number"  # the shares of right answers beside them
LONGEST = (
    "this very strange new princess that this waitress liked gave this quite strange strange "
    "princess yesterday their very strange strange waitress ."
)


def quick(num_heads=2, steps=10, held_out=40, counts=None, recipe=(), **options):
    """A lab whose models are trained for a moment only, on whatever task."""
    widget = HeadLab(num_heads, **{"seed": 0} | options)
    brief = {"steps": steps, "warmup": min(5, steps)} | dict(recipe)
    induction = widget.recipes["induction"] | brief
    changes = {
        "recipe": widget.recipe | brief, "recipes": widget.recipes | {"induction": induction},
        "step_counts": [steps, 2 * steps], "held_out": held_out,
        "digests": {},  # which are those of the whole training
        "counts": counts or widget.counts,
    }  # fmt: skip
    for name, value in changes.items():
        widget.set_trait(name, value)
    widget.steps = steps
    return widget


def texts(page, selector):
    """What is to be read at all places of a kind."""
    return page.locator(selector).all_inner_texts()


def train(page):
    """Press Train, and wait until the model is trained."""
    press(page, "Train")
    trained(page)


def trained(page):
    expect(page.locator(PROGRESS)).to_contain_text("Trained", timeout=WAIT)


def tells(page, text):
    """Wait until a lab says something, of a model or of its answers."""
    expect(page.locator("output.attn-live")).to_contain_text(text, timeout=WAIT)


def kept(page, number):
    """Wait until so many models are trained and kept; return their names."""
    expect(page.locator(".attn-kept tbody tr")).to_have_count(number, timeout=WAIT)
    return texts(page, ".attn-kept button")


def answered(page):
    """Wait for what the model that was begun last has been asked by now, and is asked then."""
    for _ in range(2):  # a worker replies in order
        page.evaluate("lastWeights()")


# Notes from now on what is seen of a widget's parts, and how high the widget is.
NOTE_CHANGES = """(parts) => {
  const widget = document.querySelector(".attn-widget");
  [window.seen, window.heights] = [parts.map(() => new Set()), new Set()];
  new MutationObserver(() => {
    parts.forEach((part, i) => seen[i].add(widget.querySelector(part).outerHTML));
    heights.add(widget.offsetHeight);
  }).observe(widget, {subtree: true, childList: true, attributes: true, characterData: true});
}"""
# The texts of a table's rows.
CELLS = "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"


def with_numbers_of(page, model):
    """Give a model of torch's the weights that a page has trained last."""
    weights = page.evaluate("lastWeights()")
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    assert list(weights) == list(shapes)
    numbers = {name: torch.tensor(value).view(shapes[name]) for name, value in weights.items()}
    model.load_state_dict(numbers)
    return model.eval()


def model_of(page, num_heads, task=concord, **sizes):
    """Torch's copy of the model that a page has trained last."""
    recipe = RECIPES[task.name.split("-")[0]]
    sizes = {**recipe.model, "num_heads": num_heads, **sizes}
    return with_numbers_of(page, TransformerModel.of_sizes(task, **sizes))


def masks_of(model, muted):
    """Masks of its layers' heads, which are counted through the layers."""
    masks = torch.ones(len(model.blocks), model.blocks[0].attention.num_heads)
    masks.view(-1)[list(muted)] = 0
    return list(masks)


# Count the workers that a lab keeps, and have the last one tell its model's weights.
LISTEN = """() => {
  window.workers = 0;
  let last = null;
  const Own = window.Worker;
  window.Worker = class extends Own {
    constructor(...args) {
      super(...args);
      window.workers += 1;
      last = this;
    }
    terminate() {
      window.workers -= 1;
      super.terminate();
    }
  };
  window.lastWeights = () => new Promise((resolve) => {
    const hear = last.onmessage;
    last.onmessage = (event) => {
      if (event.data.id !== -1) return hear(event);
      last.onmessage = hear;
      const weights = Object.entries(event.data.reply);
      resolve(Object.fromEntries(weights.map(([name, values]) => [name, [...values]])));
    };
    last.postMessage({kind: "ask", id: -1, question: "weights"});
  });
}"""


def answers_on(page, words=".attn-card"):
    """What the page says of each word: a list of (answer, is right) for each."""
    return page.locator(words).evaluate_all(
        """cards => cards.map((card) => [...card.querySelectorAll(".attn-slot")].map((slot) =>
             [slot.querySelector(".attn-given").textContent,
              slot.querySelector(".attn-mark").textContent.includes("✓")]))"""
    )


def answers_of(model, sentence, muted=(), task=concord):
    """The same of torch's model."""
    logits = model(torch.tensor([sentence.ids]), head_masks=masks_of(model, muted)).logits
    known = sentence.partners.get("induction", range(len(sentence.ids)))
    found = [[] for _ in sentence.words]
    for readout, answers in task.readouts.items():
        for place, right in enumerate(sentence.answers[readout]):
            if right is not None and place in known:
                given = int(logits[readout][0, place].argmax())
                found[place].append([answers[given], given == right])
    return found
