"""Finding one layer's attention among a model's tensors, and reading it checked."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from torch import Tensor

from attnlib._checks import require_count, shape_of
from attnlib.interop._sources import Source, Tensors, opened


class Layout(NamedTuple):
    """How a library names and keeps the attention of its layers."""

    library: str
    prefix: str  # of a layer's tensors; {} stands for the layer's number
    first: str  # the name there by which a layer is known
    known: str  # pattern of all names there that are read, or needn't be
    if_transposed: str = ""  # what is likely where rows and columns are exchanged


_GPT2_NAMES = r"(c_attn|c_proj)\.(weight|bias)|bias|masked_bias"  # the last two are mask buffers

GPT2 = Layout(
    "GPT-2", "h.{}.attn.", "c_attn.weight", _GPT2_NAMES,
    "nanoGPT keeps it so: use from_nanogpt; but so does GPTBigCode, whose columns lie head by head, "
    "which no loader here reads",
)  # fmt: skip
NANOGPT = Layout(
    "nanoGPT", "h.{}.attn.", "c_attn.weight", _GPT2_NAMES, "GPT-2 keeps it so: use from_gpt2"
)
BERT = Layout(
    "BERT", "encoder.layer.{}.attention.", "self.query.weight",
    r"(self\.(query|key|value)|output\.dense)\.(weight|bias)"
    # The norm before or after, in the words of BERT, MegatronBERT and XLM-RoBERTa-XL.
    r"|((output\.)?LayerNorm|ln|self_attn_layer_norm)\.(weight|bias|gamma|beta)"
    # With these LUKE's entities look and are looked at; its words look at words as BERT's do.
    r"|self\.(w2e|e2w|e2e)_query\.(weight|bias)",
)  # fmt: skip

# Names around the attention that tell of positions inside it, or of layers that come before.
_SIGNS = re.compile(
    r"rotary|inv_freq|\brope\b|alibi|rel_pos|relative|rel_embeddings|distance_embedding"
    r"|embed_positions|char_encoder"
)
# Models whose names are the layout's own, letter by letter, and whose attention is another.
_LOOKALIKES = {
    "yoso": "weighs by hashing instead of softmax",
    "mra": "looks at blocks of several sizes instead of at all tokens",
    "gpt_bigcode": "keeps queries, keys and values head by head",
}


class Layer(NamedTuple):
    """The tensors of one layer's attention."""

    tensors: Tensors
    prefix: str
    if_transposed: str

    def holds(self, name: str) -> bool:
        """Say whether there is a tensor of this name."""
        return self.prefix + name in self.tensors.names

    def read(self, name: str, *shape: int) -> Tensor:
        """Return a tensor that has this shape.

        Raises:
            ValueError: it isn't there, or has another shape.
        """
        tensor = self._fetch(name)
        if tuple(tensor.shape) != shape:
            message = (
                f"{self.prefix + name!r} must have shape {list(shape)}, got {shape_of(tensor)}"
            )
            if self.if_transposed and tuple(tensor.shape) == shape[::-1]:
                message += f": {self.if_transposed}"
            raise ValueError(message)
        return tensor

    def width(self, square: str) -> int:
        """Return d, the size of the square matrix of this name."""
        matrix = self._fetch(square)
        d = matrix.shape[0] if matrix.dim() else 1
        return len(self.read(square, d, d))

    def _fetch(self, name: str) -> Tensor:
        if not self.holds(name):
            start = len(self.prefix)
            there = [n[start:] for n in self.tensors.names if n.startswith(self.prefix)]
            raise ValueError(
                f"source must hold {self.prefix + name!r}, got only {there} in {self.prefix!r}"
            )
        return self.tensors.fetch(self.prefix + name)


@contextmanager
def opened_layer(source: Source, layout: Layout, layer: int) -> Iterator[Layer]:
    """Give the attention of one layer; a file is closed afterwards.

    Raises:
        TypeError: another kind of source, or a layer that is no int.
        ValueError: the source holds no attention in this layout, or not of this layer, or more than
            the layout knows.
    """
    require_count("layer", layer)
    with opened(source) as tensors:
        prefixes = find_prefixes(tensors, layout)
        if layer not in prefixes:
            raise ValueError(f"layer must be one of {sorted(prefixes)}, got {layer}")
        _require_nothing_else(tensors, prefixes[layer], layout, layer)
        yield Layer(tensors, prefixes[layer], layout.if_transposed)


def _require_nothing_else(tensors: Tensors, prefix: str, layout: Layout, layer: int) -> None:
    """Raise ValueError if a model's names say that its attention has parts that ours lacks."""
    model = prefix.removesuffix(layout.prefix.format(layer))
    for family in _LOOKALIKES.keys() & {tensors.model_type, *model.split(".")}:
        raise ValueError(
            f"source must hold {layout.library}'s attention, got {family}'s, whose tensors are "
            f"called the same: it {_LOOKALIKES[family]}"
        )
    others = [name for name in tensors.names if _is_other(name, model, prefix, layout)]
    if others:
        some = others[:4] + ["..."] * (len(others) > 4)
        raise ValueError(
            f"source must hold {layout.library}'s attention with absolute positions and no other "
            f"part, got also {some}: what these do isn't done by MultiHeadAttention, so that it "
            "would compute something else"
        )
    words = f"{model}embeddings.word_embeddings.weight"
    if words in tensors.names and f"{model}embeddings.position_embeddings.weight" not in (
        tensors.names
    ):
        raise ValueError(
            f"source must hold {layout.library}'s attention with absolute positions, got {words!r} "
            "without position_embeddings beside it: positions must come in elsewhere (as in ESM, "
            "where queries and keys are turned), which MultiHeadAttention doesn't do"
        )


def _is_other(name: str, model: str, prefix: str, layout: Layout) -> bool:
    """Tell whether a tensor is an unknown one of the layer, or a telling one around it."""
    if name.startswith(prefix):
        return not re.fullmatch(layout.known, name[len(prefix) :])
    if not (sign := _SIGNS.search(name)):
        return False
    holder = name[: name.rfind(".", 0, sign.start()) + 1]  # the module that has the telling part
    return name.startswith(model) or prefix.startswith(holder)


def find_prefixes(tensors: Tensors, *layouts: Layout) -> dict[int, str]:
    """Return what stands in front of each layer's names, such as {0: "transformer.h.0.attn."}.

    What goes before the layout's own names (`transformer.`, `bert.`, `_orig_mod.` of a compiled
    model, `module.` of a parallel one) may be anything, as long as it is the same for all layers.

    Raises:
        ValueError: there is no layer, or there are those of several models.
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
    """Give (prefix of the layer, what goes before the layout's own names, number of the layer)."""
    before, after = map(re.escape, layout.prefix.split("{}"))
    pattern = re.compile(rf"(((?:.*\.)?){before}(\d+){after}){re.escape(layout.first)}")
    for name in tensors.names:
        if found := pattern.fullmatch(name):
            yield found[1], found[2], int(found[3])
