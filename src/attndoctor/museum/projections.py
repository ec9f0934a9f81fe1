"""Exhibits about the matrices that make queries, keys and values."""

import torch
import torch.nn.functional as F
from torch import Tensor

from attndoctor.museum._exhibit import Exhibit, Thread
from attndoctor.museum.outputs import project_turned
from attnlib.attention import MultiHeadAttention


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
    notice="In self-attention the scores are symmetric. In heads of 16 random numbers nearly every "
    "token looks most at itself; in heads of 2 many don't. W_k never gets a gradient, so list the "
    "parameters whose gradient is None.",
    hint="Queries and keys come from one matrix, so who looks at whom is symmetric. Make the keys "
    "with W_k.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/stevezheng23/reading_comprehension_tf/pull/284",
        "a near relative, fixed and merged: three matrices were asked for under one name where "
        "names are reused, so queries, keys and values shared one.",
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
        "an annotated implementation made its values with k_proj; fixed (in Chinese).",
    ),
)


def project_keys_by_W_v(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Load the keys' matrix from the place of the values."""
    # right: module.W_k(key)
    return module.W_q(query), module.W_v(key), module.W_v(value)


KEYS_BY_W_V = Exhibit(
    name="keys made by W_v",
    steps={"project": project_keys_by_W_v},
    story="A file keeps the three matrices as one. Whoever loads it cuts out three parts, and "
    "counts one of them wrongly: [256:384] and [-128:] are the same.",
    cause="What a token is found by and what it hands over are made by one matrix, and the trained "
    "W_k is never read.",
    notice="Compare the loaded matrices with each other: no two are equal. A loaded model that "
    "can't be trained further is a reason to look.",
    hint="Your keys are the values: make them with W_k, and look at how you cut the packed matrix.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/huggingface/transformers/issues/40253",
        "somebody whose training never worked compared two libraries layer by layer; fixed, and "
        "the published weights with it.",
    ),
)


def project_values_from_keys(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Overwrite the tokens before they have been used for the last time."""
    key = module.W_k(key)
    value = key  # right: the tokens
    return module.W_q(query), key, module.W_v(value)


VALUES_FROM_KEYS = Exhibit(
    name="values made from the keys",
    steps={"project": project_values_from_keys},
    story="`keys = keys @ W_k`, and in the next line `values = keys @ W_v`: the name now stands "
    "for something else.",
    cause="The values go through two matrices, W_k and W_v, so whatever W_k throws away can't be "
    "handed over.",
    notice="Not in any heatmap, and every matrix learns. Change W_k alone: no value may move.",
    hint="Your values are made from the projected keys: a variable was overwritten too early. "
    "Project the tokens themselves.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/shenweichen/DeepCTR/issues/490",
        "two lines in the wrong order in a library for recommenders; reported twice.",
    ),
)


def project_nothing(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Take the tokens as they come."""
    # right: module.W_q(query), module.W_k(key), module.W_v(value)
    return query, key, value


NEVER_CALLED = Exhibit(
    name="projections never called",
    steps={"project": project_nothing},
    story="The three matrices are made in the constructor, and forward begins with the reshape "
    "into heads. No shape misses them.",
    cause="The raw tokens are compared with each other, so every head gets its slice of the "
    "embedding, and nothing decides what to look for.",
    notice="The scores are symmetric, and tokens look at themselves. W_q, W_k and W_v never get a "
    "gradient: list the parameters whose gradient is None.",
    hint="W_q, W_k and W_v exist, but you never call them: project the tokens before you cut them "
    "into heads.",
    killed_by="self-attention",
)


def project_with_relu(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Put an activation behind each projection."""
    q, k, v = module.W_q(query), module.W_k(key), module.W_v(value)
    return q.relu(), k.relu(), v.relu()  # right: q, k, v


RELU = Exhibit(
    name="ReLU on the projections",
    steps={"project": project_with_relu},
    story="A dense layer is written with its activation, as everywhere else in the network.",
    cause="Queries and keys without a negative number have no negative dot product, so no key "
    "scores lower than one that has nothing in common with the query, which scores 0.",
    notice="No score is negative: look at the smallest one. The maps look reasonable, only "
    "flatter, since numbers that are cut off at 0 differ less.",
    hint="Queries, keys and values are cut off at 0: projections are linear, without a ReLU.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/DeepGraphLearning/RecommenderSystems/issues/21",
        "a reader sees that the scores can't be negative, and that the paper has no such step; "
        "unanswered.",
    ),
)


def project_query_alone(
    module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Make all three from the first sequence."""
    # right: module.W_k(key), module.W_v(value)
    return module.W_q(query), module.W_k(query), module.W_v(query)


CONTEXT_IGNORED = Exhibit(
    name="key and value ignored",
    steps={"project": project_query_alone},
    story="One matrix makes queries, keys and values at once. That is right for one sequence, and "
    "forward keeps its three arguments.",
    cause="The second sequence is accepted and never read, so cross-attention is self-attention "
    "under another name.",
    notice="With one sequence there is nothing to notice. With two, change the second one: the "
    "output must move. The weights are [T_q, T_q].",
    hint="Your keys and values are made from the query's tokens: the second sequence is never "
    "read. Project key and value.",
    killed_by="two sequences",
    thread=Thread(
        "https://github.com/kyegomez/FlashMHA/issues/3",
        "`forward(query, key, value)` begins with `self.Wqkv(query)`; unanswered.",
    ),
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


FUSED_BY_BLOCKS = Exhibit(
    name="fused qkv cut by blocks",
    steps={"project": project_packed},
    story="One matrix for queries, keys and values is quicker than three. GPT-2 packs it as "
    "[q | k | v], Megatron head by head, and both have the same shape.",
    cause="Cut the other way, a head's query is made of rows that were trained as another head's "
    "key or value.",
    notice="Trained from scratch nobody notices, since any order can be learned. Loaded weights "
    "give nonsense: compare with the model that they come from.",
    hint="Your q, k and v are mixed up among the heads: the packed matrix is stored head by head, "
    "and you cut it into three blocks.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/JieShibo/MoLE/issues/9",
        "somebody had converted Megatron's weights in three blocks, checks the script again, and "
        "posts the cut head by head.",
    ),
    only_loaded=True,
)


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


UNLESS_SQUARE = Exhibit(
    name="transposed unless square",
    steps={"project": project_unless_square, "project_out": project_turned},
    story="A loader meets matrices stored as [in, out] and as [out, in], and looks at the shape to "
    "find out whether to transpose.",
    cause="A square matrix has the right shape either way, so of all matrices those of attention "
    "stay transposed.",
    notice="The model writes nonsense, and nothing raised an error. Compare with the library that "
    "the weights come from, layer by layer.",
    hint="All projections are transposed (x @ W instead of x @ W.T): a square matrix doesn't tell "
    "by its shape. Decide by the format that it is stored in.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/vllm-project/vllm/issues/44110",
        'a check by shape: ",,,,,,,," from the one model, "The capital of France is Paris" from '
        "the same one in another dtype.",
    ),
    only_loaded=True,
)

EXHIBITS = (
    KEYS_BY_W_Q,
    VALUES_BY_W_K,
    KEYS_BY_W_V,
    VALUES_FROM_KEYS,
    NEVER_CALLED,
    RELU,
    CONTEXT_IGNORED,
    FUSED_BY_BLOCKS,
    UNLESS_SQUARE,
)
