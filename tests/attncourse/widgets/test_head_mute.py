"""HeadMute's Python side: its state, its traits, its refusals."""

import numpy as np
import pytest
import torch
from tools.refusing import assert_named, assert_refused, refusals

from attncourse.widgets import HeadMute
from attnlib import MultiHeadAttention

TOKENS = ["The", "cat", "sat"]


def decoded(widget):
    """The parts [h, T, d] that the browser reads, and the bias [d] or None, in float64."""
    state = widget.get_state()
    parts = np.frombuffer(state["parts"], "<f4").reshape(widget.h, widget.T, widget.d)
    bias = np.frombuffer(state["bias"], "<f4") if state["bias"] else None
    return [x if x is None else torch.from_numpy(x.astype(np.float64)) for x in (parts, bias)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_state_holds_the_parts_as_float32_bytes(dtype):
    parts = torch.randn(3, 5, 4, dtype=dtype, requires_grad=True).transpose(1, 2)
    widget = HeadMute(parts[:, :3], torch.ones(5, dtype=dtype), tokens=TOKENS)
    assert (widget.h, widget.T, widget.d) == (3, 3, 5)
    assert widget.labels == ["head 1", "head 2", "head 3"]
    read, bias = decoded(widget)
    assert torch.equal(read, parts[:, :3].float().double())
    assert bias.tolist() == [1] * 5
    assert decoded(HeadMute(parts[:, :3], tokens=TOKENS))[1] is None


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("causal", "batch"), [(False, (1,)), (True, ())])
def test_from_module_takes_the_output_apart(bias, causal, batch):
    module = MultiHeadAttention(12, 3, bias=bias)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    x = torch.randn(*batch, 3, 12)
    widget = HeadMute.from_module(module, x, TOKENS, causal=causal, token=1, origin="random")
    assert (widget.token, widget.origin, widget.muted) == (1, "random", [])
    parts, read_bias = decoded(widget)
    assert (read_bias is not None) == bias
    output = module(x.view(1, 3, 12), causal=causal)[0][0].double()
    rest = output - (read_bias if bias else 0)
    torch.testing.assert_close(parts.sum(0), rest, atol=1e-6, rtol=0)
    module.W_o.weight.data[:, :8] = 0  # which leaves the last head alone
    alone = module(x.view(1, 3, 12), causal=causal)[0][0].double()
    torch.testing.assert_close(parts[2], alone - (read_bias if bias else 0), atol=1e-6, rtol=0)


def test_from_module_works_in_other_dtypes():
    module = MultiHeadAttention(12, 3, dtype=torch.bfloat16)
    HeadMute.from_module(module, torch.randn(3, 12, dtype=torch.bfloat16), TOKENS)


def test_a_module_that_does_more_is_refused():
    class Doubling(MultiHeadAttention):
        def forward(self, *inputs, **options):
            output, weights = super().forward(*inputs, **options)
            return 2 * output, weights

    with pytest.raises(ValueError, match="differ by"):
        HeadMute.from_module(Doubling(12, 3), torch.randn(3, 12), TOKENS)


PARTS = torch.ones(2, 3, 4)


def mute(parts=PARTS, **options):
    return HeadMute(parts, **{"tokens": TOKENS} | options)


def of_module(module=None, x=PARTS[0]):
    return HeadMute.from_module(module or MultiHeadAttention(8, 2), x, TOKENS)


test_bad_input_is_refused_by_name = refusals(
    {
        TypeError: {
            mute: {"parts": [PARTS.tolist()], "tokens": ["a b c"], "labels": [[1, 2]],
                   "origin": [3]},
            of_module: {"module": [torch.nn.MultiheadAttention(8, 2)]},
        },
        ValueError: {
            mute: {
                "parts": [PARTS[None], PARTS[:0], PARTS / 0, PARTS[:1].expand(17, 3, 4),
                          PARTS[..., :1].expand(2, 3, 129)],
                "bias": [torch.ones(3), torch.ones(()), torch.full((4,), torch.nan)],
                "token": [3],
            },
            of_module: {"x": [PARTS[0]]},
        },
    }
)  # fmt: skip


@pytest.mark.parametrize("names", [{"tokens": ["a", "b"]}, {"labels": ["a"]}])
def test_there_is_a_token_a_row_and_a_label_a_head(names):
    assert_refused(lambda: mute(**names), [*names, "[2, 3, 4]"], ValueError)


def test_what_would_weigh_a_page_down_is_refused():
    HeadMute(torch.ones(16, 256, 128), tokens=["a"] * 256)
    assert_named(
        ValueError, "parts", lambda: HeadMute(torch.ones(16, 257, 128), tokens=["a"] * 257)
    )
