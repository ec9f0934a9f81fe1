"""Removing a head is zeroing its rows of W_o."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from attncourse.checking import CheckResult, check_function, exercise
from attncourse.checking.calling import call
from attncourse.checking.numbers import as_tensor
from attnlib.attention import MultiHeadAttention


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


def _changed(change: Callable, module: MultiHeadAttention, head: int) -> MultiHeadAttention:
    changed = copy.deepcopy(module)
    returned = change(changed, head)
    return returned if isinstance(returned, MultiHeadAttention) else changed


def _as_output(change: Callable) -> Callable:
    """Return a function of (module, head, x): the output of the module that was changed."""

    def output(module: MultiHeadAttention, head: int, x: Tensor) -> Tensor:
        answer: Tensor = _changed(change, module, head)(x)[0]
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


def _wrong_columns(change: Any) -> str:
    """Return a hint on the columns of W_o that became 0, if they are others than the head's."""
    for module, head, _ in _cases():
        changed = call(lambda *given: _changed(change, *given).W_o.weight, (module, head))
        weight = as_tensor(changed.outputs)
        zeroed = [] if weight is None else (~weight.any(0)).nonzero().flatten().tolist()
        if zeroed and zeroed != [*range(module.d_model)][_columns(module, head)]:
            return (
                f"For head {head} you zeroed these columns of module.W_o.weight: {zeroed}. A head "
                "has d_k = d_model / num_heads of them, side by side; those of head 0 come first."
            )
    return ""


@exercise()
def mute_head(answer: object) -> CheckResult:
    """Check `mute(module, head)`, which changes a MultiHeadAttention so that a head adds nothing.

    It may change the module in place, or return another.
    """
    praise = (
        "The output is that of a forward pass with this head left out of the sum: nothing had to "
        "be retrained."
    )
    return check_function(
        answer,
        _muted,
        _cases(),
        mute_head.mistakes,
        output_names=["the changed module's output"],
        as_function=lambda change: change if change is _muted else _as_output(change),
        otherwise=_wrong_columns,
        praise=praise,
    )
