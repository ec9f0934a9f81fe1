"""Models that are none of transformers': our own, and functions that hand out weights.

A reader has the model's name, how many tokens it reads (length) and how many ids it knows, None if
it doesn't say so, and the library that it is from.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from attncourse.atlas._layer_scores import TextView
from attnlib.attention import MultiHeadAttention
from attnlib.functional import split_heads
from attnlib.model import TransformerModel
from attnlib.model.generation import in_evaluation


class OwnReader:
    """A `TransformerModel`; one layer's weights are there at a time."""

    library = None

    def __init__(self, model: TransformerModel) -> None:
        self.model = model
        self.name = type(model).__name__
        self.length = model.length
        self.vocabulary_size = model.vocabulary_size

    def read(self, ids: Tensor, text: TextView) -> None:
        """Read ids, and catch each layer's weights where they come out."""
        values: dict[str, Tensor] = {}
        with ExitStack() as hooks:
            for name, part in self.model.named_modules():
                if isinstance(part, MultiHeadAttention):
                    _watch(part, name, text, values, hooks)
            with in_evaluation(self.model), torch.no_grad():
                self.model(ids.to(self.model.token_embedding.weight.device))


def _watch(
    attention: MultiHeadAttention, name: str, text: TextView, values: dict[str, Tensor],
    hooks: ExitStack,
) -> None:  # fmt: skip
    """Show an attention's weights to the text, and keep none."""

    def ask(module: nn.Module, inputs: Any, options: dict[str, Any]) -> Any:
        return inputs, options | {"need_weights": True}

    def keep(module: nn.Module, inputs: Any, output: Tensor) -> None:
        values[name] = split_heads(output, attention.num_kv_heads)[0]  # [B, T, d] -> [h, T, d_k]

    def show(module: nn.Module, inputs: Any, output: tuple[Tensor, Tensor]) -> Any:
        text.whole(name, output[1], values.pop(name, None))
        return output[0], None

    for handle in (
        attention.register_forward_pre_hook(ask, with_kwargs=True),
        attention.W_v.register_forward_hook(keep),
        attention.register_forward_hook(show),
    ):
        hooks.callback(handle.remove)


class FunctionReader:
    """A function from ids [1, T] to the weights of each layer, [1, h, T, T]."""

    length = vocabulary_size = library = None

    def __init__(self, function: Callable[[Tensor], Iterable[Tensor]]) -> None:
        self.function = function
        self._module = function if isinstance(function, nn.Module) else nn.Module()
        self.name: str = getattr(function, "__name__", type(function).__name__)

    def read(self, ids: Tensor, text: TextView) -> None:
        """Read ids, and take what comes back layer by layer."""
        with in_evaluation(self._module), torch.no_grad():
            layers = self.function(ids)
            if isinstance(layers, Tensor | Mapping) or not isinstance(layers, Iterable):
                found = type(layers).__name__
                shape = f" of shape {list(layers.shape)}" if isinstance(layers, Tensor) else ""
                raise TypeError(
                    f"model must return a list of weights [1, h, T, T], one per layer, got {found}"
                    f"{shape}: of a model that is wrapped (compiled, say), pass the one inside"
                )
            for i, weights in enumerate(layers):
                text.whole(f"layer {i}", weights)
