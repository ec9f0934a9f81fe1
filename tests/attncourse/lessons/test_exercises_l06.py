"""Checks of L06: right answers in other words, what is nearly right, and the numbers asked for."""

import math
import re

import torch
import torch.nn.functional as F
from tools import ROOT
from tools.verdicts import PASSES, verdicts
from torch import nn

from attncourse.lessons import l06
from attncourse.lessons.l06.by_hand import COUNTS, EXPONENTIALS, ROWS
from attncourse.lessons.l06.judging import BUGS, CALLS, DRAWN, FOUND, LAYERS, LEAKING, TESTS
from attncourse.lessons.l06.leak_test import _layers, leaks_ahead
from attndoctor import museum
from attnlib import causal_mask

PAGE = (ROOT / "book/L06_The_Causal_Mask.md").read_text(encoding="utf-8")
PYTORCH = (ROOT / "book/masks_in_pytorch.md").read_text(encoding="utf-8")


def mask_by_loops(real):
    B, T = real.shape
    mask = torch.zeros(B, 1, T, T, dtype=torch.bool)
    for b in range(B):
        for i in range(T):
            for j in range(i + 1):
                mask[b, 0, i, j] = real[b, j]
    return mask


def leaks_by_cutting(layer, x):
    """The outputs of a prefix must be those of the whole."""
    y = layer(x)
    return any(not torch.allclose(layer(x[:n].clone()), y[:n], atol=1e-5) for n in range(1, len(x)))


def by_sums(layer, x):
    """The sum of a LayerNorm's output is 0, whatever comes in."""
    return any(
        abs(layer(torch.cat([x[:n], torch.randn_like(x[n:])]))[:n].sum() - layer(x)[:n].sum())
        > 1e-4
        for n in range(1, len(x))
    )


LISTED = ROWS.tolist()

test_answers = verdicts(
    {
        l06.causal_rows: {"the other triangle": [[LISTED[0], [0, 1 / 6, 5 / 6], LISTED[2]]]},
        l06.causal_and_padding: {
            PASSES: [lambda real: mask_by_loops(real).numpy()],
            "numbers to be added to scores": [lambda real: (mask_by_loops(real).float() - 1) * 1e9],
        },
        l06.leaks: {
            PASSES: [leaks_by_cutting],
            "before a LayerNorm": [by_sums],
            "yes to causal attention": [lambda layer, x: leaks_ahead(layer, x) or len(x) == 8],
            "One verdict was wanted": [lambda layer, x: layer(x.flip(0)) != layer(x)],
        },
        l06.leaking_calls: {
            PASSES: [{6, 3, 2}, torch.tensor([3, 2, 6])],
            "2 of the three so far": [[2, 6]],
            "Line 1 is safe": [[1, 4, 5]],
            "from 1 to 8": [[0, 2, 3]],
        },
        l06.bugs_of_maps: {
            "Map B: no column of padding": [DRAWN | {"B": "ahead"}],
            "Map C: compare its diagonal": [DRAWN | {"C": "off"}],
        },
    }
)


def test_rows_are_those_of_attention_and_questions_those_of_passes():
    scores = EXPONENTIALS.log().masked_fill(~causal_mask(3), -math.inf)
    torch.testing.assert_close(ROWS, scores.softmax(-1), atol=1e-12, rtol=0)
    # Without a mask only the last of 8 words is asked for one that isn't among those seen.
    assert COUNTS == [[8, 8], [1, 8], [8, 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8]]


SOUND = {
    "causal attention",
    "the mean of all tokens so far",
    "a matrix and a ReLU for each token alone",
    "two causal layers, with a skip",
}


def test_layers_leak_as_their_names_say():
    layers = _layers(6)
    found = {name for name, layer in layers.items() if not leaks_ahead(layer, torch.randn(7, 6))}
    assert found == SOUND and len(layers) == 13  # as many as the page says


def test_the_tests_find_what_they_are_said_to_find():
    torch.manual_seed(2)
    x = torch.randn(6, 8)

    def found(layer):
        slopes = torch.autograd.functional.jacobian(layer, x).abs().amax((1, 3))
        ahead = slopes[torch.ones(6, 6).triu(1).bool()]
        return leaks_ahead(layer, x), bool(ahead.any()), leaks_by_cutting(layer, x)

    kinds = {"both": (True, False, True), "slopes": (False, True, False), "none": (False,) * 3}
    for name, code in LAYERS.items():
        assert found(eval(f"lambda x: {code}")) == kinds[FOUND[name]], name


def test_the_calls_that_leak_are_those_that_leak():
    T, d = 5, 8
    W = torch.randn(3, d, d) / math.sqrt(d)
    may = torch.ones(T, T, dtype=torch.bool).tril()
    mha = nn.MultiheadAttention(d, 2, batch_first=True)
    names = {
        "F": F, "may": may, "minus": torch.zeros(T, T).masked_fill(~may, -math.inf), "mha": mha,
    }  # fmt: skip

    def layer_of(line):
        def layer(tokens):
            x = tokens[None]
            q, k, v = x @ W
            q, k, v = (t.view(1, T, 2, -1).transpose(1, 2) for t in (q, k, v))
            output = eval(line, names | {"x": x, "q": q, "k": k, "v": v})
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


def test_pages_show_what_is_checked_and_draw_bugs_of_the_museum():
    for name, code in LAYERS.items():
        assert re.search(rf'"{name}": \.\.\., +# {re.escape(code)}\n', PAGE)
    for name, words in TESTS.items():
        assert re.search(rf"^# {name}: +{words}$", PAGE, re.M)
    for number, line in enumerate(CALLS.splitlines(), start=1):
        assert f"# {number} {line}\n" in PYTORCH
    for letter, bug in DRAWN.items():
        assert museum.named(BUGS[bug]) and f'"{letter}": "{BUGS[bug]}",\n' in PAGE
