"""On paper: how much memory maps take, and one step of the online softmax."""

import torch

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise

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


MEMORY = _memory()
MEMORY_FIELDS = {
    "One map": ["MiB"],
    "All maps of a text": ["GiB"],
    "All rows of one new query": ["MiB"],
}


@exercise(page=Numbers(right=MEMORY, labels=MEMORY_FIELDS, rows_apart=True))
def map_memory(answer: object) -> CheckResult:
    """Check the memory of one map (MiB), of all maps (GiB) and of one query's rows (MiB)."""
    otherwise = [
        "One map: 2,048 queries by 2,048 keys, two bytes each. Divide by 1024 twice.",
        "All maps: 96 layers with 96 heads each have 9,216 of them. 1,024 MiB are a GiB.",
        "One new query has a single row of 2,048 weights in each of the 9,216 maps.",
    ]
    praise = (
        "A single text's maps would fill a large GPU. A new query's rows are nothing beside them: "
        "a model that writes token by token is short of something else."
    )
    return check_numbers(answer, map_memory, otherwise=otherwise, praise=praise)


# After the first block: largest score 0, sum 1.5, mix 6. The second block: scores ln 2 and 0.
SUM, MIX = 1.5, 6.0
EXPONENTIALS, VALUES = (1.0, 0.5), (9.0, 12.0)  # e to the power of score - ln 2
MERGE_FIELDS = {
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


MERGED = _merged()


@exercise(page=Numbers(right=MERGED, labels=MERGE_FIELDS, rows_apart=True))
def merged_block(answer: object) -> CheckResult:
    """Check sum, mix and output after a second block: three numbers."""
    otherwise = [
        "The sum: the old one times e to the power of 0 - ln 2, and for each new score e to the "
        "power of score - ln 2.",
        "The mix: the old one times the same factor, and each new value times what its score gave "
        "to the sum.",
        "The output: the mix divided by the sum, once, at the end.",
    ]
    praise = "Two blocks, and the first was never looked at again."
    return check_numbers(answer, merged_block, otherwise=otherwise, praise=praise)
