"""Checks of L07: right answers in other words, what is nearly right, and the numbers asked for."""

import math
from fractions import Fraction

import pytest
import torch
from tools.verdicts import PASSES, verdicts
from torch import nn

from attncourse.lessons import l07
from attncourse.lessons.l07.assembling import _cases, assembled
from attncourse.lessons.l07.counting import RIGHT as PARTS
from attncourse.lessons.l07.counting import SIZES, parameters_of_gpt2
from attncourse.lessons.l07.drawing import RIGHT as CHANCES
from attncourse.lessons.l07.drawing import chances
from attncourse.lessons.l07.losses import DIAGNOSIS
from attncourse.lessons.l07.reach import RIGHT as REACH
from attncourse.tasks import names
from attnlib import RMSNorm, TransformerBlock
from attnlib.model import GPT, generate


class Assembled(nn.Module):
    """The same model as a module, with embeddings for tables."""

    def forward(self, ids, tokens, places, blocks, final_norm, readout):
        T = ids.shape[1]
        x = nn.functional.embedding(ids, tokens)
        x = x + nn.functional.embedding(torch.arange(T).expand_as(ids), places)
        mask = torch.ones(T, T).tril().bool()
        for block in blocks:
            x, _ = block(x, mask=mask)
        return readout(final_norm(x))


def sampled(logits, temperature, top_k):
    """Chances that are cut after the softmax and shared out again."""
    p = (logits / temperature).exp()
    p[p < p.sort(descending=True).values[top_k - 1]] = 0
    return p / p.sum()


def masked_by(low):
    def answer(logits, temperature, top_k):
        cut = logits < logits.topk(top_k).values[-1]
        return (logits / temperature).masked_fill(cut, low).softmax(-1)

    return answer


def shared_anew(change):
    """Return chances at temperature 1 that are changed afterward, and shared out again."""

    def answer(logits, temperature, top_k):
        p = change(chances(logits, 1.0, top_k), temperature)
        return p / p.sum()

    return answer


def counted(V, length, d, L):
    block = 4 * (d * d + d) + d * 4 * d + 4 * d + 4 * d * d + d + 4 * d
    return V * d + length * d + L * block + 2 * d


def without(missing):
    return lambda V, length, d, L: counted(V, length, d, L) - missing * d * L


def quartered(part):
    numbers = PARTS.clone()
    numbers[part] /= 4
    return numbers


test_answers = verdicts(
    {
        l07.assembly: {
            PASSES: [Assembled()],
            "got tuple": [lambda ids, t, p, blocks, n, r: r(n(blocks[0](t[ids], causal=True)))],
            "RuntimeError": [lambda ids, t, p, *parts: t[ids] + p],
            "[2, 5, 7]": [lambda ids, t, p, blocks, n, r: n(t[ids])],
        },
        l07.chances_to_draw_from: {
            PASSES: [sampled, masked_by(-1e9)],
            "off by": [masked_by(-20.0)],  # merely low: it cuts nothing away
            "every temperature": [shared_anew(lambda p, temperature: p / temperature)],
            "its power": [shared_anew(lambda p, temperature: p**temperature)],
            "[7]": [lambda logits, tau, k: (logits / tau).topk(k).values.softmax(-1)],
            "nan": [lambda logits, tau, k: torch.full_like(logits, math.nan)],
            "2 came": [lambda logits, tau, k: logits.topk(k)],
        },
        l07.parameter_count: {
            PASSES: [counted, lambda *sizes: float(counted(*sizes))],
            "off by 1 when": [lambda *sizes: counted(*sizes) + 1],
            # a hint says all that gives the same count
            "behind W_1": [without(4)],
            "two norms": [without(4)],
            "W_1 has 4d": [without(3)],
            "keys and values": [without(3)],
            "gain and a bias": [without(2)],
            "two of them": [without(2)],
            "W_o": [without(1)],
            "network's second": [without(1)],
        },
        l07.parts_of_microgpt: {
            PASSES: [[432, 256, 1024, 2048, 432]],
            "whole matrix": [quartered(2)],
            "one head's": [quartered(2)],
        },
        l07.chances_by_hand: {
            PASSES: [[Fraction(n, 21) for n in (3, 6, 12, 1, 4, 16, 0, 7, 14)]],
        },
        l07.letters_back: {
            PASSES: [dict(reversed(REACH.items()))],
            "bol?": [REACH | {"doubling": "all"}],
            "boll?": [REACH | {"harmony": "1"}],
            "Ending: ": [REACH | {"ending": "3"}],
            "ending: ": [REACH | {"ending": 3}],
        },
        l07.four_models: {
            "A: ": [DIAGNOSIS | {"A": "broken"}],
            "A, B, C, D": [{"A": "fine"}],
        },
    }
)


