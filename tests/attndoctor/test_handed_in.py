"""What people hand in is asked, however it is built, wrapped and called."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from tools.broken_attentions import Limited, Plain, fit
from torch import nn
from torch.utils.checkpoint import checkpoint

from attndoctor import CallError, diagnose
from attndoctor.__main__ import main
from attndoctor.diagnosis import UNLESS_MEANT
from attndoctor.museum import named

pytestmark = pytest.mark.thorough

# --- masks that must be given --------------------------------------------------------------------


class Required(nn.Module):
    """Its mask must be given, and hides where it is True."""

    fill = float("-inf")

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x, mask):
        return self.attend(x, mask)

    def packed(self, x):
        return (self.split(part) for part in self.qkv(x).chunk(3, -1))

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def attend(self, x, mask):
        q, k, v = self.packed(x)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.masked_fill(mask, self.fill).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class FilledWithANumber(Required):
    fill = -1e9


class PackedByHeads(Required):
    def packed(self, x):
        return self.split(self.qkv(x)).chunk(3, -1)


class SequenceFirst(PackedByHeads):
    """As Megatron has it: tokens [T, B, d]."""

    fill = -10000.0

    def forward(self, hidden_states, attention_mask):
        return self.attend(hidden_states.transpose(0, 1), attention_mask).transpose(0, 1)


class OfPadding(Required):
    def forward(self, x, padding_mask):
        return self.attend(x, padding_mask[:, None, None])


@pytest.mark.parametrize("candidate", [Required, FilledWithANumber, PackedByHeads])
def test_a_mask_that_must_be_given_and_hides_may_be_meant(candidate):
    """As one that may be left out."""
    diagnosis = diagnose(candidate)
    assert diagnosis.heading == UNLESS_MEANT, diagnosis
    assert diagnosis.exhibits[0] == named("inverted mask")
    assert 'say mask="hide"' in diagnosis.message and "Asked the same" not in diagnosis.message
    assert diagnose(candidate, mask="hide").heading.startswith("Healthy")
    assert diagnose(candidate, mask="keep").heading == "Broken."


def test_a_mask_that_must_be_given_may_come_with_another_order_of_axes():
    diagnosis = diagnose(SequenceFirst)
    assert diagnosis.heading == UNLESS_MEANT and "say batch_first=False" in diagnosis.message
    assert diagnose(SequenceFirst, batch_first=False).heading.startswith("Healthy")
    assert diagnose(OfPadding).heading.startswith("Healthy")


def test_a_bug_behind_a_mask_that_must_be_given_is_named():
    class Unscaled(Required):
        def packed(self, x):
            q, k, v = super().packed(x)
            return q * q.shape[-1] ** 0.5, k, v

    assert diagnose(Unscaled, mask="hide").exhibits == (named("no scale"),)


def test_nan_is_the_same_answer_twice():
    class Divides(Plain):
        def weigh(self, scores, allowed):
            return super().weigh(scores, allowed) / 0 * 0

    diagnosis = diagnose(Divides)
    assert diagnosis.heading == "Broken." and "Asked the same once more" not in diagnosis.message


# --- gradients -----------------------------------------------------------------------------------


def test_frozen_weights_are_asked_as_if_they_learned():
    frozen = Plain(48, 4).requires_grad_(False)
    assert diagnose(frozen).heading == "Healthy."
    assert not any(numbers.requires_grad for numbers in frozen.parameters())
    frozen.W_q.requires_grad_(True)
    diagnosis = diagnose(frozen)
    assert diagnosis.heading == "Healthy." and "gradients" not in diagnosis.untried
    assert "its frozen weights (W_k.weight, W_k.bias, W_v.weight" in diagnosis.taken
    assert "frozen" not in diagnose(Plain(48, 4)).taken


class FrozenAndDetached(Plain):
    def split(self, x):
        return super().split(x.detach())


def test_a_gradient_that_a_frozen_module_loses_is_found():
    assert diagnose(FrozenAndDetached(48, 4).requires_grad_(False)).heading == "Broken."


class ForInference(Plain):
    @torch.no_grad()
    def forward(self, x):
        return self.attend(x)


class InInferenceMode(Plain):
    @torch.inference_mode()
    def forward(self, x):
        return self.attend(x)


@pytest.mark.parametrize("candidate", [ForInference, InInferenceMode])
def test_what_is_for_inference_alone_may_be_meant_so(candidate):
    diagnosis = diagnose(candidate)
    assert diagnosis.heading == UNLESS_MEANT and not diagnosis
    assert "its forward runs under torch.no_grad() or inference_mode" in diagnosis.message
    assert "That is fine if it is for inference alone." in diagnosis.message


def test_what_is_for_inference_and_wrong_besides_is_broken():
    class Unscaled(ForInference):
        def scores(self, q, k):
            return q @ k.mT / self.d_k**0.25

    class Shifted(ForInference):
        def mix(self, weights, v):
            return super().mix(weights, v) + 1

    assert diagnose(Shifted).heading == "Broken."
    diagnosis = diagnose(Unscaled)
    assert "no gradient" not in diagnosis.message.partition("There is more")[0]


# --- the machine ---------------------------------------------------------------------------------


def lacking(error, where="always"):
    class Lacking(Plain):
        def forward(self, x, causal=False):
            if where == "always" or causal:
                raise error
            return self.attend(x)

    return Lacking


MISSING = {
    "a package": ModuleNotFoundError("No module named 'flash_attn'"),
    "a device": AssertionError("Torch not compiled with CUDA enabled"),
    "a dtype": RuntimeError("FlashAttention only support fp16 and bf16 data type"),
    "gradients": NotImplementedError("FlexAttention does not support backward on CPU."),
    "a kernel": RuntimeError("No available kernel. Aborting execution."),
    "an operator": NotImplementedError(
        "Could not run 'xformers::efficient' with arguments from the 'CPU' backend."
    ),
}


@pytest.mark.parametrize("where", ["always", "causally"])
@pytest.mark.parametrize("name", MISSING)
def test_what_the_machine_lacks_is_no_bug(name, where):
    diagnosis = diagnose(lacking(MISSING[name], where))
    assert diagnosis.heading == "This can't be asked." and not diagnosis.exhibits
    assert f"raises {type(MISSING[name]).__name__}: " in diagnosis.message
    assert "That is about the machine, and not about the attention" in diagnosis.message


OF_ITS_OWN = {
    "a shape": RuntimeError("The size of tensor a (7) must match the size of tensor b (3)"),
    "a view": RuntimeError("shape '[2, 7, 3]' is invalid for input of size 420"),
    "a name": NameError("name 'mask' is not defined"),
    "nothing written": NotImplementedError(),
    "a kind of number": RuntimeError("\"softmax_kernel_impl\" not implemented for 'Long'"),
}


@pytest.mark.parametrize("name", OF_ITS_OWN)
def test_an_error_of_its_own_is_a_bug(name):
    diagnosis = diagnose(lacking(OF_ITS_OWN[name]))
    assert diagnosis.heading == "Broken." and "about the machine" not in diagnosis.message


def test_a_bug_beside_what_the_machine_lacks_is_told():
    class Both(lacking(MISSING["a device"], "causally")):
        def scores(self, q, k):
            return q @ k.mT

    assert diagnose(Both).exhibits == (named("no scale"),)


# --- wrappers ------------------------------------------------------------------------------------


def test_the_module_in_a_wrapper_is_asked():
    class Inverted(Limited):
        def forward(self, query, *, mask=None):
            return super().forward(query, mask=None if mask is None else mask.mT)

    wrappers = {"OptimizedModule": torch.compile, "DataParallel": nn.DataParallel}
    for name, wrap in wrappers.items():
        diagnosis = diagnose(wrap(Limited(48, 4)))
        assert diagnosis and "a mask" not in diagnosis.untried
        assert f"what stands in a {name}" in diagnosis.taken
        assert "with a mask [T, T]" in diagnose(wrap(Inverted(48, 4))).message
    assert "a mask" not in diagnose(lambda d, h: torch.compile(Limited(d, h))).untried


# --- sizes and names -----------------------------------------------------------------------------


class OfAConfig(nn.Module):
    """Its key heads are known to its config alone."""

    def __init__(self, config):
        super().__init__()
        self.d_k = config.hidden_size // config.num_attention_heads
        self.groups = config.num_attention_heads // config.num_key_value_heads
        d, kv = config.hidden_size, config.num_key_value_heads * self.d_k
        self.q_proj, self.o_proj = nn.Linear(d, d), nn.Linear(d, d)
        self.k_proj, self.v_proj = nn.Linear(d, kv), nn.Linear(d, kv)

    def forward(self, x):
        q, k, v = (
            W(x).unflatten(-1, (-1, self.d_k)).transpose(1, 2)
            for W in (self.q_proj, self.k_proj, self.v_proj)
        )
        k, v = self.share(k), self.share(v)
        weights = (q @ k.mT / self.d_k**0.5).softmax(-1)
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2))

    def share(self, x):
        return x.repeat_interleave(self.groups, 1)


def test_grouped_heads_that_a_config_offers_are_asked():
    class Tiled(OfAConfig):
        def share(self, x):
            return x.repeat(1, self.groups, 1, 1)

    class Ungrouped(Plain):
        def __init__(self, config):
            super().__init__(config.hidden_size, config.num_attention_heads)

    diagnosis = diagnose(OfAConfig)
    assert diagnosis.heading == "Healthy." and "grouped heads" not in diagnosis.untried
    diagnosis = diagnose(Tiled)
    assert not diagnosis and diagnosis.failed[0] == "grouped heads"
    assert diagnosis.exhibits == (named("grouped heads tiled"),)
    assert "grouped heads" in diagnose(Ungrouped).untried


class OfGPT2(Plain):
    def __init__(self, config):
        super().__init__(config.hidden_size, config.num_attention_heads)
        self.bias = torch.ones(config.max_position_embeddings, 1, dtype=torch.bool)


class OfLitGPT(OfAConfig):
    def __init__(self, config):
        super().__init__(config)
        assert config.n_query_groups == config.num_key_value_heads


class OfATutorial(Plain):
    def __init__(self, hid_dim, n_heads, device):
        super().__init__(hid_dim, n_heads)
        self.scale = torch.ones(1).to(device)


class OfD2L(Plain):
    def __init__(self, num_hiddens, num_heads):
        super().__init__(num_hiddens, num_heads)


class OfKeras(Plain):
    def __init__(self, num_heads, key_dim):
        super().__init__(num_heads * key_dim, num_heads)
        assert key_dim == self.d_k == 10 or self.d_model != 30


@pytest.mark.parametrize("candidate", [OfGPT2, OfLitGPT, OfATutorial, OfD2L, OfKeras])
def test_sizes_are_known_by_the_names_of_tutorials(candidate):
    assert diagnose(candidate).heading == "Healthy."


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


class AcrossIfAsked(Plain):
    def forward(self, x, context=None, context_mask=None):
        hidden = None if context is None or context_mask is None else ~context_mask
        return attend_across(self, x, context, None, hidden)


class EachItsOwn(Plain):
    """As x-transformers have it."""

    def forward(self, x, context=None, key_mask=None, context_mask=None):
        kept = key_mask if context is None else context_mask
        return attend_across(self, x, context, None, None if kept is None else ~kept)


class EachItsOwnCausally(EachItsOwn):
    """Its mask is one of padding, which only asking tells."""

    def forward(self, x, context=None, mask=None, context_mask=None):
        return super().forward(x, context, mask, context_mask)

    def attend(self, query, key=None, value=None, allowed=None):
        causal = fit(causal=True, T=query.shape[1])
        return super().attend(query, key, value, causal if allowed is None else allowed & causal)


@pytest.mark.parametrize("candidate", [OfDETR, AcrossAsInDETR, AcrossIfAsked, EachItsOwn])
def test_masks_are_known_by_the_names_of_torch(candidate):
    diagnosis = diagnose(candidate)
    assert diagnosis and "padding" not in diagnosis.untried, diagnosis

    class Ignores(candidate):
        def attend(self, query, key=None, value=None, allowed=None):
            return super().attend(query, key, value)

    assert "padding" in diagnose(Ignores).failed


def test_a_mask_of_padding_may_stand_beside_one_for_the_context():
    diagnosis = diagnose(EachItsOwnCausally)
    assert diagnosis and "padding" not in diagnosis.untried, diagnosis
    assert "its mask [B, T] where True = may look" in diagnosis.taken


def test_a_past_that_must_be_given_is_nothing():
    class Past(Plain):
        def forward(self, x, layer_past):
            assert layer_past is None
            return self.attend(x)

    assert diagnose(Past).heading == "Healthy."


def test_arguments_are_told_in_their_order():
    class Turned(Limited):
        def forward(self, attn_mask, tokens):
            return super().forward(tokens, mask=attn_mask)

    assert "forward(attn_mask, tokens)" in diagnose(Turned).taken


# --- what is refused, and why --------------------------------------------------------------------


class WideHeads(Plain):
    """As Qwen3's: heads whose widths don't add up to d_model."""

    def __init__(self, d_model=48, num_heads=4, d_k=20, d_v=20):
        super().__init__(d_model, num_heads)
        self.d_k = d_k
        self.W_q, self.W_k = (nn.Linear(d_model, num_heads * d_k) for _ in range(2))
        self.W_v = nn.Linear(d_model, num_heads * d_v)
        self.W_o = nn.Linear(num_heads * d_v, d_model)


class Latent(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.o_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.kv_a, self.kv_b = nn.Linear(d_model, 16), nn.Linear(16, 2 * d_model)

    def forward(self, x):
        return x


def without_heads():
    module = Plain(48, 4)
    module.num_heads = 0
    return module


def raises(*_):
    raise KeyError("W_q")


REFUSED = {
    "no heads": (without_heads(), {}, ["num_heads of this Plain is 0: say it with num_heads=..."]),
    "heads that don't divide": (WideHeads(48, 5), {},
        ["its 5 heads don't divide 48", "Build one whose d_model is a multiple of 5"]),
    "wide values": (WideHeads(d_v=24), {}, ["its keys have 80 numbers and its values 96"]),
    "in two steps": (Latent, {}, ["kv_b doesn't take its tokens", "two steps", "can't be asked"]),
    "other widths": (nn.MultiheadAttention(48, 4, kdim=32, vdim=20), {},
        ["tokens 32 wide, its values from 20", "build it with one width for all"]),
    "no sizes": (lambda: Plain(30, 3), {}, ["<lambda> takes no sizes", "hand in that module"]),
    "load": (Plain, {"load": raises}, ["load must copy", "a Plain, but it raised KeyError: 'W_q'"]),
    "scale": (Plain, {"scale": lambda d, h: 1}, ["scale must be", "scale(10) raised TypeError"]),
    "three tensors": (lambda d, h: Returning(d, h, lambda y, w: (y, y[0], w)), {},
        ["got 3 values", "returns=lambda result: (result[0], result[2])"]),
    "a dict": (lambda d, h: Returning(d, h, lambda y, w: {"y": y}), {},
        ["got dict", "returns=lambda result: result['y']"]),
}  # fmt: skip


class Returning(Plain):
    def __init__(self, d_model, num_heads, change):
        super().__init__(d_model, num_heads)
        self.change = change

    def forward(self, x, output_attentions=False):
        return self.change(*self.attend(x))


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_a_scripted_module_is_refused():
    with pytest.raises(CallError, match="scripted: hand in the module"):
        diagnose(torch.jit.script(nn.Linear(4, 4)))


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_asked_is_told_why(name):
    candidate, options, words = REFUSED[name]
    with pytest.raises(CallError) as error:
        diagnose(candidate, **options)
    for word in words:
        assert word in str(error.value)
    assert "pass load=" not in str(error.value)


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
        return self.mix(self.scores(q, k).softmax(-1), v)

    def mix(self, weights, v):
        return (weights @ v).transpose(1, 2).flatten(2) @ self.out


@pytest.mark.parametrize("candidate", [WideHeads(), lambda d, h: WideHeads(d, h), WideHeadsInPlace])
def test_heads_of_any_width_are_asked(candidate):
    diagnosis = diagnose(candidate)
    assert diagnosis.heading == "Healthy.", diagnosis
    assert "heads 20 wide, with d_model=" in diagnosis.taken


@pytest.mark.parametrize("width", [12, 20])
def test_a_bug_in_heads_of_any_width_is_named(width):
    class Unscaled(WideHeads):
        def scores(self, q, k):
            return q @ k.mT

    class Shifted(WideHeads):
        def mix(self, weights, v):
            return super().mix(weights, v) + 1

    module = Unscaled(d_k=width, d_v=width)
    assert diagnose(module).exhibits == (named("no scale"),)
    assert diagnose(module, scale=1).heading == "Healthy."
    assert diagnose(Shifted(d_k=width, d_v=width)).heading == "Broken."


def test_another_number_of_wide_heads_is_told():
    diagnosis = diagnose(WideHeads(), num_heads=8)
    assert "If it has 4 heads, say num_heads=4." in diagnosis.message


# --- what it returns -----------------------------------------------------------------------------


def test_nothing_beside_the_weights_is_passed_over():
    """As transformers has it: a place for what is kept, before the weights or behind them."""
    for change in (lambda y, w: (y, None, w), lambda y, w: (y, w, None), lambda y, w: (y, None)):
        assert diagnose(lambda d, h, change=change: Returning(d, h, change)).heading == "Healthy."
    wrong = diagnose(lambda d, h: Returning(d, h, lambda y, w: (y, None, 2 * w)))
    assert "rows of the weights sum to 2" in wrong.message


def test_a_result_that_is_shorter_without_weights_is_read_as_told():
    class AsGPT2(Plain):
        def forward(self, x, output_attentions=False):
            output, weights = self.attend(x)
            return (output, output, weights) if output_attentions else (output, output)

    assert diagnose(AsGPT2, returns=lambda result: (result[0], result[2])).heading == "Healthy."
    with pytest.raises(CallError, match="got 3 values"):
        diagnose(AsGPT2, returns=lambda result: (result[0], result[3]))


def test_a_key_of_zeros_is_another_formula():
    module = nn.MultiheadAttention(48, 4, batch_first=True, add_zero_attn=True)
    diagnosis = diagnose(module)
    assert diagnosis.heading == UNLESS_MEANT, diagnosis
    assert "a softmax with 1 added to its sum" in diagnosis.message
    assert "without those of the key that it adds" in diagnosis.taken


# --- what is told of it --------------------------------------------------------------------------


def test_what_is_told_of_padding_is_not_passed_over():
    class OneMask(Limited):
        def forward(self, x, mask=None):
            return super().forward(x, mask=mask)

    with pytest.raises(CallError, match=r"key_mask .* got 'hide', but mask was found to be \[T, T"):
        diagnose(OneMask, key_mask="hide")


def test_weights_that_are_no_numbers_are_told():
    module = Plain(48, 4)
    module.W_k.weight.data[3, 5] = torch.nan
    assert "its W_k.weight, not all of them numbers, filled anew" in diagnose(module).taken
    assert "filled anew" not in diagnose(Plain(48, 4)).taken


def test_another_number_of_heads_is_told():
    module = Plain(48, 4)
    diagnosis = diagnose(module, num_heads=8)
    assert diagnosis.heading == UNLESS_MEANT
    assert "If it has 4 heads, say num_heads=4." in diagnosis.message
    module.W_o.register_forward_hook(lambda *_: torch.zeros(()))
    assert "say num_heads" not in diagnose(module, num_heads=8).message


def test_cosines_and_sines_that_only_seem_to_be_left_out_are_handed_over():
    class AsGemma3(Plain):
        def forward(self, hidden_states, position_embeddings: torch.Tensor = None):
            cos, sin = position_embeddings
            return self.attend(hidden_states * cos + sin)

    diagnosis = diagnose(AsGemma3)
    assert diagnosis.heading == "Healthy."
    assert "its position_embeddings turning nothing" in diagnosis.taken


def test_what_may_be_needed_though_it_is_left_out_is_told():
    class NeedsMore(Plain):
        def forward(self, x, states=None):
            return self.attend(x + states.mean())

    diagnosis = diagnose(NeedsMore)
    assert diagnosis.heading == "This can't be asked."
    assert "hand it over with arguments={'states': ...}" in diagnosis.message
    assert diagnose(NeedsMore, arguments={"states": torch.zeros(1)}).heading == "Healthy."

    class Fails(Plain):
        def forward(self, x):
            return self.attend(x + None.mean())

    assert diagnose(Fails).heading == "Broken."


def test_noise_in_training_is_told_first():
    class Noisy(Plain):
        def forward(self, x):
            return self.attend(x + torch.rand_like(x) if self.training else x)

    assert "Not tested in train()" in diagnose(Noisy).message.split("\n")[1]


# --- what a forward does to Python ---------------------------------------------------------------


def test_a_forward_that_ends_the_program_is_broken(tmp_path, capsys):
    class Exits(Plain):
        def forward(self, x):
            raise SystemExit(0)

    diagnosis = diagnose(Exits)
    assert diagnosis.heading == "Broken." and "by sys.exit(0)" in diagnosis.message
    file = tmp_path / "mine.py"
    file.write_text(
        "import sys\nfrom tools.broken_attentions import Plain\n"
        "class Exits(Plain):\n    def forward(self, x):\n        sys.exit(0)\n"
        "class Refuses(Plain):\n    def __init__(self, d_model, num_heads):\n        sys.exit()\n"
    )
    assert main([f"{file}:Exits"]) == 1
    assert main([f"{file}:Refuses"]) == 2
    assert "raised SystemExit" in capsys.readouterr().err


def test_a_default_dtype_that_a_forward_changes_is_told():
    class Doubles(Plain):
        def forward(self, x):
            torch.set_default_dtype(torch.float64)
            return self.attend(x)

    diagnosis = diagnose(Doubles)
    assert diagnosis.heading == "Broken." and not diagnosis.exhibits
    assert "it sets torch's default dtype to torch.float64" in diagnosis.message
    assert torch.get_default_dtype() == torch.float32


class PaddingKept(Plain):
    """The name of torch's mask, and the opposite meaning."""

    def forward(self, x, key_padding_mask=None):
        return self.attend(x, allowed=fit(key_mask=key_padding_mask))[0]


