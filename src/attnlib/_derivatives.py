"""Derivatives in forward mode, which `torch.no_grad` doesn't end."""

import torch
from torch import Tensor
from torch.autograd import forward_ad


def has_tangent(*tensors: Tensor) -> bool:
    """Return whether some tensor carries a derivative in forward mode (`torch.func.jvp`)."""
    if torch.compiler.is_compiling():  # which knows no forward mode
        return False
    return any(forward_ad.unpack_dual(x).tangent is not None for x in tensors)
