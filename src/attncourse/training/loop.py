"""The one way in which models of this course are trained."""

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from threading import RLock
from typing import Any

import torch
from torch import nn

from attncourse.grid import digest, round_to_grid
from attncourse.progress_bar import opened_bar
from attncourse.tasks import Batch, Sentence, pack
from attncourse.training.evaluation import Evaluation, answer_loss, evaluate
from attncourse.training.first_weights import initial_model
from attncourse.training.recipe import Recipe
from attndoctor.support.torch_settings import one_thread, usual_settings
from attnlib.checks import require_count, require_flag, require_positive_int
from attnlib.model import TransformerModel
from attnlib.rng import Sfc32

# Seeds of sentences. A training's own seed, which is smaller, draws its fresh ones.
HELD_OUT_SEED, POOL_SEED = 2**31, 2**31 + 1

TORCH_LOCK = RLock()  # torch's default dtype and random numbers are those of the whole program


@dataclass
class State:
    """All that a training changes."""

    model: nn.Module
    optimizer: torch.optim.AdamW
    rng: Sfc32  # draws fresh sentences
    losses: list[float] = field(default_factory=list)  # of each step's batch, before the step
    evaluations: dict[int, Evaluation] = field(default_factory=dict)  # by steps taken
    seconds: float = 0.0  # that the steps took

    @property
    def step(self) -> int:
        """How many steps were taken."""
        return len(self.losses)


@dataclass(frozen=True, repr=False)
class Trained:
    """A model and how it came about."""

    model: TransformerModel  # in evaluation mode and float32, which holds the grid exactly
    recipe: Recipe
    seed: int
    losses: list[float]  # of each step's batch, before the step
    evaluations: dict[int, Evaluation]  # on held-out sentences, by steps taken; the last is there
    watched: dict[int, Any]  # what `watch` returned at each evaluation
    seconds: float  # that the steps took, without evaluations
    digest: str | None  # the same on every machine; None if the recipe isn't repeatable

    @property
    def final(self) -> Evaluation:
        """What the model gets right at the end."""
        return self.evaluations[len(self.losses)]

    def __repr__(self) -> str:
        return (
            f"Trained({self.recipe.name}, seed {self.seed}: {len(self.losses)} steps in "
            f"{self.seconds:.1f} s, loss {self.final.loss:.3f}, joint {self.final.joint:.3f}, "
            f"{'no digest' if self.digest is None else f'digest {self.digest:.8}'})"
        )


def train(
    recipe: Recipe,
    *,
    seed: int = 0,
    progress: bool = True,
    evaluate_every: int | None = None,
    watch: Callable[[TransformerModel], Any] | None = None,
    stop: int | None = None,
    make: Callable[..., TransformerModel] = TransformerModel.of_sizes,
) -> Trained:
    """Make a model and train it.

    The seed decides the initial weights, and the fresh sentences or the order of the pool; held-out
    sentences and the pool are the same for all seeds. On every machine, and in the course's own
    engine for browsers, the weights come out the same, bit for bit (see `grid`). A training runs on
    one thread, where models so small are done soonest. torch's own random numbers and settings are
    left as they were; as all threads of a program share them, trainings in several threads take
    turns.

    Args:
        recipe: one of `RECIPES`, or of your own.
        seed: from 0 to 2^31 - 1.
        progress: whether a bar shows steps and loss. Where the environment has TQDM_DISABLE, as
            while the course is built, none is shown.
        evaluate_every: after how many steps each the model is evaluated on the held-out sentences;
            only at the end if left out.
        watch: a function that is called at each evaluation, without gradients, with a copy of the
            model in float32 and evaluation mode.
        stop: end after this many steps of the recipe, as if it were interrupted.
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
    if seed >= HELD_OUT_SEED:
        raise ValueError(f"seed must be below 2^31, got {seed}")
    seed = int(seed)
    require_flag("progress", progress)
    if evaluate_every is not None:
        require_positive_int("evaluate_every", evaluate_every)
    if watch is not None and not callable(watch):
        raise TypeError(f"watch must be a function of the model, got {watch!r:.40}")
    steps = recipe.steps if stop is None else stop
    require_positive_int("stop", steps)
    if steps > recipe.steps:
        raise ValueError(f"stop must be at most the recipe's {recipe.steps} steps, got {stop}")
    with TORCH_LOCK, usual_settings(), one_thread(), torch.random.fork_rng(devices=[]):
        state = _begin(recipe, seed, make)
        return _train(state, recipe, seed, steps, evaluate_every, watch, progress)


def held_out_sentences(recipe: Recipe) -> list[Sentence]:
    """Return the sentences on which a recipe's models are evaluated, and never trained."""
    return recipe.task.sentences(recipe.held_out, seed=HELD_OUT_SEED)


