"""HeadMute's Python side: its state, its traits, its refusals."""

import pytest
import torch
from tools.refusing import assert_named, assert_refused, refusals

from attncourse.widgets import HeadMute
from attnlib import MultiHeadAttention

TOKENS = ["The", "cat", "sat"]


def decoded(widget):
    """The parts [h, T, d] that the browser reads, and the bias [d] or 0, in float64."""
    parts, bias = (
        torch.frombuffer(bytearray(numbers or bytes(4)), dtype=torch.float32).double()
        for numbers in (widget.parts, widget.bias)
    )
    return parts.view(widget.h, widget.T, widget.d), bias


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("bias", "causal", "batch"), [(False, False, (1,)), (True, True, ())])
def test_from_module_takes_the_output_apart(bias, causal, batch, dtype):
    module = MultiHeadAttention(12, 3, bias=bias, dtype=dtype)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    x, within = torch.randn(*batch, 3, 12, dtype=dtype), 1e-6 if dtype == torch.float32 else 0.1
    widget = HeadMute.from_module(module, x, TOKENS, causal=causal, token=1, origin="random")
    assert (widget.token, widget.origin, widget.muted) == (1, "random", [])
    parts, offset = decoded(widget)
    output = module(x.view(1, 3, 12), causal=causal)[0][0].double()
    torch.testing.assert_close(parts.sum(0) + offset, output, atol=within, rtol=0)
    module.W_o.weight.data[:, :8] = 0  # which leaves the last head alone
    alone = module(x.view(1, 3, 12), causal=causal)[0][0].double()
    torch.testing.assert_close(parts[2] + offset, alone, atol=within, rtol=0)


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


def test_there_is_a_token_a_row_and_a_label_a_head():
    for names in ({"tokens": ["a", "b"]}, {"labels": ["a"]}):
        assert_refused(lambda: mute(**names), [*names, "[2, 3, 4]"], ValueError)  # noqa: B023


def test_what_would_weigh_a_page_down_is_refused():
    HeadMute(torch.ones(16, 256, 128), tokens=["a"] * 256)
    assert_named(
        ValueError, "parts", lambda: HeadMute(torch.ones(16, 257, 128), tokens=["a"] * 257)
    )
