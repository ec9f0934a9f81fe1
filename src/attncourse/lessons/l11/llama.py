"""What a LLaMA is made of: the parameters of the 7B one, part by part, in millions."""

from typing import Any

import torch

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise, read_mistakes

WIDTH, INSIDE, LAYERS, TOKENS = 4096, 11008, 32, 32_000  # Touvron et al. 2023 and its code
MILLION = 1e6
TOLERANCE = 0.06  # one digit after the point

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
MISTAKES = read_mistakes("parts_of_llama", globals())
PAGE = Numbers(right=RIGHT, labels=LABELS, tolerance=TOLERANCE, rows_apart=True)


@exercise(mistakes=MISTAKES, page=PAGE)
def parts_of_llama(answer: Any) -> CheckResult:
    """Check the parameters of LLaMA 7B in millions: attention, feed-forward, tables, all."""
    otherwise = [
        "Attention: four matrices of 4,096 by 4,096, without biases. In millions.",
        "The feed-forward network: three matrices between 4,096 and 11,008 numbers. In millions.",
        "The tables: 32,000 tokens of 4,096 numbers, once for reading and once for the readout. "
        "In millions.",
        "The whole: 32 blocks and both tables. (The 65 norms of 4,096 gains are 0.3 million.)",
    ]
    praise = (
        "6.7 billion, as the paper's table says. Two thirds of a block are its feed-forward "
        "network, as in GPT-2: the third matrix is paid for by the smaller width."
    )
    return check_numbers(answer, PAGE, MISTAKES, otherwise=otherwise, praise=praise)
