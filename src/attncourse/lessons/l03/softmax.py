"""A softmax that is safe with any scores."""

import math
from typing import Any

import torch
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise, read_mistakes
from attncourse.checking.calling import Watch
from attncourse.checking.functions import not_yet


def _shares(exponentials: Tensor, axis: int = -1) -> Tensor:
    return exponentials / exponentials.sum(axis, keepdim=True)


def _shifted(scores: Tensor, shift: Tensor | float) -> Tensor:
    return _shares((scores - shift).exp())


MISTAKES = read_mistakes("stable_softmax", globals())
NOTICED = read_mistakes("noticed", globals())  # by what is called


@exercise(mistakes=(*NOTICED, *MISTAKES))
def stable_softmax(answer: Any) -> CheckResult:
    """Check `stable_softmax(scores)` along the last axis of [..., T]."""
    forbidden = torch.randn(4, 6)
    forbidden[torch.arange(4), torch.tensor([5, 0, 3, 1])] = -math.inf
    steps = torch.tensor([0.0, 1000.0, -1000.0, 500.0])
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
    watch = Watch()

    def watched(scores: Tensor) -> Any:
        with watch:
            return answer(scores)

    known = [mistake.hint for mistake in MISTAKES]
    result = check_function(
        watched if callable(answer) else answer,
        lambda scores: scores.softmax(-1),
        cases,
        MISTAKES,
        output_names=["the row of weights"],
        tolerance=2e-4,  # neighboring float32 numbers near 1000 are 6e-5 apart
        praise="Safe with thousands, with rows on different levels and with forbidden keys, and "
        "the scores are left as they were.",
    )
    called = " ".join(watch.names)
    if ("clamp" in called or "clip" in called) and not result and result.message not in known:
        return not_yet(stable_softmax.hints["clamped"])
    ready_made = result and ("softmax" in called or "softmin" in called)
    return not_yet(stable_softmax.hints["ready_made"]) if ready_made else result
