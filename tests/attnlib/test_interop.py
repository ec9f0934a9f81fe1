"""Loaded weights compute what the models they come from compute: outputs and each head's weights.

The models are tiny and random. GPT-2 and BERT are those of `transformers`, which saves them into a
file here and looks up nothing anywhere; nanoGPT's attention is written out below.
"""

import math
import os

import pytest
import torch
from tools.modules import F64
from torch import nn

from attnlib import causal_mask, interop, padding_mask

os.environ["HF_HUB_OFFLINE"] = "1"


def randomize(model):
    """Draw all parameters anew: biases aren't 0, and heads have opinions."""
    with torch.no_grad():
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.4)
    return model.eval()


def distance(ours, theirs):
    """Return the largest difference of two pairs (output, weights)."""
    return max((a - b).abs().max().item() for a, b in zip(ours, theirs, strict=True))


@torch.no_grad()
def same(attention, x, theirs, **options):
    """Say whether a module computes the output and the weights that another library computed."""
    return distance(attention(x, need_weights=True, **options), theirs) < 1e-5


# --- GPT-2 ---------------------------------------------------------------------------------------

# All sizes differ: B 2, T 5, h 4, d_k 6.
GPT2_SIZES = {"n_embd": 24, "n_head": 4, "n_layer": 3, "vocab_size": 31, "n_positions": 17}


@pytest.fixture(scope="module", params=["GPT2Model", "GPT2LMHeadModel"])
def gpt2(request, tmp_path_factory):
    """Return a model (whose names begin with `transformer.` or don't) and the file it is in."""
    from transformers.models.gpt2 import modeling_gpt2

    torch.manual_seed(0)  # fixtures of a file come before each test's own seed
    config = modeling_gpt2.GPT2Config(**GPT2_SIZES, attn_implementation="eager")
    model = randomize(getattr(modeling_gpt2, request.param)(config))
    folder = tmp_path_factory.mktemp("gpt2")
    model.save_pretrained(folder)
    return model, folder / "model.safetensors"


@torch.no_grad()
def gpt2_layers_seen(model, **options):
    """Run GPT-2; return what went into each attention and what came out: x, (output, weights)."""
    seen = []
    hooks = [
        block.attn.register_forward_hook(lambda _, inputs, outputs: seen.append((inputs, outputs)))
        for block in model.base_model.h
    ]
    model(torch.randint(0, 31, (2, 5)), output_attentions=True, **options)
    for hook in hooks:
        hook.remove()
    return [(inputs[0], outputs[:2]) for inputs, outputs in seen]


@pytest.mark.parametrize("kind", ["file", "state dict"])
def test_gpt2(gpt2, kind):
    model, file = gpt2
    source = file if kind == "file" else model.state_dict()
    assert interop.layers(source) == [0, 1, 2]
    for layer, (x, theirs) in enumerate(gpt2_layers_seen(model)):
        attention = interop.from_gpt2(source, layer, num_heads=4)
        assert same(attention, x, theirs, causal=True)
        assert not same(attention, x, theirs)  # causality isn't in the weights


def test_gpt2_with_padding(gpt2):
    model, file = gpt2
    key_mask = padding_mask(torch.tensor([5, 2]), 5)
    for layer, (x, theirs) in enumerate(gpt2_layers_seen(model, attention_mask=key_mask.long())):
        attention = interop.from_gpt2(file, layer, num_heads=4)
        assert same(attention, x, theirs, causal=True, key_mask=key_mask)


def test_a_forgotten_transpose_would_show(gpt2):
    """c_proj is square, so that no shape betrays it; the numbers do."""
    model, file = gpt2
    x, theirs = gpt2_layers_seen(model)[1]
    attention = interop.from_gpt2(file, 1, num_heads=4)
    attention.W_o.weight.data = attention.W_o.weight.data.T
    assert distance(attention(x, causal=True, need_weights=True), theirs) > 1


def test_another_number_of_heads_would_show(gpt2):
    model, file = gpt2
    x, theirs = gpt2_layers_seen(model)[0]
    output, _ = interop.from_gpt2(file, 0, num_heads=3)(x, causal=True)
    assert (output - theirs[0]).abs().max() > 0.1


def test_mask_buffers_of_old_files_are_left_alone(gpt2):
    model, _ = gpt2
    buffers = {
        "bias": torch.ones(1, 1, 17, 17, dtype=torch.bool),
        "masked_bias": torch.tensor(-1e4),
    }
    place = "transformer." * hasattr(model, "transformer") + "h.2.attn."
    state = {f"{place}{name}": buffer for name, buffer in buffers.items()} | model.state_dict()
    x, theirs = gpt2_layers_seen(model)[2]
    assert same(interop.from_gpt2(state, 2, num_heads=4), x, theirs, causal=True)


