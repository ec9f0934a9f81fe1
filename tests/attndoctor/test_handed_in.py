"""What people hand in is asked, however it is built, wrapped and called."""

import pytest
import torch
import torch.nn.functional as F
from tools import public_attentions as public
from tools.broken_attentions import Drops, Limited, Plain, Returning, but, fit, shifted, unscaled
from tools.diagnoses import ask, diagnosed, diagnoses, refusals, says
from torch import nn
from torch.utils.checkpoint import checkpoint

from attndoctor import CallError, diagnose
from attndoctor.__main__ import main

pytestmark = pytest.mark.thorough


def changed(module, **attributes):
    for name, value in attributes.items():
        setattr(module, name, value)
    return module


# --- masks that must be given --------------------------------------------------------------------


class Required(public.NamesThatSayNothing):
    """Its mask must be given, and hides where it is True."""

    fill = float("-inf")

    def forward(self, x, mask):
        return self.attend(x, mask)

    def attend(self, x, mask):
        return self.fc(public.join(public.attend(*self.packed(x), mask, self.fill)[0]))

    def packed(self, x):
        return public.in_heads(self.num_heads, *self.W(x).chunk(3, -1))


class OfPadding(Required):
    def forward(self, x, padding_mask):
        return self.attend(x, padding_mask[:, None, None])


HIDES = "exhibit: inverted mask", "conventions: hiding", "not report: varies"
test_masks_that_must_be_given = diagnoses({
    "required": (Required, {}, "meant", *HIDES),
    "required, told": (Required, {"mask": "hide"}, "at the edges"),
    "required, told otherwise": (Required, {"mask": "keep"}, "broken"),
    "padding": (OfPadding, {}, "healthy"),
    "NaN": (but(Plain, weigh=lambda self, scores, allowed: scores.softmax(-1) / 0 * 0), {},
        "broken", "not report: varies"),
})  # fmt: skip


# --- gradients -----------------------------------------------------------------------------------


def frozen(candidate):
    return candidate(48, 4).requires_grad_(False)


def test_frozen_weights_are_asked_as_if_they_learned():
    module = frozen(Plain)
    ask(module, "healthy", "module_under_test: frozen", "not skipped: gradients", "W_q.weight")
    assert not any(numbers.requires_grad for numbers in module.parameters())
    module.W_q.requires_grad_(True)
    assert "W_q.weight" not in diagnose(module).taken
    assert "W_k.weight" in diagnose(module).taken


def detached(self, x):
    return Plain.split(self, x.detach())


ForInference = but(Plain, forward=torch.no_grad()(lambda self, x: self.attend(x)))
InInferenceMode = but(Plain, forward=torch.inference_mode()(lambda self, x: self.attend(x)))
test_what_has_no_gradients = diagnoses({
    "not frozen": (Plain(48, 4), {}, "healthy", "not module_under_test: frozen"),
    "frozen and detached": (frozen(but(Plain, split=detached)), {}, "broken"),
    "without gradients": (ForInference, {}, "meant", "conventions: for inference", "no_grad"),
    "in inference mode": (InInferenceMode, {}, "meant", "conventions: for inference"),
    "wrong besides": (but(ForInference, mix=shifted), {}, "broken"),
    "checkpointed": (but(Plain, forward=lambda self, x:
        checkpoint(lambda x: self.attend(x)[0], x, use_reentrant=True)), {}, "healthy"),
})  # fmt: skip


# --- the machine ---------------------------------------------------------------------------------


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
        "causally": (raising(MISSING[1], always=False), {}, "not asked", MACHINE),
        "a bug besides": (but(raising(MISSING[1], always=False), scores=unscaled), {}, "broken",
            "only: no scale"),
        "several processes": (but(Plain, mix=lambda self, weights, v:
            torch.distributed.all_reduce(Plain.mix(self, weights, v))), {}, "not asked"),
    }
)  # fmt: skip


# --- wrappers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [torch.compile, nn.DataParallel])
def test_the_module_in_a_wrapper_is_asked(wrap):
    class Inverted(Limited):
        def forward(self, query, *, mask=None):
            return super().forward(query, mask=None if mask is None else mask.mT)

    wrapped = wrap(Limited(48, 4))
    ask(wrapped, "healthy", "not skipped: a mask", f"taken: {type(wrapped).__name__}")
    ask(wrap(Inverted(48, 4)), "broken", "first: a mask")
    ask(lambda d, h: wrap(Limited(d, h)), "healthy", "not skipped: a mask")


