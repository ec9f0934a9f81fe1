"""How much memory the maps of a real model would take."""

from typing import Any

import torch

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise, read_mistakes

LAYERS, HEADS, WIDTH = 96, 96, 128  # of GPT-3 175B
TOKENS, BYTES = 2048, 2
MIB, GIB = 2**20, 2**30


def _memory(
    layers: int = LAYERS, heads: int = HEADS, entries: int = TOKENS**2, size: float = BYTES
) -> torch.Tensor:
    """Return one map in MiB, all in GiB, and all maps' row of one query in MiB."""
    row = entries / TOKENS
    maps = [entries / MIB, layers * heads * entries / GIB, layers * heads * row / MIB]
    return torch.tensor([size * numbers for numbers in maps], dtype=torch.float64)


RIGHT = _memory()
FIELDS = {"One map": ["MiB"], "All maps of a text": ["GiB"], "All rows of one new query": ["MiB"]}
MISTAKES = read_mistakes("map_memory", globals())
PAGE = Numbers(right=RIGHT, labels=FIELDS, rows_apart=True)


@exercise(mistakes=MISTAKES, page=PAGE)
def map_memory(answer: Any) -> CheckResult:
    """Check the memory of one map (MiB), of all maps (GiB) and of one query's rows (MiB)."""
    otherwise = [
        "One map: 2,048 queries by 2,048 keys, two bytes each. Divide by 1024 twice.",
        "All maps: 96 layers with 96 heads each have 9,216 of them. 1,024 MiB are a GiB.",
        "One new query has a single row of 2,048 weights in each of the 9,216 maps.",
    ]
    praise = (
        "A single text's maps would fill a large GPU. A new query's rows are nothing beside them: "
        "whoever writes token by token is short of something else."
    )
    return check_numbers(answer, PAGE, MISTAKES, otherwise=otherwise, praise=praise)
