"""What four heads cost, narrow ones and wide ones."""

from collections.abc import Callable
from typing import Any

import torch

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise, read_mistakes

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
MISTAKES = read_mistakes("cost_of_heads", globals())
PAGE = Numbers(right=RIGHT, labels=LABELS, rows_apart=True)


@exercise(mistakes=MISTAKES, page=PAGE)
def cost_of_heads(answer: Any) -> CheckResult:
    """Check three layers' parameters and one query's multiplications in each, [2, 3]."""
    otherwise = [
        "Parameters: W_q, W_k and W_v have 16 rows, and for each head d_k columns. W_o has it the "
        "other way round. How many columns do 4 heads of 4 have together, and how many 4 heads of "
        "16?",
        "Multiplications: in one head, a score takes d_k for each of the ten keys, and the "
        "mixture as many again. How many are that in all heads?",
    ]
    praise = (
        "Cutting one wide head into four narrow ones costs nothing but softmaxes. Four wide ones "
        "cost four times as much."
    )
    return check_numbers(answer, PAGE, MISTAKES, otherwise=otherwise, praise=praise)