class NormalizedWeights(Plain):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        nn.utils.parametrizations.weight_norm(self.W_q)
        nn.utils.parametrizations.spectral_norm(self.W_v)


def test_weights_that_are_computed_are_asked_as_plain_ones():
    module = NormalizedWeights(48, 4)
    ask(NormalizedWeights, "healthy")
    ask(module, "healthy")
    assert "W_q.parametrizations.weight.original0" in module.state_dict()  # its own stay


# --- sizes ---------------------------------------------------------------------------------------


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


def of_one_size(self, x):
    return x.view(8, 16, self.num_heads, -1).transpose(1, 2)


def of_eights(self, x):
    assert x.shape[1] % 8 == 0, "pad to a multiple of 8"
    return self.attend(x)


def of_kernels(self, x):
    if self.d_k not in (16, 32, 64):
        raise ValueError("heads of 16, 32 or 64")
    return self.attend(x)


def without_first_head(self, weights, v):
    return Plain.mix(self, weights, v)[:, :, :1]


OfKernels = but(Plain, forward=of_kernels)
CERTAIN = "not_comparable: certain sizes"
WIDE, UNSCALED_WIDE = "module_under_test: wide heads", but(WideHeads, scores=unscaled)
test_sizes = diagnoses({
    "a device": (lambda hid_dim, n_heads, device: Plain(hid_dim, n_heads).to(device), {},
        "healthy"),
    "Keras": (lambda num_heads, key_dim: Plain(num_heads * key_dim, num_heads), {}, "healthy"),
    "wide heads": (WideHeads(), {}, "healthy", WIDE, "taken: 20"),
    "wide heads in place": (WideHeadsInPlace, {}, "healthy", WIDE),
    "unscaled wide ones": (UNSCALED_WIDE(), {}, "", "only: no scale"),
    "unscaled, told": (UNSCALED_WIDE(), {"scale": 1}, "healthy"),
    "shifted wide ones": (but(WideHeads, mix=shifted)(), {}, "broken"),
    "eight for four, built": (Plain(48, 4), {"num_heads": 8}, "meant", "num_heads=4"),
    "wrong for any number": (but(Plain, mix=without_first_head)(48, 4), {"num_heads": 8}, "",
        "not num_heads=4"),
    "one length, class": (OfOneLength, {}, "not asked", CERTAIN, "2 samples of 128 tokens"),
    "one size": (but(OfOneLength, split=of_one_size), {}, "not asked", CERTAIN,
        "8 samples of 16 tokens"),
    "multiples of 8": (but(Plain, forward=of_eights), {}, "not asked", CERTAIN, "8 and 16 tokens"),
    "kernels": (OfKernels, {}, "not asked", "not_comparable: certain widths", "10", "64"),
    "kernels, built": (OfKernels(64, 4), {}, "healthy"),
})  # fmt: skip


# --- names of arguments --------------------------------------------------------------------------


class OfDETR(Limited):
    """The names of nn.TransformerEncoderLayer."""

    def forward(self, src, src_mask=None, src_key_padding_mask=None):
        allowed = None if src_key_padding_mask is None else ~src_key_padding_mask
        return super().forward(src, mask=src_mask, key_mask=allowed)


def attend_across(module, query, context, mask, hidden):
    context = query if context is None else context
    return module.attend(query, context, allowed=fit(mask, None if hidden is None else ~hidden))[0]


class AcrossAsInDETR(Plain):
    def forward(self, tgt, memory, memory_mask=None, memory_key_padding_mask=None):
        return attend_across(self, tgt, memory, memory_mask, memory_key_padding_mask)


class EachItsOwn(Plain):
    """As x-transformers have it."""

    def forward(self, x, context=None, key_mask=None, context_mask=None):
        kept = key_mask if context is None else context_mask
        return attend_across(self, x, context, None, None if kept is None else ~kept)


class AcrossAsInBERT(Plain):
    def forward(self, x, attention_mask=None, encoder_hidden_states=None,
                encoder_attention_mask=None):  # fmt: skip
        across = encoder_hidden_states is not None
        mask = encoder_attention_mask if across else attention_mask
        return self.attend(x, encoder_hidden_states, allowed=fit(key_mask=mask))[0]


def across(name, *, ignored=False):
    """Another sequence under a name of a library."""
    namespace: dict = {}
    exec(f"def forward(self, x, {name}=None): return self.across(x, {name})", namespace)
    return but(
        Plain,
        forward=namespace["forward"],
        across=lambda self, x, other: self.attend(x, None if ignored else other)[0],
    )


