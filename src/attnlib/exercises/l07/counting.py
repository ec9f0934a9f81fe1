"""How many parameters a GPT has: part by part, and as a function of its sizes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function, check_rows
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Numbers

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
LABELS = {
    "Token table": ["numbers"],
    "Position table": ["numbers"],
    "Attention": ["numbers"],
    "Feed-forward network": ["numbers"],
    "Readout": ["numbers"],
}
PART_MISTAKES = (
    Mistake(
        _counts(tokens=26 * WIDTH),
        "That is for 26 tokens. The boundary is one, too.",
    ),
    Mistake(
        _counts(attention=3 * WIDTH**2),
        "These are queries, keys and values. What the heads found goes through a fourth matrix.",
    ),
    Mistake(
        _counts(attention=16 * WIDTH**2),
        "You counted four whole matrices per head. A head has 4 of their 16 columns, so more heads "
        "don't make attention larger.",
    ),
    Mistake(
        _counts(attention=16 * WIDTH),
        "256 is one whole matrix, or one head's 4 columns of each of the four. There are four "
        "matrices, and four heads.",
    ),
    Mistake(
        _counts(attention=4 * WIDTH * (WIDTH + 1)),
        "You counted biases. This model has none.",
    ),
    Mistake(
        _counts(feed_forward=2 * WIDTH * HIDDEN + HIDDEN + WIDTH),
        "The two matrices are right, and 80 biases come on top. This model has none.",
    ),
    Mistake(
        _counts(feed_forward=WIDTH * HIDDEN),
        "This is one matrix, from 16 to 64 numbers. A second one leads back.",
    ),
    Mistake(
        _counts(feed_forward=2 * WIDTH**2),
        "Inside, the network is 64 wide and not 16: the first matrix is [16, 64].",
    ),
    Mistake(
        _counts(readout=0),
        "A readout has no numbers of its own where it uses the token table. Here it has.",
    ),
    Mistake(
        _counts(readout=TOKENS * WIDTH + TOKENS),
        "You counted a bias per token. This model's readout is a matrix alone.",
    ),
    Mistake(
        _counts(readout=26 * WIDTH),
        "Your readout scores 26 letters. The end of a name is a guess as well.",
    ),
)


@exercise(
    mistakes=PART_MISTAKES,
    page=Numbers(right=RIGHT, labels=LABELS, rows_apart=True),
)
def parts_of_microgpt(answer: Any) -> Verdict:
    """Check the parameters of microgpt's five parts, in the order of the model: five numbers."""
    return check_rows(
        answer,
        RIGHT,
        PART_MISTAKES,
        rows=[
            (1, "The token table has a row per token, of 16 numbers."),
            (
                1,
                "The position table has a row per place, of 16 numbers. How many places are there?",
            ),
            (1, "Attention is four matrices. How many rows and columns has each?"),
            (1, "The feed-forward network is two matrices, from 16 to 64 numbers and back."),
            (1, "The readout is one matrix: 16 numbers come in, and a score per token comes out."),
        ],
        praise="Together 4,192. Nearly half of them stand in the feed-forward network.",
    )


def parameters_of_gpt2(vocabulary_size: int, length: int, d: int, layers: int) -> int:
    """Return the parameters of a GPT with biases, LayerNorms and a tied readout."""
    return _parameters(vocabulary_size, length, d, layers)


def _parameters(
    vocabulary_size: int,
    length: int,
    d: int,
    layers: int,
    *,
    readouts: int = 0,
    squares: int = 12,
    rows: int = 13,
    final: int = 2,
    places: int = 1,
) -> int:
    """Count tables, `layers` blocks of squares d^2 + rows d numbers, and the final norm."""
    tables = (vocabulary_size * (1 + readouts) + places * length) * d
    return tables + layers * (squares * d**2 + rows * d) + final * d


