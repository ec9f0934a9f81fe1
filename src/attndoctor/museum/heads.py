"""Exhibits about cutting into heads and joining them."""

import torch.nn.functional as F
from torch import Tensor

from attndoctor.museum._exhibit import Exhibit, Thread
from attnlib.attention import MultiHeadAttention
from attnlib.functional import merge_heads, split_heads


def split_by_view(x: Tensor, num_heads: int) -> Tensor:
    """Read memory as [B, h, T, d_k] at once."""
    B, T, d = x.shape
    # right: (B, T, h, d_k), then transpose
    return x.reshape(B, num_heads, T, d // num_heads)


VIEW = Exhibit(
    name="view instead of transpose",
    steps={"split": split_by_view},
    story="The split must turn [B, T, d] into [B, h, T, d_k]. Both shapes hold the same number of "
    "numbers, so one view does it in a single line, and every later shape is right.",
    cause="A view keeps the order in memory, where a token's numbers are neighbors, so a head gets "
    "all the numbers of a few tokens instead of a few numbers of all the tokens.",
    notice="Change the last token and look at the first head's queries: they should change in one "
    "row only. Under this bug the first head doesn't notice the last token at all.",
    hint="The shape is right, but the split mixes tokens with features: head 1 holds the first "
    "tokens instead of every token's first numbers. View as [B, T, h, d_k] first, then swap T and "
    "h.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/reczoo/FuxiCTR/issues/30",
        "a library's versions of three published models (AutoInt, DESTINE, InterHAt) stood on a "
        "split without its transpose, copied from a blog.",
    ),
)


def merge_by_view(x: Tensor) -> Tensor:
    """Read memory as [B, T, d] at once."""
    B, h, T, d_k = x.shape
    return x.reshape(B, T, h * d_k)  # right: x.transpose(1, 2) first


MERGE = Exhibit(
    name="merge without transpose",
    steps={"merge": merge_by_view},
    story="The twin of the bug before, at the other end. The split is right, attention is right, "
    "and then the heads' outputs [B, h, T, d_k] are joined by a reshape alone.",
    cause="Reshaping [B, h, T, d_k] fills the first tokens' rows with head 1's outputs, then the "
    "next tokens' rows with head 2's.",
    notice="Not in any heatmap: the weights are perfect. Merge what you have split and compare "
    "with the original; a round trip must be exact.",
    hint="The shape is right, but the merge mixes tokens and heads: swap h and T back before you "
    "flatten.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/jsbaan/transformer-from-scratch/pull/6",
        "the author fixes it and asks why the training test had passed: the task was easy enough "
        "for the model to learn around the scrambling.",
    ),
)


def split_without_swapping(x: Tensor, num_heads: int) -> Tensor:
    """Stop half-way, at [B, T, h, d_k]."""
    # right: .transpose(1, 2) after it
    return x.unflatten(-1, (num_heads, -1))


def merge_without_swapping(x: Tensor) -> Tensor:
    """Join the last two axes, which is what belongs to the split above."""
    return x.flatten(-2)


HEADS_OF_ONE_TOKEN = Exhibit(
    name="heads of one token attend to each other",
    steps={"split": split_without_swapping, "merge": merge_without_swapping},
    story="The view is right, the transpose after it was forgotten, and since the merge was "
    "written to fit, no shape is wrong at the end.",
    cause="The softmax works on the last two axes, and these are now heads and features, so each "
    "token's heads look at each other and no token ever sees another one.",
    notice="The weights are h x h instead of T x T. If nobody looks at them: change one token, and "
    "no other token's output moves.",
    hint="You stopped at [B, T, h, d_k]: scores then compare the heads of one token instead of the "
    "tokens of one head. Swap the axes T and h, so that each head is one matrix [T, d_k].",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/kyegomez/FlashMHA/pull/2",
        "the repair, merged: queries, keys and values were cut to [batch, tokens, heads, width] "
        "and attended as they were, and the merge fitted.",
    ),
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


