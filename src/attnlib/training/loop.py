"""The one way in which models of this course are trained."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

import torch

from attnlib._checks import require_count, require_flag, require_positive_int
from attnlib._settings import usual_settings
from attnlib.model import TransformerModel
from attnlib.relations import Batch, Sentence, pack
from attnlib.training.evaluation import Evaluation, answer_loss, evaluate
from attnlib.training.recipe import Recipe

# Seeds of sentences. A training's own seed, which is smaller, draws its fresh ones.
OF_HELD_OUT, OF_POOL = 2**31, 2**31 + 1


@dataclass(frozen=True, repr=False)
class Trained:
    """A model and how it came about.

    Attributes:
        model: in evaluation mode.
        recipe, seed: what it was made from.
        losses: of each step's batch, before the step.
        evaluations: on the held-out sentences, by how many steps had been taken. The last is there
            in any case.
        seconds: how long the steps took, without evaluations.
    """

    model: TransformerModel
    recipe: Recipe
    seed: int
    losses: list[float]
    evaluations: dict[int, Evaluation]
    seconds: float

    @property
    def final(self) -> Evaluation:
        """What the model gets right at the end."""
        return self.evaluations[len(self.losses)]

    def __repr__(self) -> str:
        return (
            f"Trained({self.recipe.name}, seed {self.seed}: {len(self.losses)} steps in "
            f"{self.seconds:.1f} s, loss {self.final.loss:.3f}, joint {self.final.joint:.3f})"
        )


def train(
    recipe: Recipe,
    *,
    seed: int = 0,
    progress: bool = True,
    evaluate_every: int | None = None,
    stop: int | None = None,
    make: Callable[..., TransformerModel] = TransformerModel.of_sizes,
) -> Trained:
    """Make a model and train it.

    The seed decides the initial weights, and the fresh sentences or the order of the pool; held-out
    sentences and the pool are the same for all seeds. A training runs on one thread, where it gives
    the same numbers each time (and, with models so small, is done soonest). torch's own random
    numbers and settings are left as they were.

    Args:
        recipe: one of `RECIPES`, or of your own.
        seed: from 0 to 2^31 - 1.
        progress: whether a bar shows steps and loss. Where the environment has TQDM_DISABLE, as
            while the course is built, none is shown.
        evaluate_every: after how many steps each the model is evaluated on the held-out sentences;
            only at the end if left out.
        stop: end after this many steps of the recipe, as if somebody had interrupted it.
        make: what makes the model, called as ``make(recipe.task, **recipe.model)``. A module of
            your own will do that has `readouts` by their names, and takes and gives what a
            `TransformerModel` does.

    Raises:
        TypeError, ValueError: arguments of another type, a seed or stop that's too large, options
            that no model has.
        ImportError: progress without the package tqdm.
    """
    if not isinstance(recipe, Recipe):
        raise TypeError(f"recipe must be a Recipe, such as RECIPES['concord'], got {recipe!r:.40}")
    require_count("seed", seed)
    if seed >= OF_HELD_OUT:
        raise ValueError(f"seed must be below 2^31, got {seed}")
    require_flag("progress", progress)
    if evaluate_every is not None:
        require_positive_int("evaluate_every", evaluate_every)
    steps = recipe.steps if stop is None else stop
    require_positive_int("stop", steps)
    if steps > recipe.steps:
        raise ValueError(f"stop must be at most the recipe's {recipe.steps} steps, got {stop}")
    with usual_settings(), _one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make(recipe.task, **recipe.model)
        return _train(model, recipe, seed, steps, evaluate_every, progress)


def held_out_sentences(recipe: Recipe) -> list[Sentence]:
    """Return the sentences on which a recipe's models are evaluated, and never trained."""
    return recipe.task.sentences(recipe.held_out, seed=OF_HELD_OUT)


def _train(
    model: TransformerModel, recipe: Recipe, seed: int, steps: int, evaluate_every: int | None,
    progress: bool,
) -> Trained:  # fmt: skip
    """Train a model for some steps of its recipe."""
    optimizer = torch.optim.AdamW(
        model.parameters(), recipe.lr, betas=recipe.betas, weight_decay=recipe.weight_decay
    )
    held_out = held_out_sentences(recipe)
    losses: list[float] = []
    evaluations: dict[int, Evaluation] = {}
    seconds = 0.0
    with _bar(f"{recipe.name}, seed {seed}", steps, progress) as show:
        start = time.perf_counter()
        for step, batch in enumerate(_batches(recipe, seed, steps, held_out)):
            for group in optimizer.param_groups:
                group["lr"] = recipe.learning_rate(step)
            answers = model(batch.tokens, key_mask=batch.key_mask)
            loss = answer_loss(answers.logits, batch.answers)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            show(losses[-1])
            taken = step + 1
            if taken == steps or (evaluate_every and taken % evaluate_every == 0):
                seconds += time.perf_counter() - start
                evaluations[taken] = evaluate(model, held_out, recipe.task.relations)
                start = time.perf_counter()
    return Trained(model.eval(), recipe, seed, losses, evaluations, seconds)


def _batches(recipe: Recipe, seed: int, steps: int, held_out: list[Sentence]) -> Iterator[Batch]:
    """Yield as many batches as there are steps, of sentences that aren't held out."""
    if recipe.pool is None:
        fresh = recipe.task.stream(seed=seed, without=held_out)
        for _ in range(steps):
            yield pack(list(islice(fresh, recipe.batch)))
        return
    pool = recipe.task.sentences(recipe.pool, seed=OF_POOL, without=held_out)
    generator = torch.Generator().manual_seed(seed)
    rounds = -(-steps * recipe.batch // recipe.pool)
    order = torch.cat([torch.randperm(recipe.pool, generator=generator) for _ in range(rounds)])
    for chosen in order[: steps * recipe.batch].view(steps, recipe.batch).tolist():
        yield pack([pool[i] for i in chosen])


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _bar(name: str, steps: int, progress: bool) -> Iterator[Callable[[float], None]]:
    """Give what shows a step's loss in a progress bar, if one is wanted."""
    if not progress or "TQDM_DISABLE" in os.environ:  # tqdm's own, which its notebook bars forget
        yield lambda loss: None
        return
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(
            "progress=True needs the package tqdm: pip install tqdm, or say progress=False"
        ) from error
    with tqdm(total=steps, desc=name, unit="step") as bar:

        def show(loss: float) -> None:
            bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
            bar.update()

        yield show
