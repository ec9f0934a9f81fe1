"""Exhibits about the output projection, dropout, and what is returned."""

import torch.nn.functional as F
from torch import Tensor

from attndoctor.museum._exhibit import room
from attnlib.attention import MultiHeadAttention

exhibit = room(__file__)


def no_projection(module: MultiHeadAttention, joined: Tensor) -> Tensor:
    """Return the joined heads."""
    return joined  # right: module.W_o(joined)


NO_W_O = exhibit("forgotten W_o", {"project_out": no_projection})


def project_out_by_W_v(module: MultiHeadAttention, joined: Tensor) -> Tensor:
    """Take the last matrix of the list."""
    return module.W_v(joined)  # right: module.W_o


W_V_AGAIN = exhibit("W_v in place of W_o", {"project_out": project_out_by_W_v})


def project_turned(module: MultiHeadAttention, joined: Tensor) -> Tensor:
    """Multiply by a matrix that was stored for the other side."""
    # right: module.W_o.weight
    return F.linear(joined, module.W_o.weight.T, module.W_o.bias)


UNTRANSPOSED = exhibit(
    "untransposed square projection", {"project_out": project_turned}, only_loaded=True
)


def drop_always(module: MultiHeadAttention) -> float:
    """Take the rate without asking for the mode."""
    return module.dropout  # right: if module.training else 0.0


DROPOUT_IN_EVALUATION = exhibit(
    "dropout in evaluation", {"dropout_now": drop_always}, killed_by="training with dropout"
)


def drop_from_both(weights: Tensor, dropout: float) -> tuple[Tensor, Tensor]:
    """Return the weights after dropout."""
    weights = F.dropout(weights, dropout)
    return weights, weights  # right: the second ones before dropout


DROPOUT_IN_WEIGHTS = exhibit(
    "dropout in the returned weights", {"drop": drop_from_both}, killed_by="weights in training"
)


def report_average(weights: Tensor) -> Tensor:
    """Return one map for all heads."""
    return weights.mean(1)  # right: weights


AVERAGED_HEADS = exhibit("averaged heads", {"report": report_average})
