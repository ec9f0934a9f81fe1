"""What doesn't fit is refused by name: the error's type, and the argument that it names first."""

import json
from functools import partial

import numpy as np
import pytest
import torch
from tools.refusing import assert_named, refusals

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
from attnlib.masks import combine_masks
from attnlib.model import TaskSizes, TransformerModel
from attnlib.positions import RotaryPositions
from attnlib.rng import Sfc32

ones, true = torch.ones, torch.ones(2, 3, 3).bool()
F64, WHOLE, COMPLEX = torch.float64, torch.int64, torch.complex64
elsewhere = {"device": "meta"}


def make(d_model=8, num_heads=4, **options):
    return MultiHeadAttention(d_model, num_heads, **options)


def attend(query=None, **arguments):
    """Call a module of width 8 with 2 heads on [2, 3, 8]."""
    return make(num_heads=2)(ones(2, 3, 8) if query is None else query, **arguments)


def sdpa(q=None, k=None, v=None, **options):
    q, k = (ones(2, 4, 5, 3) if x is None else x for x in (q, k))
    return scaled_dot_product_attention(q, k, ones(2, 4, 5, 3) if v is None else v, **options)


def cut(x=None, num_heads=2):
    return split_heads(ones(2, 3, 8) if x is None else x, num_heads)


def causal(T=3, past=0):
    return causal_mask(T, past=past)


def padding(lengths=None, T=3):
    return padding_mask(ones(2).long() if lengths is None else lengths, T)


test_what_does_not_fit_is_refused = refusals({
    TypeError: {
        make: {
            "d_model": ["8"], "num_heads": [2.0, True], "num_kv_heads": [2.0], "kdim": [8.0],
            "vdim": [8.0], "bias": [1], "dropout": ["0.1", True], "rotary": [True],
            "dtype": [WHOLE, COMPLEX, "float32"],
        },
        attend: {
            "query": [ones(2, 3, 8).long(), [[1.0]], ones(2, 3, 8).double()],
            "key": [ones(2, 3, 8).double()], "value": [ones(2, 3, 8).double(), 1],
            "mask": [ones(3, 3), [[True]]], "key_mask": [ones(2, 3).int()],
            "score_bias": [ones(3, 3).int(), true, 1.0], "causal": ["no", true],
            "head_mask": [[1, 0], ones(2, dtype=COMPLEX)], "need_weights": [[0]], "cache": [{}],
        },
        sdpa: {
            "q": [ones(2, 4, 5, 3).long()], "k": [ones(2, 4, 5, 3).double()],
            "v": [ones(2, 4, 5, 3).double(), 1], "mask": [ones(5, 5)], "causal": [1],
        },
        cut: {"x": [ones(2, 3, 8).long()], "num_heads": [2.0]},
        merge_heads: {"x": [ones(1, 2, 3, 4).long()]},
        causal: {"T": [torch.tensor(3)], "past": [1.0]},
        padding: {"lengths": [[1, 2], ones(2), ones(2, dtype=COMPLEX), true[0, 0]], "T": [3.0]},
        partial(FeedForward, 8): {"dtype": [torch.int8]},
        partial(LayerNorm, 8): {"dtype": [torch.int8]},
        partial(TransformerBlock, 8, 2): {"dtype": [torch.bool]},
    },
    ValueError: {
        make: {
            "d_model": [-8, 6], "num_heads": [0], "num_kv_heads": [0], "kdim": [0], "vdim": [0],
            "dropout": [10, -0.1, 1.0],
        },
        attend: {
            "query": [ones(2, 3, 7), ones(3, 8), ones(2, 0, 8), ones(2, 3, 8, **elsewhere)],
            "key": [ones(2, 3, 7), ones(2, 0, 8), ones(3, 3, 8)],
            "value": [ones(2, 5, 8), ones(1, 3, 8)],
            "mask": [true[0, :2], true[0].to("meta")],
            "key_mask": [true[:, 0, :2], true[:, 0].to("meta")],
            "score_bias": [ones(2, 3, 3), ones(4, 4), ones(3, 3, **elsewhere)],
            "head_mask": [ones(3), ones(1, 2), ones(2, **elsewhere)],
        },
        sdpa: {
            "q": [ones(1, 1, 1, 1, 1), ones(3), ones(2, 4, 0, 3)],
            "k": [ones(2, 4, 5, 2), ones(2, 1, 5, 3), ones(4, 5, 3), ones(2, 4, 5, 3, **elsewhere)],
            "v": [ones(2, 4, 6, 3), ones(2, 1, 5, 3)],
        },
        cut: {"x": [ones(3, 8), ones(1, 2, 3, 8)]},
        merge_heads: {"x": [ones(1, 3, 8), ones(1, 2, 3, 4, 5)]},
        causal: {"T": [0], "past": [-1]},
        padding: {
            "lengths": [true[0].long(), torch.tensor([1, 4]), torch.tensor([-1, 2])], "T": [0],
        },
    },
})  # fmt: skip
TOGETHER = [  # values that don't fit each other, and the one that is named first
    ("d_model", make, {"num_heads": 3}),
    ("num_heads", make, {"num_kv_heads": 3}),
    ("num_heads", make, {"num_kv_heads": 8}),
    ("rotary", make, {"d_model": 6, "num_heads": 2, "rotary": RotaryPositions()}),
    ("query", make(rotary=RotaryPositions()), {"query": ones(2, 3, 8), "key": ones(2, 4, 8)}),
    ("key must end in kdim=5", make(kdim=5), {"query": ones(2, 3, 8)}),
    ("value must end in vdim=6", make(vdim=6), {"query": ones(2, 3, 8)}),
    ("value", attend, {"key": ones(2, 4, 8), "value": ones(2, 5, 8)}),
    ("causal", attend, {"key": ones(2, 4, 8), "causal": True}),
    ("causal", attend, {"key": ones(2, 4, 8), "causal": True, "mask": ones(3, 4).bool()}),
    ("causal .* T_k=4", partial(combine_masks, (3, 6), "cpu"), {"causal": True, "past": 2}),
    ("mask", sdpa, dict.fromkeys("qkv", ones(5, 3)) | {"mask": ones(1, 5, 5).bool()}),
    ("x", cut, {"num_heads": 3}),
    ("d_model", make, {"d_model": 10**18 + 1, "num_heads": 2}),  # in no time
]  # fmt: skip


@pytest.mark.parametrize(("named", "call", "arguments"), TOGETHER)
def test_what_does_not_fit_the_rest_is_refused(named, call, arguments):
    assert_named(ValueError, named, partial(call, **arguments))


def test_numbers_of_numpy_are_numbers_and_flags_are_none():
    require_positive_int("size", np.int64(3))
    require_count("place", np.uint8(0))
    for number in (np.float32(0.5), np.float64(0.5), np.int32(2)):
        require_number("scale", number)
    for require in (require_positive_int, require_count, require_number):
        for flag in (True, np.True_):
            assert_named(TypeError, "size", partial(require, "size", flag))
    make(np.int64(8), np.int32(2), dropout=np.float32(0.0))
    assert Sfc32(np.uint32(7)).shuffled(range(9)) == Sfc32(7).shuffled(range(9))
    sizes = TaskSizes(np.int64(5), np.int64(4), {"next": np.int64(5)})
    model = TransformerModel.of_sizes(sizes, np.int64(8), np.int64(2), dropout=np.float32(0.5))
    plain = TransformerModel.of_sizes(TaskSizes(5, 4, {"next": 5}), 8, 2, dropout=0.5)
    assert json.dumps(model.spec()) == json.dumps(plain.spec())
