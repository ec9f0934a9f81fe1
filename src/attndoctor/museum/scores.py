"""Exhibits about who is compared with whom, and the axis of the softmax."""

import math

from torch import Tensor

from attndoctor.museum._exhibit import Exhibit, Thread


def score_reshaped(q: Tensor, k: Tensor) -> Tensor:
    """Read the keys' memory as [d_k, T_k]."""
    T_k, d_k = k.shape[-2:]
    # right: k.transpose(-2, -1)
    turned = k.reshape(*k.shape[:-2], d_k, T_k)
    return q @ turned / math.sqrt(d_k)


RESHAPED_KEYS = Exhibit(
    name="keys reshaped instead of transposed",
    steps={"score": score_reshaped},
    story="The product wants the keys as [d_k, T_k]. A view with these numbers fits, and a comment "
    "behind it says transpose.",
    cause="A view keeps the order in memory, so each column is made of pieces of several keys.",
    notice="Change one token, and see which columns of the scores move: only its own should, and "
    "here others do.",
    hint="The keys have the right shape but not the right order: a reshape isn't a transpose. "
    "Swap the last two axes.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/hyunwoongko/transformer/pull/4",
        "fixed after almost two years, in one change with three others of this museum: the "
        "split, the merge, and a softmax without its axis.",
    ),
)


def score_swapped(q: Tensor, k: Tensor) -> Tensor:
    """Let every key ask the queries."""
    # right: q @ k.transpose(-2, -1)
    return k @ q.transpose(-2, -1) / math.sqrt(q.shape[-1])


SWAPPED = Exhibit(
    name="queries and keys swapped",
    steps={"score": score_swapped},
    story="Which of the two is transposed? In self-attention both orders have the same shape.",
    cause="The scores are transposed, so W_k does the work of W_q and W_q that of W_k.",
    notice="Trained from scratch nobody notices: the two matrices have changed their names. It "
    "shows with loaded weights, with two sequences, and with a cache, which keeps what is now "
    "the queries.",
    hint="Your scores are transposed: rows belong to queries, so write q @ k.transpose(-2, -1).",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/keyvank/femtoGPT/issues/30",
        "found by somebody who wanted to add a cache; no harm to the model, as the reporter says "
        "as well.",
    ),
    only_loaded=True,
)


def softmax_queries(scores: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Let the shares of each key sum to 1."""
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    return scores.softmax(-2)  # right: -1


SOFTMAX_OVER_QUERIES = Exhibit(
    name="softmax over the queries",
    steps={"softmax": softmax_queries, "weigh": softmax_queries},
    story="The scores are square, so both axes are equally long and nothing complains. An axis is "
    "easily counted wrongly when batch and heads stand in front.",
    cause="Columns sum to 1 instead of rows: each key hands out a total of 1, and a query may get "
    "much more than that or next to nothing.",
    notice="Sum the rows. `plot_heads` does, and refuses the map.",
    hint="Your columns sum to 1. Each query, that is each row, must hand out a total of 1.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/146",
        "an annotated diffusion model; the author calls it a typo and a big bug. The reporter then "
        "trained with both axes, and measured no difference in the quality of the pictures.",
    ),
)


def softmax_axis_1(scores: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Take the axis that was right for a single matrix."""
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    return scores.softmax(1)  # right: -1


SOFTMAX_OVER_HEADS = Exhibit(
    name="softmax over the heads",
    steps={"softmax": softmax_axis_1, "weigh": softmax_axis_1},
    story="For one matrix of scores, axis 1 holds the keys. Add a batch and heads, and axis 1 "
    "holds the heads. A softmax whose axis is left out chooses this axis by itself for four "
    "dimensions (with a warning that asks for an axis).",
    cause="For each pair of tokens the heads share a total of 1, so heads compete instead of keys.",
    notice="Sum the rows. With one head every weight is exactly 1.",
    hint="You took the softmax over axis 1. That is the keys only if nothing stands in front: "
    "count from the end.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/CAMMA-public/rendezvous/issues/10",
        "weights [B, heads, D, D] and a softmax over axis 1; a typo, says the author: the original "
        "in TensorFlow had the right axis.",
    ),
)

EXHIBITS = (RESHAPED_KEYS, SWAPPED, SOFTMAX_OVER_QUERIES, SOFTMAX_OVER_HEADS)
