"""What four heads cost, narrow ones and wide ones."""

from collections.abc import Callable
from typing import Any

import torch

from attncourse.checking.exercise import Mistake, exercise
from attncourse.checking.functions import check_rows
from attncourse.checking.on_page import Numbers
from attndoctor.verdict import Verdict

WIDTH, KEYS = 16, 10  # d, and how many keys one query has
HEADS = {"4 heads of 4": (4, 4), "1 head of 16": (1, 16), "4 heads of 16": (4, 16)}  # h, d_k


def parameters(h: int, d_k: int) -> int:
    """Return the parameters of W_q, W_k, W_v and W_o without biases."""
    return 4 * WIDTH * h * d_k


def multiplications(h: int, d_k: int) -> int:
    """Return those of one query's scores and of its mixture of values."""
    return 2 * KEYS * h * d_k


Count = Callable[[int, int], int]  # of h and d_k


def _table(of_parameters: Count = parameters, of_work: Count = multiplications) -> torch.Tensor:
    rows = [[count(*sizes) for sizes in HEADS.values()] for count in (of_parameters, of_work)]
    return torch.tensor(rows, dtype=torch.float64)


RIGHT = _table()
LABELS = {"Parameters": list(HEADS), "Multiplications of one query": list(HEADS)}
# Who errs does so in all three layers alike: so each mistake is known by its row of three numbers.
COST_MISTAKES = (
    Mistake(
        "one head's",
        _table(lambda h, d_k: 4 * WIDTH * d_k, lambda h, d_k: 2 * KEYS * d_k),
        "You counted one head. Multiply by their number.",
    ),
    Mistake(
        "all as dear",
        _table(lambda h, d_k: 4 * WIDTH**2, lambda h, d_k: 2 * KEYS * WIDTH),
        "The same three times: that holds while h times d_k stays 16. Four heads of 16 have 64 "
        "columns.",
    ),
    Mistake(
        "each head as wide as the layer",
        _table(lambda h, d_k: 4 * WIDTH * h * WIDTH, lambda h, d_k: 2 * KEYS * h * WIDTH),
        "You gave each of the narrow heads all 16 numbers. A head of 4 has queries, keys and "
        "values of 4 numbers.",
    ),
    Mistake(
        "always as many",
        _table(of_parameters=lambda h, d_k: 4 * WIDTH**2),
        "As many parameters whatever the heads: that holds while h times d_k stays 16. Four heads "
        "of 16 have 64 columns.",
    ),
    Mistake(
        "one matrix",
        _table(of_parameters=lambda h, d_k: WIDTH * h * d_k),
        "This is one matrix. Four were asked for, W_q, W_k, W_v and W_o, of as many numbers each.",
    ),
    Mistake(
        "without W_o",
        _table(of_parameters=lambda h, d_k: 3 * WIDTH * h * d_k),
        "One matrix is missing. Four were asked for: W_q, W_k, W_v and W_o.",
    ),
    Mistake(
        "a square W_o",
        _table(of_parameters=lambda h, d_k: 3 * WIDTH * h * d_k + WIDTH**2),
        "Of W_o you counted 16 x 16. It takes all heads side by side, so it has h times d_k rows.",
    ),
    Mistake(
        "with biases",
        _table(of_parameters=lambda h, d_k: 4 * WIDTH * h * d_k + 3 * h * d_k + WIDTH),
        "You counted biases. These layers have none.",
    ),
    Mistake(
        "scores alone",
        _table(of_work=lambda h, d_k: KEYS * h * d_k),
        "This is half of it: scores alone, or mixtures alone. Each number of a key is multiplied "
        "for its score, and each number of a value by its weight.",
    ),
    Mistake(
        "one key",
        _table(of_work=lambda h, d_k: 2 * h * d_k),
        "This is for a single key and its value. The query has ten.",
    ),
    Mistake(
        "ten queries",
        _table(of_work=lambda h, d_k: 2 * KEYS**2 * h * d_k),
        "This is for ten queries. One was asked for, with ten keys.",
    ),
    Mistake(
        "additions as well",
        _table(of_work=lambda h, d_k: 4 * KEYS * h * d_k),
        "This is twice as many. Did you count additions, too? Multiplications alone were asked "
        "for.",
    ),
    Mistake(
        "squares",
        _table(of_work=lambda h, d_k: h * d_k**2),
        "You squared the width of a head. A score is a product of a query and a key, d_k "
        "multiplications, for each of the ten keys; the mixture takes as many again.",
    ),
)


@exercise(
    mistakes=COST_MISTAKES,
    page=Numbers(right=RIGHT, labels=LABELS, rows_apart=True),
)
def cost_of_heads(answer: Any) -> Verdict:
    """Check three layers' parameters and one query's multiplications in each, [2, 3]."""
    return check_rows(
        answer,
        RIGHT,
        COST_MISTAKES,
        rows=[
            (3, "Parameters: W_q, W_k and W_v have 16 rows, and for each head d_k columns. W_o has "
                "it the other way round. How many columns do 4 heads of 4 have together, and how "
                "many 4 heads of 16?"),
            (3, "Multiplications: in one head, a score takes d_k for each of the ten keys, and the "
                "mixture as many again. How many are that in all heads?"),
        ],
        praise="Cutting one wide head into four narrow ones costs nothing but softmaxes. Four wide "
        "ones cost four times as much.",
    )  # fmt: skip
