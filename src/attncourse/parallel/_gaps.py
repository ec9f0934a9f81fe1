"""How far two results are apart."""

from collections.abc import Iterable

import torch
from torch import Tensor


def largest_gap(pairs: Iterable[tuple[Tensor, Tensor]]) -> float:
    """Return the largest difference of a number from its partner; NaN where there is one."""
    return torch.stack([(one - other).detach().abs().max() for one, other in pairs]).max().item()