SLICES = Exhibit(
    name="slices of the embedding",
    steps={"project": project_slices},
    story='"Each head gets a part of the embedding" is said so often that people build it: cut x '
    "into h slices, and project each slice with a matrix of d_k x d_k.",
    cause="A head's query, key and value are made from d_k of the d numbers, by a matrix that all "
    "heads share, where a real head has its own matrix and reads all of x.",
    notice="Ask autograd which of the d numbers head 1 depends on: d_k of them. Here most of "
    "each matrix is never read; where people build it, it has d_k x d_k numbers instead of d x d.",
    hint="Each head reads only its slice of the embedding, through one shared matrix. Project all "
    "of x first (d x d), then cut the result into heads.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/MarcoMeter/episodic-transformer-memory-ppo/pull/22",
        "the repair of a split of the input that was followed by the same projection for every "
        "head.",
    ),
)


def split_sequence_first(x: Tensor, num_heads: int) -> Tensor:
    """Take the first axis for the tokens."""
    # right: x is [B, T, d] already
    return split_heads(x.transpose(0, 1), num_heads)


def merge_sequence_first(x: Tensor) -> Tensor:
    """Give the axes back in the caller's order."""
    return merge_heads(x).transpose(0, 1)


ACROSS_THE_BATCH = Exhibit(
    name="attention across the batch",
    steps={"split": split_sequence_first, "merge": merge_sequence_first},
    story="`nn.MultiheadAttention` expects [T, B, d] unless it is told `batch_first=True`. Hand it "
    "[B, T, d], and it takes samples for tokens.",
    cause="The first axis is taken for the tokens, so the third word of one sentence attends to "
    "the third words of all the other sentences in the batch, and to nothing else.",
    notice="A sentence's output depends on its neighbors in the batch. Run it alone: the output "
    "must not change. The weights are B x B.",
    hint="Samples attend to each other: the first axis is taken for the tokens. Use "
    "batch_first=True, or transpose before and after.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/IBM/TabFormer/pull/14",
        "the batch was handed over first, where the encoder expected it second, which gave an "
        "incorrect attention; fixed and merged.",
    ),
)


def merge_and_squeeze(x: Tensor) -> Tensor:
    """Join the heads, and drop every axis of one."""
    return merge_heads(x).squeeze()  # right: no .squeeze()


SQUEEZED = Exhibit(
    name="batch of one squeezed",
    steps={"merge": merge_and_squeeze},
    story="A query of one token leaves an axis of one behind. `squeeze()` takes it away, and the "
    "author's batches always hold several samples.",
    cause="Without an argument, squeeze takes away every axis of one, the batch's as well.",
    notice="Run one sample alone: the output must be [1, T, d]. The last batch of an epoch and the "
    "first request of a user are of this kind.",
    hint="A batch of one loses its axis: name the axis that squeeze may take, or leave it out.",
    killed_by="one sample, one token",
    thread=Thread(
        "https://github.com/KrishnaDN/Attentive-Statistics-Pooling-for-Deep-Speaker-Embedding/"
        "issues/3",
        "the weights of an attention pooling were squeezed; it fails on a single recording.",
    ),
)


def share_by_tiling(x: Tensor, h: int) -> Tensor:
    """Repeat all key heads, one round after the other."""
    # right: x.repeat_interleave(..., dim=1)
    return x.repeat(1, h // x.shape[1], 1, 1)


TILED_GROUPS = Exhibit(
    name="grouped heads tiled",
    steps={"share": share_by_tiling},
    story="With grouped-query attention, 6 query heads may share 2 key heads. Neighbors share: "
    "0, 0, 0, 1, 1, 1. `repeat` (or `tile`) gives 0, 1, 0, 1, 0, 1.",
    cause="Tiling hands the second query head the keys of the second group, but in training it "
    "belonged to the first.",
    notice="Training from scratch works, since any fixed pairing can be learned. Loaded weights "
    "give nonsense: compare with the model that they came from. With 1 key head, or with as many "
    "as query heads, both ways are equal, so test a number in between.",
    hint="The key heads are tiled (0, 1, 0, 1). Neighboring query heads share one: "
    "repeat_interleave (0, 0, 1, 1).",
    killed_by="grouped heads",
    thread=Thread(
        "https://github.com/onnx/onnx/pull/7274",
        "proposes to replace the tiling in a standard's definition of attention, because torch "
        "interleaves.",
    ),
    only_loaded=True,
)

EXHIBITS = (VIEW, MERGE, HEADS_OF_ONE_TOKEN, SLICES, ACROSS_THE_BATCH, SQUEEZED, TILED_GROUPS)
