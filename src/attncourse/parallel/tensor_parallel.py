"""A model whose heads are split over processes, beside the same model in one."""

import copy
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh

from attncourse.parallel._checks import require_recipe, require_seed, require_splittable
from attncourse.parallel._gaps import largest_gap
from attncourse.parallel.heads import own_numbers, split_heads_over, whole
from attncourse.parallel.processes import TIMEOUT, from_first, number_of
from attncourse.parallel.reports import ModelReport, ModelShare
from attncourse.parallel.traffic import Traffic
from attncourse.tasks import Batch, pack
from attncourse.training import RECIPES, Recipe, answer_loss
from attnlib.model import TransformerModel

TOLERANCE = 1e-5  # of outputs and gradients in float32, which are rounded in another order


def compare_models(
    processes: int | None = None,
    *,
    recipe: Recipe = RECIPES["names"],
    seed: int = 0,
    timeout: float = TIMEOUT,
) -> ModelReport:
    """Compare a model whose heads are split over local processes with the same model in one.

    In each process the model is made from the seed, asked about the same batch, alone and split,
    and the gradients of its loss are taken both times.

    Args:
        processes: how many; 2 if left out, or those that torchrun has started.
        recipe: whose model it is, and from whose task the batch is.
        seed: of the weights and of the batch, from 0 to 2^31 - 1.
        timeout: for how many seconds a process waits for the others.

    Raises:
        TypeError, ValueError: heads or neurons that can't be dealt out evenly, or arguments of
            another kind.
        ProcessEndedError: a process died, raised or stood still.
    """
    processes = number_of(processes)
    require_recipe(recipe)
    require_seed(seed)
    require_splittable(_model(recipe, seed), processes)
    return from_first(_compare_here, processes, recipe, seed, timeout=timeout)


def compare_here(model: TransformerModel, batch: Batch) -> ModelReport:
    """Compare a model with a copy that is split over all processes; each must call this."""
    split = split_heads_over(
        copy.deepcopy(model), init_device_mesh("cpu", (dist.get_world_size(),))
    )
    with Traffic() as forward:
        logits, loss = _asked(split, batch)
    with Traffic() as backward:
        loss.backward()
    expected, loss = _asked(model, batch)
    loss.backward()

    outputs = largest_gap((logits[name], expected[name]) for name in expected)
    pairs = zip(split.parameters(), model.parameters(), strict=True)
    gradients = largest_gap((_gradient(own), _gradient(single)) for own, single in pairs)
    share = ModelShare(_heads(split), own_numbers(split), outputs, gradients)
    shares = [share] * dist.get_world_size()
    dist.all_gather_object(shares, share)
    alone = ModelShare(_heads(model), own_numbers(model), 0.0, 0.0)
    B, T = batch.tokens.shape
    return ModelReport(
        alone, shares, len(model.blocks), (B, T, model.d_model), forward.sent, backward.sent,
        TOLERANCE,
    )  # fmt: skip


def _compare_here(recipe: Recipe, seed: int) -> ModelReport:
    batch = pack(recipe.task.sentences(recipe.batch, seed=seed))
    return compare_here(_model(recipe, seed), batch)


def _model(recipe: Recipe, seed: int) -> TransformerModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TransformerModel.of_sizes(recipe.task, **recipe.model)


def _asked(model: TransformerModel, batch: Batch) -> tuple[dict[str, Tensor], Tensor]:
    logits = model(batch.tokens, key_mask=batch.key_mask).logits
    return logits, answer_loss(logits, batch.answers)


def _gradient(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return whole(parameter.grad)


def _heads(model: TransformerModel) -> int:
    block: Any = model.blocks[0]
    return int(block.attention.num_heads)
