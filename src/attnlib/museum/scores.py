"""Exhibits about the scores and their softmax."""

import math

from torch import Tensor

from attnlib.museum._exhibit import Exhibit, Thread


def score_unscaled(q: Tensor, k: Tensor) -> Tensor:
    """Compare queries with keys by the dot product alone."""
    return q @ k.transpose(-2, -1)  # right: / math.sqrt(d_k)


NO_SCALE = Exhibit(
    name="no scale",
    steps={"score": score_unscaled},
    story="The division is one factor in one line. It is lost when code is split over functions, "
    "or when one branch of several computes its own scores.",
    cause="Dot products of d_k terms spread like the root of d_k, so wide heads start with a "
    "softmax that has already decided.",
    notice="The maps of an untrained model are far too sharp, and sharper the wider the heads are. "
    "Nothing else: rows sum to 1, the loss goes down.",
    hint="The scale is missing: divide the dot products by sqrt(d_k) before the softmax.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/Project-MONAI/GenerativeModels/issues/146",
        "the cross-attention of a diffusion model had lost the multiplication by its scale.",
    ),
)


def score_by_d_model(q: Tensor, k: Tensor) -> Tensor:
    """Divide by the root of the whole width."""
    _, h, _, d_k = q.shape
    # right: math.sqrt(d_k)
    return q @ k.transpose(-2, -1) / math.sqrt(h * d_k)


SQRT_D_MODEL = Exhibit(
    name="sqrt(d_model)",
    steps={"score": score_by_d_model},
    story="One writes the scale for one head, where d_k is the width, and adds heads later. Or "
    "copies the formula and takes the only width that the class stores.",
    cause="A score is a dot product of d_k numbers, not of d, so dividing by the root of d makes "
    "all scores too small by the root of h.",
    notice="Maps are too flat. With one head the bug doesn't exist, so test with several, and "
    "compare with `F.scaled_dot_product_attention`.",
    hint="The scale is sqrt(d_model), that of the whole model. Each head is only d_k numbers wide.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/FareedKhan-dev/train-llm-from-scratch/pull/3",
        "a from-scratch model that scaled by the embedding's size; mended and merged.",
    ),
)


def score_scaled_twice(q: Tensor, k: Tensor) -> Tensor:
    """Scale the queries, and then the scores as well."""
    q = q / math.sqrt(q.shape[-1])
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # right: once


SCALE_TWICE = Exhibit(
    name="scale applied twice",
    steps={"score": score_scaled_twice},
    story="Scaling the queries first is cheaper. Later somebody replaces the explicit code by a "
    "fused function, which scales as well.",
    cause="Two divisions by the root of d_k are one by d_k, which leaves scores of size "
    "1 / sqrt(d_k).",
    notice="Nearly uniform maps, and the more uniform the wider the heads. Any comparison with "
    "the old code shows it, if somebody kept the old code.",
    hint="The scores came out too small: they are divided by d_k, which is its root twice over. "
    "Divide by sqrt(d_k), once.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/huggingface/transformers/pull/38290",
        "the scale of OPT had been applied twice, once by the model and once by the attention "
        "function below it.",
    ),
)


def score_multiplied(q: Tensor, k: Tensor) -> Tensor:
    """Divide by the reciprocal of the root."""
    scale = q.shape[-1] ** -0.5
    return q @ k.transpose(-2, -1) / scale  # right: * scale


SCALE_UPSIDE_DOWN = Exhibit(
    name="scale upside down",
    steps={"score": score_multiplied},
    story="Some code stores the scale as `d_k ** -0.5` and multiplies; other code stores the root "
    "and divides. Mix the two.",
    cause="Dividing by 1 / sqrt(d_k) multiplies by the root, so the scores are too large by d_k.",
    notice="Every row has one weight near 1 before any training, and hardly any gradient comes "
    "back through the softmax.",
    hint="You multiplied by sqrt(d_k). Wider queries give larger dot products; the scale takes "
    "that back.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/esceptico/perceiver-io/issues/9",
        "the scale was defined as a power of -0.5 and then divided by; the author agreed at once.",
    ),
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
        "https://github.com/nerminnuraydogan/vision-transformer/issues/1",
        "a tutorial's notebook took the softmax along the wrong dimension; its author confirms it.",
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
        "https://github.com/jadore801120/attention-is-all-you-need-pytorch/issues/52",
        "a reader doubts an axis that was left out; the author agrees to name it from then on.",
    ),
)

EXHIBITS = (
    NO_SCALE,
    SQRT_D_MODEL,
    SCALE_TWICE,
    SCALE_UPSIDE_DOWN,
    SOFTMAX_OVER_QUERIES,
    SOFTMAX_OVER_HEADS,
)
