"""A training whose batches are split over processes, beside the same training in one."""

import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from attncourse.parallel._checks import require_no_dropout, require_recipe, require_seed
from attncourse.parallel._gaps import largest_gap
from attncourse.parallel.processes import TIMEOUT, from_first, number_of
from attncourse.parallel.reports import TrainingReport, TrainingShare
from attncourse.parallel.traffic import Sent, Traffic
from attncourse.tasks import Batch
from attncourse.training import RECIPES, Recipe, answer_loss, held_out_sentences, train
from attncourse.training.checkpoint import State
from attncourse.training.loop import batches, begin, take_step
from attnlib.checks import require_positive_int
from attnlib.model import TransformerModel

STEPS = 50
TOLERANCE = 1e-9  # of losses in float64, and of weights, which are rounded to a grid at each step


def compare_trainings(
    processes: int | None = None,
    *,
    recipe: Recipe = RECIPES["names"],
    seed: int = 0,
    steps: int = STEPS,
    timeout: float = TIMEOUT,
) -> TrainingReport:
    """Compare a training whose batches are split over local processes with that of `train`.

    In each process a whole model is made from the seed. Of every batch it learns from its own
    sentences, and PyTorch's `DistributedDataParallel` gives all of them the mean of their gradients
    (Li et al. 2020), before each takes the same step. Both trainings are repeatable: the weights
    come out the same, bit for bit.

    Args:
        processes: how many; 2 if left out, or those that torchrun has started.
        recipe: what is trained.
        seed: of the training, as for `train`.
        steps: how many of the recipe's steps are taken.
        timeout: for how many seconds a process waits for the others.

    Raises:
        TypeError, ValueError: more processes than a batch has sentences, more steps than may be,
            sizes of which no model can be made, dropout, which each process would draw for itself,
            or arguments of another kind.
        ProcessEndedError: a process died, raised or stood still.
    """
    processes = number_of(processes)
    require_recipe(recipe)
    require_seed(seed)
    require_positive_int("steps", steps)
    if steps > recipe.steps:
        raise ValueError(f"steps must be at most the recipe's {recipe.steps}, got {steps}")
    if processes > recipe.batch:
        raise ValueError(
            f"processes must be at most the {recipe.batch} sentences of a batch, got {processes}: "
            "each takes at least one"
        )
    recipe = recipe.changed(repeatable=True)
    model = TransformerModel.of_sizes(recipe.task, **{**recipe.model, "device": "meta"})
    require_no_dropout(model)  # told here, before any process is started
    return from_first(_compare_here, processes, recipe, seed, steps, timeout=timeout)


def own_part(batch: Batch, rank: int, processes: int) -> Batch:
    """Return a process's sentences of a batch: every n-th."""

    def own(rows: Tensor) -> Tensor:
        return rows[rank::processes]  # [B, T] -> [B / n, T]

    return replace(
        batch,
        tokens=own(batch.tokens),
        key_mask=None if batch.key_mask is None else own(batch.key_mask),
        answers={name: own(rows) for name, rows in batch.answers.items()},
        partners={name: own(rows) for name, rows in batch.partners.items()},
    )


def share_of_loss(
    logits: dict[str, Tensor], answers: dict[str, Tensor], *, batch: Batch, processes: int
) -> Tensor:
    """Return a loss of which the mean over processes is the loss of the whole batch.

    Processes have as many sentences each, but not as many answers, so the mean of their mean losses
    would be another number: a process counts by the answers that it has.
    """
    share = _number(answers) / _number(batch.answers)
    return answer_loss(logits, answers) * share * processes


def _compare_here(recipe: Recipe, seed: int, steps: int) -> TrainingReport:
    alone = train(recipe, seed=seed, stop=steps, progress=False)
    state, sent = _train_together(recipe, seed, steps)

    rank, processes = dist.get_rank(), dist.get_world_size()
    pairs = zip(state.model.parameters(), alone.model.parameters(), strict=True)
    parameters = sum(weight.numel() for weight in alone.model.parameters())
    sentences = len(range(rank, recipe.batch, processes))
    found = (TrainingShare(sentences, parameters, largest_gap(pairs)), state.losses, state.seconds)
    gathered: list[Any] = [None] * processes
    dist.all_gather_object(gathered, found)

    shares, losses, seconds = zip(*gathered, strict=True)
    together = torch.tensor(losses, dtype=torch.float64).mean(0)  # [processes, steps] -> [steps]
    return TrainingReport(
        alone=TrainingShare(recipe.batch, parameters, 0.0),
        shares=[*shares],
        losses=(together[0].item(), together[-1].item()),
        loss=largest_gap([(together, torch.tensor(alone.losses, dtype=torch.float64))]),
        steps=steps,
        last_step=sent,
        seconds=(alone.seconds, max(seconds)),
        tolerance=TOLERANCE,
    )


def _train_together(recipe: Recipe, seed: int, steps: int) -> tuple[State, Sent]:
    """Train on this process's part of each batch; also tell what the last step sends."""
    rank, processes = dist.get_rank(), dist.get_world_size()
    state = begin(recipe, seed, TransformerModel.of_sizes)
    state.model = DistributedDataParallel(state.model)  # its gradients are those of all processes
    traffic = Traffic()
    start = time.perf_counter()
    for batch in batches(recipe, seed, state, steps, held_out_sentences(recipe)):
        loss_of = partial(share_of_loss, batch=batch, processes=processes)
        with traffic if state.step == steps - 1 else nullcontext():
            take_step(state, recipe, own_part(batch, rank, processes), loss_of)
    state.seconds = time.perf_counter() - start
    return state, traffic.sent


def _number(answers: dict[str, Tensor]) -> int:
    return sum(int((wanted >= 0).sum()) for wanted in answers.values())
