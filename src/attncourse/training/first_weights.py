"""The weights with which a training begins: the same in Python and in a browser."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from attncourse.grid import round_to_grid
from attncourse.training.changed_world import perturb_if_asked
from attncourse.training.recipe import Recipe
from attnlib.model import TransformerModel
from attnlib.rng import Sfc32

WEIGHTS_STREAM = 1  # the stream of a seed from which weights are drawn; sentences have stream 0


def initial_model(recipe: Recipe, seed: int, make: Callable[..., nn.Module]) -> nn.Module:
    """Make a recipe's model, with the first weights of a seed.

    `TransformerModel.of_sizes` makes one whose weights `Sfc32` draws, as `widgets/engine/model.js`
    does. What else makes a model draws them from torch's random numbers, which are seeded. In a
    repeatable training they are float64, on the grid.
    """
    torch.manual_seed(seed)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if recipe.repeatable else before)
    try:
        model = make(recipe.task, **recipe.model)
    finally:
        torch.set_default_dtype(before)
    if make is TransformerModel.of_sizes:
        _draw(model, Sfc32(seed, WEIGHTS_STREAM))
    perturb_if_asked(model.parameters())
    if recipe.repeatable:
        round_to_grid(model.double().parameters())
    return model


@torch.no_grad()
def _draw(model: Any, rng: Sfc32) -> None:
    for name, weight in model.named_parameters():
        weight.copy_(_first(name, weight, model, rng))


def _first(name: str, weight: Tensor, model: TransformerModel, rng: Sfc32) -> Tensor:
    """Return what one parameter begins with, in float64."""
    if name.endswith("gain"):
        return torch.ones(weight.shape, dtype=torch.float64)
    if name.endswith("bias"):
        return torch.zeros(weight.shape, dtype=torch.float64)
    std = model.readout_std if name.startswith("readouts") else None
    if name.endswith("embedding.weight"):
        std = model.embedding_std
    if std:
        numbers = [std * rng.normal() for _ in range(weight.numel())]
    else:
        bound = math.sqrt(6 / sum(weight.shape))  # Xavier-uniform (Glorot & Bengio 2010)
        numbers = [bound * (2 * rng.uniform() - 1) for _ in range(weight.numel())]
    return torch.tensor(numbers, dtype=torch.float64).view(weight.shape)
