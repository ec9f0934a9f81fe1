"""HeadMute's Python side: its state, its traits, its refusals."""

import pytest
import torch
from tools.refusing import assert_named, assert_refused, refusals

from attncourse.widgets import HeadMute
from attnlib import MultiHeadAttention

TOKENS = ["The", "cat", "sat"]


@pytest.mark.parametrize(
    ("dtype", "bias", "causal", "batch"),
    [(torch.float32, False, False, (1,)), (torch.bfloat16, True, True, ())],
)
def test_from_module_takes_the_output_apart(dtype, bias, causal, batch):
    module = MultiHeadAttention(12, 3, bias=bias, dtype=dtype)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    x, within = torch.randn(*batch, 3, 12, dtype=dtype), 1e-6 if dtype == torch.float32 else 0.1
    widget = HeadMute.from_module(module, x, TOKENS, causal=causal, token=1, origin="random")
    assert (widget.token, widget.origin, widget.muted) == (1, "random", [])
    parts = torch.frombuffer(bytearray(widget.parts), dtype=torch.float32).view(3, 3, 12)
    offset = torch.frombuffer(bytearray(widget.bias or bytes(4)), dtype=torch.float32)
    output = module(x.view(1, 3, 12), causal=causal)[0][0].float()
    torch.testing.assert_close(parts.sum(0) + offset, output, atol=within, rtol=0)
    module.W_o.weight.data[:, :8] = 0  # which leaves the last head alone
    alone = module(x.view(1, 3, 12), causal=causal)[0][0].float()
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


test_bad_input_is_refused_by_name = refusals({
    TypeError: {
        mute: {"parts": [PARTS.tolist()], "tokens": ["a b c"], "labels": [[1, 2]]},
        of_module: {"module": [torch.nn.MultiheadAttention(8, 2)]},
    },
    ValueError: {
        mute: {
            "parts": [PARTS[None], PARTS[:0], PARTS / 0, torch.ones(17, 3, 4),
                      torch.ones(2, 3, 129)],
            "bias": [torch.ones(3), torch.full((4,), torch.nan)],
            "token": [3],
        },
        of_module: {"x": [PARTS[0]]},
    },
})  # fmt: skip


def test_there_is_a_token_a_row_and_a_label_a_head_and_a_page_has_room_for_all():
    assert_refused(lambda: mute(tokens=["a", "b"]), ["tokens", "[2, 3, 4]"], ValueError)
    assert_refused(lambda: mute(labels=["a"]), ["labels", "[2, 3, 4]"], ValueError)
    too_many = torch.ones(16, 257, 128)
    HeadMute(too_many[:, 1:], tokens=["a"] * 256)
    assert_named(ValueError, "parts", lambda: HeadMute(too_many, tokens=["a"] * 257))