def test_padding_that_is_meant_unlike_torch_is_told():
    diagnosis = diagnose(PaddingKept)
    says = "its key_padding_mask [B, T] where True = may look, unlike torch's own key_padding_mask"
    assert diagnosis and says in diagnosis.taken, diagnosis


NAMES_OF_KEYS = ("encoder_hidden_states", "key_value_states", "encoder_out", "enc_src")


@pytest.mark.parametrize("name", NAMES_OF_KEYS)
def test_another_sequence_is_known_by_the_names_of_libraries(name):
    class Across(Plain):
        pass

    namespace: dict = {}
    exec(f"def forward(self, x, {name}=None): return self.across(x, {name})", namespace)
    Across.forward = namespace["forward"]
    Across.across = lambda self, x, other: self.attend(x, other)[0]
    diagnosis = diagnose(Across)
    assert diagnosis and "two sequences" not in diagnosis.untried, diagnosis
    Across.across = lambda self, x, other: self.attend(x)[0]
    assert diagnose(Across).heading == "Broken."


class AcrossAsInBERT(Plain):
    def forward(self, x, attention_mask=None, encoder_hidden_states=None,
                encoder_attention_mask=None):  # fmt: skip
        across = encoder_hidden_states is not None
        mask = encoder_attention_mask if across else attention_mask
        return self.attend(x, encoder_hidden_states, allowed=fit(key_mask=mask))[0]


