"""What the checks of lesson L11 do beyond what every check does."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attncourse.lessons import l11
from attncourse.lessons.l11.address import HEAD, LAYER, RIGHT
from attncourse.lessons.l11.claims import KINDS, SENTENCES
from attncourse.lessons.l11.claims import RIGHT as CLAIMS
from attncourse.lessons.l11.layout import _state
from attncourse.lessons.l11.llama import INSIDE, LAYERS, TOKENS, WIDTH
from attncourse.lessons.l11.llama import RIGHT as MILLIONS
from attncourse.lessons.l11.loop import token_by_token
from attncourse.lessons.l11.partners import _case, masses, most_on_partners
from attnlib import MultiHeadAttention
from attnlib.model import GPT
from attnlib.patterns import relation_mass


def by_slices(packed, num_heads):
    """Each head cut out by its columns."""
    d = packed.shape[-1] // 3
    d_k = d // num_heads
    return [
        torch.stack([packed[..., part * d + i * d_k :][..., :d_k] for i in range(num_heads)], dim=1)
        for part in range(3)
    ]


def by_one_view(packed, num_heads):
    """q, k and v in one tensor, [3, B, h, T, d_k]."""
    return packed.unflatten(-1, (3, num_heads, -1)).permute(2, 0, 3, 1, 4)


def by_linears(state, layer, num_heads):
    """A module whose parts are made anew."""
    module = MultiHeadAttention(len(state[f"h.{layer}.attn.c_proj.bias"]), num_heads)
    weight, bias = (state[f"h.{layer}.attn.c_attn.{kind}"] for kind in ("weight", "bias"))
    for i, name in enumerate(("W_q", "W_k", "W_v")):
        part = getattr(module, name)
        d = part.out_features
        part.weight = nn.Parameter(weight.T[i * d : (i + 1) * d].contiguous())
        part.bias = nn.Parameter(bias[i * d : (i + 1) * d].clone())
    module.load_state_dict(
        {
            "W_o.weight": state[f"h.{layer}.attn.c_proj.weight"].T,
            "W_o.bias": state[f"h.{layer}.attn.c_proj.bias"],
        },
        strict=False,
    )
    return module


def by_the_fused_kernel(x, W_q, W_k, W_v, W_o, num_heads):
    q, k, v = (
        F.linear(x, W).unflatten(-1, (num_heads, -1)).transpose(0, 1)[None] for W in (W_q, W_k, W_v)
    )
    found = F.scaled_dot_product_attention(q, k, v, is_causal=True)[0]
    return F.linear(found.transpose(0, 1).flatten(1), W_o)


def by_scores(weights, partners):
    """The package's own scores, layer by layer."""
    mass = torch.stack([relation_mass(of_layer, partners).heads for of_layer in weights])
    layer, head = (mass == mass.max()).nonzero()[0]
    return layer, head


def by_one_place(weights, partners):
    """Layer and head in one tensor."""
    mass = masses(weights, partners)
    return (mass == mass.max()).nonzero()[0]


def test_solutions_may_be_written_in_other_ways():
    assert l11.split_c_attn(by_slices)
    assert l11.split_c_attn(by_one_view)
    assert l11.gpt2_layer(by_linears)
    assert l11.loop_at_once(by_the_fused_kernel)
    assert l11.loop_at_once(token_by_token)
    assert l11.head_of_a_rule(by_scores)
    assert l11.head_of_a_rule(by_one_place)
    assert l11.head_in_the_file([9, 384, 384 + 768, 384 + 1536, 384])
    assert l11.parts_of_llama([67.1, 135.3, 262.1, 6738.4])
    assert l11.what_can_be_checked(dict(reversed(CLAIMS.items())))


# --- addresses and counts ----------------------------------------------------------------------


def test_an_address_holds_the_head_and_nothing_else():
    """Other columns and rows may change, and the head's output stays."""
    torch.manual_seed(0)
    layer, q, k, v, row = map(int, RIGHT.tolist())
    assert (layer, row) == (LAYER - 1, 64 * (HEAD - 1))
    x, c_attn, c_proj = torch.randn(5, 768), torch.randn(768, 2304) / 28, torch.randn(768, 768)

    def of_the_head(c_attn, c_proj):
        queries, keys, values = (
            (x @ part).unflatten(-1, (12, 64))[:, HEAD - 1] for part in c_attn.chunk(3, dim=1)
        )
        found = (queries @ keys.T / 8).softmax(-1) @ values
        return found @ c_proj.unflatten(0, (12, 64))[HEAD - 1]

    columns = torch.cat([torch.arange(first, first + 64) for first in (q, k, v)])
    others = torch.randn_like(c_attn), torch.randn_like(c_proj)
    others[0][:, columns], others[1][row : row + 64] = c_attn[:, columns], c_proj[row : row + 64]
    torch.testing.assert_close(of_the_head(*others), of_the_head(c_attn, c_proj))


@pytest.mark.parametrize("wrong", range(5))
def test_the_first_wrong_number_of_an_address_is_told(wrong):
    numbers = RIGHT.clone()
    numbers[wrong] += 5
    message = l11.head_in_the_file(numbers).message
    word = ("The layer:", "The columns", "The columns", "The columns", "The row")[wrong]
    assert message.startswith(word)


def test_a_llama_has_as_many_parameters_as_its_parts():
    gpt = GPT(TOKENS, 8, WIDTH, 32, 1, d_ff=0, bias=False, positions="rotary", device="meta")
    attention = sum(p.numel() for p in gpt.blocks[0].attention.parameters())
    tables = gpt.token_embedding.weight.numel() + gpt.readouts["next"].weight.numel()
    network = 3 * nn.Linear(WIDTH, INSIDE, bias=False, device="meta").weight.numel()
    whole = tables + LAYERS * (attention + network + 2 * WIDTH) + WIDTH
    found = torch.tensor([attention, network, tables, whole], dtype=torch.float64) / 1e6
    torch.testing.assert_close(MILLIONS, found)
    assert whole == 6_738_415_616


