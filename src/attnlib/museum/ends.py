"""Exhibits at both ends: the projections into attention and out of it, and what is returned."""

import torch.nn.functional as F
from torch import Tensor

from attnlib.attention import MultiHeadAttention
from attnlib.museum._exhibit import Exhibit, Thread


def project_keys_by_W_q(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Make the keys with the matrix of the queries."""
    # right: module.W_k(key)
    return module.W_q(query), module.W_q(key), module.W_v(value)


KEYS_BY_W_Q = Exhibit(
    name="keys made by W_q",
    steps={"project": project_keys_by_W_q},
    story="Three lines that differ in one letter, copied and changed in two of three places.",
    cause="With one matrix for both, score i, j equals score j, i: looking and being found have "
    "become the same thing.",
    notice="In self-attention the scores are symmetric, and most tokens look at themselves. W_k "
    "never gets a gradient, so list the parameters whose gradient is None.",
    hint="Queries and keys come from one matrix, so who looks at whom is symmetric. Make the keys "
    "with W_k.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/stevezheng23/reading_comprehension_tf/pull/284",
        'merged under the title "fix query/key/value project matrix reuse issue", which is all '
        "that the thread says.",
    ),
)


def project_values_by_W_k(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Make the values with the matrix of the keys."""
    # right: module.W_v(value)
    return module.W_q(query), module.W_k(key), module.W_k(value)


VALUES_BY_W_K = Exhibit(
    name="values made by W_k",
    steps={"project": project_values_by_W_k},
    story="The same slip one line further down.",
    cause="What a token is found by and what it hands over are the same numbers.",
    notice="Not in any heatmap, since values have no part in the weights. W_v never gets a "
    "gradient.",
    hint="The weights are right, but what is handed over are the keys. Make the values with W_v.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/yflyzhang/AnnotatedTransformer/issues/1",
        "an annotated implementation made its values with k_proj; mended (in Chinese).",
    ),
)


def no_projection(module: MultiHeadAttention, joined: Tensor) -> Tensor:
    """Return the joined heads."""
    return joined  # right: module.W_o(joined)


NO_W_O = Exhibit(
    name="forgotten W_o",
    steps={"project_out": no_projection},
    story="After the heads are joined, the shape is [B, T, d] again, and it looks finished.",
    cause="Head i's result stays in the i-th slice of the output: no later addition can mix what "
    "the heads found, and each head writes to d_k numbers only.",
    notice="Not in any heatmap. W_o never gets a gradient if it is there; if it isn't, count the "
    "parameters (4 d d + 4 d with biases). Or set one head's part of W_v to 0: exactly d_k of the "
    "d numbers of the output change.",
    hint="The heads are joined but not mixed: the output projection W_o is missing.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/Kyubyong/transformer/issues/117",
        "a widely used early implementation had no projection after the heads were joined.",
    ),
)


def project_turned(module: MultiHeadAttention, joined: Tensor) -> Tensor:
    """Multiply by a matrix that was stored for the other side."""
    # right: module.W_o.weight
    return F.linear(joined, module.W_o.weight.T, module.W_o.bias)


UNTRANSPOSED = Exhibit(
    name="untransposed square projection",
    steps={"project_out": project_turned},
    story="`nn.Linear` stores [out, in], GPT-2's files store [in, out]. Whoever loads one into the "
    "other must transpose, and the library complains about every matrix that isn't square.",
    cause="A square matrix fits both ways, so the output projection is loaded turned over its "
    "diagonal without a word.",
    notice="Not in this layer's heatmap, and not by any shape. Compare outputs with the model that "
    "the weights come from.",
    hint="The output projection is transposed. A square matrix doesn't complain when you turn it.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/AutoGPTQ/AutoGPTQ/pull/139",
        "the same transpose of GPT-2's weights was missing in one of two layers of a quantizer.",
    ),
)


def report_average(weights: Tensor) -> Tensor:
    """Return one map for all heads."""
    return weights.mean(1)  # right: weights


AVERAGED_HEADS = Exhibit(
    name="averaged heads",
    steps={"report": report_average},
    story="`nn.MultiheadAttention` returns the mean over heads unless told otherwise, and one "
    "picture is handier than twelve.",
    cause="A mean of maps is no head's map: a head that looks left and one that looks right "
    "average to a head that looks both ways, which doesn't exist.",
    notice="The weights have three dimensions. The rows sum to 1 all the same, so no plot "
    "complains.",
    hint="You return the mean over the heads. Return each head's own weights, [B, h, T_q, T_k].",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/pytorch/pytorch/issues/34537",
        "asks for each head's weights, which the module then didn't offer; it has become an "
        "option since.",
    ),
)


def drop_from_both(weights: Tensor, dropout: float) -> tuple[Tensor, Tensor]:
    """Return the weights after dropout."""
    weights = F.dropout(weights, dropout)
    return weights, weights  # right: the second ones before dropout


DROPOUT_IN_WEIGHTS = Exhibit(
    name="dropout in the returned weights",
    steps={"drop": drop_from_both},
    story="Dropout acts on the weights before they mix the values. The same variable is returned.",
    cause="Dropout deletes some weights and enlarges the rest, so what is shown is a random "
    "thinning of what the head chose.",
    notice="Only in training mode: rows don't sum to 1, and two runs differ. Whoever logs maps "
    "while training, without eval(), logs these.",
    hint="The returned weights went through dropout. Return those before it, and let dropout act "
    "on what mixes the values.",
    killed_by="training with dropout",
    thread=Thread(
        "https://github.com/pytorch/pytorch/issues/42929",
        "rows such as [1.25, 0, 0, ...] in a map that was taken while training.",
    ),
)

EXHIBITS = (
    KEYS_BY_W_Q,
    VALUES_BY_W_K,
    NO_W_O,
    UNTRANSPOSED,
    AVERAGED_HEADS,
    DROPOUT_IN_WEIGHTS,
)
