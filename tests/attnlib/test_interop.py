"""Loaded attention computes what the one that it comes from computes, wherever that was saved.

Models are tiny, random and made by `transformers`, which looks up nothing anywhere; other families
are compared in `test_interop_families.py`.
"""

import os

import pytest
import torch
from tools.modules import F64
from tools.nanogpt import NanoGPT, randomize
from torch import nn

from attnlib import interop, padding_mask

os.environ["HF_HUB_OFFLINE"] = "1"
KEY_MASK = padding_mask(torch.tensor([5, 2]), 5)

# All sizes differ: B 2, T 5, h 4, d_k 6.
GPT2 = {"n_embd": 24, "n_head": 4, "n_layer": 3, "vocab_size": 31, "n_positions": 17}
BERT = {
    "hidden_size": 24, "num_attention_heads": 4, "num_hidden_layers": 3, "intermediate_size": 11,
    "vocab_size": 31, "max_position_embeddings": 17,
}  # fmt: skip
GPT2_PARTS = "attn.c_attn", "attn.c_proj"  # what a layer's attention does first and last
BERT_PARTS = "attention.self.query", "attention.output.dense"


@pytest.mark.parametrize(
    ("name", "kind", "load", "sizes", "layers", "parts"),
    [
        ("GPT2Model", "file", interop.from_gpt2, GPT2, "h", GPT2_PARTS),
        ("GPT2LMHeadModel", "with buffers", interop.from_gpt2, GPT2, "transformer.h", GPT2_PARTS),
        ("BertModel", "path as text", interop.from_bert, BERT, "encoder.layer", BERT_PARTS),
        ("BertForMaskedLM", "state dict", interop.from_bert, BERT, "bert.encoder.layer",
            BERT_PARTS),
    ],
)  # fmt: skip
def test_each_layer_has_the_outputs_and_weights_that_it_had(
    name, kind, load, sizes, layers, parts, tmp_path
):
    transformers = pytest.importorskip("transformers")
    causal = "GPT2" in name
    config = getattr(transformers, "GPT2Config" if causal else "BertConfig")
    model = randomize(getattr(transformers, name)(config(**sizes, attn_implementation="eager")))
    source = model.state_dict()
    if kind == "with buffers":  # the masks of old files
        source[f"{layers}.2.attn.bias"] = torch.ones(1, 1, 17, 17).bool()
        source[f"{layers}.2.attn.masked_bias"] = torch.tensor(-1e4)
    elif kind != "state dict":
        model.save_pretrained(tmp_path)
        source = tmp_path / "model.safetensors"
        source = str(source) if kind == "path as text" else source
    assert interop.layers(source) == [0, 1, 2]
    inputs, outputs = {}, {}
    for layer in range(3):
        first, last = (model.get_submodule(f"{layers}.{layer}.{part}") for part in parts)
        first.register_forward_hook(lambda _, x, __, i=layer: inputs.update({i: x[0]}))
        last.register_forward_hook(lambda _, __, y, i=layer: outputs.update({i: y}))
    for limits in ({}, {"key_mask": KEY_MASK}):
        asked = {"attention_mask": KEY_MASK.long()} if limits else {}
        with torch.no_grad():
            found = model(torch.randint(31, (2, 5)), output_attentions=True, **asked)
        for layer in range(3):
            attention = load(source, layer, num_heads=4)
            result = attention(inputs[layer], causal=causal, need_weights=True, **limits)
            wanted = outputs[layer], found.attentions[layer]
            torch.testing.assert_close(result, wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("bias", "prefix"), [(True, "_orig_mod.transformer."), (False, "")])
def test_nanogpt(bias, prefix, recwarn):
    """Layers are counted, not spelled: 10 comes after 9, and 1 isn't 11."""
    theirs = randomize(NanoGPT(bias, d=21, h=3, layers=12)).transformer
    state = {f"{prefix}{name}": tensor for name, tensor in theirs.state_dict().items()}
    assert interop.layers(state) == list(range(12))
    x = torch.randn(2, 5, 21)
    for layer in (1, 11):
        attention = interop.from_nanogpt(state, layer, num_heads=3)
        found = attention(x, causal=True, need_weights=True)
        torch.testing.assert_close(found, theirs["h"][layer].attn(x), atol=1e-5, rtol=1e-5)
        assert (attention.W_o.bias is not None) == bias
    assert bool(recwarn.list) == bias  # which GPTBigCode's tensors have, too


def torch_module(**options):
    """A random nn.MultiheadAttention: h 4, d_k 3."""
    options = {"batch_first": True, "dtype": F64} | options
    return randomize(nn.MultiheadAttention(12, 4, **options))


@pytest.mark.parametrize(("bias", "batch_first"), [(True, True), (False, False)])
@pytest.mark.parametrize("widths", [{}, {"kdim": 7, "vdim": 5}], ids=str)
def test_torch(bias, batch_first, widths):
    theirs = torch_module(bias=bias, batch_first=batch_first, **widths)
    key = torch.randn(2, 6, widths.get("kdim", 12), dtype=F64)
    value = torch.randn(2, 6, widths.get("vdim", 12), dtype=F64)
    inputs = (torch.randn(2, 5, 12, dtype=F64), key, value)
    turned = inputs if batch_first else [x.transpose(0, 1) for x in inputs]
    output, weights = theirs(*turned, average_attn_weights=False)
    ours = interop.from_torch(theirs)
    expected = output if batch_first else output.transpose(0, 1)
    torch.testing.assert_close(ours(*inputs, need_weights=True), (expected, weights))
    assert (ours.W_q.bias is not None) == (ours.W_o.bias is not None) == bias


@pytest.mark.parametrize("training", [True, False])
def test_torch_settings_stay(training):
    theirs = torch_module(dropout=0.3, dtype=torch.bfloat16).train(training)
    ours = interop.from_torch(theirs)
    assert (ours.dropout, ours.training, ours.W_o.training) == (0.3, training, training)
    assert {parameter.dtype for parameter in ours.parameters()} == {torch.bfloat16}
    elsewhere = interop.from_torch(nn.MultiheadAttention(12, 4, device="meta"))
    assert elsewhere.W_k.weight.is_meta
