"""A model whose heads are split over processes, beside the same model in one."""

import copy
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor

from attncourse.parallel.heads import require_splittable, split_heads_over
from attncourse.parallel.processes import TIMEOUT, run_in_processes
from attncourse.parallel.report import AllReduces, Report, Share
from attncourse.tasks import Batch, pack
from attncourse.training import RECIPES, answer_loss
from attnlib.checks import require_positive_int
from attnlib.model import TransformerModel

RECIPE = RECIPES["names"]
TOLERANCE = 1e-5  # of outputs and gradients in float32, which are rounded in another order


def compare_models(processes: int = 2, *, timeout: float = TIMEOUT) -> Report:
    """Compare a GPT of names whose heads are split over processes with the same one in one.

    In each process the model is made from seed 0 and asked about one batch, alone and split, and
    the gradients of its loss are taken both times.

    Args:
        processes: how many.
        timeout: for how many seconds a process waits for the others.

    Raises:
        TypeError, ValueError: processes that can't share four heads evenly, or no number of them.
        ProcessException: a process failed, see `run_in_processes`.
    """
    require_positive_int("processes", processes)
    require_splittable(_model(), processes)
    return run_in_processes(_compare_names, processes, timeout=timeout)[0]


def compare_here(model: TransformerModel, batch: Batch) -> Report:
    """Compare a model with a copy that is split over all processes; each must call this."""
    processes = dist.get_world_size()
    split = split_heads_over(copy.deepcopy(model), init_device_mesh("cpu", (processes,)))
    with AllReduces() as forward:
        logits, loss = _ask(split, batch)
    with AllReduces() as backward:
        loss.backward()
    expected, loss = _ask(model, batch)
    loss.backward()
    pairs = [(logits[name], expected[name]) for name in expected]
    both = zip(split.parameters(), model.parameters(), strict=True)
    pairs += [(_whole(own.grad), _whole(single.grad)) for own, single in both]
    counts = {"on the way forward": forward.count, "on the way back": backward.count}
    alone, shares = Share.of(model, _heads(model)), Share.of(split, _heads(split), pairs)
    return Report(alone, shares.from_all(), counts, TOLERANCE)


def _compare_names() -> Report:
    return compare_here(_model(), pack(RECIPE.task.sentences(RECIPE.batch, seed=0)))


def _model() -> TransformerModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return TransformerModel.of_sizes(RECIPE.task, **RECIPE.model)


def _ask(model: TransformerModel, batch: Batch) -> tuple[dict[str, Tensor], Tensor]:
    logits = model(batch.tokens, key_mask=batch.key_mask).logits
    return logits, answer_loss(logits, batch.answers)


def _heads(model: TransformerModel) -> int:
    block: Any = model.blocks[0]
    return int(block.attention.num_heads)


def _whole(gradient: Tensor | None) -> Tensor:
    """Return a gradient with the parts of all processes."""
    assert gradient is not None
    return gradient.full_tensor() if isinstance(gradient, DTensor) else gradient
