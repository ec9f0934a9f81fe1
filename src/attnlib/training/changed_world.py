"""A world in which every training comes out a little otherwise, for what checks the course.

Trainings give the same bits on every machine, so no machine shows whether a sentence hangs on them.
Where the environment has ATTNLIB_CHANGED_WORLD, first weights are others by a millionth. What
training makes of it grows to differences between models as large as those between machines that
round otherwise; what a page says of its models must hold all the same.
"""

import os
from collections.abc import Iterable

import torch
from torch import Tensor

VARIABLE = "ATTNLIB_CHANGED_WORLD"
SIZE = 1e-6  # of the noise, as a share of each weight


@torch.no_grad()
def changed(weights: Iterable[Tensor]) -> None:
    """Multiply each weight by 1 + 1e-6 times noise, in place; usually, do nothing.

    It does so where the environment variable ATTNLIB_CHANGED_WORLD has the noise's seed. torch's
    own random numbers stay as they are, so all else that a training draws is what it was.

    Raises:
        ValueError: the variable is no seed.
    """
    seed = os.environ.get(VARIABLE)
    if seed is None:
        return
    if not (seed.isascii() and seed.isdigit() and int(seed) < 2**32):
        raise ValueError(f"{VARIABLE} must be a seed, from 0 to 2^32 - 1, got {seed!r}")
    generator = torch.Generator().manual_seed(int(seed))
    for weight in weights:
        noise = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
        weight.mul_(1 + SIZE * noise)
