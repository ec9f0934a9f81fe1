"""Exhibits about the matrices that make queries, keys and values."""

import torch
import torch.nn.functional as F
from torch import Tensor

from attndoctor.museum._exhibit import room
from attndoctor.museum.outputs import project_turned
from attnlib.attention import MultiHeadAttention

exhibit = room(__file__)


def project_keys_by_W_q(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Make the keys with the matrix of the queries."""
    # right: module.W_k(key)
    return module.W_q(query), module.W_q(key), module.W_v(value)


KEYS_BY_W_Q = exhibit("keys made by W_q", {"project": project_keys_by_W_q})


def project_values_by_W_k(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Make the values with the matrix of the keys."""
    # right: module.W_v(value)
    return module.W_q(query), module.W_k(key), module.W_k(value)


VALUES_BY_W_K = exhibit("values made by W_k", {"project": project_values_by_W_k})


def project_keys_by_W_v(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Load the keys' matrix from the place of the values."""
    # right: module.W_k(key)
    return module.W_q(query), module.W_v(key), module.W_v(value)


KEYS_BY_W_V = exhibit("keys made by W_v", {"project": project_keys_by_W_v})


def project_values_from_keys(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Overwrite the tokens before they have been used for the last time."""
    key = module.W_k(key)
    value = key  # right: the tokens
    return module.W_q(query), key, module.W_v(value)


VALUES_FROM_KEYS = exhibit("values made from the keys", {"project": project_values_from_keys})


def project_nothing(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Take the tokens as they come."""
    # right: module.W_q(query), module.W_k(key), module.W_v(value)
    return query, key, value


NEVER_CALLED = exhibit("projections never called", {"project": project_nothing})


def project_with_relu(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Put an activation after each projection."""
    q, k, v = module.W_q(query), module.W_k(key), module.W_v(value)
    return q.relu(), k.relu(), v.relu()  # right: q, k, v


RELU = exhibit("ReLU on the projections", {"project": project_with_relu})


def project_query_alone(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Make all three from the first sequence."""
    # right: module.W_k(key), module.W_v(value)
    return module.W_q(query), module.W_k(query), module.W_v(query)


CONTEXT_IGNORED = exhibit(
    "key and value ignored", {"project": project_query_alone}, killed_by="two sequences"
)


def project_packed(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Read as [q | k | v] what is packed as [q1 k1 v1 | q2 k2 v2 | ...]."""
    Ws = (module.W_q, module.W_k, module.W_v)

    def blocks(x: Tensor) -> tuple[Tensor, ...]:
        heads = [W(x).unflatten(-1, (module.num_heads, -1)) for W in Ws]
        packed = torch.stack(heads, -2).flatten(-3)
        # right: .unflatten(-1, (num_heads, 3, -1)).unbind(-2)
        return packed.chunk(3, -1)

    return blocks(query)[0], blocks(key)[1], blocks(value)[2]


FUSED_BY_BLOCKS = exhibit("fused qkv cut by blocks", {"project": project_packed}, only_loaded=True)


def project_unless_square(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> list[Tensor]:
    """Transpose what is stored as [in, out] where its shape asks for it."""
    projected = []
    for x, W in ((query, module.W_q), (key, module.W_k), (value, module.W_v)):
        stored = W.weight.T
        if stored.shape != W.weight.shape:  # right: always
            stored = stored.T
        projected.append(F.linear(x, stored, W.bias))
    return projected


UNLESS_SQUARE = exhibit(
    "transposed unless square",
    {"project": project_unless_square, "project_out": project_turned},
    only_loaded=True,
)