# --- BERT ----------------------------------------------------------------------------------------

# All sizes differ: B 3, T 7, h 5, d_k 6.
BERT_SIZES = {
    "hidden_size": 30, "num_attention_heads": 5, "num_hidden_layers": 2, "intermediate_size": 11,
    "vocab_size": 31, "max_position_embeddings": 17,
}  # fmt: skip
LENGTHS = torch.tensor([7, 4, 1])


@pytest.fixture(scope="module", params=["BertModel", "BertForMaskedLM"])
def bert(request, tmp_path_factory):
    """Return a model (whose names begin with `bert.` or don't) and the file it is in."""
    from transformers.models.bert import modeling_bert

    torch.manual_seed(0)  # fixtures of a file come before each test's own seed
    config = modeling_bert.BertConfig(**BERT_SIZES, attn_implementation="eager")
    model = randomize(getattr(modeling_bert, request.param)(config))
    folder = tmp_path_factory.mktemp("bert")
    model.save_pretrained(folder)
    return model, folder / "model.safetensors"


@torch.no_grad()
def bert_layers_seen(model, **options):
    """Run BERT; return what went into each attention and what came out: x, (output, weights)."""
    inputs, outputs = [], []
    hooks = []
    for block in model.base_model.encoder.layer:
        read = block.attention.self.query.register_forward_hook
        hooks.append(read(lambda _, x, __: inputs.append(x[0])))
        write = block.attention.output.dense.register_forward_hook
        hooks.append(write(lambda _, __, output: outputs.append(output)))
    ids = torch.randint(0, 31, (3, 7))
    weights = model(ids, output_attentions=True, **options).attentions
    for hook in hooks:
        hook.remove()
    return list(zip(inputs, zip(outputs, weights, strict=True), strict=True))


@pytest.mark.parametrize("kind", ["file", "state dict"])
def test_bert(bert, kind):
    model, file = bert
    source = str(file) if kind == "file" else model.state_dict()
    assert interop.layers(source) == [0, 1]
    for layer, (x, theirs) in enumerate(bert_layers_seen(model)):
        attention = interop.from_bert(source, layer, num_heads=5)
        assert same(attention, x, theirs)
        assert not same(attention, x, theirs, causal=True)  # BERT looks both ways


def test_bert_with_padding(bert):
    model, file = bert
    key_mask = padding_mask(LENGTHS, 7)
    for layer, (x, theirs) in enumerate(bert_layers_seen(model, attention_mask=key_mask.long())):
        attention = interop.from_bert(file, layer, num_heads=5)
        assert same(attention, x, theirs, key_mask=key_mask)
        assert not same(attention, x, theirs)


# --- nanoGPT -------------------------------------------------------------------------------------