def test_a_mask_of_the_keys_of_another_sequence_is_known():
    diagnosis = diagnose(AcrossAsInBERT)
    assert diagnosis and "padding between two sequences" not in diagnosis.untried, diagnosis

    class Ignores(AcrossAsInBERT):
        def attend(self, query, key=None, value=None, allowed=None):
            return super().attend(query, key, value, allowed if key is None else None)

    assert "padding between two sequences" in diagnose(Ignores).failed


def test_a_module_that_was_built_for_one_sequence_may_refuse_another():
    class AsGPT2(Plain):
        def forward(self, x, encoder_hidden_states=None):
            if encoder_hidden_states is not None:
                raise ValueError("build it with is_cross_attention=True")
            return self.attend(x)[0]

    assert diagnose(AsGPT2).heading == "Healthy."


def test_a_mask_of_the_target_is_known():
    class Target(Plain):
        def forward(self, x, tgt_mask=None):
            return self.attend(x)[0]

    assert "a mask" in diagnose(Target).failed


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


@pytest.mark.parametrize("candidate", [KeepsADict, KeepsATuple])
def test_a_cache_of_another_kind_is_not_asked(candidate):
    diagnosis = diagnose(candidate)
    assert diagnosis and "Not tested: a cache of another kind" in diagnosis.message, diagnosis
    assert "known name: a cache" not in diagnosis.message


