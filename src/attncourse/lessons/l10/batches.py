"""How many operations a fetched byte serves, in matrices and in the cache."""

import torch

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise

OF_MACHINE = 300  # operations in the time of one fetched byte
BYTES = 2  # per number
SHARE = 64 // 8  # query heads per KV head of Llama 2 70B
FIELDS = {
    "Matrices, one text": ["operations per byte"],
    "Matrices": ["number of texts"],
    "Cache, one text": ["operations per byte"],
    "Cache, 100 texts": ["operations per byte"],
}


def _intensities(
    share: float = SHARE, size: float = BYTES, operations: float = 2, reused: float = 1
) -> torch.Tensor:
    """Return operations per byte of matrices, texts, and operations per byte of the cache, twice.

    Args:
        share: query heads that meet each number of the cache.
        size: bytes per number.
        operations: per number and query or row.
        reused: how many texts meet a number of the cache when there are 100.
    """
    of_matrix, of_cache = operations / size, operations * share / size
    numbers = [of_matrix, OF_MACHINE / of_matrix, of_cache, reused * of_cache]
    return torch.tensor(numbers, dtype=torch.float64)


INTENSITIES = _intensities()


@exercise(page=Numbers(INTENSITIES, FIELDS, rows_apart=True))
def texts_at_once(answer: object) -> CheckResult:
    """Check operations per byte: of matrices, with how many texts they suffice, and of a cache."""
    otherwise = [
        "The matrices: one row uses each number, of two bytes, for a multiplication and an "
        "addition.",
        "The texts: each brings one more row, and with it as many operations per byte as the "
        "first. How many rows until it is 300?",
        "The cache: 64 query heads share 8 KV heads. How many queries meet a number once it is "
        "fetched?",
        "The cache with 100 texts: a key of one text meets only queries of that text.",
    ]
    praise = (
        "A batch raises the matrices' number, not the cache's; shared KV heads raise the cache's."
    )
    return check_numbers(answer, texts_at_once, otherwise=otherwise, praise=praise)
