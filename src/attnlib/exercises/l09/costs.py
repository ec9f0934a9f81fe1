"""What four heads cost, narrow ones and wide ones."""

from typing import Any

import torch

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_rows
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Numbers

WIDTH, KEYS = 16, 10  # d, and how many keys one query has
HEADS = {"4 heads of 4": (4, 4), "1 head of 16": (1, 16), "4 heads of 16": (4, 16)}  # h, d_k


def parameters(h: int, d_k: int) -> int:
    """Return the parameters of W_q, W_k, W_v and W_o without biases."""
    return 4 * WIDTH * h * d_k


def multiplications(h: int, d_k: int) -> int:
    """Return those of one query's scores and of its mixture of values."""
    return 2 * KEYS * h * d_k


def _table(of_parameters: Any = parameters, of_work: Any = multiplications) -> torch.Tensor:
    rows = [[of_parameters(*sizes), of_work(*sizes)] for sizes in HEADS.values()]
    return torch.tensor(rows, dtype=torch.float64)


RIGHT = _table()
LABELS = {name: ["parameters", "multiplications"] for name in HEADS}
COST_MISTAKES = (
    Mistake(
        "squares",
        _table(of_work=lambda h, d_k: h * d_k**2),
        "You squared the width of a head. A score is a product of a query and a key, d_k "
        "multiplications, for each of the ten keys; the mixture takes as many again.",
    ),
    Mistake(
        "scores alone",
        _table(of_work=lambda h, d_k: KEYS * h * d_k),
        "These are the scores alone. The values are multiplied by the weights, too: as many again.",
    ),
    Mistake(
        "without W_o",
        _table(of_parameters=lambda h, d_k: 3 * WIDTH * h * d_k),
        "One matrix is missing. Four were asked for: W_q, W_k, W_v and W_o.",
    ),
    Mistake(
        "always as many",
        _table(of_parameters=lambda h, d_k: 4 * WIDTH**2),
        "As many parameters whatever the heads: that holds while h times d_k stays 16. Four heads "
        "of 16 have 64 columns.",
    ),
    Mistake(
        "all as dear",
        _table(lambda h, d_k: 4 * WIDTH**2, lambda h, d_k: 2 * KEYS * WIDTH),
        "The same three times: that holds while h times d_k stays 16. Four heads of 16 have 64 "
        "columns.",
    ),
    Mistake(
        "a square W_o",
        _table(of_parameters=lambda h, d_k: 3 * WIDTH * h * d_k + WIDTH**2),
        "Of W_o you counted 16 x 16. It takes all heads side by side, so it has h times d_k rows.",
    ),
    Mistake(
        "one head's",
        _table(lambda h, d_k: 4 * WIDTH * d_k, lambda h, d_k: 2 * KEYS * d_k),
        "You counted one head. Multiply by their number.",
    ),
)


@exercise(
    mistakes=COST_MISTAKES,
    page=Numbers(right=RIGHT, labels=LABELS, rows_apart=True),
)
def cost_of_heads(answer: Any) -> Verdict:
    """Check parameters and multiplications of three layers, [3, 2]."""
    return check_rows(
        answer,
        RIGHT,
        COST_MISTAKES,
        rows=[
            (2, "4 heads of 4: W_q has 16 rows and 4 times 4 columns, and there are four such "
                "matrices. One score takes 4 multiplications."),
            (2, "1 head of 16: W_q has 16 rows and 16 columns. One score takes 16 multiplications, "
                "and there is one head."),
            (2, "4 heads of 16: W_q has 16 rows and 4 times 16 columns. One score takes 16 "
                "multiplications, in each of four heads."),
        ],
        praise="Cutting one wide head into four narrow ones costs nothing but softmaxes. Four wide "
        "ones cost four times as much.",
    )  # fmt: skip
