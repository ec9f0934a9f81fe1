"""Checks of L11: right answers in other words, what is nearly right, and the numbers asked for."""

from functools import partial

import torch
import torch.nn.functional as F
from tools.verdicts import PASSES, verdicts
from torch import nn

from attncourse.lessons import l11
from attncourse.lessons.l11 import by_hand
from attncourse.lessons.l11.by_hand import ADDRESS, HEAD, LAYER, LAYERS, TOKENS, WIDTH
from attncourse.lessons.l11.partners import _case, masses, most_on_partners
from attnlib.interop import from_gpt2
from attnlib.model import GPT
from attnlib.patterns import relation_mass


def by_the_fused_kernel(x, W_q, W_k, W_v, W_o, num_heads):
    q, k, v = (
        F.linear(x, W).unflatten(-1, (num_heads, -1)).transpose(0, 1)[None] for W in (W_q, W_k, W_v)
    )
    found = F.scaled_dot_product_attention(q, k, v, is_causal=True)[0]
    return F.linear(found.transpose(0, 1).flatten(1), W_o)


def using_up(state, layer, num_heads):
    """Leaves other numbers where the state was."""
    module = from_gpt2(state, layer, num_heads=num_heads)
    for x in state.values():
        x.zero_()
    state.clear()
    return module


def by_beginning(state, layer, num_heads):
    own = {f"h.0.{n.split('.', 2)[2]}": x for n, x in state.items() if n.startswith(f"h.{layer}")}
    return from_gpt2(own, 0, num_heads=num_heads)


def without_biases(state, layer, num_heads, names=("W_q", "W_k")):
    module = from_gpt2(state, layer, num_heads=num_heads)
    for name in names:
        nn.init.zeros_(module.get_submodule(name).bias)
    return module


test_answers = verdicts(
    {
        l11.split_c_attn: {  # in one tensor, [3, B, h, T, d_k]
            PASSES: [lambda packed, h: packed.unflatten(-1, (3, h, -1)).permute(2, 0, 3, 1, 4)]
        },
        l11.gpt2_layer: {
            PASSES: [using_up],
            "a dict came": [lambda state, layer, h: state],
            "KeyError": [lambda state, layer, h: state["h.7.attn"]],
            "`h.1.`": [by_beginning],  # takes h.10 for h.1
            " W_q.bias, W_k.bias.": [without_biases],
            ": W_k.bias.": [partial(without_biases, names=["W_k"])],  # no output shows it
        },
        l11.loop_at_once: {PASSES: [by_the_fused_kernel]},
        l11.head_of_a_rule: {"The layer should be ": [lambda weights, partners: (0, 99)]},
    }
)


def test_an_address_counts_layers_and_heads_from_0_and_parts_of_768_columns():
    first = 64 * (HEAD - 1)
    assert ADDRESS.tolist() == [LAYER - 1, first, 768 + first, 2 * 768 + first, first]


def test_a_llama_has_as_many_parameters_as_its_parts():
    gpt = GPT(TOKENS, 8, WIDTH, 32, 1, d_ff=0, bias=False, positions="rotary", device="meta")
    attention = sum(p.numel() for p in gpt.blocks[0].attention.parameters())
    tables = gpt.token_embedding.weight.numel() + gpt.readouts["next"].weight.numel()
    network = 3 * WIDTH * by_hand.INSIDE
    whole = tables + LAYERS * (attention + network + 2 * WIDTH) + WIDTH
    found = torch.tensor([attention, network, tables, whole], dtype=torch.float64) / 1e6
    torch.testing.assert_close(by_hand.MILLIONS, found)
    assert whole == 6_738_415_616


def test_masses_are_those_of_the_package():
    weights, partners = _case(3, 3, 9, 8, (1, 2))
    for of_layer, found in zip(weights, masses(weights, partners), strict=True):
        torch.testing.assert_close(relation_mass(of_layer, partners).heads, found.double())
    assert most_on_partners(weights, partners) == (1, 2)


def test_whatever_is_drawn_the_right_head_has_most():
    for at in ((0, 0), (1, 4), (2, 3), (0, 1), (1, 0)) * 20:
        assert most_on_partners(*_case(5, 4, 5, 8, at)) == at
