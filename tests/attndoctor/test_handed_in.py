"""What people hand in is asked, however it is built, wrapped and called."""

import sys

import pytest
import torch
from tools import public_attentions as public
from tools.broken_attentions import Drops, Limited, Plain, but, fit, returning, shifted, unscaled
from tools.diagnoses import ask, diagnoses, refusals, says
from torch import nn

from attndoctor import CallError, diagnose

pytestmark = pytest.mark.thorough


class Required(public.NamesThatSayNothing):
    """Its mask must be given, and hides where it is True."""

    def forward(self, x, mask):
        return self.ask(x, hidden=mask, fill=float("-inf"))[0]


class OfPadding(Required):
    def forward(self, x, padding_mask):
        return super().forward(x, padding_mask[:, None, None])


test_masks_that_must_be_given = diagnoses({
    "required": (Required, {}, "meant", "exhibit: inverted mask", "conventions: hiding",
        "not report: varies"),
    "padding": (OfPadding, {}, "healthy"),
})  # fmt: skip


def test_frozen_weights_are_asked_as_if_they_learned():
    module = Plain(48, 4).requires_grad_(False)
    ask(module, "healthy", "module_under_test: frozen", "not skipped: gradients", "W_q.weight")
    assert not any(numbers.requires_grad for numbers in module.parameters())
    module.W_q.requires_grad_(True)
    taken = diagnose(module).taken
    assert "W_q.weight" not in taken and "W_k.weight" in taken


@torch.no_grad()
def for_inference(self, x):
    return self.attend(x)


test_what_has_no_gradients = diagnoses({
    "without gradients": (but(Plain, forward=for_inference), {}, "meant",
        "conventions: for inference", "no_grad"),
    "wrong besides": (but(Plain, forward=for_inference, mix=shifted), {}, "broken"),
})  # fmt: skip


def raising(error, *, always=True):
    class Raising(Plain):
        def forward(self, x, causal=False):
            if always or causal:
                raise error
            return self.attend(x)

    return Raising


MISSING = (
    ModuleNotFoundError("No module named 'flash_attn'"),
    AssertionError("Torch not compiled with CUDA enabled"),
    RuntimeError("FlashAttention only support fp16 and bf16 data type"),
    NotImplementedError("FlexAttention does not support backward on CPU."),
    RuntimeError("No available kernel. Aborting execution."),
    NotImplementedError("Could not run 'xformers::a' with arguments from the 'CPU' backend."),
)
OF_ITS_OWN = (
    RuntimeError("The size of tensor a (7) must match the size of tensor b (3)"),
    NotImplementedError(),
    RuntimeError("\"softmax_kernel_impl\" not implemented for 'Long'"),
)
MACHINE = "report: environment"
test_what_the_machine_lacks_is_no_bug = diagnoses(
    {f"{error}": (raising(error), {}, "not asked", MACHINE, "no exhibit") for error in MISSING}
    | {f"{error!r}": (raising(error), {}, "broken", f"not {MACHINE}") for error in OF_ITS_OWN}
    | {
        "a bug besides": (but(raising(MISSING[1], always=False), scores=unscaled), {}, "broken",
            "only: no scale"),
        "several processes": (but(Plain, mix=lambda self, weights, v:
            torch.distributed.all_reduce(Plain.mix(self, weights, v))), {}, "not asked"),
    }
)  # fmt: skip


def test_the_module_in_a_wrapper_is_asked():
    for wrapped in (torch.compile(Limited(48, 4)), nn.DataParallel(Limited(48, 4))):
        ask(wrapped, "healthy", "not skipped: a mask", f"taken: {type(wrapped).__name__}")
    ask(lambda d, h: nn.DataParallel(Limited(d, h)), "healthy", "not skipped: a mask")


def test_weights_that_are_computed_are_asked_as_plain_ones():
    module = Plain(48, 4)
    nn.utils.parametrizations.weight_norm(module.W_q)
    nn.utils.parametrizations.spectral_norm(module.W_v)
    ask(module, "healthy")
    assert "W_q.parametrizations.weight.original0" in module.state_dict()  # its own stay


class WideHeads(Plain):
    """As Qwen3's: heads whose widths don't add up to d_model."""

    def __init__(self, d_model=48, num_heads=4, d_k=20, d_v=20):
        super().__init__(d_model, num_heads)
        self.d_k = d_k
        self.W_q, self.W_k = (nn.Linear(d_model, num_heads * d_k) for _ in range(2))
        self.W_v = nn.Linear(d_model, num_heads * d_v)
        self.W_o = nn.Linear(num_heads * d_v, d_model)


class WideHeadsInPlace(WideHeads):
    """Bare parameters, one of them packed; heads of this width whatever it is built with."""

    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads, 20, 20)
        width = num_heads * 20
        del self.W_q, self.W_k, self.W_v, self.W_o
        self.qkv = nn.Parameter(torch.zeros(d_model, 3 * width))
        self.out = nn.Parameter(torch.zeros(width, d_model))

    def forward(self, x):
        q, k, v = map(self.split, (x @ self.qkv).chunk(3, -1))
        return public.join(public.attend(q, k, v)[0]) @ self.out


