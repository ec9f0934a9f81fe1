"""A recipe's training in a browser, in the page of `browser_models`."""

from attnlib.model import TransformerModel

# Starts a training. `losses` are the page's then, and in the end `ended`: the digest, or an error.
START = """(message) => {
  [window.losses, window.ended] = [[], ""];
  const trainer = message.task.name === "names" ? "names_trainer" : "trainer";
  const {close} = attnModules[`engine/${trainer}.js`].startTraining(message, {
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