def _begin(recipe: Recipe, seed: int, make: Callable[..., nn.Module]) -> State:
    """Seed torch's random numbers, and return a training before its first step."""
    model = initial_model(recipe, seed, make)
    optimizer = torch.optim.AdamW(
        model.parameters(), recipe.lr, betas=recipe.betas, weight_decay=recipe.weight_decay,
        fused=True,  # all parameters in one call
    )  # fmt: skip
    return State(model, optimizer, Sfc32(seed))


def _train(
    state: State, recipe: Recipe, seed: int, steps: int, evaluate_every: int | None,
    watch: Callable[[TransformerModel], Any] | None, progress: bool,
) -> Trained:  # fmt: skip
    """Take so many steps of a training."""
    model: Any = state.model
    held_out = held_out_sentences(recipe)
    watched: dict[int, Any] = {}

    def look() -> None:
        state.evaluations[state.step] = evaluate(model, held_out, recipe.task.relations)
        if watch is not None:
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                watched[state.step] = watch(copy.deepcopy(model).float().eval())

    name = f"{recipe.name}, seed {seed}"
    with opened_bar(progress, total=steps, desc=name, unit="step") as bar:
        start = time.perf_counter()
        for batch in _batches(recipe, seed, state, steps, held_out):
            _take_step(state, recipe, batch)
            if bar is not None:
                bar.set_postfix(loss=f"{state.losses[-1]:.3f}", refresh=False)
                bar.update()
            state.seconds += time.perf_counter() - start
            if state.step == steps or (evaluate_every and state.step % evaluate_every == 0):
                look()
            start = time.perf_counter()
    which = digest(model) if recipe.repeatable else None
    return Trained(
        model.float().eval(), recipe, seed, state.losses, state.evaluations, watched,
        state.seconds, which,
    )  # fmt: skip


def _take_step(state: State, recipe: Recipe, batch: Batch) -> None:
    """Learn from a batch."""
    for group in state.optimizer.param_groups:
        group["lr"] = recipe.learning_rate(state.step)
    # Padding stands on the right, where no token of a causal model looks: a mask would only cost.
    key_mask = None if recipe.task.causal else batch.key_mask
    answers = state.model(batch.tokens, key_mask=key_mask)
    loss = answer_loss(answers.logits, batch.answers)
    state.optimizer.zero_grad()
    loss.backward()
    state.optimizer.step()
    if recipe.repeatable:
        round_to_grid(state.model.parameters())
    state.losses.append(loss.item())


def _batches(
    recipe: Recipe, seed: int, state: State, steps: int, held_out: list[Sentence]
) -> Iterator[Batch]:
    """Yield a batch for each step, of sentences that aren't held out."""
    if recipe.pool is None:
        fresh = recipe.task.drawn_with(state.rng, without=held_out)
        for _ in range(steps):
            yield pack(list(islice(fresh, recipe.batch)), partners=False)
        return
    pool = recipe.task.sentences(recipe.pool, seed=POOL_SEED, without=held_out)
    generator = torch.Generator().manual_seed(seed)
    rounds = -(-steps * recipe.batch // recipe.pool)
    order = torch.cat([torch.randperm(recipe.pool, generator=generator) for _ in range(rounds)])
    for chosen in order[: steps * recipe.batch].view(steps, recipe.batch).tolist():
        yield pack([pool[i] for i in chosen], partners=False)
