"""Exhibits about masks: what they mean, where they are applied, and which axes they have."""

import math

import torch
from torch import Tensor

from attndoctor.museum._exhibit import Exhibit, Thread


def weigh_inverted(scores: Tensor, allowed: Tensor) -> Tensor:
    """Hide what is True."""
    scores = scores.masked_fill(allowed, -math.inf)  # right: ~allowed
    return scores.softmax(-1).nan_to_num(0.0)


INVERTED = Exhibit(
    name="inverted mask",
    steps={"weigh": weigh_inverted},
    story="In `nn.MultiheadAttention` True means hide. In `F.scaled_dot_product_attention` True "
    "means keep. Move a mask from one to the other, and it forbids what it allowed.",
    cause="The same boolean means opposite things in two functions of one library, and both accept "
    "it.",
    notice="With a causal mask, look at row 0: it must look at itself alone. Inverted, tokens see "
    "only the future, and the training loss falls suspiciously fast.",
    hint="Your mask works the wrong way round: True means that a query *may* look.",
    killed_by="a mask",
    thread=Thread(
        "https://github.com/rasbt/LLMs-from-scratch/issues/1061",
        "in a book's bonus notebook the fused function was given a mask that is True for future "
        "tokens; the author calls the two meanings confusing, and agrees.",
    ),
)


def weigh_without_assigning(scores: Tensor, allowed: Tensor) -> Tensor:
    """Fill a copy, and go on with the original."""
    # right: scores = ..., or masked_fill_
    scores.masked_fill(~allowed, -math.inf)
    return scores.softmax(-1)


THROWN_AWAY = Exhibit(
    name="mask thrown away",
    steps={"weigh": weigh_without_assigning},
    story="`masked_fill` returns a new tensor, `masked_fill_` changes the old one. One underscore, "
    "or two words in front of the line, are missing.",
    cause="The masked scores are made and forgotten, and the softmax gets the others.",
    notice="Switch the mask off: nothing changes. A causal model's loss is too good, and padding "
    "is read.",
    hint="Your mask changes nothing: masked_fill returns a new tensor. Assign it.",
    killed_by="a mask",
    thread=Thread(
        "https://github.com/opendilab/DI-engine/issues/333",
        "fixed, with a test; no model had used lengths that differ, says the author, so nobody's "
        "results suffered.",
    ),
)


def weigh_then_mask(scores: Tensor, allowed: Tensor) -> Tensor:
    """Take the softmax of all scores, and delete weights afterward."""
    # right: mask the scores, before the softmax
    return scores.softmax(-1) * allowed


AFTER_SOFTMAX = Exhibit(
    name="mask after the softmax",
    steps={"weigh": weigh_then_mask},
    story="The forbidden weights should be 0, so they are multiplied by 0. And then they are 0.",
    cause="The softmax has shared out the total of 1 before the mask takes some of it away, and "
    "nobody gives it to the others.",
    notice="Sum the rows. In a causal model the first tokens' outputs are too small, and their "
    "weights still depend on the future: change the last token, and row 0 moves.",
    hint="You masked the weights. The rest of the row then no longer sums to 1: mask the scores, "
    "before the softmax.",
    killed_by="a mask",
    thread=Thread(
        "https://github.com/huggingface/pytorch-image-models/pull/2236",
        "one model of a large library masked after the softmax; the maintainer wondered how that "
        "had happened, and merged the repair.",
    ),
)


def weigh_and_renormalize(scores: Tensor, allowed: Tensor) -> Tensor:
    """Take the softmax of all scores, delete weights, rescale the rest."""
    # right: mask the scores, before the softmax
    weights = scores.softmax(-1) * allowed
    return weights / weights.sum(-1, keepdim=True)


