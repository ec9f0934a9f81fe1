"""Exhibits about cutting into heads and joining them."""

import torch.nn.functional as F
from torch import Tensor

from attndoctor.museum._exhibit import room
from attnlib.attention import MultiHeadAttention
from attnlib.functional import merge_heads, split_heads

exhibit = room(__file__)


def split_by_view(x: Tensor, num_heads: int) -> Tensor:
    """Read memory as [B, h, T, d_k] at once."""
    B, T, d = x.shape
    # right: (B, T, h, d_k), then transpose
    return x.reshape(B, num_heads, T, d // num_heads)


VIEW = exhibit("view instead of transpose", {"split": split_by_view})


def merge_by_view(x: Tensor) -> Tensor:
    """Read memory as [B, T, d] at once."""
    B, h, T, d_k = x.shape
    return x.reshape(B, T, h * d_k)  # right: x.transpose(1, 2) first


MERGE = exhibit("merge without transpose", {"merge": merge_by_view})


def split_without_swapping(x: Tensor, num_heads: int) -> Tensor:
    """Stop half-way, at [B, T, h, d_k]."""
    # right: .transpose(1, 2) after it
    return x.unflatten(-1, (num_heads, -1))


def merge_without_swapping(x: Tensor) -> Tensor:
    """Join the last two axes, which is what belongs to the split above."""
    return x.flatten(-2)


HEADS_OF_ONE_TOKEN = exhibit(
    "heads of one token attend to each other",
    {"split": split_without_swapping, "merge": merge_without_swapping},
)


def project_slices(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> list[Tensor]:
    """Cut the tokens first, then project every slice."""
    d_k = module.d_model // module.num_heads
    projected = []
    for x, W in ((query, module.W_q), (key, module.W_k), (value, module.W_v)):
        # right: W(x), and cut afterward
        slices = x.unflatten(-1, (-1, d_k))
        bias = None if W.bias is None else W.bias[:d_k]
        small = F.linear(slices, W.weight[:d_k, :d_k], bias)
        small = small.flatten(-2)
        projected.append(small[..., : W.out_features])  # h or h_kv heads
    return projected


SLICES = exhibit("slices of the embedding", {"project": project_slices})


def split_sequence_first(x: Tensor, num_heads: int) -> Tensor:
    """Take the first axis for the tokens."""
    # right: x is [B, T, d] already
    return split_heads(x.transpose(0, 1), num_heads)


def merge_sequence_first(x: Tensor) -> Tensor:
    """Give the axes back in the caller's order."""
    return merge_heads(x).transpose(0, 1)


ACROSS_THE_BATCH = exhibit(
    "attention across the batch", {"split": split_sequence_first, "merge": merge_sequence_first}
)


def merge_and_squeeze(x: Tensor) -> Tensor:
    """Join the heads, and drop every axis of one."""
    return merge_heads(x).squeeze()  # right: no .squeeze()


SQUEEZED = exhibit(
    "batch of one squeezed", {"merge": merge_and_squeeze}, killed_by="one sample, one token"
)


def share_by_tiling(x: Tensor, h: int) -> Tensor:
    """Repeat all key heads, one round after the other."""
    # right: x.repeat_interleave(..., dim=1)
    return x.repeat(1, h // x.shape[1], 1, 1)


TILED_GROUPS = exhibit(
    "grouped heads tiled", {"share": share_by_tiling}, killed_by="grouped heads", only_loaded=True
)
