"""Where weights come from, what happens to them, and what is said when they can't be had."""

import re
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tools.refusing import assert_refused
from torch import nn

from attnlib import MultiHeadAttention, interop
from attnlib.interop import _sources


def gpt2_state(prefix="transformer.", num_layers=2, **changes):
    """Random weights in GPT-2's layout; `changes` replace tensors of layer 0, None removes one."""
    shapes = {"c_attn.weight": (8, 24), "c_attn.bias": (24,), "c_proj.weight": (8, 8)}
    shapes |= {"c_proj.bias": (8,), "bias": (1, 1, 9, 9), "masked_bias": ()}  # masks of old files
    state = {f"{prefix}wte.weight": torch.randn(31, 8)}
    for layer in range(num_layers):
        state |= {f"{prefix}h.{layer}.attn.{n}": torch.randn(s) for n, s in shapes.items()}
    return changed(state, f"{prefix}h.0.attn.", changes)


def nanogpt_state(**options):
    """The same as `nn.Linear` holds it."""
    state = gpt2_state(**options)
    return {name: x.T.contiguous() if x.dim() == 2 else x for name, x in state.items()}


def bert_state(prefix="bert.", **changes):
    """Random weights of one layer in BERT's layout, some replaced."""
    place = f"{prefix}encoder.layer.0.attention."
    names = ("self.query", "self.key", "self.value", "output.dense")
    state = {f"{place}{name}.weight": torch.randn(8, 8) for name in names}
    state |= {f"{place}{name}.bias": torch.randn(8) for name in names}
    return changed(state, place, changes)


def changed(state, place, changes):
    state |= {place + name.replace("__", "."): tensor for name, tensor in changes.items()}
    return {name: tensor for name, tensor in state.items() if tensor is not None}


@pytest.fixture
def in_file(tmp_path):
    """Return a function that saves a state dict into a file."""

    def save(state):
        save_file(state, tmp_path / "model.safetensors")
        return tmp_path / "model.safetensors"

    return save


def loaded(in_file):
    """Give modules with the tensors that they were loaded from."""
    yield interop.from_gpt2(in_file(gpt2_state()), 1, num_heads=2), []
    layers = [nn.Linear(8, 8) for _ in range(4)]
    yield interop.from_projections(*layers, num_heads=2), [layer.weight.data for layer in layers]
    for state, load in (
        (gpt2_state(), interop.from_gpt2),
        (nanogpt_state(), interop.from_nanogpt),
        (bert_state(), interop.from_bert),
    ):
        yield load(state, 0, num_heads=2), state.values()
    for widths in ({}, {"kdim": 5}):
        theirs = nn.MultiheadAttention(8, 2, **widths)
        yield interop.from_torch(theirs), [p.data for p in theirs.parameters()]


@pytest.mark.parametrize(("bias", "prefix"), [(True, "_orig_mod.transformer."), (False, "")])
def test_nanogpt_is_a_gpt2_with_transposed_matrices(bias, prefix, recwarn):
    """Layers are counted, not spelled: 10 comes after 9, and 1 isn't 11."""
    torch.manual_seed(0)
    state = gpt2_state(prefix, num_layers=12)
    torch.manual_seed(0)
    nano = nanogpt_state(prefix=prefix, num_layers=12)
    if not bias:
        for name in [name for name in nano if name.endswith(("attn.bias", "proj.bias"))]:
            del nano[name]
            state[name].zero_()
    assert interop.layers(nano) == list(range(12))
    x = torch.randn(2, 5, 8)
    for layer in (1, 11):
        attention = interop.from_nanogpt(nano, layer, num_heads=2)
        assert torch.equal(attention(x)[0], interop.from_gpt2(state, layer, num_heads=2)(x)[0])
        assert (attention.W_o.bias is not None) == bias
    assert bool(recwarn.list) == bias  # which GPTBigCode's tensors have, too


