"""A softmax that is safe with any scores."""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function, not_yet
from attnlib.exercises._exercise import Mistake, exercise


def _shares(exponentials: Tensor, axis: int = -1) -> Tensor:
    return exponentials / exponentials.sum(axis, keepdim=True)


def _shifted(scores: Tensor, shift: Tensor | float) -> Tensor:
    return _shares((scores - shift).exp())


def _in_place(scores: Tensor) -> Tensor:
    scores -= scores.amax(-1, keepdim=True)
    return _shares(scores.exp())


def _without_keepdim(scores: Tensor) -> Tensor:
    exponentials = (scores - scores.amax(-1)).exp()
    return exponentials / exponentials.sum(-1)


class _Watch(TorchFunctionMode):
    """Notes whether torch's own softmax is called meanwhile, and whether scores are clamped."""

    ready_made = clamps = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        self.ready_made |= "softmax" in name or "softmin" in name
        self.clamps |= "clamp" in name or "clip" in name
        return func(*args, **(kwargs or {}))


_PAIR = Mistake(
    lambda s: _shifted(s, s.max(-1, keepdim=True)),
    "Along an axis, `max` returns two tensors: the largest scores and their places. Take "
    "`.values`, or use `amax`, which returns the largest scores alone.",
)
_READY_MADE = Mistake(
    lambda s: s.softmax(-1),
    "This is torch's own softmax. Here it is to be written with exp, max and sum.",
)
_NOTHING = Mistake(
    lambda s: _shares(s.exp()),
    "Scores in the thousands overflow: e to the power 1000 is infinite, and infinity over "
    "infinity is not a number. Which shift of the scores changes no weight? (Where the largest "
    "score stands is no help, only how large it is.)",
)
_NAN_FOR_0 = Mistake(
    lambda s: _shares(s.exp()).nan_to_num(0.0),
    "You put 0 where the division went wrong. No key is forbidden there: the numbers were only "
    "too large, or too small, for e to their power. Avoid that, and nothing is left to repair.",
)
SOFTMAX_MISTAKES = (
    Mistake(
        lambda s: (lambda e: e / e.sum())((s - s.amax(-1, keepdim=True)).exp()),
        "You divided by the sum of the whole tensor, so all rows together sum to 1. Each row needs "
        "its own sum.",
    ),
    Mistake(
        lambda s: (lambda e: e / e.sum(0))((s - s.amax(-1, keepdim=True)).exp()),
        "The maximum is each row's, but you divided by the sums of the columns. A row is divided "
        "by its own sum.",
    ),
    Mistake(
        lambda s: _shares((s - s.amax(1, keepdim=True)).exp(), 1),
        "You work along axis 1. That is the last one for a table alone: count from the end, -1.",
    ),
    Mistake(
        lambda s: _shares((s + s.amax(-1, keepdim=True)).exp()),
        "You added the largest score, and large scores get larger still: subtract it.",
    ),
    Mistake(
        lambda s: _shifted(s, s.abs().amax(-1, keepdim=True)),
        "You subtracted the largest absolute value. Where all scores are far below 0, that takes "
        "them down once more until nothing is left: take the largest score as it is.",
    ),
    Mistake(
        lambda s: _shares((s.amax(-1, keepdim=True) - s).exp()),
        "The signs are turned around: your largest score gets the smallest weight.",
    ),
    Mistake(
        lambda s: _shares((s - s.amax(-1, keepdim=True)).exp2()),
        "You took powers of 2. A softmax takes powers of e.",
    ),
    Mistake(
        _without_keepdim,
        "Right for a single row, but the axis along which you took the maximum or the sum is gone, "
        "and what is left no longer fits the rows. Keep it: keepdim=True.",
    ),
    _NOTHING,
    Mistake(
        lambda s: _shifted(s, s.max()),
        "You subtracted the largest score of the whole tensor. A row whose own scores are all far "
        "below it becomes 0 / 0: each row needs its own.",
    ),
    Mistake(
        _in_place,
        "Your function changes the scores that it was given (as -= does). Make a new tensor.",
    ),
    Mistake(
        lambda s: _shares((s - s.amax(0, keepdim=True)).exp(), 0),
        "Your columns sum to 1, not your rows: work along the last axis.",
    ),
    Mistake(
        lambda s: _shifted(s, s.amax(0, keepdim=True)),
        "You subtracted the maximum of each column. Within a row all scores must be shifted by the "
        "same number, or the weights change.",
    ),
    Mistake(
        lambda s: _shifted(s, s.mean(-1, keepdim=True)),
        "Subtracting the mean isn't safe: a score far above it still overflows, and a single -inf "
        "makes the mean -inf. Which number of the row leaves nothing above 0?",
    ),
    Mistake(
        lambda s: _shifted(s, s.amin(-1, keepdim=True)),
        "You subtracted the smallest score, so the others can still be huge. It should leave "
        "nothing above 0.",
    ),
    Mistake(
        lambda s: _shares((s / s.amax(-1, keepdim=True)).exp()),
        "You divided by the largest score. That is another temperature and changes the weights; "
        "only a shift doesn't.",
    ),
    Mistake(
        lambda s: (s - s.amax(-1, keepdim=True)).exp(),
        "The exponentials are safe now, but the rows don't sum to 1 yet.",
    ),
    Mistake(
        lambda s: _shares(s - s.amax(-1, keepdim=True)),
        "You divided the shifted scores by their sum. Take e to the power of each first.",
    ),
    Mistake(
        lambda s: (s - s.amax(-1, keepdim=True)).exp() / s.exp().sum(-1, keepdim=True),
        "The exponentials above are safe, the sum below isn't: it adds up exponentials of the "
        "scores as they came. Both need the same shift, or it doesn't cancel.",
    ),
    Mistake(
        lambda s: _shares(s.exp() - s.amax(-1, keepdim=True)),
        "You took the exponentials first and subtracted then. They have overflowed by that time; "
        "it is the scores that are shifted.",
    ),
    _NAN_FOR_0,
    Mistake(
        lambda s: s.log_softmax(-1),
        "These are the logarithms of the weights.",
    ),
)  # fmt: skip


