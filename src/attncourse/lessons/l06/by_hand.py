"""On paper: three rows of weights under a causal mask, and what one pass is worth."""

import math

import torch
from torch import Tensor

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise

EXPONENTIALS = torch.tensor([[1, 3, 9], [3, 1, 5], [1, 2, 1]], dtype=torch.float64)  # of the scores
PAST = torch.ones(3, 3, dtype=torch.bool).tril()
ROW_LABELS = {f"Token {i}": [f"to {j}" for j in range(3)] for i in range(3)}


def _weights(allowed: Tensor = PAST, dim: int = -1) -> Tensor:
    weights = EXPONENTIALS.log().masked_fill(~allowed, -math.inf).softmax(dim)
    return weights.nan_to_num(0.0)  # a row that may look nowhere


ROWS = _weights()


@exercise(page=Numbers(right=ROWS, labels=ROW_LABELS, rows_apart=True))
def causal_rows(answer: object) -> CheckResult:
    """Check the weights of three tokens under a causal mask, [3, 3]."""
    otherwise = [
        "Token 0 may look at one token. What is the softmax of a single score?",
        "Token 1 may look at tokens 0 and 1, whose exponentials are 3 and 1.",
        "Token 2 may look at all three: the exponentials are 1, 2 and 1.",
    ]
    praise = "Each row shares out the whole of its attention among what it may see."
    return check_numbers(answer, causal_rows, otherwise=otherwise, praise=praise)


T = 8  # words of the sentence that go in
COUNTS = [[T, T], [1, T], [T, sum(range(1, T + 1))]]
WAYS = ["One pass, causal mask", "One pass, no mask", "A pass per prefix, no mask"]
COUNT_LABELS = {way: ["honest questions", "rows"] for way in WAYS}


@exercise(page=Numbers(right=COUNTS, labels=COUNT_LABELS, rows_apart=True))
def honest_questions(answer: object) -> CheckResult:
    """Check the honest questions and the rows of three ways to train on a sentence, [3, 2]."""
    otherwise = [
        "Causal: each word that goes in is one row, and guesses the word after it.",
        "No mask: at which places does the answer stand among the words that go in?",
        "Prefixes: how many are there, and how many words does each of them have?",
    ]
    praise = "The causal mask asks all questions for the price of one pass."
    return check_numbers(answer, honest_questions, otherwise=otherwise, praise=praise)
