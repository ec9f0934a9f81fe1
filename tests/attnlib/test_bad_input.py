"""Bad input gets an error that names the argument, what came and what was wanted."""

import json

import numpy as np
import pytest
import torch

from attnlib import (
    FeedForward,
    LayerNorm,
    MultiHeadAttention,
    TransformerBlock,
    causal_mask,
    merge_heads,
    padding_mask,
    scaled_dot_product_attention,
    split_heads,
)
from attnlib.checks import require_count, require_number, require_positive_int
from attnlib.model import TaskSizes, TransformerModel
from attnlib.rng import Sfc32


def attend(**changes):
    """Call a module of width 8 with 2 heads on [2, 3, 8], with some arguments replaced."""
    arguments = {"query": torch.randn(2, 3, 8)} | changes
    return MultiHeadAttention(8, 2)(**arguments)


@torch.no_grad()
def quietly(**changes):
    return attend(**changes)


def small(**options):
    """A module of width 8 with 4 heads, some sizes replaced."""
    return MultiHeadAttention(8, 4, **options)


def sdpa(q=(2, 4, 5, 3), k=(2, 4, 6, 3), v=(2, 4, 6, 3), mask=None, **options):
    q, k, v = (torch.randn(x) if isinstance(x, tuple) else x for x in (q, k, v))
    return scaled_dot_product_attention(q, k, v, mask, **options)


true = {"dtype": torch.bool}
ids = torch.zeros(2, 3, 8, dtype=torch.long)

