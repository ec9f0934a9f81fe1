"""Trainings in a browser, in the page of `browser_models`, that are to be torch's."""

from attncourse.training import RECIPES
from attnlib.model import TransformerModel

SHORT = {"steps": 12, "warmup": 3, "batch": 8}
TRAININGS = {  # recipe and seed
    "concord": (RECIPES["concord"], 0),
    "concord, 1 head": (RECIPES["concord"].changed(model={"num_heads": 1}, steps=60), 3),
    **{
        f"names, {h} heads": (RECIPES["names"].changed(model={"num_heads": h}, steps=60), h)
        for h in (1, 2, 4, 8)
    },
    "two layers, causal": (RECIPES["induction"].changed(pool=None, **SHORT), 1),
    "lookup": (RECIPES["lookup"].changed(**SHORT), 2),
    "diagonals": (RECIPES["diagonals"].changed(**SHORT), 5),
}

# Starts a training. `losses` are the page's then, and in the end `ended`: the digest, or an error.
START = """(message) => {
  [window.losses, window.ended] = [[], ""];
  const {close} = attnModules["engine/trainer.js"].startTraining(message, {
    losses: (told) => losses.push(...told.losses),
    done: ({digest}) => {
      close();
      window.ended = digest ?? "no digest";
    },
    error: (reason) => { window.ended = reason; },
  });
}"""


def message_of(recipe, seed):
    """What a page says to a worker, which evaluates nothing meanwhile."""
    name, *_ = recipe.task.name.split("-")  # sizes stand behind
    task = {"name": name, "seed": seed, "heldOut": recipe.held_out, "evaluated": 0}
    spec = TransformerModel.of_sizes(recipe.task, **recipe.model).spec()
    return {"spec": spec, "recipe": recipe.as_json(), "task": task}
