"""Loaded attention computes what the one that it comes from computes: modules, four projections.

Models of `transformers` are compared in `test_interop_families.py`.
"""

import pytest
import torch
from tools.modules import F64, make_module, randomize
from tools.refusing import assert_refused
from torch import nn
from torch.nn.utils import parametrizations

from attnlib import interop


@pytest.mark.parametrize(("bias", "batch_first"), [(True, True), (False, False)])
@pytest.mark.parametrize("widths", [{}, {"kdim": 7, "vdim": 5}], ids=str)
def test_torch(bias, batch_first, widths):
    options = {"bias": bias, "batch_first": batch_first, "dtype": F64, **widths}
    theirs = randomize(nn.MultiheadAttention(12, 4, **options))
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
    options = {"dropout": 0.3, "dtype": torch.bfloat16, "device": "meta"}
    ours = interop.from_torch(nn.MultiheadAttention(12, 4, **options).train(training))
    assert (ours.dropout, ours.training, ours.W_o.training) == (0.3, training, training)
    assert all(p.dtype == torch.bfloat16 and p.is_meta for p in ours.parameters())


FORMS = {
    "layers": lambda layer: layer,
    "pairs": lambda layer: (layer.weight, layer.bias),
    "parametrized layers": parametrizations.weight_norm,
    "matrices": lambda layer: layer.weight,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("options", [{"num_kv_heads": 2}, {"kdim": 5, "vdim": 7}], ids=str)
def test_four_projections_in_each_form(form, options):
    bias = form != FORMS["matrices"]
    theirs = make_module(12, 4, bias=bias, **options)
    inputs = [torch.randn(2, 3, width, dtype=F64) for width in (12, theirs.kdim, theirs.vdim)]
    expected = theirs(*inputs, need_weights=True)
    kv_heads = {"num_kv_heads": theirs.num_kv_heads}
    layers = (theirs.W_q, theirs.W_k, theirs.W_v, theirs.W_o)
    ours = interop.from_projections(*map(form, layers), num_heads=4, **kv_heads)
    torch.testing.assert_close(ours(*inputs, need_weights=True), expected)
    assert (ours.W_q.bias is not None) == bias
    sizes = ("d_model", "num_heads", "num_kv_heads", "kdim", "vdim")
    assert all(getattr(ours, size) == getattr(theirs, size) for size in sizes)


def test_a_bias_that_one_lacks_is_zero():
    layers = [nn.Linear(12, 12, bias=name != "k") for name in "qkvo"]
    ours = interop.from_projections(*layers, num_heads=4)
    assert not ours.W_k.bias.any() and torch.equal(ours.W_q.bias, layers[0].bias)


def hooked(layer):
    layer.register_forward_pre_hook(lambda _, inputs: (2 * inputs[0],))
    return layer


Conv1D = type("Conv1D", (nn.Linear,), {"forward": nn.Linear.forward})  # as transformers name one
REFUSED = [
    (["q must be", "Conv1D", "hooked"], {"q": hooked(Conv1D(12, 12))}),
    (["q must be an nn.Linear", "hooked"], {"q": hooked(nn.Linear(12, 12))}),
    (["out must be dense numbers", "sparse_coo"], {"out": (torch.eye(12).to_sparse(), None)}),
    (["floating point", "qint8"],
        {"q": (torch.quantize_per_tensor(torch.ones(12, 12), 0.1, 0, torch.qint8), None)}),
    (["q must", "[36, 36]", "[36, 12]"], {"q": nn.Linear(12, 36)}),
    (["q must", "pair", "list"], {"q": [torch.ones(12, 12), None]}),
    (["k must", "[12]"], {"k": torch.ones(12)}),
    (["k must", "bias [1]"], {"k": (torch.ones(12, 12), torch.ones(1))}),
    (["share dtype"], {"v": torch.ones(12, 12, dtype=F64)}),
    (["finite", "W_v.weight"], {"v": torch.full((12, 12), torch.nan)}),
    (["out must", "[12, 12]"], {"out": nn.Linear(24, 12)}),
    (["k must", "[12, 'any width']", "[6, 12]", "num_kv_heads=2"],
        {"k": nn.Linear(12, 6), "v": nn.Linear(12, 6)}),
    (["num_heads=5"], {"num_heads": 5}),
    (["num_kv_heads", "str"], {"num_kv_heads": "4"}),
    (["num_kv_heads=3"], {"num_kv_heads": 3, "k": nn.Linear(12, 9), "v": nn.Linear(12, 9)}),
]  # fmt: skip


@pytest.mark.parametrize(("words", "changes"), REFUSED)
def test_projections_that_do_not_fit_are_refused(words, changes):
    arguments = {name: nn.Linear(12, 12) for name in ("q", "k", "v", "out")} | {"num_heads": 4}
    assert_refused(lambda: interop.from_projections(**arguments | changes), words)