class NormalizedWeights(Plain):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        nn.utils.parametrizations.weight_norm(self.W_q)
        nn.utils.parametrizations.spectral_norm(self.W_v)

    def forward(self, x):
        return self.attend(x)[0]


@pytest.mark.parametrize("candidate", [NormalizedWeights, NormalizedWeights(48, 4)])
def test_weights_that_are_computed_are_asked_as_plain_ones(candidate):
    diagnosis = diagnose(candidate)
    assert diagnosis.heading == "Healthy.", diagnosis
    if isinstance(candidate, nn.Module):  # its own stay
        assert "W_q.parametrizations.weight.original0" in candidate.state_dict()


@pytest.mark.parametrize("holder", [nn.ModuleDict({"a": Plain(48, 4)}), nn.ModuleList()])
def test_what_holds_modules_is_refused(holder):
    with pytest.raises(CallError, match="hand in one of the modules in it"):
        diagnose(holder)


def test_a_module_for_certain_lengths_cannot_be_asked():
    class OfEights(Plain):
        def forward(self, x):
            assert x.shape[1] % 8 == 0, "pad to a multiple of 8"
            return self.attend(x)[0]

    diagnosis = diagnose(OfEights)
    assert diagnosis.heading == "This can't be asked." and "8 and 16 tokens" in diagnosis.message


