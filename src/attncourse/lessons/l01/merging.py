"""Merging a pair of tokens: by hand, and as a function."""

from collections.abc import Sequence
from typing import Any

import torch

from attncourse.checking import CheckResult, Choices, Mistake, exercise
from attncourse.checking.functions import check_choices, check_function
from attncourse.tokens import merge

Pair = tuple[int, int]

CASES = [
    ([1, 2, 3, 1, 2], (1, 2), 9),
    ([7, 7, 7, 8, 7, 7], (7, 7), 10),
    ([2, 1, 2, 1, 3, 1], (1, 2), 9),
    ([4, 5, 6], (5, 4), 9),
    ([5, 3], (5, 3), 11),
    ([3], (3, 3), 9),
    ([17, 8, 1], (7, 8), 9),
]


def _as_ids(function: Any) -> Any:
    """Make a function return its list of ids as one tensor."""

    def run(ids: Sequence[int], pair: Pair, new: int) -> Any:
        found = function(ids, pair, new)
        if not isinstance(found, list | tuple):
            return found
        are_numbers = all(isinstance(each, int) for each in found)
        return torch.tensor(found) if are_numbers else (list(found),)

    return run


@exercise()
def merge_pair(answer: object) -> CheckResult:
    """Check `merge(ids, pair, new)`: ids with a new one for each occurrence of the pair."""
    praise = "Each occurrence of the pair is one token now, and nothing else has changed."
    return check_function(
        answer,
        _as_ids(merge),
        CASES,
        merge_pair.mistakes,
        output_names=["the ids"],
        as_function=_as_ids,
        praise=praise,
    )


WORDS = "hot hotel motel"
RIGHT: dict[str, Any] = {"first": "ot", "second": "h+ot", "tokens": 8}
WRONG: dict[str, dict[Any, str]] = {
    "first": {
        "ho": "ho comes twice, in hot and hotel. One pair comes more often: count in *all* words, "
        "also at their ends.",
        "te": "te comes twice, in hotel and motel. One pair comes more often.",
        "el": "el comes twice, in hotel and motel. One pair comes more often.",
    },
    "second": {
        "t+e": "No separate t is left: each was merged into ot. Count the pairs again.",
        "ot+e": "ot and e stand together twice, but so do h and ot, and they come first in the "
        "text.",
        "e+l": "e and l stand together twice, but other pairs do, too. Which of them comes first?",
    },
    "tokens": {
        10: "10 tokens are left after the first merge: three of 13 are gone. The second takes "
        "more.",
        13: "13 is the number of letters. Each merge saves one token per occurrence.",
        3: "That would be one token per word. Two merges don't get that far.",
    },
}


@exercise(
    mistakes=[
        Mistake(RIGHT | {part: said}, hint)
        for part, hints in WRONG.items()
        for said, hint in hints.items()
    ],
    page=Choices(
        {
            "First merge": {"ho": "h and o", "ot": "o and t", "te": "t and e", "el": "e and l"},
            "Second merge": {
                "h+ot": "h and ot",
                "t+e": "t and e",
                "ot+e": "ot and e",
                "e+l": "e and l",
            },
            "Tokens after both": [3, 8, 10, 13],
        },
        answer=lambda *said: dict(zip(RIGHT, said, strict=True)),
    ),
)
def two_merges(answer: object) -> CheckResult:
    """Check the first two merges of `WORDS`, and how many tokens the three words then have."""
    praise = "hot is one token now, hotel has three and motel four: 1 + 3 + 4."
    return check_choices(answer, RIGHT, two_merges, praise=praise)
