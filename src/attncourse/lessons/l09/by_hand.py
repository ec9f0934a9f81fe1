"""What four heads cost, and what three mixtures with fixed weights say of a fourth."""

from collections.abc import Callable

import torch

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise

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


COSTS = _table()
LABELS = {"Parameters": list(HEADS), "Multiplications of one query": list(HEADS)}
# A reader errs in all three layers alike, so each mistake is known by its row of three numbers.


@exercise(page=Numbers(right=COSTS, labels=LABELS, rows_apart=True))
def cost_of_heads(answer: object) -> CheckResult:
    """Check three layers' parameters and one query's multiplications in each, [2, 3]."""
    otherwise = [
        "Parameters: W_q, W_k and W_v have 16 rows, and for each head d_k columns. W_o has it the "
        "other way round. How many columns do 4 heads of 4 have together, and how many 4 heads of "
        "16?",
        "Multiplications: in one head, a score takes d_k for each of the ten keys, and the "
        "mixture as many again. How many is that in all heads?",
    ]
    praise = (
        "Cutting one wide head into four narrow ones costs nothing but softmaxes. Four wide ones "
        "cost four times as much."
    )
    return check_numbers(answer, cost_of_heads, otherwise=otherwise, praise=praise)


# The logit of 7 minus the logit of 3, by what the first and the second box hold.
DIFFERENCES = {(3, 3): -2.0, (7, 7): 4.0, (7, 3): 2.5}
RIGHT = torch.tensor([-0.5, 0.75, 0.25], dtype=torch.float64)
FIELDS = {
    "The difference with 3 in the first box and 7 in the second": ["logits"],
    "The first box's share of the weight": ["share"],
    "The second box's share": ["share"],
}


def _with(difference: float = -0.5, first: float = 0.75, second: float = 0.25) -> torch.Tensor:
    return torch.tensor([difference, first, second], dtype=torch.float64)


@exercise(page=Numbers(right=RIGHT, labels=FIELDS, rows_apart=True))
def fourth_content(answer: object) -> CheckResult:
    """Check a fourth logit difference and the two boxes' shares of their weight: three numbers."""
    otherwise = [
        "The difference: from (3, 3) to (7, 7) it grows by what both boxes bring. How much of it "
        "does the first box's 7 bring? What is left for the second box?",
        "The first box's share: what its 7 changes, as a part of what both change.",
        "The second box's share: what the first one doesn't have of the two.",
    ]
    praise = (
        "The order -2, -0.5, 2.5, 4 is that of the proof. It makes this readout right about the "
        "first box, and would be wrong for the second."
    )
    return check_numbers(answer, fourth_content, otherwise=otherwise, praise=praise)
