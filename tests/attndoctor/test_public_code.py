"""Right attentions of public code are never called broken, and what they are taken for is told."""

from types import SimpleNamespace

import pytest
import torch
from tools import public_attentions as public
from tools.broken_attentions import SlicesOfTokens
from torch import nn
from transformers import BertConfig, GemmaConfig, GPT2Config, LlamaConfig, Qwen3Config
from transformers.models.bert.modeling_bert import BertAttention, BertSelfAttention
from transformers.models.gemma.modeling_gemma import GemmaAttention
from transformers.models.gpt2.modeling_gpt2 import GPT2Attention
from transformers.models.llama.modeling_llama import LlamaAttention
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

from attndoctor import diagnose
from attndoctor.build import LONGEST
from attndoctor.museum import named, visitors
from attndoctor.questions import LONGEST as LONGEST_ASKED
from attndoctor.questions import USUAL
from attnlib import MultiHeadAttention

pytestmark = pytest.mark.thorough

SIZES = {"hidden_size": 48, "num_attention_heads": 4}
NO_TURN = (torch.ones(1, 1, 12), torch.zeros(1, 1, 12))  # cosines and sines of position 0


def gpt2(implementation):
    return GPT2Attention(GPT2Config(**SIZES, attn_implementation=implementation), layer_idx=0)


def bert(kind, implementation="eager"):
    return kind(BertConfig(**SIZES, attn_implementation=implementation))


def llama():
    config = LlamaConfig(**SIZES, num_key_value_heads=2, attn_implementation="eager")
    return LlamaAttention(config, layer_idx=0)


def with_wide_heads(kind, config):
    sizes = {**SIZES, "num_key_value_heads": 2, "head_dim": 20}
    return kind(config(**sizes, attn_implementation="eager"), layer_idx=0)


