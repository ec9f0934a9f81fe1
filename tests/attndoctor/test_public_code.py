"""Right attentions of public code are never called broken, and what they are taken for is told."""

from types import SimpleNamespace

import pytest
import torch
from tools import public_attentions as public
from tools import reported_attentions as reported
from tools import uncommon_attentions as uncommon
from tools.broken_attentions import Plain, SlicesOfTokens, but, fit
from tools.diagnoses import ask, diagnoses
from torch import nn
from transformers import BertConfig, GPT2Config, Qwen3Config
from transformers.models.bert.modeling_bert import BertAttention, BertSelfAttention
from transformers.models.gpt2.modeling_gpt2 import GPT2Attention
from transformers.models.llama.modeling_llama import LlamaAttention
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

from attndoctor import diagnose
from attndoctor.museum import known_modules, named
from attndoctor.questions import LONGEST as LONGEST_ASKED
from attndoctor.questions import USUAL

pytestmark = pytest.mark.thorough

SIZES = {"hidden_size": 48, "num_attention_heads": 4}
GPT2 = GPT2Config(**SIZES, attn_implementation="sdpa")
QWEN3 = Qwen3Config(**SIZES, num_key_value_heads=2, head_dim=20, attn_implementation="eager")


def bert(kind, implementation="eager"):
    return kind(BertConfig(**SIZES, attn_implementation=implementation))