def test_weights_are_copies_that_learn(in_file):
    for module, sources in loaded(in_file):
        before = [p.detach().clone() for p in module.parameters()]
        for tensor in sources:
            tensor.fill_(7.0)
        assert all(map(torch.equal, before, module.parameters()))
        key = torch.randn(1, 3, module.kdim)
        module(torch.randn(1, 3, 8), key, torch.randn(1, 3, 8))[0].square().sum().backward()
        assert type(module) is MultiHeadAttention
        for parameter in module.parameters():
            assert isinstance(parameter, nn.Parameter) and parameter.grad.isfinite().all()
            assert parameter.is_contiguous()  # and drags no larger tensor along
            assert parameter.untyped_storage().nbytes() == parameter.nbytes


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_dtype_and_device_stay(dtype, in_file):
    layers = [nn.Linear(8, 8, dtype=dtype) for _ in range(4)]
    assert interop.from_projections(*layers, num_heads=2).W_k.weight.dtype == dtype
    state = {name: x.to(dtype) for name, x in gpt2_state().items()}
    for source in (state, in_file(state)):
        assert interop.from_gpt2(source, 0, num_heads=2).W_q.bias.dtype == dtype
    elsewhere = {name: x.to("meta") for name, x in state.items()}
    assert interop.from_gpt2(elsewhere, 0, num_heads=2).W_o.weight.is_meta


def test_only_the_tensors_needed_are_read(in_file, monkeypatch):
    """Also of a part of a model, as files hold that a large one was cut into."""
    state = {name: x for name, x in gpt2_state(num_layers=5).items() if ".h.2." not in name}
    file, fetched, tensors_of = in_file(state), [], _sources.Tensors

    def watched(names, read, **config):
        return tensors_of(names, lambda name: fetched.append(name) or read(name), **config)

    monkeypatch.setattr(_sources, "Tensors", watched)
    assert interop.layers(str(file)) == [0, 1, 3, 4] and fetched == []
    interop.from_gpt2(file, 1, num_heads=2)
    names = ("c_attn.weight", "c_attn.bias", "c_proj.weight", "c_proj.bias")
    assert set(fetched) == {f"transformer.h.1.attn.{name}" for name in names}


def test_missing_safetensors(in_file, monkeypatch):
    file = in_file(gpt2_state())
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match="pip install safetensors"):
        interop.layers(file)


def gpt2(source=None, layer=0, num_heads=2, **changes):
    return interop.from_gpt2(source or gpt2_state(**changes), layer, num_heads=num_heads)


def bert(**changes):
    return interop.from_bert(bert_state(**changes), 0, num_heads=2)


def theirs_with(**parts):
    module = nn.MultiheadAttention(8, 2)
    for name, part in parts.items():
        setattr(module, name, part)
    return module


checkpoint = {"model": gpt2_state(), "optimizer": {"state": {}}, "best": torch.tensor(1.0)}

