"""OnlineSoftmax: a softmax and its weighted sum of values, read block by block."""

from typing import Literal, get_args

import torch
import traitlets
from torch import Tensor

from attncourse.widgets._base import (
    CourseWidget,
    Numbers,
    browser_files,
    summary_trait,
    tensor_trait,
)
from attncourse.widgets._inputs import moderate_numbers, require_one_of, require_within
from attnlib.checks import (
    require_count,
    require_drawable,
    require_floating,
    require_positive_int,
    require_text,
    shape_of,
)

MOST, WIDEST = 12, 3  # scores and numbers of a value: what can be read on a phone
Method = Literal["online", "no rescaling", "no maximum"]
METHODS = get_args(Method)

# The maximum rises in the first and in the third of blocks of two, and stays in the others.
EXAMPLE_SCORES = [1.0, 2, 0, 1, 4, 3, 2, -1]
EXAMPLE_VALUES = [[1.0, 0], [0, 1], [2, 1], [1, 3], [0, 2], [3, 1], [1, 1], [2, 0]]


class OnlineSoftmax(CourseWidget):
    """Softmax over a row of scores that comes in blocks, each looked at once.

    After each block stand the largest score so far, the sum of the exponentials, and the weighted
    sum of the values. When a larger score comes, sum and weighted sum are rescaled by exp(old
    maximum - new maximum): the online softmax of Milakov & Gimelshein (2018, section 3), which
    FlashAttention (Dao et al. 2022, section 3.1) is built on. Beside them stands the plain softmax,
    which needs all scores at once. A reader changes scores, steps through the blocks, and may leave
    out the rescaling or the maximum. The browser computes all of it, in float32. In a notebook::

        softmax = OnlineSoftmax()                                  # eight scores, built by hand
        softmax                                                    # show it
        softmax.block, softmax.step = 4, 2                         # blocks of four, both read
        softmax.observe(lambda change: print(change["new"]), "scores")
        OnlineSoftmax(torch.tensor([0.0, 100.0]), torch.tensor([[1.0], [2.0]]), block=1)

    Traits that a reader changes:
        scores (Tensor): float32 [T]; -inf where a token is masked. Assign a new tensor to change
            them from Python.
        block (int): how many scores a block has; the last one has fewer where they don't come out
            even.
        step (int): how many blocks have been read; all of them, if there are fewer.
        method (str): "online"; "no rescaling", which leaves what came before as it was; or "no
            maximum", which subtracts nothing before the exponential.

    Args:
        scores: [T] with T from 1 to 12, each from -1000 to 1000 or -inf; eight made by hand if left
            out.
        values: [T, d] with d from 1 to 3, from -1000 to 1000; if left out, scores must be, too.
        block, step, method: at the start; blocks of 2 if left out.
        origin: where scores and values come from, shown to the reader: "random". If they are left
            out, it says that they are built by hand.
    """

    _esm, _css = browser_files("online_softmax")
    summary = summary_trait(
        "A softmax computed block by block: largest score, sum and output after each block, beside "
        "the plain softmax."
    )

    T = traitlets.Int(read_only=True).tag(sync=True)
    d = traitlets.Int(read_only=True).tag(sync=True)
    values, start_scores = Numbers(), Numbers()
    origin = traitlets.Unicode(read_only=True).tag(sync=True)
    scores = tensor_trait(lambda widget: (widget.T,))
    block = traitlets.Int(2).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    method = traitlets.Unicode("online").tag(sync=True)

    def __init__(
        self,
        scores: Tensor | None = None,
        values: Tensor | None = None,
        *,
        block: int | None = None,
        step: int = 0,
        method: Method = "online",
        origin: str | None = None,
    ) -> None:
        if (scores is None) != (values is None):
            lacking = "scores" if scores is None else "values"
            raise ValueError(f"scores and values must come together, got no {lacking}")
        if scores is None or values is None:
            scores, values = torch.tensor(EXAMPLE_SCORES), torch.tensor(EXAMPLE_VALUES)
            origin = "built by hand" if origin is None else origin
        scores = _checked_scores(scores)
        values = _checked_values(values, len(scores))
        origin = "as given" if origin is None else origin
        require_text("origin", origin)
        block = min(2, len(scores)) if block is None else block
        require_positive_int("block", block)
        require_within("block", block, 1, len(scores))
        require_count("step", step)
        require_within("step", step, 0, len(scores))
        require_one_of("method", method, METHODS)
        T, d = values.shape
        start = {"scores": scores, "block": block, "step": step, "method": method}
        super().__init__(T=T, d=d, values=values, start_scores=scores, origin=origin, **start)

    def __repr__(self) -> str:
        return (
            f"OnlineSoftmax({self.T} scores, block={self.block}, step={self.step}, {self.method})"
        )


def _checked_scores(scores: Tensor) -> Tensor:
    """Return a float32 copy of scores [T] on the CPU, or raise if they aren't that; -inf stays."""
    require_floating("scores", scores)
    require_drawable("scores", scores)
    if scores.dim() != 1:
        raise ValueError(f"scores must be one row [T], got {shape_of(scores)}")
    if not 1 <= len(scores) <= MOST:
        raise ValueError(f"scores must be from 1 to {MOST} numbers, got {len(scores)}")
    masked = scores.detach() == -torch.inf
    numbers = moderate_numbers("scores", scores.masked_fill(masked, 0.0))
    return numbers.masked_fill(masked.cpu(), -torch.inf)


def _checked_values(values: Tensor, T: int) -> Tensor:
    """Return values as float32 [T, d] on the CPU, or raise if they aren't that."""
    numbers = moderate_numbers("values", values)
    if numbers.dim() != 2 or len(numbers) != T:
        raise ValueError(
            f"values must be one row for each of the {T} scores, got {shape_of(values)}"
        )
    if not 1 <= numbers.shape[1] <= WIDEST:
        raise ValueError(f"values must have from 1 to {WIDEST} columns, got {shape_of(values)}")
    return numbers
