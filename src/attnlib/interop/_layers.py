"""Finding the attention of one layer among a model's tensors, and reading it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from torch import Tensor

from attnlib.checks import require_count
from attnlib.interop._layouts import BERT, GPT2, Layout
from attnlib.interop._other_parts import require_no_other_parts
from attnlib.interop._sources import Source, Tensors, opened


class Layer(NamedTuple):
    """The tensors of one layer's attention."""

    tensors: Tensors
    prefix: str
    if_transposed: str

    def holds(self, name: str) -> bool:
        """Return whether there is a tensor of this name."""
        return self.prefix + name in self.tensors.names

    def read(self, name: str, *shape: int) -> Tensor:
        """Return the tensor of this name, or raise ValueError unless it has this shape."""
        return self.tensors.read(
            self.prefix + name, list(shape), self.if_transposed, within=self.prefix
        )

    def width(self, square: str) -> int:
        """Return d, the size of the square matrix of this name."""
        matrix = self.tensors.read(self.prefix + square, within=self.prefix)
        d = matrix.shape[0] if matrix.dim() else 1
        return len(self.read(square, d, d))


@contextmanager
def opened_layer(
    source: Source, layout: Layout, layer: int, family: str | None = None
) -> Iterator[Layer]:
    """Yield the attention of one layer; close a file afterwards."""
    require_count("layer", layer)
    with opened(source, family) as tensors:
        prefixes = find_prefixes(tensors, layout)
        if layer not in prefixes:
            raise ValueError(f"layer must be one of {sorted(prefixes)}, got {layer}")
        require_no_other_parts(tensors, prefixes[layer], layout, layer)
        yield Layer(tensors, prefixes[layer], layout.if_transposed)


def find_prefixes(tensors: Tensors, *layouts: Layout) -> dict[int, str]:
    """Return the prefix of each layer's names, such as {0: "transformer.h.0.attn."}.

    A prefix may begin with anything (`transformer.`, `bert.`, `_orig_mod.` of a compiled model,
    `module.` of a parallel one) that is the same for all layers.
    """
    prefixes, models = {}, set()
    for layout in layouts:
        for prefix, model, layer in _matches(tensors, layout):
            prefixes[layer] = prefix
            models.add(model + layout.prefix)
    if not prefixes:
        wanted = " or ".join(
            f"{layout.library}'s attention ({layout.prefix.format(0) + layout.first!r} or the "
            "like, whatever goes before it)"
            for layout in layouts
        )
        others = [other for other in (GPT2, BERT) if any(_matches(tensors, other))]
        hint = "".join(f": it looks like {other.library}'s" for other in others)
        raise ValueError(f"source must hold {wanted}, got {tensors}{hint}")
    if len(models) > 1:
        raise ValueError(
            f"source must hold the layers of one model, got those of {sorted(models)}: "
            "pass a state dict with the names of one of them"
        )
    return prefixes


def _matches(tensors: Tensors, layout: Layout) -> Iterator[tuple[str, str, int]]:
    """Yield (prefix of the layer, what precedes the layout's own names, number of the layer)."""
    before, after = map(re.escape, layout.prefix.split("{}"))
    pattern = re.compile(rf"(((?:.*\.)?){before}(\d+){after}){re.escape(layout.first)}")
    for name in tensors.names:
        if found := pattern.fullmatch(name):
            yield found[1], found[2], int(found[3])