# --- errors that are raised on purpose -----------------------------------------------------------


class AtMostEight(Limited):
    def forward(self, query, *, mask=None):
        if len(query) > 8:
            raise ValueError("at most 8 samples")
        return super().forward(query, mask=mask)


class SeveralTokens(Plain):
    def forward(self, x):
        assert x.shape[1] > 1, "several tokens"
        return self.attend(x)


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (AtMostEight, "raises ValueError: at most 8 samples, on purpose, first on 13 samples of 1"),
        (SeveralTokens, "raises AssertionError: several tokens"),
    ],
)
def test_a_limit_that_is_raised_on_purpose_is_not_called_broken(candidate, words):
    diagnosis = diagnose(candidate)
    assert diagnosis.heading == "This can't be asked." and words in diagnosis.message
    assert "gives nobody wrong numbers" in diagnosis.message

    class WrongToo(candidate):
        def mix(self, weights, v):
            return super().mix(weights, v) + (v.shape[2] > 60)  # on a long sequence

    assert diagnose(WrongToo).heading == "Broken."


def test_an_error_that_happens_is_broken_and_its_size_is_told():
    class LosesASample(Plain):
        def forward(self, x):
            B, T, d = x.squeeze().shape
            return self.attend(x.view(B, T, d))

    class CallsWrongly(Plain):
        def forward(self, x):
            return self.attend(x + nn.functional.avg_pool1d(x.mT, 2).mean() * 0)

    diagnosis = diagnose(LosesASample)
    assert (
        diagnosis.heading == "Broken." and "token (1 sample of 7 tokens): it" in diagnosis.message
    )
    diagnosis = diagnose(CallsWrongly)
    assert diagnosis.heading == "Broken." and "(13 samples of 1 token): it" in diagnosis.message