_CLAMPED = Mistake(
    lambda s: _shares(s.clamp(-80.0, 80.0).exp()),
    "You cut scores off (by clamp), and scores that were different are now the same. A shift keeps "
    "their differences.",
)
# The same mistakes in other clothes.
_TOO = (
    replace(_NOTHING, answer=lambda s: s.exp() / s.exp().sum()),
    replace(_NAN_FOR_0, answer=lambda s: s.exp() / (s.exp().sum(-1, keepdim=True) + 1e-9)),
    replace(_NAN_FOR_0, answer=lambda s: s.exp().nan_to_num() / (s.exp().sum(-1, keepdim=True))),
)


@exercise(mistakes=(_PAIR, _READY_MADE, _CLAMPED, *SOFTMAX_MISTAKES))
def stable_softmax(answer: Any) -> Verdict:
    """Check `stable_softmax(scores)` along the last axis of [..., T]."""
    forbidden = torch.randn(4, 6)
    forbidden[torch.arange(4), torch.tensor([5, 0, 3, 1])] = -math.inf
    steps = torch.tensor([0.0, 1000.0, -1000.0, 5000.0])
    cases = [
        (torch.randn(5, 3),),
        (torch.randn(2, 3, 5, 4),),
        (1000 + torch.randn(3, 7),),
        (-1000 + torch.randn(3, 7),),
        (torch.randn(4, 6) + steps[:, None],),  # rows on very different levels
        (torch.randn(4, 6).scatter(1, torch.randint(6, (4, 1)), 2000.0),),  # far above the rest
        (torch.randn(4, 6).scatter(1, torch.randint(6, (4, 1)), -300.0),),  # far below
        (forbidden,),
        (torch.randn(8),),
    ]
    watch = _Watch()

    def watched(scores: Tensor) -> Any:
        with watch:
            return answer(scores)

    known = [mistake.hint for mistake in SOFTMAX_MISTAKES]
    verdict = check_function(
        watched if callable(answer) else answer,
        lambda scores: scores.softmax(-1),
        cases,
        (*SOFTMAX_MISTAKES, *_TOO),
        output_names=["the row of weights"],
        tolerance=1e-3,  # neighboring float32 numbers near 5000 are 5e-4 apart
        praise="Safe with thousands, with rows on different levels and with forbidden keys, and "
        "the scores are left as they were.",
    )
    if "torch.return_types.max" in verdict.message:  # in the words of the error that it raised
        return not_yet(_PAIR.hint)
    if watch.clamps and not verdict and verdict.message not in known:
        return not_yet(_CLAMPED.hint)
    return not_yet(_READY_MADE.hint) if verdict and watch.ready_made else verdict
