"""The loss of a bigram model, from its counts."""

from typing import Any

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.training import bigram_loss as loss_of

CASES = [
    (torch.tensor([[1, 1, 2], [0, 0, 5], [3, 0, 3]]),),
    (torch.tensor([[0, 8], [2, 6]]),),
    (torch.tensor([[4, 1, 0, 1], [0, 0, 0, 0], [2, 0, 7, 1], [1, 3, 0, 2]]),),
]


def _shares(counts: Tensor, dim: int) -> Tensor:
    return counts.double() / counts.double().sum(dim, keepdim=True).clamp(min=1)


def _mean_cost(counts: Tensor, shares: Tensor) -> Tensor:
    return -torch.special.xlogy(counts.double(), shares).sum() / counts.sum()


def _of_cells(counts: Tensor) -> Tensor:
    shares = _shares(counts, -1)
    return -shares[shares > 0].log().mean()


def _of_rows(counts: Tensor) -> Tensor:
    shares = _shares(counts, -1)
    rows = -torch.special.xlogy(shares, shares).sum(-1)
    return rows[counts.sum(-1) > 0].mean()


def _zero_times_infinity(counts: Tensor) -> Tensor:
    shares = _shares(counts, -1)
    return -(counts * shares.log()).sum() / counts.sum()


def _without_keepdim(counts: Tensor) -> Tensor:
    return _mean_cost(counts, counts.double() / counts.double().sum(1))


LOSS_MISTAKES = (
    Mistake(
        _zero_times_infinity,
        "0 times the logarithm of 0 is nan. A pair that never came costs nothing, for nobody ever "
        "has to pay: leave such cells out, or use torch.special.xlogy.",
    ),
    Mistake(
        lambda counts: _mean_cost(counts, _shares(counts, 0)),
        "You divided by the sums of columns. What came before is the *row*, and its shares must "
        "sum to 1.",
    ),
    Mistake(
        _without_keepdim,
        "`counts.sum(1)` has shape [V]. Dividing by it lays it over each row, so column j is "
        "divided by the sum of row j. With keepdim=True it stays a column.",
    ),
    Mistake(
        lambda counts: _mean_cost(counts, _shares(counts + 1, -1)),
        "You added 1 to every count. That is often done, so that nothing is impossible. Here the "
        "shares are taken as they were counted.",
    ),
    Mistake(
        lambda counts: _mean_cost(counts, _shares(counts, -1)).exp(),
        "That is the perplexity, e to the power of the loss.",
    ),
    Mistake(
        lambda counts: _mean_cost(counts, counts.double() / counts.sum()),
        "You divided by all pairs. That is the chance of the whole pair; here the letter before is "
        "known, so divide by its row's sum.",
    ),
    Mistake(
        lambda counts: _mean_cost(counts, _shares(counts.sum(0, keepdim=True), -1)),
        "That is the unigram's loss: it guesses the same in every row.",
    ),
    Mistake(
        _of_cells,
        "You took the mean over the cells of the table. A pair that came a hundred times is paid a "
        "hundred times: weigh each cell by its count.",
    ),
    Mistake(
        _of_rows,
        "You took the mean over rows. A letter that comes often is asked often: weigh by counts.",
    ),
    Mistake(
        lambda counts: _mean_cost(counts, _shares(counts, -1)) * counts.sum(),
        "That is what all guesses cost together. Divide by how many there are.",
    ),
    Mistake(
        lambda counts: _mean_cost(counts, _shares(counts, -1)) / torch.tensor(2.0).log(),
        "Your logarithm has base 2, so this is in bits. Nats take the natural one.",
    ),
    Mistake(
        lambda counts: -_mean_cost(counts, _shares(counts, -1)),
        "A loss is a cost, and above 0: take *minus* the logarithm.",
    ),
)


@exercise(mistakes=LOSS_MISTAKES)
def bigram_loss(answer: Any) -> Verdict:
    """Check `bigram_loss(counts)`: mean -ln share of the pairs counted, [V, V] -> nats."""
    return check_function(
        answer,
        loss_of,
        CASES,
        LOSS_MISTAKES,
        output_names=["the loss"],
        praise="Shares within each row, and every pair paid as often as it came.",
    )
