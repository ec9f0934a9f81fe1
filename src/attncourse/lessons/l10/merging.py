"""One step of the online softmax, by hand."""

from typing import Any

import torch

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise, read_mistakes

# After the first block: largest score 0, sum 1.5, mix 6. The second block: scores ln 2 and 0.
SUM, MIX = 1.5, 6.0
EXPONENTIALS, VALUES = (1.0, 0.5), (9.0, 12.0)  # e to the power of score - ln 2
FIELDS = {
    "Exponentials": ["sum"],
    "Values times their exponentials": ["mix"],
    "One divided by the other": ["output"],
}


def _merged(of_sum: float = 0.5, of_mix: float = 0.5, scale: float = 1.0) -> torch.Tensor:
    """Return sum, mix and output, with these factors for the old ones and for the new block."""
    total = of_sum * SUM + scale * sum(EXPONENTIALS)
    new = sum(e * value for e, value in zip(EXPONENTIALS, VALUES, strict=True))
    mix = of_mix * MIX + scale * new
    return torch.tensor([total, mix, mix / total], dtype=torch.float64)


RIGHT = _merged()
MISTAKES = read_mistakes("merged_block", globals())
PAGE = Numbers(right=RIGHT, labels=FIELDS, rows_apart=True)


@exercise(mistakes=MISTAKES, page=PAGE)
def merged_block(answer: Any) -> CheckResult:
    """Check sum, mix and output after a second block: three numbers."""
    otherwise = [
        "The sum: the old one times e to the power of 0 - ln 2, and for each new score e to the "
        "power of score - ln 2.",
        "The mix: the old one times the same factor, and each new value times what its score gave "
        "to the sum.",
        "The output: the mix divided by the sum, once, at the end.",
    ]
    praise = "Two blocks, and nothing of the first one was looked at again."
    return check_numbers(answer, PAGE, MISTAKES, otherwise=otherwise, praise=praise)
