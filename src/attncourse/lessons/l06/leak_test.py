"""Does a layer let a token know what comes later? A test of it that a reader writes."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise, not_yet, read_mistakes
from attncourse.checking.calling import call
from attncourse.checking.numbers import as_tensor

Layer = Callable[[Tensor], Tensor]

SIZES = ((5, 11), (8, 12))  # [T, d], wide: else two random tokens may be alike when rounded


def _same(left: Tensor, right: Tensor) -> bool:
    return torch.allclose(left, right, atol=1e-5)


def _with_another(x: Tensor, j: int) -> Tensor:
    """Return the tokens with token j replaced by a random one."""
    changed = x.clone()
    changed[j] = torch.randn(x.shape[1])
    return changed


def leaks_ahead(layer: Layer, x: Tensor) -> bool:
    """Return whether replacing a token moves an output before it."""
    y = layer(x)
    return any(
        not _same(layer(_with_another(x, j))[:j], y[:j]) for _ in range(3) for j in range(1, len(x))
    )


def _replaced_at(layer: Layer, x: Tensor, j: int, outputs: slice) -> bool:
    return not _same(layer(_with_another(x, j))[outputs], layer(x)[outputs])


def _by_change(change: Callable[[Tensor], Tensor]) -> Callable[[Layer, Tensor], bool]:
    """Return a test that changes each token in a way of its own."""

    def leaks(layer: Layer, x: Tensor) -> bool:
        found = False
        for j in range(1, len(x)):
            changed = x.clone()
            changed[j] = change(x[j])
            found |= not _same(layer(changed)[:j], layer(x)[:j])
        return found

    return leaks


def _are_equal(left: Tensor, right: Tensor) -> bool:
    return left.shape == right.shape and bool((left == right).all())


def _inputs(answer: Callable[..., Any], x: Tensor) -> list[Tensor]:
    """Return what a reader's test calls its layer with."""
    seen = []

    def layer(tokens: Tensor) -> Tensor:
        seen.append(torch.as_tensor(tokens).detach().clone())
        return tokens

    call(answer, (layer, x))
    return seen


MISTAKES = read_mistakes("leaks", globals())
NOTICED = read_mistakes("noticed", globals())  # by what the layer is called with


def _attention(d: int, allowed: Callable[[int], Tensor], *, masked_late: bool = False) -> Layer:
    """Return a random head [T, d] -> [T, d] that may look where `allowed(T)` says."""
    W_q, W_k, W_v = (torch.randn(d, d) / math.sqrt(d) for _ in range(3))

    def layer(x: Tensor) -> Tensor:
        mask = allowed(len(x))
        scores = (x @ W_q) @ (x @ W_k).T / math.sqrt(d)
        if masked_late:
            return (scores.softmax(-1) * mask) @ (x @ W_v)
        return scores.masked_fill(~mask, -math.inf).softmax(-1) @ (x @ W_v)

    return layer


def _past(T: int, ahead: int = 0) -> Tensor:
    return torch.ones(T, T, dtype=torch.bool).tril(ahead)


def _past_and(row: int, column: int) -> Callable[[int], Tensor]:
    """Return causal masks with one look ahead, counted from the end where it is negative."""

    def allowed(T: int) -> Tensor:
        mask = _past(T)
        if T > 1:
            mask[row, column] = True
        return mask

    return allowed


def _layers(d: int) -> dict[str, Layer]:
    """Layers that leak and layers that don't, in mixed order."""
    W, first, second = torch.randn(d, d), _attention(d, _past), _attention(d, _past)
    everywhere = _attention(d, lambda T: torch.ones(T, T, dtype=torch.bool))
    return {
        "attention without a mask, before a LayerNorm": lambda x: F.layer_norm(everywhere(x), (d,)),
        "causal attention": first,
        "attention masked after the softmax": _attention(d, _past, masked_late=True),
        "causal attention in which token 0 also sees token 1": _attention(d, _past_and(0, 1)),
        "the mean of all tokens so far": lambda x: (
            x.cumsum(0) / torch.arange(1, len(x) + 1)[:, None]
        ),
        "causal attention in which the last token but one also sees the last": _attention(
            d, _past_and(-2, -1)
        ),
        "a matrix and a ReLU for each token alone": lambda x: (x @ W).relu(),
        "attention without a mask, after a LayerNorm": lambda x: everywhere(
            F.layer_norm(x, (d,), eps=1e-9)
        ),
        "two causal layers, with a skip": lambda x: second(x + first(x)),
        "attention without a mask, after an RMSNorm": lambda x: everywhere(
            F.rms_norm(x, (d,), eps=1e-9)
        ),
        "a layer that adds the rounded last token to each token": lambda x: x + x[-1:].round(),
        "causal attention in which token 0 also sees the last": _attention(d, _past_and(0, -1)),
        "causal attention over tokens less a two-hundredth of their mean": lambda x: first(
            x - x.mean(0) / 200
        ),  # a leak of thousandths
    }


@exercise(mistakes=(*MISTAKES, *NOTICED))
def leaks(answer: Any) -> CheckResult:
    """Check `leaks(layer, x)`: does an output of a layer [T, d] -> [T, d] know a later token?"""
    named = [
        (name, layer, torch.randn(T, d)) for T, d in SIZES for name, layer in _layers(d).items()
    ]
    cases = [(layer, x) for _, layer, x in named]
    praise = "You cleared four layers and found nine leaks. No map of weights shows all of them."
    result = check_function(
        answer, leaks_ahead, cases, MISTAKES, output_names=["your verdict"], praise=praise
    )
    if result:
        return result
    x = named[0][2]
    inputs = _inputs(answer, x)
    if any(tokens.dim() == 2 and len(tokens) > len(x) for tokens in inputs):
        return not_yet(leaks.hints["appended"])
    is_constant = result.message in (leaks.hints["never_yes"], leaks.hints["never_no"])
    if is_constant and inputs and all(_are_equal(tokens, x) for tokens in inputs):
        return not_yet(leaks.hints["unchanged"])
    if any(result.message == mistake.hint for mistake in MISTAKES):
        return result
    for name, layer, x in named:
        outcome = call(answer, (layer, x))
        said = as_tensor(outcome.outputs)
        if outcome.complaint or said is None:
            return result
        if said.dim() or said not in (0, 1):
            return not_yet(
                "You return how much moved, or where. One verdict was wanted, True or False: "
                "torch.allclose gives it, and any() joins several."
            )
        if bool(said) != leaks_ahead(layer, x):
            return not_yet(
                f"You say {'yes' if said else 'no'} to {name}. "
                + ("It doesn't leak." if said else "It leaks.")
            )
    return result
