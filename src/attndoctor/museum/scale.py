"""Exhibits about the scale of the scores."""

import math

from torch import Tensor

from attndoctor.museum._exhibit import Exhibit, Thread


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
        "https://github.com/karpathy/ng-video-lecture/pull/6",
        "a famous lecture's GPT scaled its heads by the width of the whole model; the author: "
        '"you\'re right :( ty".',
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


def score_halved(q: Tensor, k: Tensor) -> Tensor:
    """Divide by d_k to the power of one, halved."""
    d_k = q.shape[-1]
    return q @ k.transpose(-2, -1) / (d_k**1 / 2)  # right: ** (1 / 2)


HALVED = Exhibit(
    name="d_k ** 1/2",
    steps={"score": score_halved},
    story="The root is written as a power, and the exponent as a fraction without brackets.",
    cause="In Python a power comes before a division, so this is d_k / 2 and not the root of d_k.",
    notice="The maps are too flat, unless the heads are 4 numbers wide, where 4 / 2 is the root of "
    "4: test with another width. Print the scale once.",
    hint="You divided by d_k / 2: a power comes before a division. Write d_k ** 0.5, or math.sqrt.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/mkara44/transunet_pytorch/issues/4",
        "a reader doubts the line and shows that Python makes 0.5 of 1 ** 1/2; two answers hold "
        "that it is the root.",
    ),
)


def score_floored(q: Tensor, k: Tensor) -> Tensor:
    """Divide, and round down."""
    return q @ k.transpose(-2, -1) // math.sqrt(q.shape[-1])  # right: /


FLOORED = Exhibit(
    name="floor division",
    steps={"score": score_floored},
    story="`//` stands in the line above, where the width of a head is counted, and once more "
    "here by habit.",
    cause="Every score is rounded down to a whole number, and a rounded number has no slope to "
    "learn from.",
    notice="Training stops at once: PyTorch has no derivative for it. Without gradients nothing "
    "tells, but that keys with nearly the same score get exactly equal weights.",
    hint="You divided by // and rounded the scores down to whole numbers: divide by /.",
    killed_by="self-attention",
)


def score_not_yet_scaled(q: Tensor, k: Tensor) -> Tensor:
    """Leave the scale for later."""
    return q @ k.transpose(-2, -1)


def rescale_shares(weights: Tensor, d_k: int) -> Tensor:
    """Scale what the softmax has made of the scores."""
    # right: / math.sqrt(d_k) before the softmax
    return weights / math.sqrt(d_k)


SCALE_AFTER_SOFTMAX = Exhibit(
    name="scale after the softmax",
    steps={"score": score_not_yet_scaled, "rescale": rescale_shares},
    story="Softmax and scale share a line, and a bracket closes too early: "
    "`F.softmax(energy, dim=-1) / scaling`.",
    cause="The softmax sees scores that are too large by the root of d_k, and its shares are made "
    "too small by the same factor.",
    notice="Sum the rows: they come to 1 / sqrt(d_k). And the maps are as sharp as without any "
    "scale, because for the softmax there is none.",
    hint="You scaled the weights. The scale belongs to the scores, before the softmax: now rows "
    "sum to 1 / sqrt(d_k).",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/FrancescoSaverioZuppichini/ViT/issues/2",
        'a tutorial that was copied into many repositories, line by line; its author: "Oh yeah, '
        'you are right." Two more readers have found it since.',
    ),
)

EXHIBITS = (
    NO_SCALE,
    SQRT_D_MODEL,
    SCALE_TWICE,
    SCALE_UPSIDE_DOWN,
    HALVED,
    FLOORED,
    SCALE_AFTER_SOFTMAX,
)
