"""Whole GPTs of other libraries: the same logits, or a refusal that names the tensor.

GPT-2s are tiny, random and made by `transformers`, which looks up nothing anywhere.
"""

import json
import math
import os

import pytest
import torch
from safetensors.torch import save_file
from tools.modules import randomize
from tools.refusing import assert_refused

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


@pytest.mark.parametrize("source", ["with buffers", "file", "compiled", "bare", "untied"])
def test_gpt2(tmp_path, source):
    tied = source != "untied"
    changes = {"n_inner": 10, "activation_function": "gelu_pytorch_tanh"}  # GPT-2's by another name
    theirs = gpt2(tie_word_embeddings=tied, **changes if source == "file" else {})
    state = theirs.state_dict()
    if source == "with buffers":  # the masks of old files
        state["transformer.h.2.attn.bias"] = torch.ones(1, 1, 17, 17).bool()
        state["transformer.h.2.attn.masked_bias"] = torch.tensor(-1e4)
    elif source == "file":
        theirs.save_pretrained(tmp_path)
        state = tmp_path / "model.safetensors"
    elif source == "compiled":
        state = {f"_orig_mod.{name}": x for name, x in state.items()}  # as torch.compile names them
    elif source == "bare":
        state = theirs.transformer.state_dict()
    model = interop.gpt_from_gpt2(state, num_heads=4)
    assert_same_logits(model, theirs(TOKENS).logits)
    assert model.tied == tied and len(model.blocks) == 3


@pytest.mark.parametrize("changes", [{"activation_function": "gelu"}, {"layer_norm_epsilon": 0.1}])
def test_what_the_file_beside_says_is_done(tmp_path, changes):
    theirs = gpt2(**changes)
    theirs.save_pretrained(tmp_path)
    wanted = theirs(TOKENS).logits
    assert_same_logits(interop.gpt_from_gpt2(tmp_path / "model.safetensors", num_heads=4), wanted)
    without = interop.gpt_from_gpt2(theirs.state_dict(), num_heads=4)
    assert (without(TOKENS).logits["next"] - wanted).abs().max() > 1e-4  # weights don't tell


def test_weights_are_copies_in_their_own_dtype():
    state = {name: x.bfloat16() for name, x in gpt2().state_dict().items()}
    model = interop.gpt_from_gpt2(state, num_heads=4)
    kept = model(TOKENS).logits["next"]
    for tensor in state.values():
        tensor.fill_(7)
    assert torch.equal(model(TOKENS).logits["next"], kept) and kept.dtype == torch.bfloat16
    for parameter in model.parameters():
        assert parameter.is_contiguous() and parameter.requires_grad
        assert parameter.untyped_storage().nbytes() == parameter.nbytes


@pytest.mark.parametrize("bias", [True, False])
def test_nanogpt(bias):
    """It is a GPT-2 with the exact GELU, transposed matrices, and perhaps no bias."""
    theirs = gpt2(activation_function="gelu")
    nano = {}
    for name, tensor in theirs.state_dict().items():
        if name.endswith("bias") and not bias:
            tensor.zero_()
        else:
            is_layer = ".h." in name and tensor.dim() == 2
            nano[name] = tensor.T.contiguous() if is_layer else tensor
    model = interop.gpt_from_nanogpt(nano, num_heads=4)
    assert_same_logits(model, theirs(TOKENS).logits)
    assert model.tied and (model.blocks[0].attention.W_q.bias is not None) == bias
    assert (model.final_norm.bias is not None) == bias


def state(**changes):
    """A GPT-2's tensors; `changes` replace some (dots are written __), None removes one."""
    bare = gpt2("GPT2Model", n_embd=8, n_head=2, n_layer=2, vocab_size=11, n_positions=7)
    tensors = {f"transformer.{name}": tensor for name, tensor in bare.state_dict().items()}
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
    (["lm_head.bias"], load(lm_head__weight=torch.ones(11, 8), lm_head__bias=torch.ones(11))),
    (["'lm_head.weight'", "[11, 8]", "[12, 8]"], load(lm_head__weight=torch.ones(12, 8))),
    (["'transformer.h.1.mlp.c_fc.weight'", "[8, 32]", "[8, 31]"],
        load(transformer__h__1__mlp__c_fc__weight=torch.ones(8, 31))),
    (["'transformer.wte.weight'", "2 dimensions", "[8]"],
        load(transformer__wte__weight=torch.ones(8))),
    (["c_attn.weight", "use gpt_from_nanogpt"],
        load(transformer__h__0__attn__c_attn__weight=torch.ones(24, 8))),
    (["c_attn.weight", "[24, 8]", "use gpt_from_gpt2"], nano()),
    (["'transformer.h.0.mlp.c_fc.weight'", "without it"],
        load({name: x for name, x in state().items() if ".h.0." not in name})),
    (["whole model", "2 models"], load(state() | {f"b.{name}": x for name, x in state().items()})),
    (["source['model']"], nano({"model": state(), "step": 3})),
    (["num_heads=3"], load(num_heads=3)),
    (["finite", "final_norm.bias"], load(transformer__ln_f__bias=torch.full((8,), math.nan))),
]  # fmt: skip


@pytest.mark.parametrize(("words", "call"), REFUSED)
def test_what_does_not_fit_is_refused(words, call):
    assert_refused(call, words)


def test_what_the_file_beside_says_and_gpt_can_not_do(tmp_path):
    save_file(state(), tmp_path / "model.safetensors")
    for config, words in (
        ({"n_head": 4}, ["num_heads", "4", "got 2"]),
        ({"activation_function": "silu"}, ["activation", "gelu_new", "'silu'"]),
        ({"scale_attn_by_inverse_layer_idx": True}, ["scale_attn_by_inverse_layer_idx"]),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert_refused(load(tmp_path / "model.safetensors"), words)
