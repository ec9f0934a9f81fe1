"""Exhibits about the output projection, dropout, and what is returned."""

import torch.nn.functional as F
from torch import Tensor

from attndoctor.museum._exhibit import Exhibit, Thread
from attnlib.attention import MultiHeadAttention


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


def project_out_by_W_v(module: MultiHeadAttention, joined: Tensor) -> Tensor:
    """Take the last matrix of the list."""
    return module.W_v(joined)  # right: module.W_o


W_V_AGAIN = Exhibit(
    name="W_v in place of W_o",
    steps={"project_out": project_out_by_W_v},
    story="The matrices stand in a list, and the output is made by `linears[-1]`. With four of "
    "them that is W_o. Somebody makes three.",
    cause="The last of three is W_v, so one matrix has to make the values and to mix the heads.",
    notice="Not in any heatmap. Count the parameters: a quarter is missing. Where W_o exists, it "
    "never gets a gradient.",
    hint="The heads are mixed by W_v: the output projection is a fourth matrix, W_o.",
    killed_by="self-attention",
    thread=Thread(
        "https://github.com/lijierui/group-attention/blob/"
        "a356d7ced68f0cdc52d46b6148a38e36afcba078/src/model/attention_1.py",
        "a paper's code: `GroupAttention` makes three clones and ends with `self.linears[-1](x)`; "
        "the class above it makes four.",
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
        "https://github.com/AutoGPTQ/AutoGPTQ/pull/140",
        "the same transpose of GPT-2's weights was missing in one of two layers of a quantizer; "
        "fixed and merged.",
    ),
    only_loaded=True,
)


def drop_always(module: MultiHeadAttention) -> float:
    """Take the rate without asking for the mode."""
    return module.dropout  # right: if module.training else 0.0


DROPOUT_IN_EVALUATION = Exhibit(
    name="dropout in evaluation",
    steps={"dropout_now": drop_always},
    story="`nn.Dropout` knows about eval(). A function doesn't: "
    "`F.scaled_dot_product_attention(..., dropout_p=self.dropout)` drops whenever it is called.",
    cause="eval() sets a flag that nobody reads, so a share of the looks is left out for good.",
    notice="The same input twice, in eval(), gives two outputs. The loss in evaluation is worse "
    "than it could be, and nothing else tells.",
    hint="Your dropout doesn't stop in eval(): pass 0 unless self.training.",
    killed_by="training with dropout",
    thread=Thread(
        "https://github.com/karpathy/nanoGPT/pull/240",
        'merged; the author: "Whoa hold on this is an actual bug", and "calling functional '
        'directly considered dangerous".',
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
    killed_by="weights in training",
    thread=Thread(
        "https://github.com/pytorch/pytorch/issues/42929",
        "rows such as [1.25, 0, 0, ...] in a map that was taken while training.",
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

EXHIBITS = (
    NO_W_O,
    W_V_AGAIN,
    UNTRANSPOSED,
    DROPOUT_IN_EVALUATION,
    DROPOUT_IN_WEIGHTS,
    AVERAGED_HEADS,
)