def test_widths_of_heads_that_are_refused_are_told():
    class OfKernels(Plain):
        def forward(self, x):
            if self.d_k not in (16, 32, 64):
                raise ValueError("heads of 16, 32 or 64")
            return self.attend(x)

    diagnosis = diagnose(OfKernels)
    assert diagnosis.heading == "This can't be asked."
    assert "with heads of 10 numbers; with heads of 64 it answers" in diagnosis.message
    assert diagnose(OfKernels(64, 4)).heading == "Healthy."


# --- keys and values that are kept ---------------------------------------------------------------


class KeepsKeysAndValues(Plain):
    stacked = False

    def forward(self, x, past_key_value=None, use_cache=True):
        kept = tuple(self.split(W(x)) for W in (self.W_k, self.W_v))
        output, _ = self.attend(x)
        return output, torch.stack(kept) if self.stacked else kept


class KeepsThemStacked(KeepsKeysAndValues):
    stacked = True


class KeepsThemBesideWeights(KeepsKeysAndValues):
    def forward(self, x, kv_cache=None):
        return *self.attend(x), super().forward(x)[1]


@pytest.mark.parametrize(
    ("candidate", "names"),
    [
        (KeepsKeysAndValues, "past_key_value, use_cache"),
        (KeepsThemStacked, "past_key_value, use_cache"),
        (KeepsThemBesideWeights, "kv_cache"),
    ],
)
def test_keys_and_values_that_are_returned_are_no_weights(candidate, names):
    diagnosis = diagnose(candidate)
    assert diagnosis.heading == "Healthy.", diagnosis
    assert f"a cache of another kind than attnlib's KVCache ({names})." in diagnosis.message
    assert "unknown here" not in diagnosis.message

    class Unscaled(candidate):
        def scores(self, q, k):
            return q @ k.mT

    assert diagnose(Unscaled).exhibits == (named("no scale"),)


