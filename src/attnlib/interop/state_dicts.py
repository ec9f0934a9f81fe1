"""Single layers of GPT-2, nanoGPT and BERT, from a state dict or a .safetensors file.

A state dict doesn't say how many heads it was trained with, so the three loaders need `num_heads`
(12 for GPT-2 small, BERT base and nanoGPT's default).
"""

from torch import Tensor

from attnlib.attention import MultiHeadAttention
from attnlib.interop._assembly import assemble
from attnlib.interop._layers import find_prefixes, opened_layer
from attnlib.interop._layouts import BERT, GPT2, NANOGPT
from attnlib.interop._sources import Source, opened

QKV = ("W_q", "W_k", "W_v")


def layers(source: Source) -> list[int]:
    """Return the numbers of the layers whose attention a source holds.

    Example:
        >>> import torch
        >>> weight = torch.randn(24, 8)
        >>> layers({"h.0.attn.c_attn.weight": weight, "h.1.attn.c_attn.weight": weight})
        [0, 1]

    Raises:
        TypeError, ValueError, FileNotFoundError: a source that holds none; see `from_gpt2`.
    """
    with opened(source) as tensors:
        return sorted(find_prefixes(tensors, GPT2, BERT))


def from_gpt2(source: Source, layer: int, *, num_heads: int) -> MultiHeadAttention:
    """Return the attention of one layer of a GPT-2 model in the layout of `transformers`.

    GPT-2 lets no token look to the right, which the weights don't show: **call the module with
    causal=True**. Its input is the output of GPT-2's `ln_1`, its output what `attn` adds to the
    stream.

    Example:
        >>> import torch
        >>> numbers = {"c_attn.weight": (8, 24), "c_attn.bias": (24,)}  # [d, 3d]: q, k, v
        >>> numbers |= {"c_proj.weight": (8, 8), "c_proj.bias": (8,)}
        >>> state = {f"transformer.h.0.attn.{n}": torch.randn(s) for n, s in numbers.items()}
        >>> attention = from_gpt2(state, layer=0, num_heads=2)
        >>> output, weights = attention(torch.randn(1, 5, 8), causal=True, need_weights=True)
        >>> weights.shape
        torch.Size([1, 2, 5, 5])

    GPT-2 stores matrices as [d_in, d_out] ("Conv1D"); all of them are transposed here. The shape of
    the square `c_proj` wouldn't show if that were forgotten.

    Args:
        source: a state dict, or the path of a `.safetensors` file. Names may begin with
            `transformer.` or anything else. Only the layer's weights are read; they are copied, and
            keep their dtype and device (a file's are on the CPU). A `config.json` beside a file
            must name no other family and none of the options below.
        layer: counted from 0; `layers(source)` says which there are.
        num_heads: how many heads the model was trained with.

    Returns:
        A module without dropout, with the scale 1 / sqrt(d_k). A state dict doesn't show whether it
        was trained with another (the options scale_attn_weights=False and
        scale_attn_by_inverse_layer_idx).

    Raises:
        TypeError: neither a state dict nor a path, or quantized weights.
        ValueError: no such layer, a tensor that is missing, superfluous, of another shape, NaN or
            infinite, names that show rotary or relative positions, num_heads that doesn't divide d,
            or a file of another kind.
        FileNotFoundError: no such file.
        ImportError: a file, but the package safetensors is missing.

    Source: Radford et al. 2019, section 2.3; the layout in transformers, modeling_gpt2.py.
    """
    with opened_layer(source, GPT2, layer) as part:
        d = part.width("c_proj.weight")
        packed = part.read("c_attn.weight", d, 3 * d).T  # [d, 3d] -> [3d, d]
        weights = _unpack("weight", packed) | _unpack("bias", part.read("c_attn.bias", 3 * d))
        weights["W_o.weight"] = part.read("c_proj.weight", d, d).T
        weights["W_o.bias"] = part.read("c_proj.bias", d)
        return assemble(weights, num_heads)