class OfOneLength(Plain):
    """Views its tokens by a length that it was built for."""

    def __init__(self, d_model, num_heads, seq_len=50):
        super().__init__(d_model, num_heads)
        self.seq_len = seq_len

    def split(self, x):
        return x.view(len(x), self.seq_len, self.num_heads, -1).transpose(1, 2)


def of_kernels(self, x):
    if self.d_k not in (16, 32, 64):
        raise ValueError("heads of 16, 32 or 64")
    return self.attend(x)


test_sizes = diagnoses({
    "Keras": (lambda num_heads, key_dim: Plain(num_heads * key_dim, num_heads), {}, "healthy"),
    "wide heads in place": (WideHeadsInPlace, {}, "healthy", "module_under_test: wide heads"),
    "unscaled wide ones": (but(WideHeads, scores=unscaled)(), {}, "", "only: no scale"),
    "three for two, built": (Plain(12, 2), {"num_heads": 3}, "meant", "num_heads=2"),
    "one length, class": (OfOneLength, {}, "not asked",
        "not_comparable: certain sizes", "2 samples of 128 tokens"),
    "kernels": (but(Plain, forward=of_kernels), {}, "not asked",
        "not_comparable: certain widths", "10", "64"),
})  # fmt: skip


class OfDETR(Limited):
    """The names of nn.TransformerEncoderLayer."""

    def forward(self, src, src_mask=None, src_key_padding_mask=None):
        allowed = None if src_key_padding_mask is None else ~src_key_padding_mask
        return super().forward(src, mask=src_mask, key_mask=allowed)


class AcrossAsInBERT(Plain):
    def forward(self, x, attention_mask=None, encoder_hidden_states=None,
                encoder_attention_mask=None):  # fmt: skip
        across = encoder_hidden_states is not None
        mask = encoder_attention_mask if across else attention_mask
        return self.attend(x, encoder_hidden_states, allowed=fit(key_mask=mask))[0]


def of_gemma3(self, hidden_states, position_embeddings: torch.Tensor = None):
    cos, sin = position_embeddings
    return self.attend(hidden_states * cos + sin)


test_names_of_arguments = diagnoses({
    "as torch's layers have them": (OfDETR, {}, "healthy", "not skipped: padding"),
    "keys of another sequence": (AcrossAsInBERT, {}, "healthy",
        "not skipped: padding between two sequences"),
    "as in DETR": (but(Plain, forward=lambda self, tgt, memory, memory_key_padding_mask=None:
        self.attend(tgt, memory, allowed=fit(key_mask=memory_key_padding_mask))[0]), {}, "healthy",
        "not skipped: padding"),
    "in their order": (but(Limited, forward=lambda self, attn_mask, tokens:
        Limited.forward(self, tokens, mask=attn_mask)), {}, "healthy",
        "taken: forward(attn_mask, tokens)"),
    "x and y": (but(Plain, forward=lambda self, x, y: self.attend(y, x)), {}, "healthy",
        "taken: queries made of y"),
    "unlike torch": (but(Plain, forward=lambda self, x, key_padding_mask=None:
        self.attend(x, allowed=fit(key_mask=key_padding_mask))[0]), {}, "healthy",
        "taken: unlike torch's"),
    "states": (but(Plain, forward=lambda self, x, states=None: self.attend(x + states.mean())),
        {}, "not asked", "not_comparable: left out", "arguments={'states': ...}"),
    "cosines and sines": (but(Plain, forward=of_gemma3), {}, "healthy",
        "taken: its position_embeddings"),
})  # fmt: skip


