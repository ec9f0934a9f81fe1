"""Checks of L06: right answers in other words, what is nearly right, and the numbers asked for."""

import math
from fractions import Fraction

import pytest
import torch
import torch.nn.functional as F
from tools import ROOT
from tools.verdicts import PASSES, hint, verdicts
from torch import nn

from attncourse.lessons import l06
from attncourse.lessons.l06 import calls, maps
from attncourse.lessons.l06.building import causal_among_real
from attncourse.lessons.l06.by_hand import EXPONENTIALS, RIGHT
from attncourse.lessons.l06.calls import CALLS, LEAKING
from attncourse.lessons.l06.leak_test import SIZES, _layers, leaks_ahead
from attncourse.lessons.l06.maps import BUGS, DRAWN
from attndoctor import museum
from attnlib import MultiHeadAttention, causal_mask, padding_mask

PAGE = (ROOT / "book/L06_The_Causal_Mask.md").read_text(encoding="utf-8")


def mask_by_loops(real):
    B, T = real.shape
    mask = torch.zeros(B, 1, T, T, dtype=torch.bool)
    for b in range(B):
        for i in range(T):
            for j in range(i + 1):
                mask[b, 0, i, j] = real[b, j]
    return mask


def mask_by_indices(real):
    places = torch.arange(real.shape[1])
    return (places[:, None] >= places).logical_and(real[:, None, None])


def added_to_scores(allowed, forbidden):
    return lambda real: torch.where(mask_by_indices(real), allowed, forbidden)


def crossed(real):
    return torch.ones(real.shape[1], real.shape[1], dtype=torch.bool).tril() & real


def leaks_by_cutting(layer, x):
    """The outputs of a prefix must be those of the whole."""
    y = layer(x)
    return any(not torch.allclose(layer(x[:n].clone()), y[:n], atol=1e-5) for n in range(1, len(x)))


def leaks_by_the_future(layer, x):
    """All that comes later is exchanged at once."""
    y = layer(x)
    for n in range(1, len(x)):
        changed = torch.cat([x[:n], 10 * torch.randn_like(x[n:])])
        if (layer(changed)[:n] - y[:n]).abs().max() > 1e-4:
            return torch.tensor(True)
    return torch.tensor(False)


def hurried(layer, x):
    y = layer(x)
    for j in range(1, len(x)):
        changed = x.clone()
        changed[j] = torch.randn(x.shape[1])
        return not torch.allclose(layer(changed)[:j], y[:j], atol=1e-5)


def nudges(layer, x):
    y, places = layer(x), torch.arange(len(x))[:, None]
    return any(
        not torch.allclose(layer(x + 1e-4 * (places >= n) * x)[:n], y[:n], atol=1e-7, rtol=0)
        for n in range(1, len(x))
    )


test_answers = verdicts(
    {
        l06.causal_rows: {PASSES: [[1, 0, 0, Fraction(3, 4), 0.25, 0, 0.25, 0.5, 0.25]]},
        l06.causal_and_padding: {
            PASSES: [mask_by_loops, mask_by_indices],
            hint(l06.causal_and_padding, "floats"): [lambda real: mask_by_loops(real).int()],
            hint(l06.causal_and_padding, "numbers"): [
                added_to_scores(allowed, forbidden)
                for allowed in (0.0, 1.0)
                for forbidden in (-1e9, -math.inf)
            ],
            "[2, 5]": [crossed],
        },
        l06.leaks: {
            PASSES: [leaks_by_the_future, leaks_by_cutting],
            "your loop": [hurried],
            "yes to causal attention.": [lambda layer, x: leaks_ahead(layer, x) or len(x) == 8],
            "One verdict": [
                lambda layer, x: layer(x),
                lambda layer, x: (layer(x.flip(0)) - layer(x)).abs().max(),
                lambda layer, x: layer(x.flip(0)) != layer(x),
            ],
            hint(l06.leaks, "by_gradient"): [nudges],
        },
        l06.leaking_calls: {
            PASSES: [{6, 3, 2}, torch.tensor([3, 2, 6])],
            LEAKING[3]: [[2, 6]],
            f"1 of the three so far, and no line too many. Of another line ask: {LEAKING[2]}": [
                [3]
            ],
            LEAKING[6]: [[2, 3]],
            calls._SAFE[8]: [[2, 3, 8]],
            calls._SAFE[1]: [[1, 4, 5]],  # of several, the first
            "from 1 to 8": [[0, 2, 3], ["2", "3", "6"]],
        },
        l06.bugs_of_maps: {
            PASSES: [dict(reversed(DRAWN.items()))],
            maps._WRONG["A"]: [DRAWN | {"A": "ahead"}],
            maps._WRONG["B"]: [DRAWN | {"B": "ahead"}],
            maps._WRONG["C"]: [DRAWN | {"C": "off"}],
            maps._WRONG["D"]: [DRAWN | {"D": "off"}],
            "C: ": [DRAWN | {"C": "nothing"}],
            "A, B, C, D": [{"A": "off"}, DRAWN | {"E": "off"}],
        },
        l06.telling_experiment: {PASSES: ["parts"], "'deeper', 'jacobian'": [3]},
        l06.left_out: {PASSES: ["causal"], "'causal', 'either'": ["BERT"]},
    }
)


