"""What a LLaMA is made of: the parameters of the 7B one, part by part, in millions."""

from typing import Any

import torch

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_rows
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Numbers

WIDTH, INSIDE, LAYERS, TOKENS = 4096, 11008, 32, 32_000  # Touvron et al. 2023 and its code
MILLION = 1e6
TOLERANCE = 0.06  # one digit behind the point

LABELS = {
    "Attention of one block": ["millions"],
    "Feed-forward network of one block": ["millions"],
    "Token table and readout together": ["millions"],
    "All of it, norms included": ["millions"],
}


NORMS = (2 * LAYERS + 1) * WIDTH
WHOLE = 2 * TOKENS * WIDTH + LAYERS * (4 * WIDTH**2 + 3 * WIDTH * INSIDE) + NORMS


def _counts(
    attention: float = 4 * WIDTH**2,
    feed_forward: float = 3 * WIDTH * INSIDE,
    tables: float = 2 * TOKENS * WIDTH,
    whole: float = WHOLE,
) -> torch.Tensor:
    """Return the four numbers, in millions."""
    return torch.tensor([attention, feed_forward, tables, whole], dtype=torch.float64) / MILLION


RIGHT = _counts()
LLAMA_MISTAKES = (
    Mistake(
        _counts(feed_forward=2 * WIDTH * INSIDE),
        "You counted two matrices in the feed-forward network. A SwiGLU has three: one for the "
        "gate, one for what passes it, one that leads back.",
    ),
    Mistake(
        _counts(feed_forward=3 * WIDTH * 4 * WIDTH),
        "That network is 4d wide inside. LLaMA's is 11,008 wide, about two thirds of that.",
    ),
    Mistake(
        _counts(feed_forward=2 * WIDTH * 4 * WIDTH),
        "So many have two matrices 4d wide, as in GPT-2, or three of just two thirds of 4d. "
        "LLaMA's has three matrices, 11,008 wide. (It comes out nearly alike, and that is why it "
        "is so narrow.)",
    ),
    Mistake(
        _counts(attention=2 * WIDTH**2 + 2 * WIDTH * WIDTH // 4),
        "You shared keys and values among query heads. The 7B model doesn't: it has 32 heads of "
        "each.",
    ),
    Mistake(
        _counts(attention=3 * WIDTH**2),
        "Attention has four matrices: queries, keys, values, and W_o behind the heads.",
    ),
    Mistake(
        _counts(attention=4 * WIDTH * WIDTH // 32),
        "That is one head's share. There are 32 heads in a block.",
    ),
    Mistake(
        _counts(tables=TOKENS * WIDTH),
        "That is one table. This readout isn't tied: it has as many numbers again.",
    ),
    Mistake(
        _counts(tables=(2 * TOKENS + 2048) * WIDTH),
        "You counted a table of positions. Rotary positions have no numbers to learn.",
    ),
    Mistake(
        _counts(whole=WHOLE - NORMS),
        "The whole lacks its norms: two per block and the last one, with 4,096 gains each.",
    ),
    Mistake(
        _counts(whole=2 * TOKENS * WIDTH + 4 * WIDTH**2 + 3 * WIDTH * INSIDE + NORMS),
        "That is the tables and one block. There are 32 blocks.",
    ),
)


@exercise(
    mistakes=LLAMA_MISTAKES,
    page=Numbers(right=RIGHT, labels=LABELS, tolerance=TOLERANCE, rows_apart=True),
)
def parts_of_llama(answer: Any) -> Verdict:
    """Check the parameters of LLaMA 7B in millions: attention, feed-forward, tables, all."""
    return check_rows(
        answer,
        RIGHT,
        LLAMA_MISTAKES,
        tolerance=TOLERANCE,
        rows=[
            (1, "Attention: four matrices of 4,096 by 4,096, without biases. In millions."),
            (1, "The feed-forward network: three matrices between 4,096 and 11,008 numbers. In "
                "millions."),
            (1, "The tables: 32,000 tokens of 4,096 numbers, once for reading and once for the "
                "readout. In millions."),
            (1, "The whole: 32 blocks and both tables. (The 65 norms of 4,096 gains are 0.3 "
                "million.)"),
        ],
        praise="6.7 billion, as the paper's table says. Two thirds of a block are its feed-forward "
        "network, as in GPT-2: the third matrix is paid for by the smaller width.",
    )  # fmt: skip
