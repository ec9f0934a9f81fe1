"""Flow's Python side: its state, its traits, its refusals."""

import torch
from tools.refusing import assert_named, refusals

from attncourse.widgets import Flow
from attnlib import MultiHeadAttention


def test_a_modules_matrices_are_taken_so_that_x_meets_them_from_the_left():
    module, x = MultiHeadAttention(4, 2), torch.randn(1, 3, 4)  # a fresh bias is 0
    widget = Flow.from_module(module, x, ["a", "b", "c"], causal=True, origin="random")
    assert (widget.num_heads, widget.causal, widget.origin) == (2, True, "random")
    given = {"x": x[0]}
    for letter in "qkvo":
        given[f"w_{letter}"] = getattr(module, f"W_{letter}").weight.detach().T
    for name, matrix in given.items():
        held = torch.frombuffer(bytearray(widget.get_state()[name]), dtype=torch.float32)
        assert torch.equal(held.view_as(matrix), matrix)


X, W = torch.ones(2, 4), torch.eye(4)


def flow(x=X, w_q=W, w_k=W, w_v=W, w_o=W, num_heads=2, tokens=None, **options):
    return Flow(x, w_q, w_k, w_v, w_o, num_heads, tokens, **options)


def biased():
    module = MultiHeadAttention(4, 2)
    torch.nn.init.ones_(module.W_o.bias)
    return module


def of_module(module=None, x=X, **options):
    return Flow.from_module(module or MultiHeadAttention(4, 2), x, **options)


test_bad_input_is_refused_by_name = refusals({
    TypeError: {
        flow: {"x": [None, X.tolist()], "num_heads": [2.0], "tokens": ["ab"], "causal": [1]},
        of_module: {"module": [torch.nn.Linear(4, 4)], "causal": [1], "origin": [3]},
    },
    ValueError: {
        flow: {
            "x": [X[None], torch.ones(7, 4), X[:0], X * torch.nan],
            "w_q": [torch.eye(3)], "w_o": [W / 0], "tokens": [list("abc")],
        },
        of_module: {
            "x": [X.T],
            "module": [
                MultiHeadAttention(4, 2, num_kv_heads=1), MultiHeadAttention(4, 2, vdim=3),
                biased(),
            ],
        },
    },
})  # fmt: skip


def test_sizes_that_do_not_fit_are_refused_by_name():
    assert_named(ValueError, "d_model", lambda: flow(num_heads=3))
    assert_named(ValueError, "x", lambda: flow(torch.ones(2, 7), *[torch.eye(7)] * 4, 1))