CASES = {
    # the constructor
    "heads don't divide": (lambda: MultiHeadAttention(8, 3), ValueError,
        ["d_model=8", "num_heads=3", "divisible", "[1, 2, 4, 8]"]),
    "no heads": (lambda: MultiHeadAttention(8, 0), ValueError, ["num_heads", "at least 1", "0"]),
    "negative width": (lambda: MultiHeadAttention(-8, 2), ValueError, ["d_model", "-8"]),
    "heads as float": (lambda: MultiHeadAttention(8, 2.0), TypeError, ["num_heads", "float"]),
    "heads as bool": (lambda: MultiHeadAttention(8, True), TypeError, ["num_heads", "bool"]),
    # the module's input
    "wrong last dimension": (lambda: attend(query=torch.randn(2, 3, 7)), ValueError,
        ["query", "d_model=8", "[2, 3, 7]"]),
    "wrong key width": (lambda: attend(key=torch.randn(2, 3, 7)), ValueError,
        ["key", "d_model=8", "[2, 3, 7]"]),
    "no batch": (lambda: attend(query=torch.randn(3, 8)), ValueError,
        ["query", "[B, T, 8]", "[3, 8]", "unsqueeze"]),
    "no tokens": (lambda: attend(query=torch.randn(2, 0, 8)), ValueError,
        ["query", "at least one token", "[2, 0, 8]"]),
    "no keys": (lambda: attend(key=torch.randn(2, 0, 8)), ValueError, ["key", "[2, 0, 8]"]),
    "token ids": (lambda: attend(query=ids), TypeError, ["query", "int64", "embedded"]),
    "a list": (lambda: attend(query=[[1.0]]), TypeError, ["query", "torch.Tensor", "list"]),
    "other dtype": (lambda: attend(query=torch.randn(2, 3, 8).double()), TypeError,
        ["query", "float64", "float32"]),
    "other batch": (lambda: attend(key=torch.randn(3, 3, 8)), ValueError,
        ["key", "batch", "[3, 3, 8]", "[2, 3, 8]"]),
    "other device": (lambda: attend(query=torch.empty(2, 3, 8, device="meta")), ValueError,
        ["query", "meta", "cpu"]),
    "values without keys": (
        lambda: attend(key=torch.randn(2, 4, 8), value=torch.randn(2, 5, 8)), ValueError,
        ["value", "[2, 5, 8]", "[2, 4, 8]"]),
    # masks
    "float mask": (lambda: attend(mask=torch.ones(3, 3)), TypeError,
        ["mask", "boolean", "True = may look", "float32"]),
    "integer key mask": (lambda: attend(key_mask=torch.ones(2, 3).int()), TypeError,
        ["key_mask", "boolean", "int32"]),
    "mask of another length": (lambda: attend(mask=torch.ones(4, 4, **true)), ValueError,
        ["mask", "[T_q=3, T_k=3]", "[4, 4]"]),
    "padding passed as mask": (lambda: attend(mask=torch.ones(2, 3, **true)), ValueError,
        ["mask", "[2, 3]", "key_mask"]),
    "mask of another batch": (lambda: attend(mask=torch.ones(3, 3, 3, **true)), ValueError,
        ["mask", "[B=2, T_q=3, T_k=3]", "[3, 3, 3]"]),
    "mask of heads": (lambda: attend(mask=torch.ones(4, 3, 3, **true)), ValueError,
        ["mask", "[B=2, T_q=3, T_k=3]"]),
    "1-D mask": (lambda: attend(mask=torch.ones(3, **true)), ValueError, ["mask", "[3]"]),
    "short key mask": (lambda: attend(key_mask=torch.ones(2, 2, **true)), ValueError,
        ["key_mask", "[B=2, T_k=3]", "[2, 2]"]),
    "causal with other keys": (lambda: attend(key=torch.randn(2, 4, 8), causal=True), ValueError,
        ["causal", "T_q=3", "T_k=4"]),
    # the module's other options
    "key heads don't divide": (lambda: small(num_kv_heads=3), ValueError,
        ["num_heads=4", "num_kv_heads=3", "[1, 2, 4]"]),
    "more key heads": (lambda: small(num_kv_heads=8), ValueError, ["num_kv_heads=8", "[1, 2, 4]"]),
    "no key heads": (lambda: small(num_kv_heads=0), ValueError, ["num_kv_heads", "at least 1"]),
    "key width as float": (lambda: small(kdim=8.0), TypeError, ["kdim", "float"]),
    "no value width": (lambda: small(vdim=0), ValueError, ["vdim", "at least 1", "0"]),
    "whole numbers": (lambda: small(dtype=torch.int64), TypeError, ["dtype", "int64", "floating"]),
    "complex numbers": (lambda: small(dtype=torch.complex64), TypeError, ["dtype", "complex64"]),
    "dtype as text": (lambda: small(dtype="float32"), TypeError, ["dtype", "'float32'"]),
    "network of whole numbers": (lambda: FeedForward(8, dtype=torch.int8), TypeError, ["dtype"]),
    "norm of whole numbers": (lambda: LayerNorm(8, dtype=torch.int8), TypeError, ["dtype"]),
    "block of whole numbers": (lambda: TransformerBlock(8, 2, dtype=torch.bool), TypeError,
        ["dtype", "bool"]),
    "dropout as percent": (lambda: small(dropout=10), ValueError, ["dropout", "below 1", "10"]),
    "negative dropout": (lambda: small(dropout=-0.1), ValueError, ["dropout", "-0.1"]),
    "dropout of all": (lambda: small(dropout=1.0), ValueError, ["dropout", "below 1", "1.0"]),
    "dropout as text": (lambda: small(dropout="0.1"), TypeError, ["dropout", "str"]),
    "dropout as bool": (lambda: small(dropout=True), TypeError, ["dropout", "bool"]),
    "key forgotten": (lambda: small(kdim=5)(torch.randn(2, 3, 8)), ValueError,
        ["key", "kdim=5", "[2, 3, 8]"]),
    "value forgotten": (lambda: small(kdim=5, vdim=6)(torch.randn(2, 3, 8), torch.randn(2, 3, 5)),
        ValueError, ["value", "vdim=6", "[2, 3, 5]"]),
    "bias of integers": (lambda: attend(score_bias=torch.ones(3, 3).int()), TypeError,
        ["score_bias", "int32"]),
    "bias of another length": (lambda: attend(score_bias=torch.ones(4, 4)), ValueError,
        ["score_bias", "[T_q=3, T_k=3]", "[4, 4]"]),
    "bias a head without a batch": (lambda: attend(score_bias=torch.ones(2, 3, 3)), ValueError,
        ["score_bias", "[2, 3, 3]", "[1, h, T_q, T_k]"]),
    "bias on another device": (lambda: attend(score_bias=torch.ones(3, 3, device="meta")),
        ValueError, ["score_bias", "meta", "cpu"]),
    "weights for a number": (lambda: attend(weights_for=1), TypeError,
        ["weights_for", "list", "1"]),
    "weights for a word": (lambda: attend(weights_for="01"), TypeError, ["weights_for", "'01'"]),
    "weights for no head": (lambda: attend(weights_for=[]), ValueError, ["weights_for", "empty"]),
    "weights for a head too far": (lambda: attend(weights_for=[0, 2]), ValueError,
        ["weights_for", "0 to 1", "2"]),
    "weights from the end": (lambda: attend(weights_for=[-1]), ValueError, ["weights_for", "-1"]),
    "weights for a float": (lambda: attend(weights_for=[1.0]), TypeError, ["weights_for", "float"]),
    "memory with gradients": (lambda: attend(weights_out=torch.empty(2, 2, 3, 3)), ValueError,
        ["weights_out", "no_grad"]),
    "memory of another shape": (lambda: quietly(weights_out=torch.empty(2, 3, 3)), ValueError,
        ["weights_out", "[2, 2, 3, 3]", "[2, 3, 3]"]),
    "memory with gaps": (lambda: quietly(weights_out=torch.empty(2, 2, 3, 6)[..., ::2]), ValueError,
        ["weights_out", "contiguous", "strides"]),
    "memory of another dtype": (lambda: quietly(weights_out=torch.empty(2, 2, 3, 3).double()),
        TypeError, ["weights_out", "float64", "float32"]),
    "head mask of another length": (lambda: attend(head_mask=torch.ones(3)), ValueError,
        ["head_mask", "[h=2]", "[B=2, h=2]", "[3]"]),
    "causal as text": (lambda: attend(causal="no"), TypeError, ["causal", "True or False", "str"]),
    "causal as a mask": (lambda: attend(causal=torch.ones(3, 3).bool()), TypeError,
        ["causal", "True or False", "Tensor"]),
    "need_weights as heads": (lambda: attend(need_weights=[0]), TypeError,
        ["need_weights", "True or False", "list"]),
    "complex head mask": (lambda: attend(head_mask=torch.ones(2, dtype=torch.complex64)),
        TypeError, ["head_mask", "real", "complex64"]),
    "memory while a bias learns": (
        lambda: attend(
            score_bias=torch.zeros(3, 3, requires_grad=True), weights_out=torch.empty(2, 2, 3, 3)
        ), ValueError, ["weights_out", "gradients"]),
    "head mask as list": (lambda: attend(head_mask=[1, 0]), TypeError, ["head_mask", "list"]),
    "negative past": (lambda: causal_mask(3, past=-1), ValueError, ["past", "at least 0", "-1"]),
    "past as float": (lambda: causal_mask(3, past=1.0), TypeError, ["past", "float"]),
    "cache of another kind": (lambda: attend(cache={}), TypeError, ["cache", "KVCache", "dict"]),
    # the function
    "widths differ": (lambda: sdpa(k=(2, 4, 6, 2)), ValueError, ["k", "width", "[2, 4, 6, 2]"]),
    "rows differ": (lambda: sdpa(v=(2, 4, 5, 3)), ValueError, ["v", "row a key", "[2, 4, 5, 3]"]),
    "heads differ": (lambda: sdpa(k=(2, 1, 6, 3)), ValueError, ["k", "leading", "[2, 1, 6, 3]"]),
    "five dimensions": (lambda: sdpa(q=(1, 1, 1, 1, 1)), ValueError, ["q", "[1, 1, 1, 1, 1]"]),
    "one dimension": (lambda: sdpa(q=(3,)), ValueError, ["q", "[3]"]),
    "no queries": (lambda: sdpa(q=(2, 4, 0, 3)), ValueError, ["q", "at least one token"]),
    "integer queries": (lambda: sdpa(q=ids), TypeError, ["q", "int64"]),
    "mixed dtypes": (lambda: sdpa(k=torch.randn(2, 4, 6, 3).double()), TypeError,
        ["k", "float64", "q"]),
    "float mask in the function": (lambda: sdpa(mask=torch.ones(5, 6)), TypeError, ["mask"]),
    "4-D mask of 3-D scores": (
        lambda: sdpa((2, 5, 3), (2, 6, 3), (2, 6, 3), torch.ones(1, 1, 5, 6, **true)), ValueError,
        ["mask", "[1, 1, 5, 6]"]),
    # heads and masks
    "splitting 2-D": (lambda: split_heads(torch.randn(3, 8), 2), ValueError, ["x", "[3, 8]"]),
    "splitting unevenly": (lambda: split_heads(torch.randn(1, 3, 8), 3), ValueError, ["=8", "=3"]),
    "merging 3-D": (lambda: merge_heads(torch.randn(1, 3, 8)), ValueError, ["x", "[1, 3, 8]"]),
    "no causal tokens": (lambda: causal_mask(0), ValueError, ["T", "at least 1"]),
    "causal size as tensor": (lambda: causal_mask(torch.tensor(3)), TypeError, ["T", "Tensor"]),
    "lengths as list": (lambda: padding_mask([1, 2], 3), TypeError, ["lengths", "list"]),
    "lengths as floats": (lambda: padding_mask(torch.tensor([1.0]), 3), TypeError,
        ["lengths", "float32"]),
    "lengths 2-D": (lambda: padding_mask(torch.ones(2, 2).long(), 3), ValueError,
        ["lengths", "[B]", "[2, 2]"]),
    "lengths too long": (lambda: padding_mask(torch.tensor([1, 4]), 3), ValueError,
        ["lengths", "T=3", "[1, 4]"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name):
    call, error, words = CASES[name]
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert all(word in message for word in words), message


def test_numbers_of_numpy_are_numbers():
    require_positive_int("size", np.int64(3))
    require_count("place", np.uint8(0))
    for number in (np.float32(0.5), np.float64(0.5), np.int32(2)):
        require_number("scale", number)
    attention = MultiHeadAttention(np.int64(8), np.int32(2), dropout=np.float32(0.0))
    _, weights = attention(torch.randn(1, 3, 8), weights_for=[np.int64(1)])
    assert weights.shape == (1, 1, 3, 3)
    assert Sfc32(np.uint32(7)).shuffled(range(9)) == Sfc32(7).shuffled(range(9))


@pytest.mark.parametrize("flag", [True, np.True_])
def test_a_flag_is_no_number(flag):
    for require in (require_positive_int, require_count, require_number):
        with pytest.raises(TypeError, match="size must be"):
            require("size", flag)


def test_a_model_of_numpys_numbers_is_described_as_plain_json():
    sizes = TaskSizes(np.int64(5), np.int64(4), {"next": np.int64(5)})
    model = TransformerModel.of_sizes(sizes, np.int64(8), np.int64(2), dropout=np.float32(0.5))
    plain = TransformerModel.of_sizes(TaskSizes(5, 4, {"next": 5}), 8, 2, dropout=0.5)
    assert json.dumps(model.spec()) == json.dumps(plain.spec())