def from_nanogpt(
    source: Source, layer: int, *, num_heads: int, family: str | None = None
) -> MultiHeadAttention:
    """Return the attention of one layer of a nanoGPT (or minGPT) model.

    nanoGPT lets no token look to the right: **call the module with causal=True**. It has GPT-2's
    names, but matrices [d_out, d_in] as ours; biases may be missing. GPTBigCode without multi_query
    has the same names and shapes, but stores q, k and v head by head. So with biases, and without a
    `family`, it warns.

    Example:
        >>> import torch
        >>> numbers = {"c_attn.weight": (24, 8), "c_proj.weight": (8, 8)}  # [3d, d]: q, k, v
        >>> state = {f"transformer.h.3.attn.{n}": torch.randn(s) for n, s in numbers.items()}
        >>> from_nanogpt(state, layer=3, num_heads=2).W_q.bias is None
        True

    Args:
        source: as for `from_gpt2`. Of a training checkpoint `torch.load("ckpt.pt")` pass the entry
            "model".
        layer, num_heads: as for `from_gpt2`, which also says what is returned and raised.
        family: `model.config.model_type`, or "nanogpt"; "gpt_bigcode" is refused.

    Source: Karpathy, nanoGPT, model.py, `CausalSelfAttention`.
    """
    with opened_layer(source, NANOGPT, layer, family) as part:
        d = part.width("c_proj.weight")
        weights = _unpack("weight", part.read("c_attn.weight", 3 * d, d))
        weights["W_o.weight"] = part.read("c_proj.weight", d, d)
        if part.holds("c_attn.bias") or part.holds("c_proj.bias"):
            weights |= _unpack("bias", part.read("c_attn.bias", 3 * d))
            weights["W_o.bias"] = part.read("c_proj.bias", d)
        return assemble(weights, num_heads)


def from_bert(
    source: Source, layer: int, *, num_heads: int, family: str | None = None
) -> MultiHeadAttention:
    """Return the attention of one layer of a BERT model (or RoBERTa) in `transformers`' layout.

    Every token of BERT may look at every real one: call the module **without** causal, and with
    `key_mask` (the tokenizer's `attention_mask`, as booleans) if sequences are padded. The output
    is that of `attention.output.dense`, before the residual and the LayerNorm.

    Models with BERT's layout and attention load exactly, among them RoBERTa, ELECTRA, ERNIE,
    RemBERT, LayoutLM and LUKE (its words). Those that do more (ESM, RoFormer, LayoutLMv3,
    Longformer, Nystromformer, CANINE, ...) are refused. **The tensors of some don't show it**:
    BigBird looks at only a part of a long sequence; Yoso's and Mra's are refused if "yoso." or
    "mra." precedes their names, or a `config.json` beside the file or `family` says it. Where names
    begin with "encoder" and no `family` is given, it warns.

    Example:
        >>> import torch
        >>> names = ["self.query", "self.key", "self.value", "output.dense"]
        >>> prefix = "bert.encoder.layer.0.attention."
        >>> state = {f"{prefix}{name}.weight": torch.randn(8, 8) for name in names}
        >>> state |= {f"{prefix}{name}.bias": torch.randn(8) for name in names}
        >>> attention = from_bert(state, layer=0, num_heads=2)
        >>> attention_mask = torch.tensor([[1, 1, 1, 0, 0]])
        >>> output, _ = attention(torch.randn(1, 5, 8), key_mask=attention_mask.bool())

    Args:
        source: as for `from_gpt2`. Names may begin with `bert.` or anything else.
        layer, num_heads: as for `from_gpt2`, which also says what is returned and raised.
        family: `model.config.model_type`; "yoso" and "mra" are refused.

    Raises:
        ValueError: also if there are `word_embeddings` but no `position_embeddings`.

    Source: Devlin et al. 2019, section 3; the layout in transformers, modeling_bert.py.
    """
    with opened_layer(source, BERT, layer, family) as part:
        d = part.width("output.dense.weight")
        weights = {}
        for ours, theirs in (
            ("W_q", "self.query"),
            ("W_k", "self.key"),
            ("W_v", "self.value"),
            ("W_o", "output.dense"),
        ):
            weights[f"{ours}.weight"] = part.read(f"{theirs}.weight", d, d)
            weights[f"{ours}.bias"] = part.read(f"{theirs}.bias", d)
        return assemble(weights, num_heads)


def _unpack(kind: str, packed: Tensor) -> dict[str, Tensor]:
    """Cut packed projections apart: [3d, ...] -> three times [d, ...]."""
    return {f"{name}.{kind}": part for name, part in zip(QKV, packed.chunk(3), strict=True)}
