"""Modules and masks that hide nothing: biases that aren't 0, rows that may look nowhere."""

import torch
from torch import nn

from attnlib import MultiHeadAttention

F64 = torch.float64


def make_module(d_model, num_heads, **options):
    """A module in float64 whose biases aren't 0, so that a forgotten bias shows."""
    module = MultiHeadAttention(d_model, num_heads, **{"dtype": F64} | options)
    for projection in (module.W_q, module.W_k, module.W_v, module.W_o):
        if projection.bias is not None:
            nn.init.normal_(projection.bias)
    return module


def randomize(model):
    """Draw all parameters anew: biases aren't 0, gains aren't 1, heads have opinions."""
    with torch.no_grad():
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.4)
    return model.eval()


def random_mask(*shape):
    """A random mask with at least one row that may look nowhere."""
    mask = torch.rand(*shape) < 0.6
    mask[..., 0, :] = False
    return mask