def test_a_llama_without_norms_is_not_said_to_lack_digits():
    numbers = MILLIONS.clone()
    numbers[-1] -= 65 * WIDTH / 1e6
    assert "norms" in l11.parts_of_llama(numbers).message


@pytest.mark.parametrize("part", range(4))
def test_the_first_wrong_part_of_a_llama_is_told(part):
    numbers = MILLIONS.clone()
    numbers[part] += 1000
    name = ("Attention:", "The feed-forward network:", "The tables:", "The whole:")[part]
    assert l11.parts_of_llama(numbers).message.startswith(name)


# --- functions -----------------------------------------------------------------------------------


def test_the_loop_is_causal_attention():
    torch.manual_seed(0)
    module = MultiHeadAttention(12, 3, bias=False)
    matrices = [W.weight for W in (module.W_q, module.W_k, module.W_v, module.W_o)]
    x = torch.randn(1, 6, 12)
    torch.testing.assert_close(token_by_token(x[0], *matrices, 3), module(x, causal=True)[0][0])


def test_a_mask_that_hides_the_token_itself_is_known_by_its_nan():
    def blind(x, W_q, W_k, W_v, W_o, num_heads):
        q, k, v = (
            (x @ W.T).unflatten(-1, (num_heads, -1)).transpose(0, 1) for W in (W_q, W_k, W_v)
        )
        hidden = torch.ones(len(x), len(x)).triu(0).bool()
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf)
        return (scores.softmax(-1) @ v).transpose(0, 1).flatten(1) @ W_o.T

    assert "don't see themselves" in l11.loop_at_once(blind).message


def test_heads_are_not_always_four_wide():
    def four_wide(x, W_q, W_k, W_v, W_o, num_heads):
        q, k, v = (
            (x @ W.T).unflatten(-1, (num_heads, -1)).transpose(0, 1) for W in (W_q, W_k, W_v)
        )
        scores = q @ k.mT / 2  # the root of 4
        scores = scores.masked_fill(torch.ones(len(x), len(x)).triu(1).bool(), -torch.inf)
        return (scores.softmax(-1) @ v).transpose(0, 1).flatten(1) @ W_o.T

    assert not l11.loop_at_once(four_wide)


def test_a_head_beyond_the_heads_is_told_in_words():
    message = l11.head_of_a_rule(lambda weights, partners: (0, 99)).message
    assert message.startswith("The layer is off by 1 when called with")


def test_masses_are_those_of_the_package():
    torch.manual_seed(0)
    weights, partners = _case(3, 2, 6, 8, (1, 2))
    for of_layer, found in zip(weights, masses(weights, partners), strict=True):
        torch.testing.assert_close(relation_mass(of_layer, partners).heads, found.double())
    assert most_on_partners(weights, partners) == (1, 2)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_drawn_the_right_head_has_most(seed):
    torch.manual_seed(seed)
    for at in ((0, 0), (1, 4), (2, 3)):
        assert most_on_partners(*_case(5, 3, 5, 8, at)) == at


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_drawn_each_mistake_gets_its_own_hint(seed):
    torch.manual_seed(seed)
    for mistake in l11.head_of_a_rule.mistakes:
        assert l11.head_of_a_rule(mistake.answer).message == mistake.hint


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (lambda state, layer, h: state, "a module was wanted, but a dict came"),
        (lambda state, layer, h: None, "returned None"),
        (lambda state, layer, h: state["h.7.attn"], "raised KeyError"),
        (lambda state, layer, h: MultiHeadAttention(12, h), "off by up to"),
    ],
)
def test_other_slips_while_loading_are_told(load, words):
    assert words in l11.gpt2_layer(load).message


def test_a_loader_that_takes_h_10_for_h_1_is_told():
    def by_beginning(state, layer, num_heads):
        own = {
            name.split(".attn.")[1]: x for name, x in state.items() if name.startswith(f"h.{layer}")
        }
        return by_linears({f"h.0.attn.{name}": x for name, x in own.items()}, 0, num_heads)

    assert "begin as those of h.1 do" in l11.gpt2_layer(by_beginning).message


def test_a_loader_may_use_its_state_up():
    state = _state(1, 6)

    def greedy(given, layer, num_heads):
        module = by_linears(given, layer, num_heads)
        given.clear()
        return module

    assert l11.gpt2_layer(greedy) and len(state) == 4


def test_a_loader_may_turn_its_state_in_place():
    def turning(state, layer, num_heads):
        for name in state:
            if name.endswith("weight"):
                state[name].t_()
        turned = {name: x.T if x.dim() > 1 else x for name, x in state.items()}
        return by_linears(turned, layer, num_heads)

    assert l11.gpt2_layer(turning)


# --- what can be checked -------------------------------------------------------------------------


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("said", KINDS)
def test_a_wrong_verdict_has_a_hint_about_its_sentence(sentence, said):
    verdict = l11.what_can_be_checked(CLAIMS | {sentence: said})
    assert verdict.passed == (said == CLAIMS[sentence])
    assert verdict.passed or sentence in verdict.message.split(":")[0]


def test_other_verdicts_are_told_so():
    assert "A: one of these" in l11.what_can_be_checked(CLAIMS | {"A": "perhaps"}).message
    assert "A, B, C, D, E" in l11.what_can_be_checked({"A": "true"}).message
