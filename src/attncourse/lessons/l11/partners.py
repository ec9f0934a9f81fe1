"""Which of a model's heads looks most from a token at its partner."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise

Place = tuple[int, ...]


def masses(weights: Tensor, partners: Tensor) -> Tensor:
    """Return the mean weight on the partners, [L, h], of weights [L, B, h, T, T]."""
    sample, row = (partners >= 0).nonzero(as_tuple=True)
    return weights[:, sample, :, row, partners[sample, row]].mean(0)  # [rows, L, h] -> [L, h]


def _place(found: Tensor) -> Place:
    """Return where the largest number of [L, h] stands."""
    layer, head = divmod(int(found.argmax()), found.shape[1])
    return layer, head


def most_on_partners(weights: Tensor, partners: Tensor) -> Place:
    """Return the layer and the head, from 0, with the largest mean weight on the partners."""
    return _place(masses(weights, partners))


def _case(
    texts: int, layers: int, heads: int, T: int, at: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Return random causal weights and partners, with a head `at` that looks at them more often.

    Beside it stand one that is sharp elsewhere, one with a single sharp look at a partner, two that
    do well on the first text or the last, one whose partners look back, two that rest on the last
    word or the first where there is no partner, and one that looks at all partners but the first
    word. None stands in the layer of `at`, or where all heads of a layer, or all of one number,
    prefer each partner a little. So each usual mistake finds another head than the right one.
    """
    even, number = (at[0] + 1) % layers, (at[1] + 1) % heads
    free = [layer for layer in range(layers) if layer not in (at[0], even)]
    others = [(layer, head) for layer in free for head in range(heads) if head != number]
    sharp, once, first, final, back, last, zero, late = (
        others[i] for i in torch.randperm(len(others))[:8].tolist()
    )
    scores = torch.randn(layers, texts, heads, T, T) / 4
    partners = torch.full((texts, T), -1)
    for text in range(texts):
        for row in range(2, T, 2):
            partners[text, row] = 0 if row == 2 else int(torch.randint(row, ()))
    scores[sharp[0], :, sharp[1], :, :] += 20 * torch.eye(T)
    for text, row in (partners >= 0).nonzero().tolist():
        column = partners[text, row]
        missed = text == 1 and row == 4  # the right head's largest weight isn't always there
        scores[at[0], text, at[1], row, row if missed else column] += 5.5
        scores[late[0], text, late[1], row, column if column else row] += 8
        scores[even, text, :, row, column] += torch.linspace(2.5, 3.2, heads)
        scores[[at[0], *free], text, number, row, column] += 3
        scores[back[0], text, back[1], column, row] += 6
        if text in (0, texts - 1):
            alone = first if text == 0 else final
            scores[alone[0], text, alone[1], row, column] += 8
    scores[once[0], 0, once[1], 2, partners[0, 2]] += 14
    for text, row in (partners < 0).nonzero().tolist():
        scores[last[0], text, last[1], row, T - 1] += 12
        scores[zero[0], text, zero[1], row, 0] += 12
    return scores.softmax(-1), partners


def _uneven() -> tuple[Tensor, Tensor]:
    """Return a case in which the mean of the texts' means is largest for another head."""
    partners = torch.tensor([[-1, 0, 0, 0, 0, 0], [-1, 0, *[-1] * 4], [-1, 0, *[-1] * 4]])
    scores = torch.zeros(3, 3, 4, 6, 6)
    scores[2, 0, 1, :, 0], scores[0, 1, 3, 1, 0], scores[1, 2, 0, 1, 0] = 2, 6, 3
    return scores.softmax(-1), partners


def _two(answer: Callable) -> Callable:
    """Take one tensor or array of two numbers for two: it unpacks as they do."""

    def place(weights: Tensor, partners: Tensor) -> Any:
        found = answer(weights, partners)
        return tuple(found) if getattr(found, "shape", None) == (2,) else found

    return place


@exercise()
def head_of_a_rule(answer: object) -> CheckResult:
    """Check `keeper(weights, partners)`: (layer, head), from 0, with most weight on the partners.

    weights are those of all layers, [L, B, h, T, T]; partners [B, T] hold the column of each word's
    partner, or -1 where it has none.
    """
    made = [_case(4, 3, 9, 8, (1, 4)), _case(5, 4, 5, 10, (0, 2)), _case(6, 5, 4, 9, (4, 1))]
    praise = "That is where to look first. Whether the model needs it, only muting shows."
    return check_function(
        answer,
        most_on_partners,
        [*made, _uneven()],
        head_of_a_rule.mistakes,
        output_names=["the layer", "the head"],
        as_function=_two,
        praise=praise,
    )
