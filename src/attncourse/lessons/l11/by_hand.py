"""Where a named head stands in GPT-2 small's file, and the parameters of LLaMA 7B."""

import torch

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise

GPT2_WIDTH, HEADS = 768, 12  # GPT-2 small's
D_K = GPT2_WIDTH // HEADS
LAYER, HEAD = 10, 7  # as a paper that counts from 1 names it

ADDRESS_LABELS = {
    "The layer's number in the names h.0, h.1, ...": ["h."],
    "The head's first column in c_attn.weight": ["queries", "keys", "values"],
    "The head's first row in c_proj.weight": ["row"],
}


def _place(layer: int = LAYER - 1, head: int = HEAD - 1, width: int = D_K) -> torch.Tensor:
    """Return the five numbers, for a layer and a head counted from 0."""
    return _numbers(layer, [part * GPT2_WIDTH + head * width for part in range(3)], head * width)


def _numbers(layer: int, columns: list[int], row: int) -> torch.Tensor:
    return torch.tensor([layer, *columns, row], dtype=torch.float64)


ADDRESS = _place()


@exercise(page=Numbers(right=ADDRESS, labels=ADDRESS_LABELS, rows_apart=True))
def head_in_the_file(answer: object) -> CheckResult:
    """Check where head 10-7 stands in GPT-2 small's file: five numbers.

    They are the layer's number in the names, the head's first column among queries, keys and values
    of `c_attn.weight`, and its first row in `c_proj.weight`.
    """
    otherwise = [
        "The layer: the paper's first one is the file's h.0.",
        "The columns of c_attn: 768 of queries, 768 of keys, 768 of values, and in each of these "
        "parts 64 per head. Which head is it, counted from 0?",
        "The row of c_proj: the heads' findings lie side by side, 64 numbers per head.",
    ]
    praise = (
        "So the head is four slices of two matrices, and the biases of its columns. Nothing else "
        "in the file is its own."
    )
    return check_numbers(answer, head_in_the_file, otherwise=otherwise, praise=praise)


WIDTH, INSIDE, LAYERS, TOKENS = 4096, 11008, 32, 32_000  # Touvron et al. 2023 and its code
MILLION = 1e6
TOLERANCE = 0.5  # whole millions

PART_LABELS = {
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


MILLIONS = _counts()


@exercise(page=Numbers(right=MILLIONS, labels=PART_LABELS, tolerance=TOLERANCE, rows_apart=True))
def parts_of_llama(answer: object) -> CheckResult:
    """Check the parameters of LLaMA 7B in millions: attention, feed-forward, tables, all."""
    otherwise = [
        "Attention: four matrices of 4,096 by 4,096, without biases. In millions.",
        "The feed-forward network: three matrices between 4,096 and 11,008 numbers. In millions.",
        "The tables: 32,000 tokens of 4,096 numbers, once for reading and once for the readout. "
        "In millions.",
        "The whole, in millions: 32 blocks and both tables. (Norms have few numbers.)",
    ]
    praise = (
        "6.7 billion, as the paper's table says. Two thirds of a block are its feed-forward "
        "network, as in GPT-2: the third matrix is paid for by the smaller width."
    )
    return check_numbers(answer, parts_of_llama, otherwise=otherwise, praise=praise)