FINITE = {"a finite minimum"}
FILLED = FINITE | {"-1e9 in half precision"}
NAN = {"NaN rows"}
SHOWN = {"dropout in the returned weights"}
FOUR = {"mask crosses batch and heads"}
# What is asked, what is told about it, at which edges it differs, and what it is taken for.
KINDS = {
    "Annotated Transformer": (visitors.MultiHeadedAttention, {}, FILLED, "its mask [B, T, T]"),
    "the same, built": (visitors.MultiHeadedAttention(4, 48), {}, FILLED, "mask [B, T, T]"),
    "nanoGPT": (visitors.CausalSelfAttention, {}, set(), "always causal"),
    "nanoGPT without its kernel": (public.NanoGPTExplicit, {}, set(), "always causal"),
    "nanoGPT without biases": (public.NanoGPTWithoutBias, {}, set(), "without biases"),
    "the same, told": (public.NanoGPTWithoutBias,
        {"bias": False, "causal": "always", "qkv": "blocks"}, set(), "one projection (blocks)"),
    "with residual and norm": (public.WithResidualAndNorm, {}, FILLED,
        "its normalization (layer_norm) set aside; without biases; its residual taken off"),
    "masks of four axes": (public.WithMasksOfFourAxes, {}, FINITE | FOUR, "[T, T] or [B, 1, T, T]"),
    "the same, told so": (public.WithMasksOfFourAxes, {"mask_shape": "[B, 1, T, T]"}, FINITE,
        "its mask [B, 1, T, T]"),
    "LLMs from scratch": (public.WithContextLength, {}, set(), "without a bias in W_q, W_k, W_v"),
    "a list of heads": (public.ListOfHeads, {}, set(), "always causal"),
    "values first": (public.ValuesFirst, {}, FILLED | FOUR, "forward(values, keys, query, mask)"),
    "timm": (public.Timm, {}, set(), "attn_mask [T, T] or [B, 1, T, T] where True = may look"),
    "vit-pytorch": (public.VitPytorch, {}, set(), "its normalization (norm) set aside"),
    "packed by heads": (public.PackedByHeads, {}, FILLED | FOUR, "one projection (heads)"),
    "packed by numbers": (public.PackedByNumbers, {}, FILLED | FOUR, "projection (interleaved)"),
    "ones and zeros": (public.WithNumbersForAMask, {}, set(), "where 1 = may look"),
    "cross-attention": (public.WithCrossAttention, {}, FINITE | FOUR, "forward(x, context, mask)"),
    "grouped queries": (public.GroupedQueries, {}, set(), "without biases"),
    "one rank of masks": (public.Torchscale, {}, NAN, "its attn_mask [T, T] that is added"),
    "three in a list": (public.ThreeInAList, {}, FILLED | FOUR, "forward(query, key, value, mask)"),
    "in other words": (public.InOtherWords, {}, set(), "forward(queries, keys, values)"),
    "names that say nothing": (public.NamesThatSayNothing, {}, set(), "one projection (blocks)"),
    "scores shown": (public.ShowsItsScores, {"mask": "add"}, NAN | FOUR,
        "without a bias in W_k; returning scores before the softmax beside its output"),
    "heads before samples": (public.HeadsBeforeSamples, {"mask": "hide"}, NAN,
        "its mask [B, T, T] where True = hidden; returning weights [h B, T, T]"),
    "padding called mask": (public.PaddingCalledMask, {}, set(),
        "its mask [B, T] where True = may look"),
    "bare matrices": (public.BareMatrices, {}, FILLED, "its raw parameters used as x @ W."),
    "bare matrices, built": (public.BareMatrices(48, 4), {}, FILLED, "used as x @ W."),
    "bare layers": (public.BareLayers, {}, set(), "its raw parameters used as x @ W.T"),
    "a matrix for each head": (public.PerHead, {}, set(), "always causal"),
    "kernels of Flax": (public.KernelsOfFlax, {}, set(), "forward(inputs_q, inputs_kv)"),
    "keys first": (public.KeysFirst, {}, set(), "(blocks, in the order k, q, v)"),
    "values first, of three": (public.ValuesFirstOfThree, {}, set(),
        "in the order v, k, q); its raw parameters used as x @ W"),
    "lists of matrices": (public.ListsOfMatrices, {}, set(), "used as x @ W"),
    "biases apart": (public.BiasesApart, {}, set(), "without a bias in W_k"),
    "one key head": (public.MultiQuery, {}, set(), "forward(x)"),
    "of convolutions": (public.OfConvolutions, {}, set(), "forward(x, context)"),
    "torch": (nn.MultiheadAttention, {}, NAN | SHOWN, "tokens first, [T, B, d]"),
    "torch, built": (nn.MultiheadAttention(48, 4, batch_first=True), {}, NAN | SHOWN,
        "its attn_mask [T, T] or [B h, T, T] where True = hidden"),
    "GPT-2": (gpt2("eager"), {}, NAN | SHOWN, "attention_mask [T, T] or [B, 1, T, T]"),
    "GPT-2, fused": (gpt2("sdpa"), {}, set(), "always causal; a mask replaces its triangle"),
    "BERT": (bert(BertAttention), {}, NAN | SHOWN, "(output.LayerNorm) set aside"),
    "BERT, its heads": (bert(BertSelfAttention, "sdpa"), {"out_projection": False}, set(),
        "without a projection out of the heads"),
    "Llama, its class": (LlamaAttention, {}, NAN | SHOWN,
        "its position_embeddings turning nothing (cos = 1, sin = 0)"),
    "Llama, retold": (public.LlamaOfTransformers, {}, NAN | SHOWN, "position_embeddings turning"),
    "Llama, built": (llama(), {}, NAN | SHOWN, "position_embeddings turning nothing"),
    "Qwen3": (with_wide_heads(Qwen3Attention, Qwen3Config), {}, NAN | SHOWN,
        "its 4 heads 20 wide, with d_model=48"),
    "Gemma": (with_wide_heads(GemmaAttention, GemmaConfig), {}, NAN | SHOWN, "4 heads 20 wide"),
    "an encoder's": (nn.TransformerEncoderLayer(48, 4).self_attn, {}, NAN | SHOWN, "forward(query"),
    "heads spread": (public.HeadsSpread, {}, set(), "(d h), in W_q, W_k, W_v and W_o"),
    "heads spread, built": (public.HeadsSpread(48, 4), {}, set(), "in W_q, W_k, W_v and W_o"),
    "heads spread inside": (public.HeadsSpreadInside, {}, set(), "(d h), in W_q, W_k, W_v."),
    "numbers of all heads": (public.NumbersOfAllHeads, {}, set(), "projection ((d qkv h)"),
    "bfloat16": (public.InBfloat16, {}, set(), "forward(x)"),
    "low rank beside it": (public.WithLora, {}, set(), "forward(x)"),
    "a gate beside it": (public.WithAGate, {}, set(), "forward(x)"),
    "QK-norm": (public.NormalizedByLayers, {}, set(), "(q_norm, k_norm) set aside"),
    "T5's scale": (lambda d_model, num_heads: public.ScaledBy(d_model, num_heads, lambda d_k: 1),
        {"scale": 1}, set(), "with the scale that was told"),
    "muP's scale": (lambda d_model, num_heads: public.ScaledBy(d_model, num_heads, lambda d_k:
        1 / d_k), {"scale": lambda d_k: 1 / d_k}, set(), "with the scale that was told"),
    "Llama": (llama(), {"arguments": {"position_embeddings": NO_TURN}}, NAN | SHOWN,
        "its attention_mask [T, T] or [B, 1, T, T] that is added; without biases"),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_what_is_right_where_it_promises_anything_is_healthy(name):
    candidate, options, edges, words = KINDS[name]
    diagnosis = diagnose(candidate, **options)
    assert diagnosis, diagnosis
    assert diagnosis.heading.startswith("Healthy")
    assert {exhibit.name for exhibit in diagnosis.exhibits} == edges
    assert words in diagnosis.taken + "." and words in diagnosis.message


@pytest.mark.parametrize(
    "candidate", [SlicesOfTokens, SlicesOfTokens(24, 3), SlicesOfTokens(64, 8)]
)
def test_matrices_as_wide_as_one_head_are_found_and_named(candidate):
    diagnosis = diagnose(candidate)
    assert diagnosis.heading == "Broken."
    assert [one.name for one in diagnosis.exhibits] == ["slices of the embedding", "sqrt(d_model)"]
    assert "gradients," not in diagnosis.message  # these are explained too


def test_positions_inside_cannot_be_asked():
    diagnosis = diagnose(public.RotaryInside)
    assert not diagnosis and diagnosis.heading == "This can't be asked."
    assert "'inv_freq'" in diagnosis.message and "arguments=" in diagnosis.message


def test_a_block_is_told_which_part_is_its_attention():
    for layer in (nn.TransformerEncoderLayer, nn.TransformerEncoderLayer(48, 4)):
        diagnosis = diagnose(layer)
        assert not diagnosis and diagnosis.heading == "This can't be asked."
        assert "Hand in the attention alone, which seems to be its .self_attn" in diagnosis.message


def test_another_dtype_inside_cannot_be_asked():
    diagnosis = diagnose(public.ThroughBfloat16)
    assert not diagnosis and diagnosis.heading == "This can't be asked."
    assert "turns some of them into another dtype inside" in diagnosis.message


def test_normalized_queries_cannot_be_asked_and_are_fine_if_meant():
    diagnosis = diagnose(public.NormalizedQueries)
    assert not diagnosis and diagnosis.heading == "This can't be asked."
    assert "(QK-norm). That differs from the paper, and is fine" in diagnosis.message

    class KeysUnused(public.NormalizedQueries):
        def forward(self, x):
            return self.to_out(self.to_v(x))

    assert diagnose(KeysUnused).heading == "Broken."


def test_what_begins_with_nothing_is_told_and_passes():
    for candidate, names in ((public.WithLora, "lora_A, lora_B"), (public.WithAGate, "gate")):
        diagnosis = diagnose(candidate)
        assert diagnosis, diagnosis
        assert f"As built, its output doesn't depend on {names}: what" in diagnosis.message
    assert "As built" not in diagnose(public.HeadsSpread).message


@pytest.mark.parametrize(
    ("bug", "scale", "line"),
    [
        ("no scale", lambda d_k: 1, "say scale=1,"),
        ("scale applied twice", lambda d_k: 1 / d_k, "say scale=lambda d_k: 1 / d_k,"),
    ],
)
def test_another_scale_is_a_bug_or_a_design(bug, scale, line):
    def build(d_model, num_heads):
        return public.ScaledBy(d_model, num_heads, scale)

    diagnosis = diagnose(build)
    assert diagnosis.exhibits == (named(bug),)
    assert "differs from the paper, and is fine if it is meant" in diagnosis.message
    assert line in diagnosis.message
    told = diagnose(build, scale=scale)
    assert told.heading == "Healthy." and "gradients" not in told.untried
    assert not diagnose(build, scale=lambda d_k: 2 * scale(d_k))
    assert not diagnose(public.HeadsSpread, scale=scale)


def test_a_function_that_loads_may_do_anything_to_what_it_gets():
    def hand_out(module, reference):
        for mine, name in (("to_q", "W_q"), ("to_k", "W_k"), ("to_v", "W_v"), ("to_out", "W_o")):
            setattr(module, mine, reference.get_submodule(name))

    def wear_out(module, reference):
        hand_out(module, reference)
        for numbers in reference.parameters():
            numbers.data.mul_(2)

    usual = public.NormalizedByLayers
    assert diagnose(usual, load=hand_out)
    assert not diagnose(usual, load=wear_out)  # the module's are doubled as well
    assert diagnose(usual, load=hand_out) and diagnose(usual) and diagnose(MultiHeadAttention)


@pytest.mark.parametrize("biased", [(), ("to_out",), ("to_q", "to_v", "to_out")])
def test_biases_that_a_function_copies_are_found_out(biased):
    class Mine(public.NormalizedByLayers):
        def __init__(self, dim, heads):
            super().__init__(dim, heads)
            for name in ("to_q", "to_k", "to_v", "to_out"):
                setattr(self, name, nn.Linear(dim, dim, bias=name in biased))

    def load(module, reference):
        for mine, name in (("to_q", "W_q"), ("to_k", "W_k"), ("to_v", "W_v"), ("to_out", "W_o")):
            layer, state = module.get_submodule(mine), reference.get_submodule(name).state_dict()
            layer.load_state_dict({part: state[part] for part in layer.state_dict()})

    diagnosis = diagnose(Mine, load=load)
    assert diagnosis, diagnosis
    assert ("without" in diagnosis.taken) == (len(biased) < 4)


def test_a_residual_inside_cannot_be_asked():
    class Sublayer(public.NamesThatSayNothing):
        def forward(self, x):
            return x + super().forward(x)

    class Twice(Sublayer):
        def forward(self, x):
            return x + super().forward(x)

    diagnosis = diagnose(Sublayer)
    assert not diagnosis and diagnosis.heading == "This can't be asked."
    assert "x is added inside" in diagnosis.message
    assert diagnose(Twice).heading == "Broken."


def test_weights_are_wished_for_where_only_an_output_came():
    class Twice(public.NamesThatSayNothing):
        def forward(self, x):
            return 2 * super().forward(x)

    assert "Return the weights beside the output" in diagnose(Twice).message
    assert "Return the weights" not in diagnose(public.NormalizedQueries).message


def test_more_than_attention_cannot_be_asked():
    diagnosis = diagnose(public.WithAConvolution)
    assert not diagnosis and diagnosis.heading == "This can't be asked."
    assert "parameters that attention doesn't have (conv.weight, conv.bias)" in diagnosis.message

    class Unused(public.WithAConvolution):
        def forward(self, x):
            return public.NamesThatSayNothing.forward(self, 2 * x)

    assert diagnose(Unused).heading == "Broken."


@pytest.mark.parametrize("inside", [public.WithALinearBias, public.WithAWindow])
def test_what_depends_on_the_order_of_tokens_cannot_be_asked(inside):
    diagnosis = diagnose(inside)
    assert not diagnosis and diagnosis.heading == "This can't be asked."
    assert "depends on the order of the tokens: equal tokens come out right" in diagnosis.message


@pytest.mark.parametrize("other", [public.OfATuple, public.OfImages])
def test_tokens_in_another_form_cannot_be_asked(other):
    diagnosis = diagnose(other)
    assert not diagnosis and diagnosis.heading == "This can't be asked."
    assert "values to unpack" in diagnosis.message
    assert "hand in a module around it, whose forward(self, x) takes x [B, T" in diagnosis.message


def test_a_module_around_it_takes_tokens_in_another_form():
    class Around(public.OfATuple):
        def forward(self, x):
            return super().forward((x, x, x))

    assert diagnose(Around)


def test_bare_parameters_do_not_tell_how_they_are_used():
    class Odd(public.BareLayers):
        def mix(self, q, k, v):
            return super().mix(q / 3, k, v)

    diagnosis = diagnose(Odd)
    assert not diagnosis and diagnosis.heading == "This can't be asked."
    assert "wq, wk, wv, wo are parameters without a layer" in diagnosis.message
    assert "Pass load=..." in diagnosis.message

    def load(module, reference):
        for name in "qkvo":
            layer = reference.get_submodule(f"W_{name}")
            module.get_parameter(f"w{name}").data.copy_(layer.weight)
            module.get_parameter(f"b{name}").data.copy_(layer.bias)

    assert diagnose(public.BareLayers, load=load)
    assert diagnose(Odd, load=load).heading == "Broken."


@pytest.mark.parametrize("bare", [public.BareMatrices, public.BareLayers])
def test_a_bug_is_named_whichever_way_bare_parameters_are_used(bare, monkeypatch):
    right = public.attend
    monkeypatch.setattr(public, "attend", lambda q, k, v, *masks: right(
        q * q.shape[-1] ** 0.5, k, v, *masks))  # fmt: skip
    assert diagnose(bare).exhibits == (named("no scale"),)


def test_an_output_for_other_tokens_cannot_be_asked():
    diagnosis = diagnose(public.OfTheClassToken)
    assert not diagnosis and diagnosis.heading == "This can't be asked."
    assert "Its output is [2, 1, 30] for tokens [2, 7, 30]" in diagnosis.message


def test_masks_of_other_axes_cannot_be_asked():
    diagnosis = diagnose(public.MasksOfOtherAxes)
    assert not diagnosis and diagnosis.heading == "This can't be asked."
    assert "whichever of the axes known here it has ([T, T], [B, T, T], " in diagnosis.message
    assert "it raises IndexError: " in diagnosis.message


def test_a_dropout_without_default_is_no_refused_default():
    assert "told its dropout" not in diagnose(public.WithADropoutToTell).taken


def test_an_error_is_told_whatever_else_looks_odd():
    class Raises(public.RotaryInside):
        def turn(self, x):
            return x.no_such_thing()

    diagnosis = diagnose(Raises)
    assert diagnosis.heading == "Broken." and "raises AttributeError" in diagnosis.message


def test_positions_for_other_lengths_cannot_be_asked():
    class OfWindows(public.RotaryInside):
        def turn(self, x):
            return x + torch.zeros(9, 1)

    diagnosis = diagnose(OfWindows)
    assert diagnosis.heading == "This can't be asked."
    assert "It raises RuntimeError: The size of tensor a (7) must match" in diagnosis.message


def test_the_longest_sequence_that_is_asked_is_known():
    lengths = []

    class Recorded(MultiHeadAttention):
        def forward(self, query, key=None, value=None, **options):
            lengths.extend([query.shape[1], query.shape[1] if key is None else key.shape[1]])
            return super().forward(query, key, value, **options)

    assert diagnose(Recorded, edges=True)
    assert max(lengths) == LONGEST_ASKED < LONGEST


def test_a_module_for_few_tokens_cannot_be_asked():
    config = SimpleNamespace(n_embd=48, n_head=4, block_size=8, bias=True, dropout=0.0)
    diagnosis = diagnose(public.NanoGPTExplicit(config))
    assert not diagnosis and diagnosis.heading == "This can't be asked."
    assert "a triangle for 8 tokens only" in diagnosis.message
    for config.block_size in (USUAL, LONGEST_ASKED):
        diagnosis = diagnose(public.NanoGPTExplicit(config))
        assert diagnosis.heading == "Healthy."
        assert f"on 1 to {config.block_size} tokens" in diagnosis.message
        assert ("a long sequence" in diagnosis.untried) == (config.block_size == USUAL)


def test_a_difference_at_the_edges_counts_when_that_is_asked():
    broken = visitors.MultiHeadedAttention
    assert diagnose(broken) and not diagnose(broken, edges=True)
    assert diagnose(broken).edges == (
        "a row that may look nowhere", "gradients of such a row", "half precision",
    )  # fmt: skip


# --- what is found out excuses nothing -----------------------------------------------------------


def test_what_is_told_is_held_to():
    """A forgotten triangle, bias or projection isn't taken for intent once the intent is said."""
    assert not diagnose(public.Timm, causal="always")
    assert not diagnose(visitors.CausalSelfAttention, causal="when asked")
    assert not diagnose(public.NanoGPTWithoutBias, bias=True)
    assert not diagnose(public.WithMasksOfFourAxes, mask_shape="[B, T, T]")
    assert not diagnose(public.PackedByHeads, qkv="blocks")
    assert diagnose(bert(BertSelfAttention)).exhibits == (named("forgotten W_o"),)


@pytest.mark.parametrize(
    ("bug", "broken"),
    [
        ("causal mask peeks one ahead", lambda T: torch.ones(T, T).tril(1)),
        ("causal triangle turned around", lambda T: torch.ones(T, T).triu()),
        ("causal mask hides the token itself", lambda T: torch.ones(T, T).tril(-1)),
    ],
)
def test_a_bug_in_a_triangle_that_is_always_there_is_named(bug, broken):
    class Mine(public.NanoGPTExplicit):
        def __init__(self, config):
            super().__init__(config)
            self.bias[:] = broken(config.block_size)

    assert named(bug) in diagnose(Mine).exhibits


def test_a_bug_elsewhere_is_named_in_what_is_always_causal():
    class Mine(public.ListOfHeads):
        def forward(self, x):
            joined = torch.stack([head(x) for head in self.heads], dim=1).reshape(x.shape)
            return self.dropout(self.proj(joined))

    diagnosis = diagnose(Mine)
    assert diagnosis.exhibits == (named("merge without transpose"),)


def test_a_mask_that_hides_where_it_is_true_is_a_bug_or_a_convention():
    class Hides(visitors.MultiHeadedAttention):
        def forward(self, query, key, value, mask=None):
            return super().forward(query, key, value, None if mask is None else mask == 0)

    diagnosis = diagnose(Hides)
    assert not diagnosis and diagnosis.exhibits[0] == named("inverted mask")
    assert 'say mask="hide"' in diagnosis.message
    assert diagnose(Hides, mask="hide")


def test_tokens_first_is_a_bug_or_a_convention():
    class TokensFirst(public.GroupedQueries):
        def __init__(self, embed_dim, num_heads):
            super().__init__(embed_dim, num_heads, num_heads)

        def forward(self, x):
            return super().forward(x.transpose(0, 1)).transpose(0, 1)

    diagnosis = diagnose(TokensFirst)
    assert diagnosis.exhibits == (named("attention across the batch"),)
    assert "say batch_first=False" in diagnosis.message
    assert diagnose(TokensFirst, batch_first=False)
