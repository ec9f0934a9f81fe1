"""Where a head that a paper names stands in GPT-2 small's file."""

from typing import Any

import torch

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise, read_mistakes

WIDTH, HEADS = 768, 12  # GPT-2 small's
D_K = WIDTH // HEADS
LAYER, HEAD = 10, 7  # as a paper that counts from 1 names it

LABELS = {
    "The layer's number in the names h.0, h.1, ...": ["h."],
    "The head's first column in c_attn.weight": ["queries", "keys", "values"],
    "The head's first row in c_proj.weight": ["row"],
}


def _place(layer: int = LAYER - 1, head: int = HEAD - 1, width: int = D_K) -> torch.Tensor:
    """Return the five numbers, for a layer and a head counted from 0."""
    return _numbers(layer, [part * WIDTH + head * width for part in range(3)], head * width)


def _numbers(layer: int, columns: list[int], row: int) -> torch.Tensor:
    return torch.tensor([layer, *columns, row], dtype=torch.float64)


RIGHT = _place()
MISTAKES = read_mistakes("head_in_the_file", globals())
PAGE = Numbers(right=RIGHT, labels=LABELS, rows_apart=True)


@exercise(mistakes=MISTAKES, page=PAGE)
def head_in_the_file(answer: Any) -> CheckResult:
    """Check where head 10-7 stands in GPT-2 small's file: five numbers.

    They are the layer's number in the names, the head's first column among queries, keys and values
    of `c_attn.weight`, and its first row in `c_proj.weight`.
    """
    otherwise = [
        "The layer: the paper's first one is the file's h.0.",
        "The columns of c_attn: 768 of queries, 768 of keys, 768 of values, and in each of these "
        "parts 64 per head. Which head is it, counted from 0?",
        "The row of c_proj: the heads' findings lie side by side, 64 numbers per head.",
    ]
    praise = (
        "So the head is four slices of two matrices, and the biases of its columns. Nothing else "
        "in the file is its own."
    )
    return check_numbers(answer, PAGE, MISTAKES, otherwise=otherwise, praise=praise)
