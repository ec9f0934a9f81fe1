"""Whole GPTs of other libraries: the same logits, or a refusal that names the tensor.

GPT-2s are tiny, random and made by `transformers`, which looks up nothing anywhere.
"""

import json
import math
import os

import pytest
import torch
from safetensors.torch import save_file
from tools.nanogpt import NanoGPT, randomize
from tools.refusing import assert_refused
from torch import nn

from attnlib import interop
from attnlib.model import TransformerModel

os.environ["HF_HUB_OFFLINE"] = "1"

# All sizes differ: B 2, T 5, h 4, d_k 6.
SIZES = {"n_embd": 24, "n_head": 4, "n_layer": 3, "vocab_size": 31, "n_positions": 17}
TOKENS = torch.randint(31, (2, 5), generator=torch.Generator().manual_seed(0))


def gpt2(kind="GPT2LMHeadModel", **changes):
    from transformers.models.gpt2 import modeling_gpt2

    config = modeling_gpt2.GPT2Config(**SIZES | changes)
    return randomize(getattr(modeling_gpt2, kind)(config))


@torch.no_grad()
def assert_same_logits(model, theirs):
    assert type(model) is TransformerModel and not model.training
    logits = model(TOKENS).logits["next"]
    assert (logits - theirs).abs().max() < 1e-4 < theirs.abs().max()


# --- GPT-2 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "sizes"),
    [("with buffers", {}), ("file", {"n_layer": 1, "n_inner": 10}), ("compiled", {"n_head": 1}),
     ("bare", {})],
)  # fmt: skip
def test_gpt2(tmp_path, source, sizes):
    theirs = gpt2(**sizes)
    state = theirs.state_dict()
    if source == "with buffers":  # the masks of old files
        buffers = {"bias": torch.ones(1, 1, 17, 17).bool(), "masked_bias": torch.tensor(-1e4)}
        for name, buffer in buffers.items():
            state |= {f"transformer.h.{layer}.attn.{name}": buffer for layer in range(3)}
    if source == "file":
        theirs.save_pretrained(tmp_path)
        state = tmp_path / "model.safetensors"
    elif source == "compiled":
        state = {f"_orig_mod.{name}": x for name, x in state.items()}  # as torch.compile names them
    elif source == "bare":
        state = theirs.transformer.state_dict()
    model = interop.gpt_from_gpt2(state, num_heads=sizes.get("n_head", 4))
    with torch.no_grad():
        assert_same_logits(model, theirs(TOKENS).logits)
    assert model.tied and len(model.blocks) == theirs.config.n_layer


def test_a_readout_of_its_own():
    theirs = gpt2(tie_word_embeddings=False)
    theirs.lm_head.weight = nn.Parameter(torch.randn(31, 24))
    model = interop.gpt_from_gpt2(theirs.state_dict(), num_heads=4)
    with torch.no_grad():
        assert_same_logits(model, theirs(TOKENS).logits)
    assert not model.tied


@pytest.mark.parametrize(
    "changes",
    [{"activation_function": "relu"}, {"activation_function": "gelu"}, {"layer_norm_epsilon": 0.1}],
    ids=str,
)
def test_what_the_file_beside_says_is_done(tmp_path, changes):
    theirs = gpt2(**changes)
    theirs.save_pretrained(tmp_path)
    model = interop.gpt_from_gpt2(tmp_path / "model.safetensors", num_heads=4)
    with torch.no_grad():
        wanted = theirs(TOKENS).logits
    assert_same_logits(model, wanted)
    without = interop.gpt_from_gpt2(theirs.state_dict(), num_heads=4)
    assert (without(TOKENS).logits["next"] - wanted).abs().max() > 1e-4  # weights don't tell


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_weights_are_copies_in_their_own_dtype(dtype):
    state = {name: x.to(dtype) for name, x in gpt2().state_dict().items()}
    before = torch.get_rng_state()
    model = interop.gpt_from_gpt2(state, num_heads=4)
    assert torch.equal(torch.get_rng_state(), before)  # nothing was drawn
    kept = model(TOKENS).logits["next"].clone()
    for tensor in state.values():
        tensor.fill_(7)
    assert torch.equal(model(TOKENS).logits["next"], kept) and kept.dtype == dtype
    for parameter in model.parameters():
        assert parameter.is_contiguous() and parameter.requires_grad
        assert parameter.untyped_storage().nbytes() == parameter.nbytes


# --- nanoGPT -------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("prefix", ["", "_orig_mod."])
def test_nanogpt(bias, prefix):
    theirs = randomize(NanoGPT(bias))
    state = {prefix + name: x for name, x in theirs.state_dict().items()}
    model = interop.gpt_from_nanogpt(state, num_heads=4)
    with torch.no_grad():
        assert_same_logits(model, theirs(TOKENS))
    assert model.tied and (model.blocks[0].attention.W_q.bias is not None) == bias
    assert (model.final_norm.bias is not None) == bias


