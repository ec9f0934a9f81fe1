"""How many parameters a GPT has, part by part."""

import torch

from attncourse.checking import CheckResult, Numbers, exercise
from attncourse.checking.functions import check_numbers

TOKENS, PLACES, WIDTH, HIDDEN = 27, 16, 16, 64  # microgpt's


def _counts(
    tokens: int = TOKENS * WIDTH,
    attention: int = 4 * WIDTH**2,
    feed_forward: int = 2 * WIDTH * HIDDEN,
    readout: int = TOKENS * WIDTH,
) -> torch.Tensor:
    """Return the parameters of microgpt's parts, but for what is given."""
    numbers = [tokens, PLACES * WIDTH, attention, feed_forward, readout]
    return torch.tensor(numbers, dtype=torch.float64)


RIGHT = _counts()
PARTS = ("Token table", "Position table", "Attention", "Feed-forward network", "Readout")


@exercise(page=Numbers(right=RIGHT, labels={part: ["numbers"] for part in PARTS}, rows_apart=True))
def parts_of_microgpt(answer: object) -> CheckResult:
    """Check the parameters of microgpt's five parts, in the order of the model: five numbers."""
    otherwise = [
        "The token table has a row per token, of 16 numbers.",
        "The position table has a row per place, of 16 numbers. How many places are there?",
        "Attention is four matrices. How many rows and columns has each?",
        "The feed-forward network is two matrices, from 16 to 64 numbers and back.",
        "The readout is one matrix: 16 numbers come in, and a score per token comes out.",
    ]
    praise = "Together 4,192. Nearly half of them are in the feed-forward network."
    return check_numbers(answer, parts_of_microgpt, otherwise=otherwise, praise=praise)
