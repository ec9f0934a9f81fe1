"""Removing a head is zeroing its rows of W_o."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from attnlib._verdict import Verdict
from attnlib.attention import MultiHeadAttention
from attnlib.exercises._checking import check_function
from attnlib.exercises._exercise import Mistake, exercise


def _columns(module: MultiHeadAttention, head: int) -> slice:
    """Return where a head's d_k numbers stand among the d joined ones."""
    d_k = module.d_model // module.num_heads
    return slice(head * d_k, (head + 1) * d_k)


def _zero(*parameters: Tensor) -> None:
    with torch.no_grad():
        for parameter in parameters:
            parameter.zero_()


def mute(module: MultiHeadAttention, head: int) -> None:
    """Mute a head: torch keeps the rows of W_o, as x @ W_o has them, as columns."""
    _zero(module.W_o.weight[:, _columns(module, head)])


def _mute_rows(module: MultiHeadAttention, head: int) -> None:
    _zero(module.W_o.weight[_columns(module, head)])


def _mute_others(module: MultiHeadAttention, head: int) -> None:
    for other in range(module.num_heads):
        if other != head:
            mute(module, other)


def _mute_with_bias(module: MultiHeadAttention, head: int) -> None:
    mute(module, head)
    _zero(module.W_o.bias)


MUTE_MISTAKES = (
    Mistake(
        lambda module, head: None,
        "The module's output is what it was. Change module.W_o.weight in place, inside "
        "torch.no_grad().",
    ),
    Mistake(
        _mute_rows,
        "You zeroed rows of module.W_o.weight. torch's Linear keeps W_o transposed, [d out, d in]: "
        "the rows of W_o which a head meets are *columns* there.",
    ),
    Mistake(
        lambda module, head: mute(module, head - 1),
        "You muted the head before: `head` counts from 0.",
    ),
    Mistake(
        lambda module, head: _zero(module.W_o.weight),
        "You muted every head. Each has d_k columns of its own: which are they?",
    ),
    Mistake(
        lambda module, head: _zero(module.W_o.weight[:, head]),
        "You zeroed a single column. A head has d_k numbers, so d_k columns of the weight.",
    ),
    Mistake(
        lambda module, head: _zero(
            module.W_o.weight[:, head * module.num_heads : (head + 1) * module.num_heads]
        ),
        "You took num_heads columns per head. A head has d_k = d_model / num_heads of them.",
    ),
    Mistake(
        _mute_others,
        "You muted all heads but this one.",
    ),
    Mistake(
        lambda module, head: _zero(module.W_o.weight[:, head :: module.num_heads]),
        "You took every h-th column. Heads are joined one after the other, so a head's columns "
        "stand side by side.",
    ),
    Mistake(
        _mute_with_bias,
        "The head is muted, but the bias of W_o is gone as well. It belongs to no head.",
    ),
    Mistake(
        lambda module, head: _zero(module.W_v.weight[_columns(module, head)]),
        "You zeroed the head's part of W_v. The values still have their bias, so something comes "
        "out. Zero what comes last.",
    ),
    Mistake(
        lambda module, head: _zero(module.W_q.weight[_columns(module, head)]),
        "With W_q zeroed all queries are alike, but the head still looks, and adds what it sees. "
        "Stop what it adds.",
    ),
    Mistake(
        lambda module, head: _zero(
            module.W_q.weight[_columns(module, head)], module.W_q.bias[_columns(module, head)]
        ),
        "All scores of the head are alike now, whether it lacks queries or keys. So it looks at "
        "all tokens alike, and adds their mean. Stop what it adds, not where it looks.",
    ),
)


def _as_output(change: Callable) -> Callable:
    """Return a function of (module, head, x): the output of the module that was changed."""

    def output(module: MultiHeadAttention, head: int, x: Tensor) -> Tensor:
        changed = copy.deepcopy(module)
        returned = change(changed, head)
        changed = returned if isinstance(returned, MultiHeadAttention) else changed
        answer: Tensor = changed(x)[0]
        return answer.detach()

    return output


def _muted(module: MultiHeadAttention, head: int, x: Tensor) -> Tensor:
    others = (torch.arange(module.num_heads) != head).to(x)
    output: Tensor = module(x, head_mask=others)[0]
    return output.detach()


def _cases() -> list[tuple[MultiHeadAttention, int, Tensor]]:
    cases = []
    for h, d_k, head in ((3, 4, 1), (2, 5, 0), (4, 2, 3)):
        module = MultiHeadAttention(h * d_k, h)
        for parameter in module.parameters():  # also biases, which begin at 0
            nn.init.normal_(parameter, std=0.5)
        cases.append((module, head, torch.randn(2, 5, h * d_k)))
    return cases


@exercise(mistakes=MUTE_MISTAKES)
def mute_head(answer: Callable) -> Verdict:
    """Check `mute(module, head)`, which changes a MultiHeadAttention so that a head adds nothing.

    It may change the module in place, or return another.
    """
    return check_function(
        answer,
        _muted,
        _cases(),
        MUTE_MISTAKES,
        output_names=["the changed module's output"],
        as_function=lambda change: change if change is _muted else _as_output(change),
        praise="The output is that of a forward pass with this head left out of the sum: nothing "
        "had to be retrained.",
    )
