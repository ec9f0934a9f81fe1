"""TwoHeads' Python side: its state, its traits, its refusals."""

import numpy as np
import pytest
import torch
import traitlets

from attncourse.widgets import TwoHeads
from attnlib import MultiHeadAttention


def heads(d=4, d_k=2):
    return [[torch.randn(d, d_k) for _ in range(3)] for _ in range(2)]


def test_the_start_is_the_example_of_the_lesson():
    widget = TwoHeads()
    assert widget.x.tolist() == [[1, 0, 1, 0], [0, 1, 0, 1]]
    assert widget.heads.shape == (2, 3, 4, 2)
    # The eight numbers of the lesson that a slip in one of the matrices would change.
    scores = [(widget.x @ W_q) @ (widget.x @ W_k).T for W_q, W_k, _ in widget.heads]
    values = [widget.x @ W_v for _, _, W_v in widget.heads]
    assert [s.tolist() for s in scores] == [[[2, 0], [3, 2]], [[1, 3], [1, 3]]]
    assert [v.tolist() for v in values] == [[[2, 1], [0, 3]], [[0, 3], [2, 1]]]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_state_holds_the_readers_tensors_as_float32_bytes(dtype):
    x = torch.randn(4, 3, dtype=dtype).T
    given = [[torch.randn(4, 2, dtype=dtype, requires_grad=True) for _ in "qkv"] for _ in "12"]
    widget = TwoHeads(x, given)
    stacked = torch.stack([torch.stack(head) for head in given]).detach().float()
    assert (widget.T, widget.d, widget.d_k) == (3, 4, 2)
    assert torch.equal(widget.x, x.float())
    assert torch.equal(widget.heads, stacked)
    state = widget.get_state()
    for name, expected in {"x": x.float(), "heads": stacked}.items():
        numbers = np.frombuffer(state[name], "<f4")
        assert numbers.tolist() == expected.flatten().tolist()
        assert state[f"start_{name}"] == state[name]


def test_one_tensor_of_all_matrices_is_welcome():
    stacked = torch.randn(2, 3, 6, 3)
    assert torch.equal(TwoHeads(torch.randn(1, 6), stacked).heads, stacked)


def test_the_readers_tensor_is_copied():
    x = torch.ones(2, 4)
    widget = TwoHeads(x)
    x[0, 0] = 7
    assert widget.x[0, 0] == 1


def test_python_sees_what_the_browser_changes_and_the_start_stays():
    widget, seen = TwoHeads(), []
    widget.observe(lambda change: seen.append((change["name"], change["new"].tolist())), "x")
    edited = widget.x.clone()
    edited[1, 2] = -2.5
    widget.set_state({"x": memoryview(edited.numpy().tobytes())})
    assert seen == [("x", [[1, 0, 1, 0], [0, 1, -2.5, 1]])]
    assert widget.start_x == TwoHeads().start_x


def test_a_new_tensor_from_python_is_sent_and_observable():
    widget, seen = TwoHeads(), []
    widget.observe(lambda change: seen.append(change["name"]), ["x", "heads"])
    widget.heads = widget.heads * 2
    widget.x = torch.zeros(2, 4, dtype=torch.float64, requires_grad=True)
    assert seen == ["heads", "x"]
    assert not np.frombuffer(widget.get_state()["x"], "<f4").any()


@pytest.mark.parametrize("name", ["T", "d_k", "start_x", "tries"])
def test_what_is_fixed_stays(name):
    widget = TwoHeads()
    with pytest.raises(traitlets.TraitError, match="read-only"):
        setattr(widget, name, getattr(widget, name))


X = torch.ones(2, 4)
TALL = heads()
TALL[1][2] = torch.ones(5, 2)
WRONG = heads()
WRONG[0][1] = torch.full((4, 2), torch.inf)


@pytest.mark.parametrize(
    ("error", "message", "x", "given"),
    [
        (TypeError, "x must be a torch.Tensor, got list", X.tolist(), None),
        (TypeError, "x must hold floating point numbers", X.long(), None),
        (ValueError, r"x must have shape \[T, d\], got \[1, 2, 4\]", X[None], None),
        (ValueError, r"as wide as the matrices are high, got x \[2, 3\]", X[:, :3], None),
        (ValueError, "T must be from 1 to 4 here, got 5", torch.ones(5, 4), None),
        (ValueError, "T must be from 1 to 4 here, got 0", X[:0], None),
        (ValueError, "d must be from 1 to 6 here, got 7", torch.ones(2, 7), heads(d=7)),
        (ValueError, "d_k must be from 1 to 3 here, got 4", X, heads(d_k=4)),
        (ValueError, r"x must be finite .* nan at \[0, 0\]", X * torch.nan, None),
        (ValueError, "x must hold numbers from -1000 to 1000, got -2000", X * -2000, None),
        (ValueError, r"W_k of head 1 must be finite .* inf at \[0, 0\]", X, WRONG),
        (ValueError, r"W_v of head 2 .* got \[5, 2\] where W_q of head 1 is \[4, 2\]", X, TALL),
        (ValueError, r"two triples .* got groups of \[3\]", X, heads()[:1]),
        (TypeError, "heads must be a list", X, torch.tensor(1.0)),
        (TypeError, "each of heads must be a list", X, torch.ones(2)),
        (ValueError, r"two triples .* got groups of \[2, 2\]", X, [h[:2] for h in heads()]),
        (TypeError, "heads must be two triples .* got MultiHead", X, MultiHeadAttention(4, 2)),
    ],
)
def test_bad_input_is_refused_in_words(error, message, x, given):
    with pytest.raises(error, match=message):
        TwoHeads(x, given)


@pytest.mark.parametrize(
    ("error", "message", "value"),
    [
        (
            TypeError,
            r"tries\[0\] must be \(head, matrix, row, numbers\), got \[2",
            [2, "W_q", 1, []],
        ),
        (ValueError, r"head must be one of \[1, 2\], got 3", (3, "W_q", 1, [0, 2])),
        (ValueError, r"matrix must be one of .* got 'W_o'", (2, "W_o", 1, [0, 2])),
        (ValueError, r"row must be one of \[1, 2, 3, 4\], got 0", (2, "W_q", 0, [0, 2])),
        (ValueError, r"must hold 2 numbers, one a column, got \[0\]", (2, "W_q", 1, [0])),
        (ValueError, "numbers must be finite", (2, "W_q", 1, [0, float("nan")])),
    ],
)
def test_a_row_to_try_that_isnt_one_is_refused_in_words(error, message, value):
    assert TwoHeads(tries=[(2, "W_q", 1, [0, 2])]).tries == [[2, "W_q", 1, [0, 2]]]
    with pytest.raises(error, match=message):
        TwoHeads(tries=[value])


def test_repr_is_short():
    assert repr(TwoHeads()) == "TwoHeads(2 tokens, d=4, d_k=2)"