def of_gemma3(self, hidden_states, position_embeddings: torch.Tensor = None):
    cos, sin = position_embeddings
    return self.attend(hidden_states * cos + sin)


def blind(self, query, key=None, value=None, allowed=None):
    return Plain.attend(self, query, key, value)


def blind_across(self, query, key=None, value=None, allowed=None):
    return Plain.attend(self, query, key, value, allowed if key is None else None)


NeedsMore = but(Plain, forward=lambda self, x, states=None: self.attend(x + states.mean()))
NAMES_OF_KEYS = "encoder_hidden_states", "key_value_states", "encoder_out", "enc_src"
BETWEEN = "padding between two sequences"
test_names_of_arguments = diagnoses({
    **{one.__name__: (one, {}, "healthy", "not skipped: padding")
       for one in (OfDETR, AcrossAsInDETR, EachItsOwn)},
    **{f"{one.__name__}, blind": (but(one, attend=blind), {}, "", "fails: padding")
       for one in (OfDETR, AcrossAsInDETR, EachItsOwn)},
    **{name: (across(name), {}, "healthy", "not skipped: two sequences") for name in NAMES_OF_KEYS},
    "ignored": (across("enc_src", ignored=True), {}, "broken"),
    "keys of another sequence": (AcrossAsInBERT, {}, "healthy", f"not skipped: {BETWEEN}"),
    "keys of another sequence, blind": (but(AcrossAsInBERT, attend=blind_across), {}, "",
        f"fails: {BETWEEN}"),
    "in their order": (but(Limited, forward=lambda self, attn_mask, tokens:
        Limited.forward(self, tokens, mask=attn_mask)), {}, "healthy",
        "taken: forward(attn_mask, tokens)"),
    "x and y": (but(Plain, forward=lambda self, x, y: self.attend(y, x)), {}, "healthy",
        "taken: queries made of y"),
    "source and target": (but(Plain, forward=lambda self, src, tgt: self.attend(tgt, src)), {},
        "healthy", "not skipped: two sequences"),
    "the second lost": (but(Plain, forward=lambda self, x, y: self.attend(x)), {}, "broken"),
    "of the target": (but(Plain, forward=lambda self, x, tgt_mask=None: self.attend(x)[0]), {},
        "", "fails: a mask"),
    "unlike torch": (but(Plain, forward=lambda self, x, key_padding_mask=None:
        self.attend(x, allowed=fit(key_mask=key_padding_mask))[0]), {}, "healthy",
        "taken: unlike torch's"),
    "states": (NeedsMore, {}, "not asked", "not_comparable: left out", "arguments={'states': ...}"),
    "states, told": (NeedsMore, {"arguments": {"states": torch.zeros(1)}}, "healthy"),
    "an error of its own": (but(Plain, forward=lambda self, x: self.attend(x + None.mean())), {},
        "broken"),
    "cosines and sines": (but(Plain, forward=of_gemma3), {}, "healthy",
        "taken: its position_embeddings"),
})  # fmt: skip


# --- what is refused, and why --------------------------------------------------------------------


