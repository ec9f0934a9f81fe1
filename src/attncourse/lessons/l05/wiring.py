"""From post-norm to pre-norm: how norms, sub-layers and sums are wired."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise
from attncourse.checking.calling import call
from attncourse.checking.functions import not_a_function, not_yet

Part = Callable[[Tensor], Tensor]  # a norm, or a sub-layer
Half = Callable[[Tensor, Part, Part], Tensor]  # of x, a sub-layer and its norm
Layers = Sequence[tuple[Part, Part, Part, Part]]  # attention, norm_1, feed_forward, norm_2


class _Stack:
    """Two layers of random parts that write down in which order they run."""

    def __init__(self) -> None:
        self.order: list[str] = []
        generator = torch.Generator().manual_seed(0)

        def matrix() -> Tensor:
            return torch.randn(6, 6, generator=generator, dtype=torch.float64)

        def part(name: str, function: Part) -> Part:
            def run(x: Tensor) -> Tensor:
                self.order.append(name)
                return function(x)

            return run

        def norm(name: str) -> Part:
            gain = matrix()[0]  # its own, so that two norms can't stand in for each other
            return part(name, lambda x: F.layer_norm(x, (6,), gain))

        def mix(x: Tensor, weight: Tensor) -> Tensor:
            return x.flip(-2) @ weight  # tokens meet, as in attention

        def sublayer(name: str, function: Callable) -> Part:
            weight = matrix()
            return part(name, lambda x: function(x, weight))

        self.layers = [
            (
                sublayer("attention", mix),
                norm("norm_1"),
                sublayer("feed_forward", lambda x, weight: torch.tanh(x @ weight)),
                norm("norm_2"),
            )
            for _ in range(2)
        ]
        self.final_norm = norm("final_norm")

    def through(self, function: Callable) -> Part:
        """Return the reader's function with these parts filled in."""
        return lambda x: function(x, self.layers, self.final_norm)


def _pre(x: Tensor, part: Part, norm: Part) -> Tensor:
    return x + part(norm(x))


def _post(x: Tensor, part: Part, norm: Part) -> Tensor:
    return norm(x + part(x))


def _no_skip(x: Tensor, part: Part, norm: Part) -> Tensor:
    return part(norm(x))


def _wired(first: Half, second: Half) -> Callable[[Tensor, Layers, Part], Tensor]:
    """Return a stack whose layers wire a sub-layer and its norm as these halves do."""

    def stack(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
        for attention, norm_1, feed_forward, norm_2 in layers:
            x = second(first(x, attention, norm_1), feed_forward, norm_2)
        return final_norm(x)

    return stack


@exercise()
def pre_norm(answer: object) -> CheckResult:
    """Check a function stack(x, layers, final_norm) that runs pre-norm layers.

    layers: (attention, norm_1, feed_forward, norm_2), each a function [B, T, d] -> [B, T, d].
    """
    if not callable(answer):
        return not_a_function(answer)
    stack = _Stack()
    x = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    praise = "Norms at the sub-layers' inputs, sums left alone, one norm at the end."
    result = check_function(
        answer,
        stack.through(_wired(_pre, _pre)),
        [(x,), (10 * x[:1],)],
        pre_norm.mistakes,
        output_names=["the stack's output"],
        as_function=stack.through,
        praise=praise,
    )
    if result or any(result.message == m.hint for m in pre_norm.mistakes):
        return result
    stack.order.clear()
    call(stack.through(answer), (x,))
    order = ", ".join(stack.order) or "none of them ran"
    return not_yet(f"{result.message} The order in which your parts ran: {order}.")
