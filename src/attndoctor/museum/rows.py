"""Exhibits about rows that may look nowhere, and about numbers that stand for minus infinity."""

import math

import torch
from torch import Tensor

from attndoctor.museum._exhibit import Exhibit, Thread


def weigh_without_care(scores: Tensor, allowed: Tensor) -> Tensor:
    """Take the softmax of -inf, -inf, -inf."""
    # right: 0 where nothing is allowed
    return scores.masked_fill(~allowed, -math.inf).softmax(-1)


NAN_ROWS = Exhibit(
    name="NaN rows",
    steps={"weigh": weigh_without_care},
    story="A batch is padded, a window is cut out, two masks are combined: sooner or later a row "
    "is left that may look nowhere.",
    cause="Its exponentials are all 0, and their shares are 0 / 0, which is not a number.",
    notice="NaN spreads: one row in one sample, then through the next layer every token that may "
    "look there. One step later W_v and W_o are NaN (W_q and W_k aren't yet: a filled score hands "
    "no gradient back), and two steps later all four. Test one row that may look nowhere, on "
    "purpose.",
    hint="Right wherever a query may look at something. A row with no allowed key becomes 0 / 0, "
    "not a number: its weights should be 0.",
    killed_by="a row that may look nowhere",
    thread=Thread(
        "https://github.com/pytorch/pytorch/issues/160064",
        "one head is masked as a whole, so all its rows are: the same call gives numbers without "
        "weights and NaN with them. Two paths, two meanings.",
    ),
)


def weigh_and_repair(scores: Tensor, allowed: Tensor) -> Tensor:
    """Add -inf to forbidden scores, and replace NaN by 0 once it is there."""
    penalty = torch.zeros_like(scores).masked_fill(~allowed, -math.inf)
    weights = (scores + penalty).softmax(-1)
    # right: keep -inf out of such rows before the softmax
    return weights.nan_to_num(0.0)


NAN_GRADIENTS = Exhibit(
    name="NaN only in the gradient",
    steps={"weigh": weigh_and_repair},
    story="The NaN of the exhibit before is seen and swept away, by `nan_to_num` or "
    "`masked_fill`. Outputs and weights are right, and every test of them passes.",
    cause="The backward pass of the softmax multiplies by its result, which is still NaN inside, "
    "and 0 times NaN is NaN; the sum passes it on to queries and keys.",
    notice="After the first step W_q and W_k are NaN, and W_v and W_o aren't. `nan_to_num` hides "
    "that too: from then on all weights are 0. The loss is NaN only if something below "
    "attention learns. Look at the gradients, not only at outputs: "
    "`parameter.grad.isfinite().all()`.",
    hint="The weights are right, but their gradient is NaN: it goes through the softmax of a row "
    "of -inf. Keep -inf out of rows that may look nowhere, and set them to 0 afterward.",
    killed_by="gradients of such a row",
    thread=Thread(
        "https://github.com/pytorch/pytorch/issues/41508",
        "padding and a window in one batch, outputs that are used without NaN, and yet NaN in the "
        "gradients.",
    ),
)


def weigh_with_finite_minimum(scores: Tensor, allowed: Tensor) -> Tensor:
    """Fill with the lowest number that there is."""
    # right: -math.inf, and 0 for rows without any key
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~allowed, lowest).softmax(-1)


FINITE_MINIMUM = Exhibit(
    name="a finite minimum",
    steps={"weigh": weigh_with_finite_minimum},
    story="-1e9 never gives NaN, which is why many prefer it. `torch.finfo(dtype).min` is the "
    "modern form.",
    cause="A softmax sees differences only: in a row of nothing but the lowest number all "
    "scores are equal, so it looks at everything, forbidden keys included.",
    notice="Print a wholly masked row: it should be 0 and is 1 / T everywhere. It is silent, and "
    "it leaks padding into whatever pools over these rows.",
    hint="A query that may look nowhere shares its attention equally among forbidden keys, as a "
    "row of equal scores does, however low they are. Its weights should be 0.",
    killed_by="a row that may look nowhere",
    thread=Thread(
        "https://github.com/YutaroOgawa/pytorch_advanced/issues/175",
        "a reader of a textbook asks why rows of padding aren't masked as well; they would come "
        "out as 1/5 for each of five tokens, says the author (in Japanese).",
    ),
)


def weigh_with_minus_1e9(scores: Tensor, allowed: Tensor) -> Tensor:
    """Fill with a number that half precision doesn't have."""
    fully_masked = ~allowed.any(-1, keepdim=True)
    # right: -math.inf
    scores = scores.masked_fill(~(allowed | fully_masked), -1e9)
    return scores.softmax(-1).masked_fill(fully_masked, 0.0)


MINUS_1E9_IN_HALF = Exhibit(
    name="-1e9 in half precision",
    steps={"weigh": weigh_with_minus_1e9},
    story="The constant is written for float32. Years later the model is run in float16.",
    cause="The lowest number of float16 is -65504, and -1e9 can't be converted to it.",
    notice="This one is loud: an error. The silent relative is a constant that fits, such as -1e4, "
    "when the scores themselves are of that size. Run the tests once in half precision.",
    hint="Your fill value doesn't exist in half precision. Minus infinity does, in every float of "
    "16 bits and more.",
    killed_by="half precision",
    thread=Thread(
        "https://github.com/NVIDIA/apex/issues/1052",
        "the error message, and a line with -1e9 as its cause.",
    ),
)

EXHIBITS = (NAN_ROWS, NAN_GRADIENTS, FINITE_MINIMUM, MINUS_1E9_IN_HALF)