class CausalSelfAttention(nn.Module):
    """Attention in nanoGPT's layout, with the mask buffer that it makes where flash is missing."""

    def __init__(self, d, h, bias):
        super().__init__()
        self.c_attn = nn.Linear(d, 3 * d, bias=bias)
        self.c_proj = nn.Linear(d, d, bias=bias)
        self.register_buffer("bias", torch.ones(9, 9).tril().view(1, 1, 9, 9))
        self.h, self.d = h, d

    def forward(self, x):
        B, T, d = x.shape
        q, k, v = (
            part.view(B, T, self.h, d // self.h).transpose(1, 2)
            for part in self.c_attn(x).split(self.d, dim=2)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        weights = scores.masked_fill(self.bias[:, :, :T, :T] == 0, -math.inf).softmax(-1)
        y = (weights @ v).transpose(1, 2).contiguous().view(B, T, d)
        return self.c_proj(y), weights


def nanogpt_state(modules, prefix):
    return {
        f"{prefix}h.{layer}.attn.{name}": tensor
        for layer, module in enumerate(modules)
        for name, tensor in module.state_dict().items()
    }


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("prefix", ["transformer.", "_orig_mod.transformer.", "module.", ""])
def test_nanogpt(bias, prefix):
    modules = [randomize(CausalSelfAttention(21, 3, bias)) for _ in range(2)]
    state, x = nanogpt_state(modules, prefix), torch.randn(2, 5, 21)
    assert interop.layers(state) == [0, 1]
    for layer, module in enumerate(modules):
        attention = interop.from_nanogpt(state, layer, num_heads=3)
        assert same(attention, x, module(x), causal=True)
        assert (attention.W_o.bias is not None) == bias


def test_layers_are_counted_not_spelled():
    """Layer 10 comes after layer 9, and layer 1 isn't layer 11."""
    modules = [randomize(CausalSelfAttention(6, 2, bias=True)) for _ in range(12)]
    state, x = nanogpt_state(modules, "transformer."), torch.randn(1, 4, 6)
    assert interop.layers(state) == list(range(12))
    assert same(interop.from_nanogpt(state, 1, num_heads=2), x, modules[1](x), causal=True)


# --- PyTorch -------------------------------------------------------------------------------------


def torch_module(**options):
    """A random nn.MultiheadAttention: h 4, d_k 3."""
    options = {"batch_first": True, "dtype": F64} | options
    return randomize(nn.MultiheadAttention(12, 4, **options))


def torch_result(module, *inputs, **options):
    return module(*inputs, average_attn_weights=False, **options)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("widths", [{}, {"kdim": 7}, {"vdim": 5}, {"kdim": 7, "vdim": 5}])
def test_torch(bias, widths):
    theirs = torch_module(bias=bias, **widths)
    key = torch.randn(2, 6, widths.get("kdim", 12), dtype=F64)
    value = torch.randn(2, 6, widths.get("vdim", 12), dtype=F64)
    inputs = (torch.randn(2, 5, 12, dtype=F64), key, value)
    ours = interop.from_torch(theirs)
    result = ours(*inputs, need_weights=True)
    assert distance(result, torch_result(theirs, *inputs)) < 1e-12
    assert (ours.W_q.bias is not None) == (ours.W_o.bias is not None) == bias


@pytest.mark.parametrize("without", ["in_proj_bias", "out_proj.bias"])
def test_torch_with_biases_here_and_not_there(without):
    theirs = nn.MultiheadAttention(12, 4, batch_first=True, dtype=F64).eval()
    for name in ("in_proj_bias", "out_proj.bias"):
        nn.init.normal_(theirs.get_parameter(name))
    owner, _, name = without.rpartition(".")
    setattr(theirs.get_submodule(owner), name, None)
    x = torch.randn(2, 5, 12, dtype=F64)
    with torch.enable_grad():  # the way without gradients looks at the bias that isn't there
        expected, _ = theirs(x, x, x)
    torch.testing.assert_close(interop.from_torch(theirs)(x)[0], expected)


def test_torch_with_time_first():
    theirs = torch_module(batch_first=False)
    x = torch.randn(2, 5, 12, dtype=F64)
    output, weights = torch_result(theirs, *[x.transpose(0, 1)] * 3)
    ours = interop.from_torch(theirs)(x, need_weights=True)
    assert distance(ours, (output.transpose(0, 1), weights)) < 1e-12


# What nn.MultiheadAttention is told, and what ours is told instead: there True = may not look.
hidden_keys = ~padding_mask(torch.tensor([5, 2]), 5)
hidden = torch.rand(2, 4, 5, 5, generator=torch.Generator().manual_seed(0)) < 0.4
hidden[..., 0] = False  # no row may look nowhere, which is NaN there
bias_of_heads = torch.randn(4, 5, 5, dtype=F64, generator=torch.Generator().manual_seed(0))
MASKS = {
    "none": ({}, {}),
    "padding": ({"key_padding_mask": hidden_keys}, {"key_mask": ~hidden_keys}),
    "one mask": ({"attn_mask": hidden[0, 0]}, {"mask": ~hidden[0, 0]}),
    "a mask a head": ({"attn_mask": hidden.flatten(0, 1)}, {"mask": ~hidden}),
    "both": (
        {"attn_mask": hidden[0, 0], "key_padding_mask": hidden_keys},
        {"mask": ~hidden[0, 0], "key_mask": ~hidden_keys},
    ),
    "causal": ({"attn_mask": ~causal_mask(5), "is_causal": True}, {"causal": True}),
    "numbers": (
        {"attn_mask": bias_of_heads.repeat(2, 1, 1)},
        {"score_bias": bias_of_heads[None]},
    ),
}


@pytest.mark.parametrize("name", MASKS)
def test_torch_with_masks(name):
    for_theirs, for_ours = MASKS[name]
    theirs, x = torch_module(), torch.randn(2, 5, 12, dtype=F64)
    ours = interop.from_torch(theirs)
    result = ours(x, need_weights=True, **for_ours)
    assert distance(result, torch_result(theirs, x, x, x, **for_theirs)) < 1e-12


@pytest.mark.parametrize("training", [True, False])
def test_torch_settings_stay(training):
    theirs = torch_module(dropout=0.3, dtype=torch.bfloat16).train(training)
    ours = interop.from_torch(theirs)
    assert (ours.dropout, ours.training, ours.W_o.training) == (0.3, training, training)
    assert {parameter.dtype for parameter in ours.parameters()} == {torch.bfloat16}
    elsewhere = interop.from_torch(nn.MultiheadAttention(12, 4, device="meta"))
    assert elsewhere.W_k.weight.is_meta
