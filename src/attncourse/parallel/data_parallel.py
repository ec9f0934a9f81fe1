"""A training whose batches are split over processes, beside the same training in one."""

from dataclasses import replace
from functools import partial

import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from attncourse.parallel.processes import TIMEOUT, run_in_processes
from attncourse.parallel.report import AllReduces, Report, Share
from attncourse.tasks import Batch
from attncourse.training import RECIPES, answer_loss, held_out_sentences, train
from attncourse.training.loop import batches, begin, take_step
from attnlib.checks import require_positive_int
from attnlib.model import TransformerModel

RECIPE = RECIPES["names"]
STEPS = 50
TOLERANCE = 1e-9  # of weights in float64, which are rounded to a grid at each step


def compare_trainings(processes: int = 2, *, timeout: float = TIMEOUT) -> Report:
    """Compare a training of the GPT of names whose batches are split with that of `train`.

    In each process a whole model is made from seed 0. Of every batch it learns from its own
    sentences, and PyTorch's `DistributedDataParallel` gives all of them the mean of their gradients
    (Li et al. 2020), before each takes the same step. The weights come out the same.

    Args:
        processes: how many.
        timeout: for how many seconds a process waits for the others.

    Raises:
        TypeError, ValueError: more processes than a batch has sentences, or no number of them.
        ProcessException: a process failed, see `run_in_processes`.
    """
    require_positive_int("processes", processes)
    if processes > RECIPE.batch:
        raise ValueError(
            f"processes must be at most the {RECIPE.batch} sentences of a batch, got {processes}"
        )
    return run_in_processes(compare_here, processes, timeout=timeout)[0]


def compare_here() -> Report:
    """Train alone, then with all processes, and compare; each process must call this."""
    alone = train(RECIPE, stop=STEPS, progress=False).model
    rank, processes = dist.get_rank(), dist.get_world_size()
    state = begin(RECIPE, 0, TransformerModel.of_sizes)
    state.model = DistributedDataParallel(state.model)  # its gradients are those of all processes
    for batch in batches(RECIPE, 0, state, STEPS, held_out_sentences(RECIPE)):
        loss_of = partial(share_of_loss, batch=batch, processes=processes)
        with AllReduces() as counted:
            take_step(state, RECIPE, own_part(batch, rank, processes), loss_of)

    pairs = [*zip(state.model.parameters(), alone.parameters(), strict=True)]
    sentences = len(range(rank, RECIPE.batch, processes))
    return Report(
        "sentences", "weights", Share.of(alone, RECIPE.batch),
        Share.of(state.model, sentences, pairs).from_all(),
        {"in the last step": counted.count}, TOLERANCE,
    )  # fmt: skip


def own_part(batch: Batch, rank: int, processes: int) -> Batch:
    """Return a process's sentences of a batch, every n-th: tokens and answers [B / n, T]."""
    answers = {name: rows[rank::processes] for name, rows in batch.answers.items()}
    return replace(batch, tokens=batch.tokens[rank::processes], answers=answers)


def share_of_loss(
    logits: dict[str, Tensor], answers: dict[str, Tensor], *, batch: Batch, processes: int
) -> Tensor:
    """Return a loss whose mean over processes is the loss of the whole batch.

    Processes have as many sentences each, but not as many answers, so the mean of their mean losses
    would be another number: a process counts by the answers that it has.
    """
    own, together = (sum((x >= 0).sum() for x in of.values()) for of in (answers, batch.answers))
    return answer_loss(logits, answers) * own / together * processes