# --- how far back rules reach --------------------------------------------------------------------


def decided_by(letters, texts):
    """For what stands in the last letters before each place: all that ever follows."""
    follows = {}
    for text in texts:
        padded = "." * letters + text
        for i, letter in enumerate(text):
            follows.setdefault(padded[i : i + letters], set()).add(letter)
    return follows


def test_each_rule_is_kept_by_its_letters_and_not_by_fewer():
    texts = names.texts(4000, seed=1)
    vowels, back, ends = set("eiyaou"), set("aou"), set("nrls")
    inside = [text[:-1] for text in texts]  # without the ending
    for letters, decides in ((1, False), (2, True)):
        doubles = [
            found & (vowels | {context[-1]})
            for context, found in decided_by(letters, inside).items()
            if context[-1] not in vowels | {"."} and "." not in context
        ]
        assert all(found <= vowels or not found & vowels for found in doubles) == decides
    for letters, decides in ((2, False), (3, True)):
        kinds = [
            {letter in back for letter in found & vowels}
            for context, found in decided_by(letters, inside).items()
            if vowels & set(context[:-1]) or (letters == 2 and "." not in context)
        ]
        assert all(len(found) <= 1 for found in kinds) == decides
    last_three = {}
    for text in texts:
        last_three.setdefault(text[-4:-1], set()).add(text[-1])
    assert any(found == ends for found in last_three.values())


# --- numbers -------------------------------------------------------------------------------------


def test_the_assembled_model_is_attnlibs():
    gpt, ids = GPT(11, 9, 8, 2, num_layers=3, bias=True), torch.randint(11, (2, 7))
    tables = gpt.token_embedding.weight, gpt.position_embedding.weight
    found = assembled(ids, *tables, gpt.blocks, gpt.final_norm, gpt.readouts["next"])
    torch.testing.assert_close(found, gpt(ids).logits["next"])


def test_no_two_sizes_of_a_case_agree():
    for ids, tokens, places, blocks, _, readout in _cases():
        (B, T), (V, d), (length, _) = ids.shape, tokens.shape, places.shape
        assert len({B, T, V, d, length}) == 5 and readout.out_features == V
        assert len(blocks) > 1 and isinstance(blocks[0], TransformerBlock)


def test_microgpts_parts_are_those_of_the_model():
    gpt = GPT(27, 16, 16, 4, norm=lambda d, **o: RMSNorm(d, gain=False, **o), activation="relu")
    (block,) = gpt.blocks
    tables = gpt.token_embedding, gpt.position_embedding
    modules = *tables, block.attention, block.feed_forward, gpt.readouts
    assert PARTS.tolist() == [sum(p.numel() for p in part.parameters()) for part in modules]
    assert PARTS.sum() == sum(p.numel() for p in gpt.parameters()) == 4192


@pytest.mark.parametrize(("V", "length", "d", "L"), SIZES)
def test_the_formula_counts_what_is_there(V, length, d, L):
    gpt = GPT(V, length, d, 1, L, tied=True, bias=True, device="meta")
    found = sum(p.numel() for p in gpt.parameters())
    assert parameters_of_gpt2(V, length, d, L) == found
    known = {(768, 12): 124_439_808, (1600, 48): 1_557_611_200}
    assert known.get((d, L), found) == found


def test_the_chances_by_hand_are_fractions():
    wanted = [[1 / 7, 2 / 7, 4 / 7], [1 / 21, 4 / 21, 16 / 21], [0, 1 / 3, 2 / 3]]
    torch.testing.assert_close(CHANCES, torch.tensor(wanted, dtype=torch.float64))


def test_chances_are_those_that_generate_draws_from():
    model, begin = GPT(9, 4, 8, 2, std=1.0), torch.tensor([[3]])
    wanted = chances(model(begin).logits["next"][0, -1], 0.7, 4)
    options = {"temperature": 0.7, "top_k": 4, "generator": torch.Generator().manual_seed(0)}
    drawn = generate(model, begin.expand(20_000, 1), 1, **options)[:, 1]
    shares = drawn.bincount(minlength=9) / len(drawn)
    assert (shares - wanted).abs().max() < 0.02 and (shares > 0).sum() == 4