class Latent(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.o_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.kv_a, self.kv_b = nn.Linear(d_model, 16), nn.Linear(16, 2 * d_model)


test_what_cannot_be_asked_is_an_error = refusals({
    "heads of no width": (Plain(48, 4), {"num_heads": 7}, CallError,
        "build: heads of no width", "48"),
    "heads that don't divide": (WideHeads(48, 5), {}, CallError, "build: undivided", "48"),
    "wide values": (WideHeads(d_v=24), {}, CallError, "build: wide values", "80", "96"),
    "in two steps": (Latent, {}, CallError, "build: two steps", "kv_b"),
    "other widths": (nn.MultiheadAttention(48, 4, kdim=32, vdim=20), {}, CallError,
        "build: several widths", "32", "20"),
    "no sizes": (lambda: Plain(30, 3), {}, CallError, "build: one module only"),
    "the end of the program": (lambda d_model, num_heads: sys.exit(), {}, CallError, "SystemExit"),
    "scale": (Plain, {"scale": lambda d, h: 1}, CallError, "scale(10)", "TypeError"),
    "a dict": (returning(lambda y, w: {"y": y}), {}, CallError, "call: result", "result['y']"),
    "several modules": (nn.ModuleDict({"a": Plain(48, 4)}), {}, CallError, "build: several modules",
        "ModuleDict"),
    "padding that isn't one": (but(Limited, forward=lambda self, x, mask=None:
        Limited.forward(self, x, mask=mask)), {"key_mask": "hide"}, CallError,
        "examine: no padding", "'hide'", "[T, T]"),
})  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_a_scripted_module_is_refused():
    with pytest.raises(CallError) as error:
        diagnose(torch.jit.script(nn.Linear(4, 4)))
    assert says(str(error.value), "build: scripted")


class LikeGPT2(Plain):
    """It returns less where no weights are asked for."""

    def forward(self, x, output_attentions=False):
        output, weights = self.attend(x)
        return (output, output, weights) if output_attentions else (output, output)


def with_nan(module):
    module.W_k.weight.data[3, 5] = torch.nan
    return module


class KeepsADict(Plain):
    def forward(self, x, cache=None, is_causal=False):
        if cache is not None and "k" in cache:
            raise NotImplementedError
        return self.attend(x, allowed=fit(causal=is_causal, T=x.shape[1]))[0]


test_what_it_returns_and_holds = diagnoses({
    "shorter without weights": (LikeGPT2, {"returns": lambda result: (result[0], result[2])},
        "healthy"),
    "a key of zeros": (nn.MultiheadAttention(48, 4, batch_first=True, add_zero_attn=True), {},
        "meant", "conventions: formula", "taken: the key that it adds"),
    "NaN in a weight": (with_nan(Plain(48, 4)), {}, "healthy", "taken: its W_k.weight"),
    "a dict": (KeepsADict, {}, "healthy", "report: foreign cache", "not report: defaults"),
    "a past": (but(Plain, forward=lambda self, x, use_cache, layer_past:
        self.attend(x) if not use_cache and layer_past is None else x), {}, "healthy"),
    "a past by name": (but(Plain, forward=lambda self, x, past_key_value=None: self.attend(x)), {},
        "healthy", "(past_key_value)", "not report: defaults"),
})  # fmt: skip


def test_a_forward_that_ends_the_program_or_changes_torch_is_broken():
    def exits(self, x):
        raise SystemExit(0)

    def doubles(self, x):
        torch.set_default_dtype(torch.float64)
        return self.attend(x)

    ask(but(Plain, forward=exits), "broken", "sys.exit(0)")
    ask(but(Plain, forward=doubles), "broken", "no exhibit", "torch.float64")
    assert torch.get_default_dtype() == torch.float32


def several_tokens(self, x):
    assert x.shape[1] > 1, "several tokens"
    return self.attend(x)


SeveralTokens = but(Plain, forward=several_tokens)
test_errors_on_purpose_are_not_broken = diagnoses({
    "several tokens": (SeveralTokens, {}, "not asked", "report: refuses", "AssertionError",
        "samples of 1 token."),
    "several tokens, wrong": (but(SeveralTokens, mix=lambda self, weights, v:
        Plain.mix(self, weights, v) + (v.shape[2] > 60)), {}, "broken"),
})  # fmt: skip


def labml(self, query, mask=None):
    """Tokens [T, B, d], masks [T, T, B]."""
    allowed = None if mask is None else mask.permute(2, 0, 1)[:, None]
    return self.attend(query.transpose(0, 1), allowed=allowed)[0].transpose(0, 1)


def crossed(self, x, key_padding_mask=None):
    if key_padding_mask is None:
        return self.attend(x)[0]
    hidden = key_padding_mask[:, None].repeat(self.num_heads, 1, 1)
    return self.attend(x, allowed=~hidden.unflatten(0, (len(x), -1)))[0]


test_other_axes = diagnoses({
    "tokens first, other masks": (but(Plain, forward=labml), {}, "not asked",
        "report: other masks", "conventions: tokens first"),
    "padding by samples": (but(Plain, forward=crossed), {}, "broken",
        "report: other samples", "not report: leaking",
        "[B h] take mask.repeat_interleave(h, 0), for [h B] mask.repeat(h, 1, 1)"),
    "whether a mask is true": (but(Plain, forward=lambda self, x, mask=None:
        self.attend(x, allowed=mask if mask else None)), {}, "broken", "report: ambiguous"),
    "weights for an output": (but(Plain, forward=lambda self, x: self.attend(x)[1]), {}, "",
        "report: axes of weights", "not report: wrong on equal tokens"),
})  # fmt: skip


def drops(times):
    def mix(self, weights, v):
        for _ in range(times):
            weights = self.dropout(weights)
        return self.dropout(Plain.mix(self, weights, v))  # as a residual has it

    return but(Drops, mix=mix, forward=lambda self, x: self.attend(x)[0])


def test_weights_that_are_dropped_twice_are_told():
    ask(drops(1), "healthy")
    assert diagnose(drops(2)).failed == ("the dropout rate",)
