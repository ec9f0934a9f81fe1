"""Weights on a grid: why a training gives the same bits on every machine.

Processors and libraries add the same numbers in different orders, so sums differ in their last
digits. A training makes such differences grow: in float32, from 1e-7 to .1 within 400 steps. Here
it computes in float64, where sums differ by some 1e-16, and after each step every weight is rounded
to a multiple of `GRID`. That wipes the difference out before it can grow, unless a weight lies
within it of the border between two multiples. How likely that is, and which grid is coarse enough,
is measured by `benchmarks/same_bits.py`.

The grid is a thousandth of a step of AdamW at a learning rate of 1e-3, so learning isn't touched.
Its multiples below 16 are exact in float32: files and browsers hold them without loss.
"""

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor, nn

GRID = 2.0**-20
# float64 has 52 bits after the first. A number of this size has its last one at the grid: adding
# it rounds half to even, as every processor and every browser does.
ROUNDER = 1.5 * 2.0**52 * GRID
LARGEST = 2**31  # a multiple of the grid is hashed as a whole number of 32 bits


@torch.no_grad()
def round_to_grid(weights: Iterable[Tensor]) -> None:
    """Round float64 weights in place to multiples of `GRID`, half to even; -0 becomes 0."""
    for weight in weights:
        weight.add_(ROUNDER).sub_(ROUNDER)


def digest(model: nn.Module) -> str:
    """Return what tells a trained model from all others: a SHA-256, in hexadecimal.

    It is taken of the weights' whole multiples of the grid, as int32 (the first byte the lowest),
    in the order of the state dict, without names.

    Raises:
        TypeError: something else than a module.
        ValueError: weights that aren't on the grid, such as random or changed ones.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a module, got {type(model).__name__}")
    found = hashlib.sha256()
    for name, weight in model.state_dict().items():
        multiples = weight.detach().cpu().double() / GRID
        if not ((multiples == multiples.round()) & (multiples.abs() < LARGEST)).all():
            raise ValueError(
                f"model must have weights that are multiples of 2^-20, as a repeatable training "
                f"leaves them, got others in {name}"
            )
        found.update(multiples.to(torch.int32).numpy().astype("<i4").tobytes())
    return found.hexdigest()
