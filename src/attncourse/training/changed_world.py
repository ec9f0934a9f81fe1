"""Perturb first weights, for tests.

Trainings give the same bits on every machine, so no machine shows whether a sentence depends on
them. Where the environment has ATTNLIB_CHANGED_WORLD, first weights are others by a millionth. What
training makes of it grows to differences between models as large as those between machines that
round otherwise; what a page says of its models must hold all the same.
"""

import math
import os
from collections.abc import Iterable

import torch
from torch import Tensor

VARIABLE = "ATTNLIB_CHANGED_WORLD"
SIZE = 1e-6  # of the noise, as a share of each weight
FAST = 1e6  # so that neighboring weights have unrelated noise


@torch.no_grad()
def perturb_if_asked(weights: Iterable[Tensor]) -> None:
    """Multiply each weight by 1 + 1e-6 times noise, in place; usually, do nothing.

    It does so where the environment variable ATTNLIB_CHANGED_WORLD has the noise's seed. The noise
    of a weight depends on its value alone, so weights that begin equal stay equal, and nothing is
    drawn: torch's random numbers are what they were.

    Raises:
        ValueError: the variable is no seed.
    """
    seed = os.environ.get(VARIABLE)
    if seed is None:
        return
    if not (seed.isascii() and seed.isdigit() and int(seed) < 2**32):
        raise ValueError(f"{VARIABLE} must be a seed, from 0 to 2^32 - 1, got {seed!r}")
    for weight in weights:
        noise = math.sqrt(2) * torch.sin(FAST * (int(seed) + 1) * weight.double())  # of variance 1
        weight.mul_(1 + SIZE * noise)
