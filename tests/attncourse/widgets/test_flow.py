"""Flow's Python side: its state, its traits, its refusals."""

import numpy as np
import pytest
import torch
import traitlets

from attncourse.widgets import Flow
from attnlib import MultiHeadAttention

PROJECTIONS = ("w_q", "w_k", "w_v", "w_o")


def numbers(widget, name, shape):
    return torch.from_numpy(np.frombuffer(widget.get_state()[name], "<f4").copy()).view(shape)


def test_the_start_is_the_example_of_the_lesson():
    widget = Flow()
    assert (widget.T, widget.d, widget.num_heads, widget.origin) == (2, 4, 2, "hand-built")
    module = MultiHeadAttention(4, 2, bias=False)
    with torch.no_grad():
        for name in PROJECTIONS:
            getattr(module, f"W_{name[-1]}").weight.copy_(numbers(widget, name, (4, 4)).T)
        output, weights = module(numbers(widget, "x", (1, 2, 4)), need_weights=True)
    # As the lesson computes them by hand.
    expected = [[0.8044, 0.1956], [0.6698, 0.3302]], [[0.1956, 0.8044]] * 2
    torch.testing.assert_close(weights[0], torch.tensor(expected), atol=1e-4, rtol=0)
    expected = [[3.2177, 2.7823, -0.2177, 0.2177], [2.9484, 3.0516, 0.0516, -0.0516]]
    torch.testing.assert_close(output[0], torch.tensor(expected), atol=1e-4, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_state_holds_the_readers_tensors_as_float32_bytes(dtype):
    x = torch.randn(6, 3, dtype=dtype, requires_grad=True).T
    given = [torch.randn(6, 6, dtype=dtype).T for _ in PROJECTIONS]
    widget = Flow(x, *given, 3, ["a", "b", "b"], causal=True, origin="random")
    assert (widget.T, widget.d, widget.num_heads, widget.causal) == (3, 6, 3, True)
    assert (widget.tokens, widget.sequence, widget.origin) == (["a", "b", "b"], [0, 1, 2], "random")
    for name, value in zip(("x", *PROJECTIONS), (x, *given), strict=True):
        assert torch.equal(numbers(widget, name, value.shape), value.detach().float())


@pytest.mark.parametrize("x", [torch.randn(3, 4), torch.randn(1, 3, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_modules_matrices_are_taken_so_that_x_meets_them_from_the_left(x, bias):
    module = MultiHeadAttention(4, 2, bias=bias)  # a fresh bias is 0
    widget = Flow.from_module(module, x, ["a", "b", "c"], causal=True, origin="random")
    assert (widget.num_heads, widget.causal, widget.origin) == (2, True, "random")
    assert torch.equal(numbers(widget, "x", (3, 4)), x.reshape(3, 4))
    for name in PROJECTIONS:
        matrix = getattr(module, f"W_{name[-1]}").weight.detach().T
        assert torch.equal(numbers(widget, name, (4, 4)), matrix)


def test_python_sees_what_the_browser_changes():
    widget, seen = Flow(), []
    changes = ("matrix", "place", "num_heads", "causal", "sequence")
    widget.observe(lambda change: seen.append((change["name"], change["new"])), changes)
    widget.set_state({"matrix": "weights"})
    widget.set_state({"place": [1, 0, 1], "num_heads": 4})
    widget.set_state({"causal": True})
    widget.set_state({"sequence": [1, 1]})
    assert seen == [
        ("matrix", "weights"),
        ("place", [1, 0, 1]),
        ("num_heads", 4),
        ("causal", True),
        ("sequence", [1, 1]),
    ]


@pytest.mark.parametrize("name", ["x", "w_q", "tokens", "T", "trained"])
def test_what_describes_the_attention_is_fixed(name):
    widget = Flow()
    with pytest.raises(traitlets.TraitError, match="read-only"):
        setattr(widget, name, getattr(widget, name))


X, W = torch.ones(2, 4), [torch.eye(4)] * 4
LONG = [torch.eye(4)] * 3 + [torch.eye(5)]
WRONG = [torch.eye(4), torch.full((4, 4), torch.inf), *[torch.eye(4)] * 2]


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (TypeError, "w_q must be given, for x and its four matrices belong together", (X,)),
        (TypeError, "x must be given", (None, *W)),
        (TypeError, "x must be a torch.Tensor, got list", (X.tolist(), *W)),
        (TypeError, "x must hold floating point numbers", (X.long(), *W)),
        (ValueError, r"x must be a matrix, got \[1, 2, 4\]: one sequence", (X[None], *W)),
        (ValueError, r"w_q must be a matrix, got \[2, 4, 2\]", (X, torch.ones(2, 4, 2), *W[1:])),
        (ValueError, r"w_q must have shape \[3, 3\], as wide as x, got \[4, 4\]", (X[:, :3], *W)),
        (ValueError, r"w_o must have shape \[4, 4\], as wide as x, got \[5, 5\]", (X, *LONG)),
        (ValueError, r"T from 1 to 6, got \[7, 4\]", (torch.ones(7, 4), *W)),
        (ValueError, r"T from 1 to 6, got \[0, 4\]", (X[:0], *W)),
        (ValueError, r"d from 1 to 6, got \[2, 7\]", (torch.ones(2, 7), *[torch.eye(7)] * 4)),
        (ValueError, r"x must be finite .* nan at \[0, 0\]", (X * torch.nan, *W)),
        (ValueError, r"w_k must be finite .* inf at \[0, 0\]", (X, *WRONG)),
        (ValueError, "d_model must be divisible by num_heads, got d_model=4", (X, *W, 3)),
        (TypeError, "num_heads must be an int, got float", (X, *W, 2.0)),
        (TypeError, "tokens must be a list of strings, got one string", (X, *W, 2, "ab")),
        (ValueError, "tokens must name the 2 rows of x, got 3 tokens", (X, *W, 2, list("abc"))),
    ],
)
def test_bad_input_is_refused_in_words(error, message, arguments):
    with pytest.raises(error, match=message):
        Flow(*arguments)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"causal": 1}, "causal must be True or False, got int"),
        ({"origin": 3}, "origin must be a string, got int"),
    ],
)
def test_bad_options_are_refused_in_words(option, message):
    with pytest.raises(TypeError, match=message):
        Flow(X, *W, **option)
    with pytest.raises(TypeError, match=message):
        Flow.from_module(MultiHeadAttention(4, 2), X, **option)


def biased():
    module = MultiHeadAttention(4, 2)
    torch.nn.init.ones_(module.W_o.bias)
    return module


@pytest.mark.parametrize(
    ("error", "message", "module", "x"),
    [
        (TypeError, "module must be an attnlib MultiHeadAttention", torch.nn.Linear(4, 4), X),
        (ValueError, r"x must have shape \[T, 4\] or \[1, T, 4\]", MultiHeadAttention(4, 2), X.T),
        (TypeError, "x must have the dtype", MultiHeadAttention(4, 2), X.double()),
        (ValueError, "num_kv_heads=1 of 2", MultiHeadAttention(4, 2, num_kv_heads=1), X),
        (ValueError, "vdim=3", MultiHeadAttention(4, 2, vdim=3), X),
        (ValueError, r"differs from that by 1: does it add a bias", biased(), X),
        (ValueError, "d from 1 to 6", MultiHeadAttention(8, 2), torch.ones(2, 8)),
    ],
)
def test_a_module_that_is_more_than_four_matrices_is_refused(error, message, module, x):
    with pytest.raises(error, match=message):
        Flow.from_module(module, x)


def test_repr_is_short():
    assert repr(Flow()) == "Flow(2 tokens, d=4, num_heads=2, causal=False, at x)"
