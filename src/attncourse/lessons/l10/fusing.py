"""Three linear layers that read the same tokens, as one."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from attncourse.checking import CheckResult, check_function, exercise

Layers = Sequence[nn.Linear]
PRODUCTS = {getattr(torch.ops.aten, name) for name in ("mm", "addmm", "bmm", "baddbmm", "addbmm")}
JOINS = {torch.ops.aten.cat, torch.ops.aten.stack}


class Products(TorchDispatchMode):
    """Counts the matrix products that are computed while it is entered, and what is joined."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func.overloadpacket in PRODUCTS | JOINS
        return func(*args, **(kwargs or {}))


def _packed(weights: Sequence[Tensor], biases: Sequence[Tensor | None]) -> nn.Linear:
    """Return one layer with these rows of weights, and with the biases unless some is None."""
    rows = torch.cat(list(weights))
    layer = nn.Linear(rows.shape[1], len(rows), bias=biases[0] is not None)
    with torch.no_grad():
        layer.weight.copy_(rows)
        if layer.bias is not None:
            layer.bias.copy_(torch.cat([bias for bias in biases if bias is not None]))
    return layer


def fused_layer(*layers: Any) -> nn.Linear:
    """Return one layer that computes what these compute, side by side."""
    return _packed([layer.weight for layer in layers], [layer.bias for layer in layers])


class _OneAfterTheOther(nn.Module):
    def __init__(self, *layers: nn.Linear) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([layer(x) for layer in self.layers], dim=-1)


class _JoinedAtEachCall(_OneAfterTheOther):
    def forward(self, x: Tensor) -> Tensor:
        return fused_layer(*self.layers)(x)


def _in_order(order: Sequence[int]) -> Callable[..., nn.Linear]:
    return lambda *layers: fused_layer(*(layers[place] for place in order))


def _untrained(*layers: nn.Linear) -> nn.Linear:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Linear(layers[0].in_features, sum(layer.out_features for layer in layers))


def _with_random_biases(*layers: nn.Linear) -> nn.Linear:
    """Return the fused layer with the biases that nn.Linear starts with."""
    return _packed([layer.weight for layer in layers], [_untrained(*layers).bias])


def _outputs_of(fuse: Callable) -> Callable:
    """Turn a function that fuses layers into what its layer computes, and by how many products."""

    def outputs(W_q: nn.Linear, W_k: nn.Linear, W_v: nn.Linear, x: Tensor) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # whatever wasn't copied is then the same in every layer
            layer = fuse(W_q, W_k, W_v)
        if layer is None:
            return None
        if not callable(layer):
            raise TypeError(f"a layer was wanted, nn.Linear, but a {type(layer).__name__} came")
        with torch.no_grad(), Products() as products:
            result = layer(x)
        return result, products.count

    return outputs


def _cases() -> list[tuple]:
    """Return three layers and tokens: wide and narrow ones, with biases and without."""
    cases = []
    for widths, bias in (((6, 6, 6), True), ((8, 4, 4), True), ((6, 2, 3), False)):
        layers = [nn.Linear(5, width, bias=bias) for width in widths]
        cases.append((*layers, torch.randn(2, 7, 5)))
    return cases


@exercise()
def fuse(answer: object) -> CheckResult:
    """Check `fuse(W_q, W_k, W_v)`: one layer for three that read the same tokens.

    Its output is that of the three side by side, by a single matrix product.
    """
    praise = (
        "One product instead of three, with the same numbers. It works as well where keys and "
        "values are narrower than queries."
    )
    return check_function(
        answer,
        _outputs_of(fused_layer),
        _cases(),
        fuse.mistakes,
        output_names=["the output", "the number of products and joins"],
        praise=praise,
        as_function=_outputs_of,
    )
