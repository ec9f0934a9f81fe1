"""How many parameters a GPT has: part by part, and as a function of its sizes."""

from collections.abc import Callable
from typing import Any

import torch

from attncourse.checking import CheckResult, Numbers, exercise, read_mistakes
from attncourse.checking.functions import check_function, check_numbers

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
PART_MISTAKES = read_mistakes("parts_of_microgpt", globals())
PAGE = Numbers(right=RIGHT, labels={part: ["numbers"] for part in PARTS}, rows_apart=True)


@exercise(mistakes=PART_MISTAKES, page=PAGE)
def parts_of_microgpt(answer: Any) -> CheckResult:
    """Check the parameters of microgpt's five parts, in the order of the model: five numbers."""
    otherwise = [
        "The token table has a row per token, of 16 numbers.",
        "The position table has a row per place, of 16 numbers. How many places are there?",
        "Attention is four matrices. How many rows and columns has each?",
        "The feed-forward network is two matrices, from 16 to 64 numbers and back.",
        "The readout is one matrix: 16 numbers come in, and a score per token comes out.",
    ]
    praise = "Together 4,192. Nearly half of them stand in the feed-forward network."
    return check_numbers(answer, PAGE, PART_MISTAKES, otherwise=otherwise, praise=praise)


def parameters_of_gpt2(
    V: int,
    length: int,
    d: int,
    L: int,
    *,
    readouts: int = 0,
    squares: int = 12,
    rows: int = 13,
    final: int = 2,
    places: int = 1,
) -> int:
    """Return the parameters of a GPT with biases, LayerNorms and a tied readout.

    Mistakes have other tables, other blocks of squares d^2 + rows d numbers, or a final norm of
    another size.
    """
    tables = (V * (1 + readouts) + places * length) * d
    return tables + L * (squares * d**2 + rows * d) + final * d


COUNT_MISTAKES = read_mistakes("parameter_count", globals())


def _exact(answer: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose floats keep all digits: torch would round them to seven."""

    def count(*sizes: int) -> Any:
        found = answer(*sizes)
        return torch.tensor(found, dtype=torch.float64) if isinstance(found, float) else found

    return count


SIZES = ((7, 5, 6, 3), (27, 16, 16, 2), (50257, 1024, 768, 12), (50257, 1024, 1600, 48))


@exercise(mistakes=COUNT_MISTAKES)
def parameter_count(answer: Callable[[int, int, int, int], int]) -> CheckResult:
    """Check `count(V, length, d, L)`: the parameters of a GPT-2 of these sizes."""
    praise = "Right to the last one, for GPT-2 small and XL as well."
    return check_function(
        answer,
        parameters_of_gpt2,
        SIZES,
        COUNT_MISTAKES,
        output_names=["the count"],
        tolerance=0,
        as_function=_exact,
        praise=praise,
    )
