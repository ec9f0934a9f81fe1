"""Does a layer care about order? A test of it that a reader writes."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise, read_mistakes
from attncourse.checking.calling import call
from attncourse.checking.functions import not_yet
from attncourse.checking.numbers import as_tensor

Layer = Callable[[Tensor], Tensor]


def _shuffles(T: int, count: int = 8) -> list[Tensor]:
    return [torch.randperm(T) for _ in range(count)]


def _swap(T: int) -> list[int]:
    return [1, 0, *range(2, T)]


def _same(left: Tensor, right: Tensor) -> bool:
    return torch.allclose(left, right, atol=1e-4)


def _is_equivariant(layer: Layer, x: Tensor) -> bool:
    return all(_same(layer(x[p]), layer(x)[p]) for p in _shuffles(len(x)))


def _follows(layer: Layer, x: Tensor, shuffle: Tensor | list[int]) -> bool:
    return _same(layer(x[shuffle]), layer(x)[shuffle])


def _cycles(T: int) -> list[Tensor]:
    """Return shuffles; with more than two tokens none undoes itself."""
    return [torch.arange(T).roll(1), torch.arange(T).roll(1)[_swap(T)]]


MISTAKES = read_mistakes("is_equivariant", globals())
NOTICED = read_mistakes("noticed", globals())  # by more than their answers


def _attention_layer(d: int, *, causal: bool = False) -> Layer:
    W_q, W_k, W_v = (torch.randn(d, d) for _ in range(3))

    def layer(x: Tensor) -> Tensor:
        scores = (x @ W_q) @ (x @ W_k).T / math.sqrt(d)
        if causal:
            scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf)
        return scores.softmax(-1) @ (x @ W_v)

    return layer


def _layers(T: int, d: int, *, both_sides: bool) -> dict[str, Layer]:
    """Layers that follow a shuffle and layers that don't, in no telling order.

    Tokens are averaged with both neighbors, so that turning the sequence around changes nothing; or
    with the one before alone. Places are so small that a comparison must be a close one.
    """
    W, places, attend = torch.randn(d, d), torch.randn(T, d) / 200, _attention_layer(d)
    alike = torch.cat([places[:1], places[:-1]])  # the first two tokens have one place
    return {
        "plain attention": attend,
        "attention that adds a place to each token": lambda x: attend(x + places),
        "a matrix and a ReLU for each token alone": lambda x: (x @ W).relu(),
        "causal attention": _attention_layer(d, causal=True),
        "the mean of all tokens, for each": lambda x: x.mean(0, keepdim=True).expand_as(x),
        "the mean of each token and its neighbors": lambda x: (
            x + x.roll(1, 0) + both_sides * x.roll(-1, 0)
        ),
        "attention in which the first two tokens have one place": lambda x: attend(x + alike),
    }


class _Watched:
    """A layer that notes whether it was called with the tokens in several new orders."""

    def __init__(self, layer: Layer, x: Tensor) -> None:
        self.layer, self.seen, self.several = layer, [x], False

    def __call__(self, x: Tensor) -> Tensor:
        try:
            if not any(torch.equal(x, other) for other in self.seen):
                self.several = len(self.seen) > 1
                self.seen.append(x)
        except RuntimeError:  # under torch.vmap, where one call stands for many
            self.several = True
        return self.layer(x)


def _says_yes_too_soon(answer: Callable, layer: Layer, x: Tensor) -> bool:
    """Return whether one shuffle is enough for a yes, about a layer that deserves it."""
    watched = _Watched(layer, x)
    answer(watched, x)
    return not watched.several


@exercise(mistakes=(*MISTAKES, *NOTICED))
def is_equivariant(answer: Any) -> CheckResult:
    """Check `is_equivariant(layer, x)`: does a layer [T, d] -> [T, d] follow every shuffle?"""
    layers = [
        (name, layer, torch.randn(T, d))
        for T, d, both_sides in ((7, 4, True), (12, 9, False))
        for name, layer in _layers(T, d, both_sides=both_sides).items()
    ]
    # With two tokens a shuffle undoes itself, which tells two of the mistakes apart.
    layers.append(("attention to two tokens", _attention_layer(5), torch.randn(2, 5)))
    cases = [(layer, x) for _, layer, x in layers]
    praise = (
        "Right about attention with and without positions, with a causal mask, and about three "
        "layers that aren't attention."
    )
    result = check_function(
        answer, _is_equivariant, cases, MISTAKES, output_names=["your verdict"], praise=praise
    )
    if result:
        too_soon = _says_yes_too_soon(answer, *cases[0])
        return not_yet(is_equivariant.hints["one_shuffle"]) if too_soon else result
    if result.message == is_equivariant.hints["again"] and not _allows_swaps(answer, *cases[0]):
        return not_yet(is_equivariant.hints["unchanged"])
    known = any(result.message == mistake.hint for mistake in MISTAKES)
    outcomes = [call(answer, case) for case in cases]
    if not known and (complaint := next((o.complaint for o in outcomes if o.complaint), "")):
        return not_yet(complaint)
    given = [as_tensor(outcome.outputs) for outcome in outcomes]
    if any(said is not None and said.dim() > 0 for said in given):
        return not_yet(is_equivariant.hints["table"])
    if known or any(said is None or said.ne(said.bool()).any() for said in given):
        return result  # no verdicts
    rights = [_is_equivariant(*case) for case in cases]
    return not_yet(_hint_on([name for name, *_ in layers], [bool(said) for said in given], rights))


def _allows_swaps(answer: Callable, layer: Layer, x: Tensor) -> bool:
    """Return whether an answer always says yes about two tokens.

    One answer may be luck: half of the shuffles of two tokens leave them where they are.
    """
    return all(call(answer, (layer, x[:2])).outputs for _ in range(16))


def _hint_on(layers: list[str], given: list[bool], rights: list[bool]) -> str:
    """Return about which layer an answer is wrong, or that it wants too much of rounded numbers."""
    wrong = [at for at, right in enumerate(rights) if given[at] != right]
    if not any(given[at] for at in wrong):
        return is_equivariant.hints["exact"]
    layer = layers[next(at for at in wrong if given[at])]
    return f"You say yes to {layer}: it doesn't follow every shuffle of its tokens."
