"""From logits to the chances of the next token: temperature and top-k."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function, check_rows
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Numbers

LOGITS = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64).log()


def chances(logits: Tensor, temperature: float, top_k: int) -> Tensor:
    """Return the chances [V] of softmax(logits / temperature) among the top_k likeliest."""
    kept = logits >= logits.topk(top_k).values[-1]
    return (logits / temperature).masked_fill(~kept, -math.inf).softmax(-1)


def _smallest(logits: Tensor, top_k: int) -> Tensor:
    return logits <= logits.topk(top_k, largest=False).values[-1]


PLAIN, COLD, TOP = chances(LOGITS, 1, 3), chances(LOGITS, 0.5, 3), chances(LOGITS, 1, 2)
RIGHT = torch.stack([PLAIN, COLD, TOP])
TITLES = ("Temperature 1", "Temperature 1/2", "Temperature 1, top-k 2")


def _with(
    plain: Tensor | None = None, cold: Tensor | None = None, top: Tensor | None = None
) -> Tensor:
    rows = zip((plain, cold, top), RIGHT, strict=True)
    return torch.stack([right if row is None else row for row, right in rows])


BY_HAND_MISTAKES = (
    Mistake(
        _with(plain=LOGITS / LOGITS.sum()),
        "You divided the logits by their sum. First take e to the power of each.",
    ),
    Mistake(
        _with(plain=LOGITS.exp()),
        "These are the powers of e. Divide by their sum, so that the row sums to 1.",
    ),
    Mistake(
        _with(cold=chances(LOGITS, 2, 3)),
        "This row is flatter than the first, so you multiplied by 1/2. Logits are *divided* by the "
        "temperature: by 1/2 makes them twice as large.",
    ),
    Mistake(
        _with(cold=PLAIN / 0.5),
        "You divided the chances, and they sum to 2. The logits are divided, before the softmax.",
    ),
    Mistake(
        _with(cold=PLAIN),
        "This is the first row again. Twice ln 2 is ln 4, and twice ln 4 is ln 16.",
    ),
    Mistake(
        _with(top=torch.tensor([0, PLAIN[1], PLAIN[2]], dtype=torch.float64)),
        "The row no longer sums to 1. What is left after the cut is shared out anew.",
    ),
    Mistake(
        _with(top=LOGITS.exp().mul(torch.tensor([1, 1, 0])) / 3),
        "You kept the two least likely tokens.",
    ),
    Mistake(
        _with(top=torch.tensor([0.0, 0, 1], dtype=torch.float64)),
        "You cut two tokens away. Two are kept.",
    ),
    Mistake(
        _with(top=torch.tensor([0, 0.5, 0.5], dtype=torch.float64)),
        "Those that are kept aren't equally likely: their ratio stays what it was.",
    ),
)


@exercise(
    mistakes=BY_HAND_MISTAKES,
    page=Numbers(
        right=RIGHT,
        labels={title: ["a", "b", "c"] for title in TITLES},
        rows_apart=True,
    ),
)
def chances_by_hand(answer: Any) -> Verdict:
    """Check the chances of three tokens with logits ln 1, ln 2, ln 4, in three ways: [3, 3]."""
    return check_rows(
        answer,
        RIGHT,
        BY_HAND_MISTAKES,
        rows=[
            (3, "Temperature 1: e to the power of ln 1, ln 2 and ln 4, each divided by their sum."),
            (3, "Temperature 1/2: the logits become 0, ln 4 and ln 16. Then as in the first row."),
            (3, "Top-k 2: the least likely token gets 0; the two others keep their ratio, and sum "
                "to 1."),
        ],
        praise="A temperature keeps the order and all tokens; top-k keeps ratios and drops tokens.",
    )  # fmt: skip


CHANCE_MISTAKES = (
    Mistake(
        lambda logits, temperature, top_k: chances(logits, 1 / temperature, top_k),
        "This is what comes of multiplying by the temperature, or of taking chances to its power. "
        "Dividing the logits makes a low one sharper.",
    ),
    Mistake(
        lambda logits, temperature, top_k: chances(logits, 1.0, top_k),
        "Your chances are the same at every temperature. Divide the *logits* by it: what chances "
        "are divided by falls out again as soon as they are shared out anew.",
    ),
    Mistake(
        lambda logits, temperature, top_k: chances(logits, 1.0, top_k) / temperature,
        "You divide the chances by the temperature, so they no longer sum to 1. Divide the logits, "
        "before the softmax.",
    ),
    Mistake(
        lambda logits, temperature, top_k: chances(logits, temperature, len(logits)),
        "Every token can still be drawn: top_k isn't used.",
    ),
    Mistake(
        lambda logits, temperature, top_k: (
            (logits / temperature).softmax(-1) * (logits >= logits.topk(top_k).values[-1])
        ),
        "The right tokens are kept, but their chances sum to less than 1. Cut before the softmax, "
        "or divide by the sum afterward.",
    ),
    Mistake(
        lambda logits, temperature, top_k: (
            (logits / temperature)
            .masked_fill(logits < logits.topk(top_k).values[-1], 0.0)
            .softmax(-1)
        ),
        "You set the other logits to 0, and e to the power of 0 is 1: they can still be drawn. "
        "Which number becomes 0?",
    ),
    Mistake(
        lambda logits, temperature, top_k: (
            (logits / temperature)
            .softmax(-1)
            .masked_fill(logits < logits.topk(top_k).values[-1], -math.inf)
            .softmax(-1)
        ),
        "You take the softmax of chances. Take it once: cut the logits, or divide the chances that "
        "are kept by their sum.",
    ),
    Mistake(
        lambda logits, temperature, top_k: chances(logits.softmax(-1), temperature, top_k),
        "You divide chances by the temperature, and take the softmax of that. Divide the logits, "
        "and let the softmax come last, once.",
    ),
    Mistake(
        lambda logits, temperature, top_k: nn.functional.pad(
            (logits / temperature).topk(top_k).values.softmax(-1), (0, len(logits) - top_k)
        ),
        "The chances are right, but stand in the order of their size. Each must stand at the place "
        "of its own token.",
    ),
    Mistake(
        lambda logits, temperature, top_k: (
            (logits / temperature).masked_fill(~_smallest(logits, top_k), -math.inf).softmax(-1)
        ),
        "You kept the least likely tokens.",
    ),
    Mistake(
        lambda logits, temperature, top_k: (
            (logits / temperature)
            .masked_fill(logits >= logits.topk(top_k).values[-1], -math.inf)
            .softmax(-1)
        ),
        "Your mask is the wrong way round: it cuts the k likeliest tokens and keeps the others.",
    ),
    Mistake(
        lambda logits, temperature, top_k: chances(logits, temperature, 1),
        "Only the likeliest token is left, whatever top_k is. What `topk` returns begins with the "
        "largest; the k-th stands at the end.",
    ),
    Mistake(
        lambda logits, temperature, top_k: chances(
            logits, temperature, min(top_k + 1, len(logits))
        ),
        "One token too many is kept.",
    ),
    Mistake(
        lambda logits, temperature, top_k: (
            (logits / temperature)
            .masked_fill(logits <= logits.topk(top_k).values[-1], -math.inf)
            .softmax(-1)
        ),
        "One token too few is kept: the k-th likeliest is among them, so a token goes only if its "
        "logit is *below* that one's.",
    ),
    Mistake(
        lambda logits, temperature, top_k: (logits / temperature).masked_fill(
            logits < logits.topk(top_k).values[-1], -math.inf
        ),
        "These are logits, with minus infinity for what is cut. Take their softmax.",
    ),
    Mistake(
        lambda logits, temperature, top_k: (
            (logits >= logits.topk(top_k).values[-1]).to(logits) / top_k
        ),
        "All tokens that are kept are equally likely. They should keep the softmax's ratios.",
    ),
    Mistake(
        lambda logits, temperature, top_k: (
            (logits / temperature)
            .masked_fill(torch.arange(len(logits)) >= top_k, -math.inf)
            .softmax(-1)
        ),
        "You kept the first k tokens of the vocabulary. Keep those with the largest logits.",
    ),
)


def _cases() -> list[tuple[Tensor, float, int]]:
    """Return logits of some sizes and heights, with temperatures on both sides of 1."""
    kinds = ((7, 0.5, 3, 0), (9, 2.5, 5, -40), (5, 0.25, 1, 0), (6, 1.5, 6, 0))
    return [(torch.randn(V, dtype=torch.float64) + at, tau, k) for V, tau, k, at in kinds]


@exercise(mistakes=CHANCE_MISTAKES)
def chances_to_draw_from(answer: Callable[[Tensor, float, int], Tensor]) -> Verdict:
    """Check `chances(logits, temperature, top_k)`: [V] -> the chances [V] of the next token."""
    return check_function(
        answer,
        chances,
        _cases(),
        CHANCE_MISTAKES,
        output_names=["the chances"],
        praise="That is what `generate` draws from, at every step.",
    )