RENORMALIZED = Exhibit(
    name="mask after the softmax, renormalized",
    steps={"weigh": weigh_and_renormalize},
    story="The weights are deleted after the softmax, somebody sees that rows no longer sum to 1, "
    "and divides each by its sum. On paper that is right.",
    cause="The softmax measures every score against the largest one of the row, also against a "
    "forbidden one, and what lies 104 below it is 0 in float32.",
    notice="Everything is right until scores have grown: then rows are NaN, or 0 where a small "
    "number was added to the sum. Make one forbidden token a hundred times as long: no row that "
    "may not look at it may move.",
    hint="You mask after the softmax and divide by what is left. A forbidden key far above the "
    "others leaves 0 / 0: mask the scores, before the softmax.",
    killed_by="a forbidden key that shouts",
    thread=Thread(
        "https://github.com/allenai/allennlp/pull/437",
        "scores 1, 1 and 100, of which the last is masked, gave the weights 0, 0, 0 in a library "
        "that many models were built on; eased and merged.",
    ),
)


def weigh_added(scores: Tensor, allowed: Tensor) -> Tensor:
    """Add the mask's ones and zeros to the scores."""
    # right: fill forbidden scores with -inf
    return (scores + allowed).softmax(-1)


ADDED = Exhibit(
    name="0/1 mask added",
    steps={"weigh": weigh_added},
    story="A mask that isn't boolean is added to the scores: that is how PyTorch's functions let "
    "you pass a bias. A mask of ones and zeros, made by `torch.tril(torch.ones(T, T))`, is taken "
    "for one.",
    cause="Adding 0 forbids nothing, and adding 1 only makes an allowed key weigh e times as much, "
    "beside a forbidden one, as it would without the mask.",
    notice="No weight is 0 where the mask forbids, and a row that may look everywhere is right. "
    "Change the last token of a causal model: earlier outputs must not move.",
    hint="Adding True and False adds 1 and 0, which blocks nothing. Fill the forbidden scores.",
    killed_by="a mask",
    thread=Thread(
        "https://github.com/pytorch/pytorch/issues/21518",
        "asks to document that the mask is added; people report masks of ones that mask nothing.",
    ),
)


def weigh_filled_with_zero(scores: Tensor, allowed: Tensor) -> Tensor:
    """Set forbidden scores to 0."""
    return scores.masked_fill(~allowed, 0.0).softmax(-1)  # right: -math.inf


FILLED_WITH_ZERO = Exhibit(
    name="forbidden scores set to 0",
    steps={"weigh": weigh_filled_with_zero},
    story="The scores are multiplied by the mask, or filled with 0, or with a number that was "
    "meant to be small.",
    cause="0 is an ordinary score: e to the power 0 is 1, so a forbidden key gets more than a key "
    "with a negative score.",
    notice="No weight is 0 where the mask forbids; within a row all forbidden weights are equal.",
    hint="You set forbidden scores to 0, but e to the power 0 is 1: they still get a share. Which "
    "score has the exponential 0?",
    killed_by="a mask",
    thread=Thread(
        "https://github.com/awslabs/gluonts/pull/1401",
        "filled with 1e-9 where -1e9 was meant, a minus sign in the wrong place; fixed and merged.",
    ),
)


def fit_mask_as_it_is(mask: Tensor, h: int) -> Tensor:
    """Let broadcasting find out what the axes mean."""
    return mask  # right: mask[:, None] for a mask [B, T_q, T_k]


CROSSES = Exhibit(
    name="mask crosses batch and heads",
    steps={"fit_mask": fit_mask_as_it_is},
    story="A mask [B, T_q, T_k] meets scores [B, h, T_q, T_k]. Broadcasting lines axes up from the "
    "right, so the mask's B stands below h.",
    cause="If B happens to equal h, sample i's mask is used for head i of every sample; a single "
    "sample is right, and any other number is an error.",
    notice="Only a batch with exactly h samples shows it, and without an error. Test with B = h "
    "and masks that differ, and run one sample alone: its output must not change.",
    hint="The first axis of a mask [B, T_q, T_k] met the heads. Add the axis of the heads: "
    "mask[:, None].",
    killed_by="a mask without an axis for heads",
    thread=Thread(
        "https://github.com/lucidrains/graph-transformer-pytorch/pull/2",
        "right for a batch of one alone; the author thanks and gives the mask an axis for the "
        "heads.",
    ),
)