# --- bad input -----------------------------------------------------------------------------------


def state(**changes):
    """A GPT-2's tensors; `changes` replace some (dots are written __), None removes one."""
    shapes = {"wte.weight": (11, 8), "wpe.weight": (7, 8), "ln_f.weight": (8,), "ln_f.bias": (8,)}
    parts = {"attn.c_attn": (8, 24), "attn.c_proj": (8, 8), "mlp.c_fc": (8, 32)}
    parts |= {"mlp.c_proj": (32, 8), "ln_1": (8,), "ln_2": (8,)}
    for layer in range(2):
        for name, shape in parts.items():
            shapes[f"h.{layer}.{name}.weight"] = shape
            shapes[f"h.{layer}.{name}.bias"] = shape[-1:]
    tensors = {f"transformer.{name}": torch.randn(shape) for name, shape in shapes.items()}
    tensors |= {name.replace("__", "."): tensor for name, tensor in changes.items()}
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def load(source=None, num_heads=2, **changes):
    return lambda: interop.gpt_from_gpt2(source or state(**changes), num_heads=num_heads)


def nano(source=None, **changes):
    return lambda: interop.gpt_from_nanogpt(source or state(**changes), num_heads=2)


def test_each_tensor_that_is_missing_is_named():
    for name in state():
        told = name.removeprefix("transformer.") if "wte" in name else name
        if "ln_f.bias" in name:  # then none has biases, and those that are there are too many
            told = "transformer.h.0.attn.c_attn.bias"
        assert_refused(load(state(**{name.replace(".", "__"): None})), [f"'{told}'"], ValueError)


REFUSED = [
    (["got also", "transformer.h.1.adapter.weight"],
        load(transformer__h__1__adapter__weight=torch.ones(2))),
    (["GPT-2 alone", "score.weight"], load(score__weight=torch.ones(2, 8))),
    (["lm_head.bias"], load(lm_head__weight=torch.ones(11, 8), lm_head__bias=torch.ones(11))),
    (["'lm_head.weight'", "[11, 8]", "[12, 8]"], load(lm_head__weight=torch.ones(12, 8))),
    (["rotary.inv_freq"], load(transformer__rotary__inv_freq=torch.ones(2))),
    (["'transformer.h.1.mlp.c_fc.weight'", "[8, 32]", "[8, 31]"],
        load(transformer__h__1__mlp__c_fc__weight=torch.ones(8, 31))),
    (["'transformer.wte.weight'", "2 dimensions", "[8]"],
        load(transformer__wte__weight=torch.ones(8))),
    (["c_attn.weight", "use gpt_from_nanogpt"],
        load(transformer__h__0__attn__c_attn__weight=torch.ones(24, 8))),
    (["c_attn.weight", "[24, 8]", "use gpt_from_gpt2"], nano()),
    (["'transformer.h.0.mlp.c_fc.weight'", "without it"],
        load({name: x for name, x in state().items() if ".h.0." not in name})),
    (["whole model", "'wte.weight'", "1 tensor"],
        load({"h.0.attn.c_attn.weight": torch.ones(8, 24)})),
    (["whole model", "2 models"], load(state() | {f"b.{name}": x for name, x in state().items()})),
    (["source['model']"], nano({"model": state(), "step": 3})),
    (["num_heads=3"], load(num_heads=3)),
    (["finite", "final_norm.bias"], load(transformer__ln_f__bias=torch.full((8,), math.nan))),
]  # fmt: skip


def test_only_a_transposed_matrix_gets_the_hint_to_use_another_loader():
    for changes in ({"wte__weight": torch.ones(8)}, {"h__1__mlp__c_fc__weight": torch.ones(8, 31)}):
        with pytest.raises(ValueError) as caught:
            load(**{f"transformer__{name}": x for name, x in changes.items()})()
        assert "use gpt_from" not in str(caught.value)


@pytest.mark.parametrize(("words", "call"), REFUSED)
def test_what_does_not_fit_is_refused(words, call):
    assert_refused(call, words)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"n_head": 4}, ["num_heads", "4", "got 2"]),
        ({"activation_function": "silu"}, ["activation", "gelu_new", "'silu'"]),
        ({"scale_attn_by_inverse_layer_idx": True}, ["scale_attn_by_inverse_layer_idx"]),
        ({"model_type": "gpt_bigcode"}, ["gpt_bigcode"]),
    ],
)
def test_what_the_file_beside_says_and_gpt_can_not_do(tmp_path, config, words):
    save_file(state(), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert_refused(load(tmp_path / "model.safetensors"), words)
