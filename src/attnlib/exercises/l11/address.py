"""Where a head that a paper names stands in GPT-2 small's file."""

from typing import Any

import torch

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_rows
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Numbers

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
ADDRESS_MISTAKES = (
    Mistake(
        _place(LAYER, HEAD),
        "The paper counts layers and heads from 1, the file and its columns from 0: the first head "
        "begins at column 0.",
    ),
    Mistake(
        _place(layer=LAYER),
        "The file counts its layers from 0, so the paper's first layer is h.0.",
    ),
    Mistake(
        _place(HEAD - 1, LAYER - 1),
        "Layer and head are exchanged: in such names the layer stands first.",
    ),
    Mistake(
        _numbers(LAYER - 1, [(3 * (HEAD - 1) + part) * D_K for part in range(3)], (HEAD - 1) * D_K),
        "You let each head have its q, k and v side by side. In c_attn all queries come first, of "
        "all heads, then all keys, then all values.",
    ),
    Mistake(
        _place(width=HEADS),
        "You gave a head 12 columns. There are 12 heads; a head has 768 / 12 columns.",
    ),
    Mistake(
        _numbers(LAYER - 1, [(HEAD - 1) * D_K] * 3, (HEAD - 1) * D_K),
        "These are the columns within the keys and within the values. Before the keys stand 768 "
        "columns of queries.",
    ),
    Mistake(
        _numbers(
            LAYER - 1, [part * WIDTH + (HEAD - 1) * D_K for part in range(3)],
            2 * WIDTH + (HEAD - 1) * D_K,
        ),
        "c_proj has 768 rows only: what the heads found, side by side. Its rows begin anew at 0.",
    ),
)  # fmt: skip


@exercise(
    mistakes=ADDRESS_MISTAKES,
    page=Numbers(right=RIGHT, labels=LABELS, rows_apart=True),
)
def head_in_the_file(answer: Any) -> Verdict:
    """Check where head 10-7 stands in GPT-2 small's file: five numbers.

    They are the layer's number in the names, the head's first column among queries, keys and values
    of `c_attn.weight`, and its first row in `c_proj.weight`.
    """
    return check_rows(
        answer,
        RIGHT,
        ADDRESS_MISTAKES,
        rows=[
            (1, "The layer: the paper's first one is the file's h.0."),
            (3, "The columns of c_attn: 768 of queries, 768 of keys, 768 of values, and in each of "
                "these parts 64 per head. Which head is it, counted from 0?"),
            (1, "The row of c_proj: the heads' findings lie side by side, 64 numbers per head."),
        ],
        praise="So the head is four slices of two matrices, and the biases of its columns. Nothing "
        "else in the file is its own.",
    )  # fmt: skip