def test_the_rows_are_those_of_attention():
    scores = EXPONENTIALS.log().masked_fill(~causal_mask(3), -math.inf)
    torch.testing.assert_close(RIGHT, scores.softmax(-1), atol=1e-12, rtol=0)


def test_the_mask_is_what_attention_makes_of_both():
    real, x = padding_mask(torch.tensor([3, 5]), 5), torch.randn(2, 5, 8)
    module = MultiHeadAttention(8, 2)
    by_one, _ = module(x, mask=causal_among_real(real))
    by_both, _ = module(x, key_mask=real, causal=True)
    torch.testing.assert_close(by_one, by_both)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_layers_leak_as_their_names_say(seed):
    torch.manual_seed(seed)
    layers = _layers(6)
    assert len(layers) == 13  # as many as the page says
    sound = {name for name, layer in layers.items() if not leaks_ahead(layer, torch.randn(7, 6))}
    assert sound == {
        "causal attention",
        "the mean of all tokens so far",
        "a matrix and a ReLU for each token alone",
        "two causal layers, with a skip",
    }


@pytest.mark.parametrize(("T", "d"), SIZES)
def test_a_right_answer_is_right_whatever_is_drawn(T, d):
    tokens, others = torch.randn(2, 20_000, d).round()
    assert (tokens == others).all(-1).float().mean() < 1e-4  # an exchange that rounding hides


def test_the_calls_that_leak_are_those_that_leak():
    T, d = 5, 8
    W = torch.randn(3, d, d) / math.sqrt(d)
    may = torch.ones(T, T, dtype=torch.bool).tril()
    mha = nn.MultiheadAttention(d, 2, batch_first=True)
    minus = torch.zeros(T, T).masked_fill(~may, -math.inf)

    def layer_of(line):
        def layer(tokens):
            x = tokens[None]
            q, k, v = (t.view(1, T, 2, -1).transpose(1, 2) for t in x @ W[:, None])
            names = {"F": F, "may": may, "minus": minus, "mha": mha, "x": x, "q": q, "k": k, "v": v}
            output = eval(line, names)
            output = output.transpose(1, 2).reshape(1, T, d) if output.dim() == 4 else output
            return output[0].nan_to_num(0.0)

        return layer

    with torch.no_grad():
        found = {
            number
            for number, line in enumerate(CALLS.splitlines(), start=1)
            if leaks_ahead(layer_of(line), torch.randn(T, d))
        }
    assert found == LEAKING.keys()


def test_the_page_shows_what_is_asked_about():
    for number, line in enumerate(CALLS.splitlines(), start=1):
        assert f"# {number} {line}\n" in PAGE
    for letter, bug in DRAWN.items():
        assert f'"{letter}": "{BUGS[bug]}",\n' in PAGE
    for name in BUGS.values():
        assert museum.named(name).name == name
