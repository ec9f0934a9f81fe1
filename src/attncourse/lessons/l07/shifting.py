"""The loss of a model that tells the next token: targets one step ahead, padding left out."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise
from attnlib.model import GPT

PADDING = -1
Model = Callable[[Tensor], Tensor]


def _logits(model: Model, ids: Tensor) -> Tensor:
    """Return logits [B, T, V]; where padding stands, the model gets token 0."""
    return model(ids.clamp(min=0))


def _costs(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the cost of each target, [B, T]; padding costs 0."""
    return F.cross_entropy(
        logits.transpose(1, 2), targets, ignore_index=PADDING, reduction="none"
    )  # [B, V, T], [B, T] -> [B, T]


def _mean(logits: Tensor, targets: Tensor) -> Tensor:
    return _costs(logits, targets).sum() / (targets != PADDING).sum()


def next_token_loss(model: Model, ids: Tensor) -> Tensor:
    """Return the mean cost, in nats, of guessing each next token of ids [B, T]."""
    return _mean(_logits(model, ids[:, :-1]), ids[:, 1:])


def _model(V: int, length: int) -> Model:
    """Return a random causal model that refuses padding, and says so."""
    gpt = GPT(V, length, 8, 2, std=1.0, dtype=torch.float64)

    def model(ids: Tensor) -> Tensor:
        if (ids < 0).any():
            raise ValueError(
                f"ids must be tokens, from 0 to {V - 1}, got {int(ids.min())}. Put any token where "
                "padding stands, as `ids.clamp(min=0)` does"
            )
        return gpt(ids).logits["next"]

    return model


def _cases() -> list[tuple[Model, Tensor]]:
    """Return models, and names of different lengths with the boundary before and after each."""
    cases = []
    for V, lengths in ((7, (4, 2, 1)), (11, (3, 6, 6, 2))):
        ids = torch.full((len(lengths), max(lengths) + 2), PADDING)
        for row, letters in zip(ids, lengths, strict=True):
            row[: letters + 2] = V - 1
            row[1 : letters + 1] = torch.randint(V - 1, (letters,))
        ids[0, 1] = 0  # a token that is taken for padding costs something when left out
        cases.append((_model(V, ids.shape[1]), ids))
    return cases


@exercise()
def shifted_loss(answer: object) -> CheckResult:
    """Check `my_loss(model, ids)`: the mean cost of each next token of ids [B, T], a number.

    model takes tokens and returns logits [B, T, V]; -1 in ids is padding.
    """
    praise = "The same names twice, one step apart: so one pass asks about every letter at once."
    return check_function(
        answer,
        next_token_loss,
        _cases(),
        shifted_loss.mistakes,
        output_names=["the loss"],
        praise=praise,
    )
