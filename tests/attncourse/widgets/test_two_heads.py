"""TwoHeads' Python side: its state, its refusals."""

import torch
from tools.refusing import refusals

from attncourse.widgets import TwoHeads


def heads(d=4, d_k=2):
    return [[torch.randn(d, d_k) for _ in range(3)] for _ in range(2)]


def test_state_holds_copies_and_python_and_the_browser_see_each_others_changes():
    x = torch.randn(4, 3, dtype=torch.bfloat16).T
    given = [[torch.randn(4, 2, dtype=torch.bfloat16, requires_grad=True) for _ in "qkv"]] * 2
    expected = {"x": x.float(), "heads": torch.stack([*map(torch.stack, given)]).detach().float()}
    widget, seen = TwoHeads(x, given), []
    x.zero_()
    state = widget.get_state()
    for name, tensor in expected.items():
        assert torch.equal(getattr(widget, name), tensor)
        assert state[name] == state[f"start_{name}"] == tensor.contiguous().numpy().tobytes()
    widget.observe(lambda change: seen.append(change["new"].tolist()), "x")
    edited = widget.x.clone()
    edited[1, 2] = -2.5
    widget.set_state({"x": memoryview(edited.numpy().tobytes())})
    assert seen == [edited.tolist()]
    widget.x = torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)
    assert widget.get_state()["x"] == bytes(48)
    assert widget.start_x == state["x"]


X = torch.ones(2, 4)


def sized(T=2, d=4, d_k=2):
    return TwoHeads(torch.ones(T, d), torch.ones(2, 3, d, d_k))


test_bad_input_is_refused_by_name = refusals({
    TypeError: {
        TwoHeads: {
            "x": [X.tolist()], "heads": [torch.tensor(1.0)], "tries": [[[2, "W_q", 1, [0, 2]]]],
        },
    },
    ValueError: {
        TwoHeads: {
            "x": [X[None], X[:, :3], X * torch.nan, X * -2000],
            "heads": [heads()[:1], [head[:2] for head in heads()]],
            "tries": [
                [(3, "W_q", 1, [0, 2])], [(2, "W_o", 1, [0, 2])], [(2, "W_q", 0, [0, 2])],
                [(2, "W_q", 1, [0])],
            ],
        },
        sized: {"T": [0, 5], "d": [7], "d_k": [4]},
    },
})  # fmt: skip
