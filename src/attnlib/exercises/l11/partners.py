"""Which of a model's heads looks most from a token at its partner."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._checking import check_function
from attnlib.exercises._exercise import Mistake, exercise

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


def _as_columns(weights: Tensor, partners: Tensor) -> Place:
    return most_on_partners(weights.mT, partners)


def _with_missing(weights: Tensor, partners: Tensor) -> Place:
    """Take -1 for the last column."""
    T = weights.shape[-1]
    return most_on_partners(weights, partners % T)


def _largest(weights: Tensor, partners: Tensor) -> Place:
    """Take the largest single weight on a partner."""
    sample, row = (partners >= 0).nonzero(as_tuple=True)
    return _place(weights[:, sample, :, row, partners[sample, row]].amax(0))


def _first_text(weights: Tensor, partners: Tensor) -> Place:
    return most_on_partners(weights[:, :1], partners[:1])


def _last_text(weights: Tensor, partners: Tensor) -> Place:
    return most_on_partners(weights[:, -1:], partners[-1:])


def _layers_for_rows(weights: Tensor, partners: Tensor) -> Place:
    """Take the mean over the second axis of [rows, L, h]."""
    sample, row = (partners >= 0).nonzero(as_tuple=True)
    return _place(weights[:, sample, :, row, partners[sample, row]].mean(1))


def _without_column_0(weights: Tensor, partners: Tensor) -> Place:
    """Leave out the partners at column 0 along with the missing ones."""
    return most_on_partners(weights, partners.where(partners > 0, -1))


def _missing_at_0(weights: Tensor, partners: Tensor) -> Place:
    """Take column 0 for the missing partners."""
    return most_on_partners(weights, partners.clamp(min=0))


def _most_hits(weights: Tensor, partners: Tensor) -> Place:
    """Count how often the largest weight of a row lies on the partner."""
    hits = weights.argmax(-1) == partners[None, :, None]  # [L, B, h, T]
    return _place(hits.float().mean((1, 3)))


def _cut_by_layers(weights: Tensor, partners: Tensor) -> Place:
    """Divide the flat place by the number of layers."""
    layer, head = most_on_partners(weights, partners)
    first, second = divmod(layer * weights.shape[2] + head, len(weights))
    return first, second


def _sharpest(weights: Tensor, partners: Tensor) -> Place:
    """Take the head with the largest weights, wherever they lie."""
    return _place(weights.amax(-1).mean((1, 3)))


PARTNER_MISTAKES = (
    Mistake(
        lambda *given: tuple(number + 1 for number in most_on_partners(*given)),
        "It is the right head, but you count from 1. Code counts from 0.",
    ),
    Mistake(
        lambda *given: most_on_partners(*given)[::-1],
        "It is the right head, but the layer comes first: (layer, head).",
    ),
    Mistake(
        _as_columns,
        "You look at what the partner gives to the word. Rows are queries: a word's row, and the "
        "column of its partner.",
    ),
    Mistake(
        _with_missing,
        "-1 says that a word has no partner. As an index it is the last column: leave these rows "
        "out.",
    ),
    Mistake(
        _missing_at_0,
        "Rows with -1 count with what they give to column 0. They have no partner: leave them out.",
    ),
    Mistake(
        _without_column_0,
        "You left out the rows whose partner stands at column 0. That is a column like the others: "
        "only -1 says that there is none.",
    ),
    Mistake(
        _most_hits,
        "You counted how often the largest weight lies on the partner. Take the mean of the "
        "weights themselves.",
    ),
    Mistake(
        _cut_by_layers,
        "It is the right head, but its place is read wrongly: in [L, h] flattened, a layer is h "
        "numbers long. Divide by h, not by L.",
    ),
    Mistake(
        _largest,
        "You took the head with the largest single weight on a partner. One lucky row tells "
        "little: take the mean over all rows with a partner.",
    ),
    Mistake(
        _first_text,
        "You looked at the first text only. Take the mean over the rows of all texts.",
    ),
    Mistake(
        _last_text,
        "What you found is that of the last text. Does a loop over texts begin anew each time? "
        "Take the mean over the rows of all texts.",
    ),
    Mistake(
        _layers_for_rows,
        "You took the mean over the layers. Where a slice stands between indices, as in "
        "`weights[:, text, :, row, column]`, torch puts the axis of the indices in front: "
        "[rows, L, h]. Take the mean over axis 0.",
    ),
    Mistake(
        _sharpest,
        "This is the head with the largest weights. Ask what it gives to the *partners*.",
    ),
)


def _case(
    texts: int, layers: int, heads: int, T: int, at: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Return random causal weights and partners, with a head `at` that looks at them more often.

    Beside it stand one that is sharp elsewhere, one with a single sharp look at a partner, two that
    do well on the first text or the last, one whose partners look back, two that rest on the last
    word or the first where there is no partner, one that looks at all partners but the first word,
    and one that prefers each partner a little. So each usual mistake finds another head than the
    right one.
    """
    others = [(layer, head) for layer in range(layers) for head in range(heads)]
    others.remove(at)
    sharp, once, first, final, back, last, zero, late, faint = (
        others[i] for i in torch.randperm(len(others))[:9].tolist()
    )
    scores = torch.randn(layers, texts, heads, T, T) / 4
    partners = torch.full((texts, T), -1)
    for text in range(texts):
        for row in range(2, T, 2):
            partners[text, row] = 0 if row == 2 else int(torch.randint(row, ()))
    scores[sharp[0], :, sharp[1], :, :] += 12 * torch.eye(T)
    for text, row in (partners >= 0).nonzero().tolist():
        column = partners[text, row]
        missed = text == 1 and row == 4  # the right head's largest weight isn't always there
        scores[at[0], text, at[1], row, row if missed else column] += 4.5
        scores[late[0], text, late[1], row, column if column else row] += 8
        scores[faint[0], text, faint[1], row, column] += 2
        scores[back[0], text, back[1], column, row] += 6
        if text in (0, texts - 1):
            alone = first if text == 0 else final
            scores[alone[0], text, alone[1], row, column] += 8
    scores[once[0], 0, once[1], 2, partners[0, 2]] += 20
    for text, row in (partners < 0).nonzero().tolist():
        scores[last[0], text, last[1], row, T - 1] += 12
        scores[zero[0], text, zero[1], row, 0] += 12
    return scores.softmax(-1), partners


def _two(answer: Callable) -> Callable:
    """Take one tensor of two numbers for two: it unpacks as they do."""

    def place(weights: Tensor, partners: Tensor) -> Any:
        found = answer(weights, partners)
        return tuple(found) if isinstance(found, Tensor) and found.shape == (2,) else found

    return place


@exercise(mistakes=PARTNER_MISTAKES)
def head_of_a_rule(answer: Callable[[Tensor, Tensor], Place]) -> Verdict:
    """Check `keeper(weights, partners)`: (layer, head), from 0, with most weight on the partners.

    weights are those of all layers, [L, B, h, T, T]; partners [B, T] hold the column of each word's
    partner, or -1 where it has none.
    """
    cases = [_case(4, 3, 5, 8, (1, 4)), _case(5, 2, 6, 10, (0, 2)), _case(6, 4, 3, 9, (3, 1))]
    return check_function(
        answer,
        most_on_partners,
        cases,
        PARTNER_MISTAKES,
        output_names=["the layer", "the head"],
        as_function=_two,
        praise="That is where to look first. Whether the model needs this head, muting it tells.",
    )