REFUSED = [
    *(([f"{option}=True", "one more key"],
        lambda option=option: interop.from_torch(nn.MultiheadAttention(8, 2, **{option: True})))
        for option in ("add_bias_kv", "add_zero_attn")),
    (["module", "quantization"],
        lambda: interop.from_torch(torch.ao.nn.quantizable.MultiheadAttention(8, 2))),
    (["module", "dict"], lambda: interop.from_torch({})),
    (["pass layer.layers[0].self_attn or layer.layers[1].self_attn"],
        lambda: interop.from_torch(
            nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True), 2))),
    (["from_projections", "from_bert"],
        lambda: interop.from_torch(nn.ModuleDict({"query": nn.Linear(8, 8)}))),
    (["weights alone", "hook"], lambda: interop.from_torch(theirs_with(forward=print))),
    (["fit each other", "W_q.bias", "[8]", "[4]"],
        lambda: interop.from_torch(theirs_with(in_proj_bias=nn.Parameter(torch.ones(12))))),
    (["source", "state dict", "Linear", ".state_dict()"], lambda: gpt2(nn.Linear(8, 8))),
    (["source", "got no tensors"], lambda: interop.layers({})),
    (["'h.0.attn.c_attn.weight'", "1 tensor ('best')", "so pass source['model']"],
        lambda: gpt2(checkpoint)),
    (["GPT-2's", "6 tensors", "'layer0'", "..."],
        lambda: gpt2({f"layer{i}": torch.ones(1) for i in range(6)})),
    (["GPT-2's", "it looks like BERT's"], lambda: gpt2(bert_state())),
    (["one model", "'decoder.h.{}.attn.'", "'encoder.encoder.layer.{}.attention.'"],
        lambda: interop.layers(gpt2_state("decoder.") | bert_state("encoder."))),
    (["one model", "'student.h.{}.attn.'", "'teacher.h.{}.attn.'"],
        lambda: gpt2(gpt2_state("teacher.") | gpt2_state("student."))),
    (["layer", "[0, 1]", "got 2"], lambda: gpt2(layer=2)),
    (["layer", "-1"], lambda: gpt2(layer=-1)),
    (["d_model=8", "num_heads=3", "[1, 2, 4, 8]"], lambda: gpt2(num_heads=3)),
    (["finite", "4 of the 8 numbers", "W_o.bias"],
        lambda: bert(output__dense__bias=torch.tensor([1.0, -torch.inf] * 4))),
    (["c_attn.weight", "[8, 24]", "[24, 8]", "use from_nanogpt"], lambda: gpt2(nanogpt_state())),
    (["c_attn.weight", "[24, 8]", "[8, 24]", "use from_gpt2"],
        lambda: interop.from_nanogpt(gpt2_state(), 0, num_heads=2)),
    (["device", "on cpu", "on meta"], lambda: gpt2(c_proj__bias=torch.ones(8, device="meta"))),
    (["float8", "quantized"],
        lambda: gpt2({n: x.to(torch.float8_e4m3fn) for n, x in gpt2_state().items()})),
    (["'transformer.h.0.attn.c_proj.weight' must be dense numbers", "sparse_coo"],
        lambda: gpt2(c_proj__weight=torch.eye(8).to_sparse())),
    (["absolute positions", "distance_embedding"],
        lambda: bert(self__distance_embedding__weight=torch.ones(5, 4))),
]  # fmt: skip


@pytest.mark.parametrize(("words", "call"), REFUSED)
def test_what_does_not_fit_is_refused(words, call):
    assert_refused(call, words)


@pytest.mark.parametrize(
    ("load", "state"), [(interop.from_gpt2, gpt2_state()), (interop.from_bert, bert_state())]
)
def test_a_tensor_that_is_missing_or_of_another_shape_is_named(load, state):
    names = [
        name
        for name in state
        if "0.att" in name and not name.endswith((".attn.bias", "masked_bias"))
    ]
    for name in names:
        for wrong in (None, torch.ones(5), torch.ones(8, 6), torch.tensor(1.0)):
            tensors = {other: x for other, x in state.items() if other != name}
            if wrong is not None:
                tensors[name] = wrong
            elif name == names[0]:  # without which there is no such layer
                continue
            with pytest.raises(ValueError, match=re.escape(f"'{name}'")):
                load(tensors, 0, num_heads=2)


def test_bad_files(in_file, tmp_path):
    whole = in_file(gpt2_state()).read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[:-100])
    for other in ("pytorch_model.bin", "model.safetensors.index.json"):
        (tmp_path / other).touch()
    for name, error, words in (
        ("gpt2", FileNotFoundError, ["gpt2'", "no such file", "nothing is downloaded"]),
        ("pytorch_model.bin", ValueError, ["pytorch_model.bin", "weights_only=True"]),
        ("model.safetensors.index.json", ValueError, ["another kind", ".json"]),
        ("cut.safetensors", ValueError, ["cut.safetensors", "can't be read", "to its end"]),
        ("", ValueError, ["a folder", "'cut.safetensors'", "'model.safetensors'"]),
    ):
        assert_refused(lambda name=name: interop.layers(Path(tmp_path, name)), words, error)