class Latent(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.o_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.kv_a, self.kv_b = nn.Linear(d_model, 16), nn.Linear(16, 2 * d_model)


def raises(*_):
    raise KeyError("W_q")


def returning(change):
    return lambda d_model, num_heads: Returning(d_model, num_heads, change)


test_what_cannot_be_asked_is_an_error = refusals({
    "heads of no width": (Plain(48, 4), {"num_heads": 7}, CallError,
        "build: heads of no width", "48"),
    "no heads": (changed(Plain(48, 4), num_heads=0), {}, CallError, "build: heads of a module",
        "num_heads", "0"),
    "heads that don't divide": (WideHeads(48, 5), {}, CallError, "build: undivided", "48"),
    "wide values": (WideHeads(d_v=24), {}, CallError, "build: wide values", "80", "96"),
    "in two steps": (Latent, {}, CallError, "build: two steps", "kv_b"),
    "other widths": (nn.MultiheadAttention(48, 4, kdim=32, vdim=20), {}, CallError,
        "build: several widths", "32", "20"),
    "no sizes": (lambda: Plain(30, 3), {}, CallError, "build: one module only"),
    "load": (Plain, {"load": raises}, CallError, "module_under_test: load raised", "load",
        "KeyError: 'W_q'"),
    "scale": (Plain, {"scale": lambda d, h: 1}, CallError, "scale(10)", "TypeError"),
    "three tensors": (returning(lambda y, w: (y, y[0], w)), {}, CallError, "call: result",
        "(result[0], result[2])"),
    "a dict": (returning(lambda y, w: {"y": y}), {}, CallError, "call: result", "result['y']"),
    "several modules": (nn.ModuleDict({"a": Plain(48, 4)}), {}, CallError, "build: several modules",
        "ModuleDict"),
    "padding that isn't one": (but(Limited, forward=lambda self, x, mask=None:
        Limited.forward(self, x, mask=mask)), {"key_mask": "hide"}, CallError,
        "examine: no padding",
        "'hide'", "[T, T]"),
})  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_a_scripted_module_is_refused():
    with pytest.raises(CallError) as error:
        diagnose(torch.jit.script(nn.Linear(4, 4)))
    assert says(str(error.value), "build: scripted")


# --- what it returns -----------------------------------------------------------------------------


class LikeGPT2(Plain):
    """It returns less where no weights are asked for."""

    def forward(self, x, output_attentions=False):
        output, weights = self.attend(x)
        return (output, output, weights) if output_attentions else (output, output)


def with_nan(module):
    module.W_k.weight.data[3, 5] = torch.nan
    return module


def zeros_added():
    return nn.MultiheadAttention(48, 4, batch_first=True, add_zero_attn=True)


def noisy(self, x):
    return self.attend(x + torch.rand_like(x) if self.training else x)


test_what_it_returns_and_holds = diagnoses({
    "a place before the weights": (returning(lambda y, w: (y, None, w)), {}, "healthy"),
    "a place behind the weights": (returning(lambda y, w: (y, w, None)), {}, "healthy"),
    "a place for the weights": (returning(lambda y, w: (y, None)), {}, "healthy"),
    "twice the weights": (returning(lambda y, w: (y, None, 2 * w)), {}, "", "sum to 2"),
    "shorter without weights": (LikeGPT2, {"returns": lambda result: (result[0], result[2])},
        "healthy"),
    "a key of zeros": (zeros_added(), {}, "meant", "conventions: formula",
        "taken: the key that it adds"),
    "NaN in a weight": (with_nan(Plain(48, 4)), {}, "healthy", "taken: its W_k.weight"),
    "noise": (but(Plain, forward=noisy), {}, "", "report: random in training"),
})  # fmt: skip


def test_returns_that_fit_no_result_are_an_error():
    with pytest.raises(CallError) as error:
        diagnose(LikeGPT2, returns=lambda result: (result[0], result[3]))
    assert says(str(error.value), "call: returns")


# --- what a forward does to Python ---------------------------------------------------------------


def test_a_forward_that_ends_the_program_is_broken(tmp_path, capsys):
    def exits(self, x):
        raise SystemExit(0)

    ask(but(Plain, forward=exits), "broken", "sys.exit(0)")
    file = tmp_path / "mine.py"
    file.write_text(
        "import sys\nfrom tools.broken_attentions import Plain\n"
        "class Exits(Plain):\n    def forward(self, x):\n        sys.exit(0)\n"
        "class Refuses(Plain):\n    def __init__(self, d_model, num_heads):\n        sys.exit()\n"
    )
    assert main([f"{file}:Exits"]) == 1
    assert main([f"{file}:Refuses"]) == 2
    assert "SystemExit" in capsys.readouterr().err


def test_a_default_dtype_that_a_forward_changes_is_told():
    def doubles(self, x):
        torch.set_default_dtype(torch.float64)
        return self.attend(x)

    ask(but(Plain, forward=doubles), "broken", "no exhibit", "torch.float64")
    assert torch.get_default_dtype() == torch.float32


# --- errors that are raised on purpose -----------------------------------------------------------


def without_a_sample(self, x):
    B, T, d = x.squeeze().shape
    return self.attend(x.view(B, T, d))


def pooled(self, x):
    return self.attend(x + F.avg_pool1d(x.mT, 2).mean() * 0)


def several_tokens(self, x):
    assert x.shape[1] > 1, "several tokens"
    return self.attend(x)


def wrong_when_long(self, weights, v):
    return Plain.mix(self, weights, v) + (v.shape[2] > 60)


SeveralTokens = but(Plain, forward=several_tokens)
test_errors_on_purpose_are_not_broken = diagnoses({
    "several tokens": (SeveralTokens, {}, "not asked", "report: refuses", "AssertionError"),
    "several tokens, wrong": (but(SeveralTokens, mix=wrong_when_long), {}, "broken"),
    "a sample lost": (but(Plain, forward=without_a_sample), {}, "broken", "1 sample of 7 tokens"),
    "a wrong call": (but(Plain, forward=pooled), {}, "broken", "13 samples of 1 token)"),
})  # fmt: skip


# --- keys and values that are kept ---------------------------------------------------------------


class KeepsADict(Plain):
    def forward(self, x, cache=None, is_causal=False):
        if cache is not None and "k" in cache:
            raise NotImplementedError
        return self.attend(x, allowed=fit(causal=is_causal, T=x.shape[1]))[0]


class KeepsATuple(KeepsADict):
    def forward(self, x, cache=None, is_causal=False):
        if cache is not None:
            _, _ = cache
        return super().forward(x, None, is_causal)


class KeepsKeysAndValues(Plain):
    def forward(self, x, past_key_value=None, use_cache=True):
        return self.attend(x)[0], tuple(self.split(W(x)) for W in (self.W_k, self.W_v))


def needs_its_past(self, x, use_cache, layer_past):
    return self.attend(x) if not use_cache and layer_past is None else x


FOREIGN = "report: foreign cache", "not report: defaults"
test_what_is_kept = diagnoses({
    "a dict": (KeepsADict, {}, "healthy", *FOREIGN),
    "a tuple": (KeepsATuple, {}, "healthy", *FOREIGN),
    "a past": (but(Plain, forward=needs_its_past), {}, "healthy"),
    "keys and values": (KeepsKeysAndValues, {}, "healthy", *FOREIGN, "(past_key_value, use_cache)"),
    "keys and values, unscaled": (but(KeepsKeysAndValues, scores=unscaled), {}, "",
        "only: no scale"),
})  # fmt: skip


# --- other axes ----------------------------------------------------------------------------------


def labml(self, query, mask=None):
    """Tokens [T, B, d], masks [T, T, B]."""
    allowed = None if mask is None else mask.permute(2, 0, 1)[:, None]
    return self.attend(query.transpose(0, 1), allowed=allowed)[0].transpose(0, 1)


def crossed(self, x, key_padding_mask=None):
    if key_padding_mask is None:
        return self.attend(x)[0]
    hidden = key_padding_mask[:, None].repeat(self.num_heads, 1, 1)
    return self.attend(x, allowed=~hidden.unflatten(0, (len(x), -1)))[0]


class Gained(Plain):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.W_q = self.W_k = self.W_v = None
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.gain = nn.Parameter(torch.full((d_model,), 0.1))

    def forward(self, x):
        q, k, v = map(self.split, self.qkv(x).chunk(3, -1))
        return self.mix(self.scores(q, k).softmax(-1), v) * self.gain


def heads_alone(self, x):
    return self.attend(x)[1] @ self.split(self.W_v(x))


def if_mask(self, x, mask=None):
    return self.attend(x, allowed=mask if mask else None)


MIXED = "report: other samples", "not report: leaking"
OTHER_FORMULA = "not report: right on equal tokens", "not report: wrong on equal tokens"
test_other_axes = diagnoses({
    "tokens first, other masks": (but(Plain, forward=labml), {}, "not asked",
        "report: other masks",
        "conventions: tokens first"),
    "padding by samples": (but(Plain, forward=crossed), {}, "broken", *MIXED),
    "whether a mask is true": (but(Plain, forward=if_mask), {}, "broken", "report: ambiguous"),
    "a gain": (Gained, {}, "not asked", "gain", "not .qkv"),
    "weights for an output": (but(Plain, forward=lambda self, x: self.attend(x)[1]), {}, "",
        "report: axes of weights", *OTHER_FORMULA),
    "heads for an output": (but(Plain, forward=heads_alone), {}, "",
        "not report: axes of weights", *OTHER_FORMULA),
})  # fmt: skip


# --- dropout -------------------------------------------------------------------------------------


def drops(times):
    def mix(self, weights, v):
        for _ in range(times):
            weights = self.dropout(weights)
        return self.dropout(Plain.mix(self, weights, v))  # as a residual has it

    return but(Drops, mix=mix, forward=lambda self, x: self.attend(x)[0])


def test_weights_that_are_dropped_twice_are_told():
    ask(drops(1), "healthy")
    assert diagnosed(drops(2)).failed == ("the dropout rate",)