def test_use_cache_may_have_to_be_given():
    class Told(Plain):
        def forward(self, x, use_cache, layer_past):
            return self.attend(x) if not use_cache and layer_past is None else x

    assert diagnose(Told).heading == "Healthy."


# --- other axes ----------------------------------------------------------------------------------


class ChannelsFirst(Plain):
    """Convolutions of tokens [B, d, T]."""

    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        for name in ("W_q", "W_k", "W_v", "W_o"):
            setattr(self, name, nn.Conv1d(d_model, d_model, 1))

    def forward(self, x):
        return self.attend(x)[0]

    def split(self, x):
        return x.unflatten(1, (self.num_heads, -1)).mT

    def mix(self, weights, v):
        return self.W_o((weights @ v).mT.flatten(1, 2))


def test_channels_may_come_first():
    diagnosis = diagnose(ChannelsFirst)
    assert diagnosis.heading == "Healthy." and "channels first, [B, d, T]" in diagnosis.taken

    class Unscaled(ChannelsFirst):
        def scores(self, q, k):
            return q @ k.mT

    assert diagnose(Unscaled).exhibits == (named("no scale"),)


class TokensFirstAndOtherMasks(Plain):
    """As labml has it: tokens [T, B, d], masks [T, T, B]."""

    def forward(self, query, mask=None):
        allowed = None if mask is None else mask.permute(2, 0, 1)[:, None]
        return self.attend(query.transpose(0, 1), allowed=allowed)[0].transpose(0, 1)


def test_masks_of_other_axes_are_told_where_tokens_come_first():
    diagnosis = diagnose(TokensFirstAndOtherMasks)
    assert diagnosis.heading == "This can't be asked.", diagnosis
    for words in ("say batch_first=False", "mask.permute(1, 2, 0) turns [B, T, T] into [T, T, B]"):
        assert words in diagnosis.message


@pytest.mark.parametrize("heads_first", [False, True])
def test_padding_of_other_samples_is_no_number_that_is_too_small(heads_first):
    class Crossed(Plain):
        def forward(self, x, key_padding_mask=None):
            if key_padding_mask is None:
                return self.attend(x)[0]
            hidden, h = key_padding_mask[:, None], self.num_heads
            hidden = hidden.repeat_interleave(h, 0) if heads_first else hidden.repeat(h, 1, 1)
            axes = (h, len(x)) if heads_first else (len(x), h)
            hidden = hidden.unflatten(0, axes)
            return self.attend(x, allowed=~(hidden.transpose(0, 1) if heads_first else hidden))[0]

    diagnosis = diagnose(Crossed)
    assert diagnosis.heading == "Broken." and "minus infinity" not in diagnosis.message
    assert "A sample without padding is wrong too" in diagnosis.message


# --- dropout -------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2])
def test_weights_that_are_dropped_twice_are_told(times):
    class Drops(Plain):
        def __init__(self, d_model, num_heads, dropout=0.1):
            super().__init__(d_model, num_heads)
            self.drop = nn.Dropout(dropout)

        def forward(self, x):
            return self.attend(x)[0]

        def mix(self, weights, v):
            for _ in range(times):
                weights = self.drop(weights)
            return self.drop(super().mix(weights, v))  # as a residual has it

    diagnosis = diagnose(Drops)
    assert bool(diagnosis) == (times == 1), diagnosis
    if times == 2:
        assert diagnosis.failed == ("the share dropped",)
        assert "what one dropout leaves goes through another" in diagnosis.message


# --- dropout in a config, and two sequences under plain names -------------------------------------


