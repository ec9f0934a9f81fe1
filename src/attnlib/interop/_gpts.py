"""The tensors of a whole GPT-2 or nanoGPT, and their names in our model."""

import re
from collections.abc import Iterator

from torch import Tensor

from attnlib.checks import shape_of
from attnlib.interop._layouts import Layout
from attnlib.interop._sources import Tensors

EMBEDDING = "wte.weight"
MASKS = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")  # buffers that hold no weights

# The parts of a layer: their name -> ours. Matrices are transposed in GPT-2.
PARTS = {
    "ln_1": "norm_1", "ln_2": "norm_2", "attn.c_proj": "attention.W_o",
    "mlp.c_fc": "feed_forward.W_1", "mlp.c_proj": "feed_forward.W_2",
}  # fmt: skip
PACKED, QKV = "attn.c_attn", tuple(f"attention.{name}" for name in ("W_q", "W_k", "W_v"))


class GPTTensors:
    """The tensors of a whole model, read by name and shape; none may be left unread."""

    def __init__(self, tensors: Tensors, layout: Layout, *, transposed: bool) -> None:
        self.tensors, self.layout, self.transposed = tensors, layout, transposed
        self.prefix = _prefix(tensors, layout)
        self._unread = {name for name in tensors.names if not self._is_mask(name)}

    @property
    def layers(self) -> int:
        """The number of layers: one more than the highest index."""
        pattern = re.compile(rf"{re.escape(self.prefix)}h\.(\d+)\.")
        found = [int(match[1]) for name in self.tensors.names if (match := pattern.match(name))]
        return 1 + max(found, default=-1)

    @property
    def head(self) -> str:
        """The name of the readout's matrix, whether there is one or not."""
        return f"{self.prefix.removesuffix('transformer.')}lm_head.weight"

    def holds(self, name: str) -> bool:
        """Return whether the model has a tensor of this name."""
        return self.prefix + name in self.tensors.names

    def shape(self, name: str, dim: int) -> list[int]:
        """Return the shape of a tensor, or raise ValueError unless it has `dim` dimensions."""
        shape = shape_of(self.tensors.read(self.prefix + name))
        if len(shape) != dim:
            raise ValueError(
                f"{self.prefix + name!r} must have {dim} dimensions, got shape {shape}"
            )
        return shape

    def read(self, name: str, *shape: int) -> Tensor:
        """Return a bias, a gain or an embedding of this shape, or raise ValueError."""
        return self._read(self.prefix + name, list(shape))

    def matrix(self, name: str, d_out: int, d_in: int) -> Tensor:
        """Return a layer's matrix as we keep it, [d_out, d_in]."""
        return self.read(name, d_in, d_out).T if self.transposed else self.read(name, d_out, d_in)

    def readout(self, V: int, d: int) -> Tensor | None:
        """Return the readout's matrix, [V, d], if there is one."""
        return self._read(self.head, [V, d]) if self.head in self.tensors.names else None

    def require_all_read(self) -> None:
        """Raise ValueError if there are tensors that weren't read."""
        if self._unread:
            some = sorted(self._unread)[:4] + ["..."] * (len(self._unread) > 4)
            raise ValueError(
                f"source must hold the tensors of {self.layout.library} alone, got also {some}: "
                "GPT has no such parts and would compute something else"
            )

    def _is_mask(self, name: str) -> bool:
        return name.startswith(self.prefix) and bool(MASKS.fullmatch(name[len(self.prefix) :]))

    def _read(self, name: str, shape: list[int]) -> Tensor:
        packed = name.split(".")[-2] in ("c_attn", "c_fc")  # squares can't be told apart
        hint = self.layout.if_transposed.replace("use from_", "use gpt_from_") if packed else ""
        tensor = self.tensors.read(name, shape, hint)
        self._unread.discard(name)
        return tensor


def read_weights(
    source: GPTTensors, sizes: dict[str, int], bias: bool
) -> Iterator[tuple[str, Tensor]]:
    """Yield each tensor with its name in our model; `bias` says whether there are biases."""
    d, d_ff, V = sizes["d_model"], sizes["d_ff"], sizes["vocabulary_size"]
    shapes = {"attn.c_proj": (d, d), "mlp.c_fc": (d_ff, d), "mlp.c_proj": (d, d_ff)}
    yield "token_embedding.weight", source.read(EMBEDDING, V, d)
    yield "position_embedding.weight", source.read("wpe.weight", sizes["length"], d)
    for layer in range(sizes["num_layers"]):
        theirs, ours = f"h.{layer}.", f"blocks.{layer}."
        packed = source.matrix(f"{theirs}{PACKED}.weight", 3 * d, d)
        for name, matrix in zip(QKV, packed.chunk(3), strict=True):  # [3d, d] -> 3 of [d, d]
            yield f"{ours}{name}.weight", matrix
        if bias:
            together = source.read(f"{theirs}{PACKED}.bias", 3 * d)
            for name, vector in zip(QKV, together.chunk(3), strict=True):
                yield f"{ours}{name}.bias", vector
        for part, name in PARTS.items():
            if part in shapes:
                yield f"{ours}{name}.weight", source.matrix(f"{theirs}{part}.weight", *shapes[part])
            else:
                yield f"{ours}{name}.gain", source.read(f"{theirs}{part}.weight", d)
            if bias:
                size = shapes[part][0] if part in shapes else d
                yield f"{ours}{name}.bias", source.read(f"{theirs}{part}.bias", size)
    yield "final_norm.gain", source.read("ln_f.weight", d)
    if bias:
        yield "final_norm.bias", source.read("ln_f.bias", d)


def _prefix(tensors: Tensors, layout: Layout) -> str:
    """Return what stands before "wte.weight", which every whole model has."""
    pattern = re.compile(rf"((?:.*\.)?){re.escape(EMBEDDING)}")
    prefixes = [found[1] for name in tensors.names if (found := pattern.fullmatch(name))]
    if len(prefixes) != 1:
        what = f"those of {len(prefixes)} models" if prefixes else str(tensors)
        raise ValueError(
            f"source must hold a whole model in {layout.library}'s layout, with {EMBEDDING!r} or "
            f"the like ('transformer.{EMBEDDING}'), got {what}"
        )
    return prefixes[0]