FINITE = {"a finite minimum"}
FILLED = FINITE | {"-1e9 in half precision"}
NAN = {"NaN rows"}
SHOWN = NAN | {"dropout in the returned weights"}
FOUR = {"mask crosses batch and heads"}
SPREAD, RAW = "module_under_test: spread", "module_under_test: raw"
# What is asked, and how, at which edges it differs, and what it is taken for.
KINDS = {
    "nanoGPT": (known_modules.CausalSelfAttention, {}, set(), "always causal"),
    "masks of four axes": (public.WithMasksOfFourAxes, {"mask_shape": "[B, 1, T, T]"}, FINITE,
        "its mask [B, 1, T, T]"),
    "a list of heads": (public.ListOfHeads, {}, set(), "always causal"),
    "values first": (public.ValuesFirst, {}, FILLED | FOUR, "forward(values, keys, query, mask)"),
    "timm": (public.Timm, {}, set(), "attn_mask [T, T] or [B, 1, T, T] where True = may look"),
    "packed by heads": (public.PackedByHeads, {}, FILLED | FOUR, "(heads)"),
    "packed by numbers": (public.PackedByNumbers, {}, set(), "(interleaved)"),
    "ones and zeros": (public.WithNumbersForAMask, {}, set(), "where 1 = may look"),
    "cross-attention": (public.WithCrossAttention, {}, FINITE | FOUR, "forward(x, context, mask)"),
    "one rank of masks": (public.Torchscale, {}, NAN, "its attn_mask [T, T] that is added"),
    "in other words": (public.InOtherWords, {}, set(), "forward(queries, keys, values)"),
    "names that say nothing": (public.NamesThatSayNothing, {}, set(), "(blocks)"),
    "scores shown": (public.ShowsItsScores, {"mask": "add"}, NAN | FOUR, "W_k", "scores before"),
    "heads before samples": (public.HeadsBeforeSamples, {"mask": "hide"}, NAN,
        "its mask [B, T, T] where True = hidden", "weights [h B, T, T]"),
    "bare layers": (public.BareLayers, {}, set(), RAW, "x @ W.T"),
    "a matrix for each head": (public.PerHead, {}, set(), "always causal"),
    "keys first": (public.KeysFirst, {}, set(), "k, q, v)"),
    "biases apart": (public.BiasesApart, {}, set(), "W_k"),
    "torch, built": (nn.MultiheadAttention(8, 4, batch_first=True), {}, SHOWN,
        "its attn_mask [T, T] or [B h, T, T] where True = hidden"),
    "GPT-2, fused": (GPT2Attention(GPT2, layer_idx=0), {}, set(),
        "always causal; a mask replaces its triangle"),
    "BERT": (bert(BertAttention), {}, SHOWN, "(output.LayerNorm)"),
    "BERT, its heads": (bert(BertSelfAttention, "sdpa"), {"out_projection": False}, set(),
        "module_under_test: no projection"),
    "Llama, its class": (LlamaAttention, {}, SHOWN, "position_embeddings", "(cos = 1, sin = 0)"),
    "Qwen3": (Qwen3Attention(QWEN3, layer_idx=0), {}, SHOWN,
        "module_under_test: wide heads", "20"),
    "heads spread": (public.HeadsSpread, {}, set(), SPREAD, "W_q, W_k, W_v and W_o"),
    "heads spread inside": (public.HeadsSpreadInside, {}, set(), SPREAD, "W_q, W_k, W_v."),
    "numbers of all heads": (public.NumbersOfAllHeads, {}, set(), "((d qkv h)"),
    "bfloat16": (public.InBfloat16, {}, set()),
    "QK-norm": (public.NormalizedByLayers, {}, set(), "(q_norm, k_norm)"),
    "packed by groups, built": (uncommon.PackedByGroups(48, 4, 2), {}, set(), "(heads)"),
    "its masks repeated": (uncommon.RepeatsItsMasks, {}, NAN,
        "attention_mask [B, T, T] that is added; a mask [T, T]"),
    "channels first": (uncommon.ChannelsFirst, {}, FINITE, "forward(x, c, attn_mask)",
        "[B, d, T]"),
    "factory arguments": (reported.OfFactoryArguments, {}, set(), "forward(query, key)"),
    "its own heads": (reported.HeadsOfItsOwn(SimpleNamespace(num_attention_heads=8), 24, 3), {},
        set()),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_what_is_right_where_it_promises_anything_is_healthy(name):
    candidate, options, edges, *facts = KINDS[name]
    taken = [fact if fact.startswith("module_under_test") else f"taken: {fact}" for fact in facts]
    diagnosis = ask(candidate, "at the edges" if edges else "", *taken, **options)
    assert diagnosis, diagnosis
    assert {exhibit.name for exhibit in diagnosis.exhibits} == edges


# --- what can't be asked, and what is broken where something like it can't ------------------------

Silent = public.NamesThatSayNothing
Sublayer = but(Silent, forward=lambda self, x: x + Silent.forward(self, x))
OddBareLayers = but(public.BareLayers, mix=lambda self, q, k, v: public.attend(q / 3, k, v)[0])

WISH = "report: wish for weights"
test_what_is_more_than_attention_cannot_be_asked = diagnoses({
    "rotary": (public.RotaryInside, {}, "not asked", "not_comparable: positions inside",
        "'inv_freq'"),
    "rotary, other lengths": (but(public.RotaryInside,
        turn=lambda self, x: x + torch.zeros(9, 1)), {}, "not asked", "RuntimeError"),
    "a block, built": (nn.TransformerEncoderLayer(48, 4, batch_first=True), {}, "not asked",
        ".self_attn", "not Identity"),
    "bfloat16 inside": (public.ThroughBfloat16, {}, "not asked", "not_comparable: other dtype"),
    "rounded inside": (uncommon.RoundsInside, {}, "not asked", "not_comparable: low precision",
        "bfloat16"),
    "QK-norm": (public.NormalizedQueries, {}, "not asked",
        "not_comparable: size of scores", f"not {WISH}"),
    "a residual": (Sublayer, {}, "not asked", "not_comparable: residual inside"),
    "twice the output": (but(Silent, forward=lambda self, x: 2 * Silent.forward(self, x)), {},
        "broken", WISH),
    "a convolution": (public.WithAConvolution, {}, "not asked", "not_comparable: more parameters",
        "conv.weight, conv.bias"),
    "ALiBi": (public.WithALinearBias, {}, "not asked",
        "not_comparable: order inside"),
    "patches": (reported.OfPatches, {}, "not asked", "not_comparable: other form"),
    "no batch": (reported.WithoutABatch, {}, "not asked", "not_comparable: one sequence"),
    "joined": (reported.JoinsBoth, {}, "not asked", "not_comparable: joined"),
    "channels": (reported.ChannelAttention, {}, "not asked", "not_comparable: other formula",
        "'channel'"),
    "bare layers, odd": (OddBareLayers, {}, "not asked", "not_comparable: raw parameters",
        "wq, wk, wv, wo"),
    "the class token": (public.OfTheClassToken, {}, "not asked", "not_comparable: other length",
        "output is [2, 1, 30]", "[2, 7, 30]"),
})  # fmt: skip
# --- what is found out excuses nothing -----------------------------------------------------------


class OneAhead(public.NanoGPTExplicit):
    def __init__(self, config):
        super().__init__(config)
        self.bias[:] = torch.ones_like(self.bias).tril(1)


SLICES = "exhibit: slices of the embedding", "exhibit: sqrt(d_model)", "not gradients,"
test_what_is_found_out_excuses_no_bug = diagnoses({
    "one ahead": (OneAhead, {}, "", "exhibit: causal mask peeks one ahead"),
    "slices of tokens, wide": (SlicesOfTokens(64, 8), {}, "broken", *SLICES),
    "masks cut": (uncommon.CutsItsMasks, {}, "at the edges",
        "skipped: a mask between two sequences", "not skipped: two sequences", "masks of a second"),
    "dropout that samples share": (uncommon.SharedDropout, {}, "at the edges",
        "first: dropout of each sample", "dropout of each sample: edge"),
    "a gate beside it": (public.WithAGate, {}, "healthy", "report: extra parameters", "gate"),
    "values without effect": (but(Plain, forward=lambda self, query, key=None, value=None:
        self.attend(query, key, key)[0]), {}, "broken", "report: idle", "`value`"),
    "causal without effect": (but(Plain, forward=lambda self, x, causal=False:
        self.attend(x, allowed=fit(causal=True, T=x.shape[1]))[0]), {}, "broken",
        "report: idle", "`causal`", "report: always causal"),
})  # fmt: skip


@pytest.mark.parametrize("bare", [public.BareMatrices, public.BareLayers])
def test_a_bug_is_named_whichever_way_bare_parameters_are_used(bare, monkeypatch):
    right = public.attend
    monkeypatch.setattr(public, "attend", lambda q, k, v: right(q * q.shape[-1] ** 0.5, k, v))
    assert diagnose(bare).exhibits == (named("no scale"),)


LAYERS = {"to_q": "W_q", "to_k": "W_k", "to_v": "W_v", "to_out": "W_o"}


def test_a_function_that_loads_may_do_anything_to_what_it_gets():
    def hand_out(module, reference):
        for mine, name in LAYERS.items():
            setattr(module, mine, reference.get_submodule(name))

    def wear_out(module, reference):
        hand_out(module, reference)
        for numbers in reference.parameters():
            numbers.data.mul_(2)

    usual = public.NormalizedByLayers
    assert not diagnose(usual(30, 3), load=wear_out)  # the module's are doubled as well
    assert diagnose(usual, load=hand_out) and diagnose(usual)


def test_biases_that_a_function_copies_are_found_out():
    class Mine(public.NormalizedByLayers):
        def __init__(self, dim, heads):
            super().__init__(dim, heads)
            for name in LAYERS:
                setattr(self, name, nn.Linear(dim, dim, bias=name == "to_out"))

    def load(module, reference):
        for mine, name in LAYERS.items():
            layer, state = module.get_submodule(mine), reference.get_submodule(name).state_dict()
            layer.load_state_dict({part: state[part] for part in layer.state_dict()})

    ask(Mine, "healthy", "module_under_test: biases", load=load)


def nano_gpt(block_size):
    return public.NanoGPTExplicit(
        SimpleNamespace(n_embd=48, n_head=4, block_size=block_size, bias=True, dropout=0.0)
    )


def test_a_module_for_few_tokens_cannot_be_asked():
    ask(nano_gpt(8), "not asked", "not_comparable: short triangle", " 8 ")
    fact = "report: tested with"
    ask(nano_gpt(USUAL), "healthy", fact, f" {USUAL} ", "skipped: a long sequence")
    ask(nano_gpt(LONGEST_ASKED), "healthy", fact, f" {LONGEST_ASKED} ")


def test_a_difference_at_the_edges_counts_when_that_is_asked():
    assert not diagnose(known_modules.MultiHeadedAttention, edges=True)
    assert diagnose(known_modules.MultiHeadedAttention).edges == (
        "a row that may look nowhere", "gradients of such a row", "half precision",
    )  # fmt: skip