class KeepsItsConfig(Plain):
    """It drops what a config says, beside a dropout of its own for another place."""

    def __init__(self, config):
        super().__init__(24, 4)
        self.config = config
        self.hidden_dropout = nn.Dropout(self.share)

    @property
    def share(self):
        is_dict = isinstance(self.config, dict)
        return self.config["dropout"] if is_dict else self.config.dropout

    def mix(self, weights, v):
        return super().mix(F.dropout(weights, self.share, self.training), v)


@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("kind", [dict, SimpleNamespace])
def test_dropout_is_read_from_a_config(kind, share):
    module = KeepsItsConfig(kind(dropout=share))
    diagnosis = diagnose(module)
    assert diagnosis and "training with dropout" not in diagnosis.untried, diagnosis
    assert module.share == share


class FromEncoderToDecoder(Plain):
    """Keys of the first tokens, queries of the second."""

    def forward(self, x, y):
        return self.attend(y, x)


class OfSourceAndTarget(Plain):
    def forward(self, src, tgt):
        return self.attend(tgt, src)


class OfSourceAlone(Plain):
    def forward(self, src):
        return self.attend(src)


def test_plain_names_tell_nothing_of_queries_and_keys():
    diagnosis = diagnose(FromEncoderToDecoder)
    assert diagnosis and "its queries made of y, its keys and values of x" in diagnosis.taken
    for candidate in (OfSourceAndTarget, OfSourceAlone):
        assert diagnose(candidate), candidate
    assert "two sequences" not in diagnose(OfSourceAndTarget).untried

    class LosesTheSecond(Plain):
        def forward(self, x, y):
            return self.attend(x)

    assert diagnose(LosesTheSecond).heading == "Broken."


# --- certain sizes, and what is about a caller or a machine ---------------------------------------


class OfOneLength(Plain):
    """Views its tokens by a length that it was built for."""

    def __init__(self, d_model, num_heads, seq_len=50):
        super().__init__(d_model, num_heads)
        self.seq_len = seq_len

    def split(self, x):
        return x.view(len(x), self.seq_len, self.num_heads, -1).transpose(1, 2)

    def forward(self, x):
        return self.attend(x)[0]


class OfOneSize(OfOneLength):
    def split(self, x):
        return x.view(8, 16, self.num_heads, -1).transpose(1, 2)


class OfAFewTokens(OfOneLength):
    def split(self, x):
        if x.shape[1] > self.seq_len:
            raise ValueError("too long")
        return Plain.split(self, x)


@pytest.mark.parametrize(
    ("candidate", "sizes"),
    [
        (OfOneLength(24, 4), "2 samples of 50 tokens"),
        (OfOneLength, "2 samples of 128 tokens"),
        (OfOneSize, "8 samples of 16 tokens"),
        (OfAFewTokens(24, 4, 8), "2 samples of 8 tokens"),
    ],
    ids=["built", "class", "constants", "few"],
)
def test_certain_sizes_cannot_be_asked(candidate, sizes):
    diagnosis = diagnose(candidate)
    assert diagnosis.heading == "This can't be asked.", diagnosis
    assert f"is right on {sizes}: it takes certain sizes only" in diagnosis.message


def test_whether_a_mask_is_true_is_no_other_kind_of_mask():
    class IfMask(Plain):
        def forward(self, x, mask=None):
            return self.attend(x, allowed=mask if mask else None)

    diagnosis = diagnose(IfMask)
    assert diagnosis.heading == "Broken." and "ask `if mask is not None`" in diagnosis.message


def test_gradients_through_a_checkpoint_are_asked():
    class Checkpointed(Plain):
        def forward(self, x):
            return checkpoint(lambda x: self.attend(x)[0], x, use_reentrant=True)

    assert diagnose(Checkpointed)


def test_a_module_of_several_processes_cannot_be_asked():
    class Reduced(Plain):
        def forward(self, x):
            output, _ = self.attend(x)
            torch.distributed.all_reduce(output)
            return output

    assert diagnose(Reduced).heading == "This can't be asked."


def test_a_linear_layer_is_not_called_an_attention():
    class Gained(Plain):
        def __init__(self, d_model, num_heads):
            super().__init__(d_model, num_heads)
            self.W_q = self.W_k = self.W_v = None
            self.qkv = nn.Linear(d_model, 3 * d_model)
            self.gain = nn.Parameter(torch.full((d_model,), 0.1))

        def forward(self, x):
            q, k, v = map(self.split, self.qkv(x).chunk(3, -1))
            return self.mix(self.scores(q, k).softmax(-1), v) * self.gain

    message = diagnose(Gained).message
    assert "gain" in message and "seems to be its" not in message


@pytest.mark.parametrize("output", ["weights", "heads"])
def test_an_output_of_another_shape_is_no_other_formula(output):
    class Forgets(Plain):
        def forward(self, x):
            _, weights = self.attend(x)
            return weights if output == "weights" else weights @ self.split(self.W_v(x))

    message = diagnose(Forgets).message
    assert "formula" not in message and "instead of" in message
    assert ("These are the axes of weights" in message) == (output == "weights")
