"""Whole models in the layouts of GPT-2 and nanoGPT, as our own.

Weights don't say how many heads they were trained with, so the loaders need `num_heads` (12 for
GPT-2 small and nanoGPT's default).
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attnlib.blocks import Activation
from attnlib.checks import require_divisible
from attnlib.interop._assembly import require_numbers
from attnlib.interop._gpts import EMBEDDING, GPTTensors, read_weights
from attnlib.interop._layouts import GPT2, NANOGPT, Layout
from attnlib.interop._other_parts import require_no_other_parts
from attnlib.interop._sources import Source, opened
from attnlib.model import GPT, TransformerModel
from attnlib.norms import LayerNorm

# transformers' names of our activations; the first is GPT-2's.
ACTIVATIONS: dict[str, Activation] = {
    "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu",
}  # fmt: skip
USUAL_EPS = 1e-5


def gpt_from_gpt2(source: Source, *, num_heads: int) -> TransformerModel:
    """Return a whole GPT-2 in the layout of `transformers` (`GPT2LMHeadModel`, `GPT2Model`).

    Example:
        >>> import torch
        >>> shapes = {"wte.weight": (11, 8), "wpe.weight": (7, 8), "ln_f.weight": (8,)}
        >>> shapes |= {"ln_f.bias": (8,)}
        >>> sizes = {"attn.c_attn": (8, 24), "attn.c_proj": (8, 8), "mlp.c_fc": (8, 32)}
        >>> sizes |= {"mlp.c_proj": (32, 8), "ln_1": (8,), "ln_2": (8,)}
        >>> for name, shape in sizes.items():
        ...     shapes |= {f"h.0.{name}.weight": shape, f"h.0.{name}.bias": shape[-1:]}
        >>> state = {f"transformer.{name}": torch.randn(shape) for name, shape in shapes.items()}
        >>> model = gpt_from_gpt2(state, num_heads=2)
        >>> model(torch.tensor([[3, 1, 4]])).logits["next"].shape
        torch.Size([1, 3, 11])

    GPT-2 stores matrices as [d_in, d_out]; they are transposed here. The readout uses the
    embedding's matrix, unless the source has an `lm_head.weight` that differs from it. Activation,
    eps and scale aren't in the weights: they are GPT-2's own (`gelu_new`, 1e-5, 1 / sqrt(d_k)),
    unless a `config.json` beside a file says otherwise.

    Args:
        source: a state dict, or the path of a `.safetensors` file. Names may begin with
            `transformer.`, `_orig_mod.transformer.` of a compiled model, or anything else. Weights
            are copied, and keep their dtype and device; mask buffers aren't read.
        num_heads: how many heads the model was trained with.

    Returns:
        A `GPT` without dropout, in evaluation mode.

    Raises:
        TypeError: neither a state dict nor a path, or quantized weights.
        ValueError: a tensor that is missing, superfluous, of another shape, NaN or infinite;
            num_heads that doesn't divide d, or differs from the `config.json`; an activation or
            scale there that GPT doesn't have; a file of another kind.
        FileNotFoundError: no such file.
        ImportError: a file, but the package safetensors is missing.

    Source: Radford et al. 2019, section 2.3; the layout in transformers, modeling_gpt2.py.
    """
    return _load(source, num_heads, GPT2, "gelu_tanh", transposed=True)


def gpt_from_nanogpt(
    source: Source, *, num_heads: int, family: str | None = None
) -> TransformerModel:
    """Return a whole nanoGPT, with GPT-2's names and the matrices of `nn.Linear`.

    Its activation is the exact GELU, its readout is tied to the embedding, and all biases, also
    those of norms, may be missing.

    Args:
        source: as for `gpt_from_gpt2`. Of a training checkpoint `torch.load("ckpt.pt")` pass the
            entry "model".
        num_heads: as for `gpt_from_gpt2`, which also says what is returned and raised.
        family: as for `from_nanogpt`.

    Source: Karpathy, nanoGPT, model.py, `GPT`.
    """
    return _load(source, num_heads, NANOGPT, "gelu", transposed=False, family=family)


def _load(
    source: Source, num_heads: int, layout: Layout, activation: Activation, *, transposed: bool,
    family: str | None = None,
) -> TransformerModel:  # fmt: skip
    with opened(source, family) as tensors:
        whole = GPTTensors(tensors, layout, transposed=transposed)
        for layer in range(whole.layers):
            attention = whole.prefix + layout.prefix.format(layer)
            require_no_other_parts(tensors, attention, layout, layer)
        (V, d), (length, _) = whole.shape(EMBEDDING, 2), whole.shape("wpe.weight", 2)
        require_divisible(d, num_heads)
        bias = whole.holds("ln_f.bias")
        d_ff = whole.shape("h.0.mlp.c_fc.weight", 2)[1 if transposed else 0]
        sizes: dict[str, Any] = {
            "vocabulary_size": V,
            "length": length,
            "d_model": d,
            "num_layers": whole.layers,
        }
        weights = dict(read_weights(whole, {**sizes, "d_ff": d_ff}, bias))
        readout = whole.readout(V, d)
        whole.require_all_read()
        tied = readout is None or _same(readout, weights["token_embedding.weight"])
        if readout is not None and not tied:
            weights["readouts.next.weight"] = readout
        activation, eps = _activation_and_eps(tensors.config, num_heads, activation)
        require_numbers(weights)
        model = GPT(
            **sizes, num_heads=num_heads, d_ff=d_ff, tied=tied, bias=bias, activation=activation,
            norm=partial(LayerNorm, eps=eps, bias=bias), device="meta",
        )  # fmt: skip
        copies = {n: x.clone(memory_format=torch.contiguous_format) for n, x in weights.items()}
    model.load_state_dict(copies, assign=True)
    return model.eval()


def _same(readout: Tensor, embedding: Tensor) -> bool:
    """Return whether two matrices of one shape hold the same numbers."""
    alike = readout.dtype == embedding.dtype and readout.device == embedding.device
    return alike and not readout.is_meta and torch.equal(readout, embedding)


def _activation_and_eps(
    config: Mapping[str, Any], num_heads: int, activation: Activation
) -> tuple[Activation, float]:
    """Return the activation and the eps of a config.json, or the usual ones."""
    if config.get("n_head", num_heads) != num_heads:
        raise ValueError(
            f"num_heads must be that of the model, {config['n_head']} as the config.json beside it "
            f"says, got {num_heads}"
        )
    eps = config.get("layer_norm_epsilon", USUAL_EPS)
    if "activation_function" not in config:
        return activation, eps
    named = config["activation_function"]
    if named not in ACTIVATIONS:
        raise ValueError(
            f"source must have an activation among {', '.join(ACTIVATIONS)}, but the config.json "
            f"beside it says {named!r}, which GPT hasn't"
        )
    return ACTIVATIONS[named], eps