COUNT_MISTAKES = (
    Mistake(
        partial(_parameters, readouts=1),
        "Too many by V times d: the readout is tied. It uses the token table, and has no numbers "
        "of its own.",
    ),
    Mistake(
        partial(_parameters, rows=0, final=0),
        "These are the tables and the matrices. Norms and biases are missing.",
    ),
    Mistake(
        partial(_parameters, rows=0),
        "Your blocks are matrices alone. Each has biases and two norms as well.",
    ),
    Mistake(
        lambda vocabulary_size, length, d, layers: layers * 12 * d**2,
        "12 d^2 per block is a good rule of thumb. Wanted is the exact number: with tables, biases "
        "and norms.",
    ),
    Mistake(
        lambda vocabulary_size, length, d, layers: _parameters(0, 0, d, layers),
        "The blocks and the final norm are right. The two tables before them are missing.",
    ),
    Mistake(
        lambda vocabulary_size, length, d, layers: (
            _parameters(vocabulary_size, length, d, layers) + vocabulary_size
        ),
        "Too many by V: a readout that uses the token table has no bias either.",
    ),
    Mistake(
        partial(_parameters, final=1),
        "Too few by d: the final norm is a LayerNorm as well, with a gain and a bias.",
    ),
    Mistake(
        partial(_parameters, rows=4),
        "The biases are missing: attention has four of d numbers, the feed-forward network one of "
        "4d and one of d.",
    ),
    Mistake(
        partial(_parameters, rows=9, final=0),
        "The norms are missing: two in each block and one at the end, each with a gain and a bias "
        "of d numbers.",
    ),
    Mistake(
        partial(_parameters, final=0),
        "Too few by 2d: behind the last block there is one more norm.",
    ),
    Mistake(
        partial(_parameters, rows=11),
        "A block's norms have 4d numbers, and you counted 2d. There are two of them, each with a "
        "gain and a bias.",
    ),
    Mistake(
        partial(_parameters, rows=15, final=0),
        "The final norm stands behind the last block, once. You counted it in every block.",
    ),
    Mistake(
        partial(_parameters, rows=11, final=1),
        "Your norms have a gain, d numbers. LayerNorm has a bias as well.",
    ),
    Mistake(
        partial(_parameters, rows=9),
        "4d numbers per block are missing. Attention's four matrices have a bias of d numbers "
        "each, the two norms have 4d numbers together, and so has the bias behind W_1: one of the "
        "three isn't there.",
    ),
    Mistake(
        partial(_parameters, rows=12),
        "d numbers per block are missing, as where one matrix has no bias: of attention's four the "
        "last one, W_o, has one too, and so has the feed-forward network's second.",
    ),
    Mistake(
        partial(_parameters, rows=8),
        "The feed-forward network's biases are missing: 4d behind W_1, and d behind W_2.",
    ),
    Mistake(
        partial(_parameters, rows=10),
        "3d numbers per block are missing. Either one bias is too short, for what comes out of W_1 "
        "has 4d numbers; or queries, keys and values lack theirs, of d numbers each.",
    ),
    Mistake(
        partial(_parameters, squares=11, rows=12),
        "Attention has four matrices: queries, keys, values, and W_o behind the heads.",
    ),
    Mistake(
        partial(_parameters, squares=8, rows=12),
        "The feed-forward network has a second matrix, with a bias: it leads back from 4d to d.",
    ),
    Mistake(
        partial(_parameters, squares=6, rows=10),
        "Inside, the feed-forward network is 4d wide: its matrices are [d, 4d] and [4d, d].",
    ),
    Mistake(
        lambda vocabulary_size, length, d, layers: _parameters(vocabulary_size, length, d, 1),
        "You counted one block. There are L of them.",
    ),
    Mistake(
        partial(_parameters, readouts=-1),
        "The token table is missing. A tied readout has no numbers of its own, but the table that "
        "it uses is there, once.",
    ),
    Mistake(
        partial(_parameters, places=0),
        "The table of positions is missing: `length` rows of d numbers.",
    ),
    Mistake(
        lambda vocabulary_size, length, d, layers: (
            layers * ((vocabulary_size + length) * d + 12 * d**2 + 13 * d) + 2 * d
        ),
        "You counted the tables once per block. They stand before the blocks, once.",
    ),
)


def _exact(answer: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose floats keep all digits: torch would round them to seven."""

    def count(*sizes: int) -> Any:
        found = answer(*sizes)
        return torch.tensor(found, dtype=torch.float64) if isinstance(found, float) else found

    return count


SIZES = ((7, 5, 6, 3), (27, 16, 16, 2), (50257, 1024, 768, 12), (50257, 1024, 1600, 48))


@exercise(mistakes=COUNT_MISTAKES)
def parameter_count(answer: Callable[[int, int, int, int], int]) -> Verdict:
    """Check `count(V, length, d, L)`: the parameters of a GPT-2 of these sizes."""
    return check_function(
        answer,
        parameters_of_gpt2,
        SIZES,
        COUNT_MISTAKES,
        output_names=["the count"],
        tolerance=0,
        as_function=_exact,
        praise="Right to the last one, for GPT-2 small and XL as well.",
    )