def fit_mask_as_triangle(mask: Tensor, h: int) -> Tensor:
    """Do what `is_causal=mask is not None` does."""
    # right: the mask itself
    return torch.ones(mask.shape[-2:], dtype=torch.bool).tril()


TAKEN_FOR_CAUSAL = Exhibit(
    name="any mask taken for causal",
    steps={"fit_mask": fit_mask_as_triangle},
    story="A model has one mask, the causal one. The fused kernel needs no tensor for it: "
    "`is_causal=mask is not None`. Years later somebody hands over another mask.",
    cause="The kernel is told that there is a mask, and never which, so a window, a document's "
    "border or padding becomes a triangle.",
    notice="Two masks that differ give the same output. A causal one is right, which is why every "
    "test of the model passes. Where a slow path and a fused one stand side by side, compare them "
    "with a mask that isn't causal.",
    hint="Every mask is taken for the causal one: hand over the mask itself (attn_mask=mask), and "
    "is_causal where causality was asked for.",
    killed_by="a mask",
    thread=Thread(
        "https://github.com/facebookresearch/audiocraft/blob/"
        "896ec7c47f5e5d1e5aa1e4b260c4405328bf009d/audiocraft/modules/transformer.py",
        "a mask of the caller's is brought to its shape, and one of the two kernels then gets "
        "`is_causal=attn_mask is not None`. The solvers of the models with such masks refuse that "
        "kernel.",
    ),
)


def fit_mask_by_repeating(mask: Tensor, h: int) -> Tensor:
    """Make one mask per head, for scores that are kept as [B h, T_q, T_k]."""
    if mask.dim() == 3:
        # right: mask.repeat_interleave(h, dim=0)
        mask = mask.repeat(h, 1, 1)
        mask = mask.unflatten(0, (-1, h))  # [B h, ...] -> [B, h, ...]
    return mask


REPEATED = Exhibit(
    name="masks repeated instead of interleaved",
    steps={"fit_mask": fit_mask_by_repeating},
    story="`nn.MultiheadAttention` wants a mask for each sample as [B h, T_q, T_k]: all heads of "
    "sample 0, then all heads of sample 1. `repeat` gives all samples, then all samples again.",
    cause="Row B i + j of the repeated mask belongs to sample j, but may meet a head of another "
    "sample.",
    notice="A sample's output depends on the others in its batch. With one sample, one head, or "
    "the same mask for all, nothing is wrong.",
    hint="The masks go round by sample (0, 1, 0, 1), the heads don't. Keep a sample's heads "
    "together: repeat_interleave (0, 0, 1, 1).",
    killed_by="a mask for each sample",
    thread=Thread(
        "https://github.com/ArrowLuo/CLIP4Clip/issues/22",
        "found by somebody who ran many experiments with the code and sent the repair as well; "
        "the author thanks.",
    ),
)


def fit_key_mask_to_queries(key_mask: Tensor) -> Tensor:
    """Forbid padding tokens to look."""
    return key_mask[:, None, :, None]  # right: [:, None, None, :]


PADDING_ON_QUERIES = Exhibit(
    name="padding on the wrong axis",
    steps={"fit_key_mask": fit_key_mask_to_queries},
    story="A padding mask [B, T] needs two new axes. Put one in the wrong place, and in "
    "self-attention every shape fits.",
    cause="Padding is forbidden to look, instead of being forbidden to be looked at, so all real "
    "tokens still read the padding.",
    notice="Columns of padding must be 0. Change what stands in a padding token: no real token's "
    "output may move.",
    hint="Your padding mask stops padding from looking. It should stop others from looking at "
    "padding: the axis of the keys is the last one.",
    killed_by="padding",
    thread=Thread(
        "https://github.com/hyunwoongko/transformer/pull/40",
        "an analysis of such a mask; it had worked only because the fill value was finite.",
    ),
)

EXHIBITS = (
    INVERTED,
    THROWN_AWAY,
    AFTER_SOFTMAX,
    RENORMALIZED,
    ADDED,
    FILLED_WITH_ZERO,
    CROSSES,
    TAKEN_FOR_CAUSAL,
    REPEATED,
    PADDING_ON_QUERIES,
)
