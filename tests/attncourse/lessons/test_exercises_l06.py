"""What the checks of lesson L06 do beyond what every check does."""

import math
import re
from fractions import Fraction
from itertools import permutations

import pytest
import torch
import torch.nn.functional as F
from tools import ROOT
from torch import nn

from attncourse.lessons import l06
from attncourse.lessons.l06.building import causal_among_real
from attncourse.lessons.l06.by_hand import COUNTS, EXPONENTIALS, ROWS
from attncourse.lessons.l06.judging import BUGS, CALLS, DRAWN, FOUND, LAYERS, LEAKING, TESTS
from attncourse.lessons.l06.leak_test import SIZES, _layers, leaks_ahead
from attndoctor import museum
from attnlib import MultiHeadAttention, causal_mask, padding_mask

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


def mask_by_indices(real):
    places = torch.arange(real.shape[1])
    return (places[:, None] >= places).logical_and(real[:, None, None])


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


def test_solutions_may_be_written_in_other_ways():
    assert l06.causal_rows([1, 0, 0, Fraction(3, 4), 0.25, 0, 0.25, 0.5, 0.25])
    assert l06.causal_and_padding(mask_by_loops) and l06.causal_and_padding(mask_by_indices)
    assert l06.leaks(leaks_by_the_future) and l06.leaks(leaks_by_cutting)
    assert l06.leaking_calls({6, 3, 2}) and l06.leaking_calls(torch.tensor([3, 2, 6]))
    assert l06.telling_experiment("parts") and l06.honest_questions([8, 8, 1, 8, 8, 36])
    assert l06.tests_that_find(dict(reversed(FOUND.items())))
    assert l06.bugs_of_maps(dict(reversed(DRAWN.items())))


# --- numbers -----------------------------------------------------------------------------------


def test_the_rows_are_those_of_attention():
    scores = EXPONENTIALS.log()
    torch.testing.assert_close(
        ROWS, scores.masked_fill(~causal_mask(3), -math.inf).softmax(-1), atol=1e-12, rtol=0
    )


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[0.5, 0.5, 0], [0.75, 0.25, 0], [0.25, 0.5, 0.25]], "the softmax of a single score"),
        ([[1, 0, 0], [0.6, 0.4, 0], [0.25, 0.5, 0.25]], "whose exponentials are 3 and 1"),
        ([[1, 0, 0], [0.75, 0.25, 0], [0.2, 0.6, 0.2]], "the exponentials are 1, 2 and 1"),
        ([[1 / 13, 0, 0], [0.75, 0.25, 0], [0.25, 0.5, 0.25]], "the sum of *all* exponentials"),
        ([[1, 0, 0], [0, 1 / 6, 5 / 6], [0.25, 0.5, 0.25]], "the other triangle"),
    ],
)
def test_the_first_wrong_row_is_told(rows, words):
    assert words in l06.causal_rows(rows).message


def test_questions_and_rows_are_those_of_passes():
    """A question is honest where the word that is asked for is not among those that are seen."""
    words = range(1, 10)
    passes = {
        "causal": [words[:8]],
        "no mask": [words[:8]],
        "prefixes": [words[:n] for n in words[:8]],
    }
    counts = []
    for way, inputs in passes.items():
        honest = 0
        for given in inputs:
            asked = given[-1:] if way == "prefixes" else given
            honest += sum(w + 1 not in (given[:w] if way == "causal" else given) for w in asked)
        counts.append([honest, sum(map(len, inputs))])
    assert counts == COUNTS


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([[9, 9], [1, 9], [9, 45]], "the ninth word as one that goes in"),
        ([[8, 8], [7, 8], [8, 36]], "How many can't?"),
        ([[8, 8], [1, 8], [8, 64]], "the first has one word"),
        ([[5, 8], [3, 8], [5, 7]], "Causal: each word that goes in is one row"),
        ([[8, 8], [3, 8], [5, 7]], "No mask: at which places"),
        ([[8, 8], [1, 8], [5, 7]], "Prefixes: how many are there"),
    ],
)
def test_the_first_wrong_count_is_told(counts, words):
    assert words in l06.honest_questions(counts).message


# --- masks -------------------------------------------------------------------------------------


def test_the_mask_is_what_attention_makes_of_both():
    torch.manual_seed(0)
    real, x = padding_mask(torch.tensor([3, 5]), 5), torch.randn(2, 5, 8)
    module = MultiHeadAttention(8, 2)
    by_one, _ = module(x, mask=causal_among_real(real))
    by_both, _ = module(x, key_mask=real, causal=True)
    torch.testing.assert_close(by_one, by_both)


def test_a_mask_of_numbers_is_told_apart():
    assert "Return booleans" in l06.causal_and_padding(lambda r: mask_by_loops(r).int()).message


@pytest.mark.parametrize("allowed", [0.0, 1.0])
@pytest.mark.parametrize("forbidden", [-1e9, -math.inf])
def test_a_mask_of_large_negative_numbers_is_one_to_be_added(allowed, forbidden):
    def mask(real):
        past = torch.ones(real.shape[1], real.shape[1], dtype=torch.bool).tril()
        return torch.where(past & real[:, None, None, :], allowed, forbidden)

    assert "numbers to be added to scores" in l06.causal_and_padding(mask).message


def test_axes_that_cross_are_an_error_with_its_sizes():
    def crossed(real):
        return torch.ones(real.shape[1], real.shape[1], dtype=torch.bool).tril() & real

    message = l06.causal_and_padding(crossed).message
    assert "must match the size" in message and "[2, 5]" in message


# --- leaks -------------------------------------------------------------------------------------

SOUND = {
    "causal attention",
    "the mean of all tokens so far",
    "a matrix and a ReLU for each token alone",
    "two causal layers, with a skip",
}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_layers_leak_as_their_names_say(seed):
    torch.manual_seed(seed)
    layers = _layers(6)
    assert {
        name for name, layer in layers.items() if not leaks_ahead(layer, torch.randn(7, 6))
    } == (SOUND)
    assert len(layers) == 13  # as many as the page says


@pytest.mark.parametrize(("T", "d"), SIZES)
def test_a_right_answer_is_right_whatever_is_drawn(T, d):
    torch.manual_seed(0)
    tokens, others = torch.randn(2, 20_000, d).round()
    assert (tokens == others).all(-1).float().mean() < 1e-4  # an exchange that rounding hides


def test_a_loop_that_returns_at_once_is_told():
    def hurried(layer, x):
        y = layer(x)
        for j in range(1, len(x)):
            changed = x.clone()
            changed[j] = torch.randn(x.shape[1])
            return not torch.allclose(layer(changed)[:j], y[:j], atol=1e-5)

    assert "in your loop" in l06.leaks(hurried).message


def test_a_verdict_that_is_wrong_about_one_layer_names_it():
    verdict = l06.leaks(lambda layer, x: leaks_ahead(layer, x) or len(x) == 8)
    assert verdict.message == "You say yes to causal attention. It doesn't leak."


def changes_the_appended_token(layer, x):
    """Outputs of x may not depend on what comes after x."""
    longer = torch.cat([x, torch.randn(1, x.shape[1])])
    return not torch.allclose(layer(longer)[: len(x)], layer(x), atol=1e-5)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (changes_the_appended_token, "You append a token."),
        (lambda layer, x: bool((layer(x).triu(diagonal=1) != 0).any()), "for x alone"),
        (lambda layer, x: layer(x).triu(1).abs().sum() == 0, "for x alone"),
        (lambda layer, x: bool(layer(x[:, 0]).any()), "Your function raised"),
    ],
)
def test_what_the_layer_is_called_with_is_told(answer, words):
    assert words in l06.leaks(answer).message


@pytest.mark.parametrize(
    "moved",
    [
        lambda layer, x: (layer(x.flip(0)) - layer(x)).abs().max(),
        lambda layer, x: layer(x.flip(0)) != layer(x),
    ],
)
def test_one_verdict_is_wanted(moved):
    assert "One verdict was wanted" in l06.leaks(moved).message


def test_a_change_too_small_for_rounding_is_told():
    def nudges(layer, x):
        y, places = layer(x), torch.arange(len(x))[:, None]
        return any(
            not torch.allclose(layer(x + 1e-4 * (places >= n) * x)[:n], y[:n], atol=1e-7, rtol=0)
            for n in range(1, len(x))
        )

    torch.manual_seed(0)
    assert l06.leaks(nudges).message.startswith("A gradient says what a very small change")


def test_the_tests_find_what_they_are_said_to_find():
    torch.manual_seed(2)
    x = torch.randn(6, 8)

    def found(layer):
        y, above = layer(x), torch.ones(6, 6).triu(1).bool()
        slopes = torch.autograd.functional.jacobian(layer, x).abs().amax((1, 3))
        exchanged = leaks_ahead(layer, x)
        cut = any(not torch.allclose(layer(x[:n]), y[:n], atol=1e-5) for n in range(1, len(x)))
        return exchanged, bool(slopes[above].any()), cut

    kinds = {"both": (True, False, True), "slopes": (False, True, False), "none": (False,) * 3}
    for name, code in LAYERS.items():
        assert found(eval(f"lambda x: {code}")) == kinds[FOUND[name]], name


def test_the_page_shows_the_layers_and_the_tests_that_are_checked():
    for name, code in LAYERS.items():
        assert re.search(rf'"{name}": \.\.\., +# {re.escape(code)}\n', PAGE)
    for name, words in TESTS.items():
        assert re.search(rf"^# {name}: +{words}$", PAGE, re.M)


# --- PyTorch's calls -----------------------------------------------------------------------------


def test_the_calls_that_leak_are_those_that_leak():
    torch.manual_seed(0)
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


def test_the_page_shows_the_lines_that_are_checked():
    for number, line in enumerate(CALLS.splitlines(), start=1):
        assert f"# {number} {line}\n" in PYTORCH


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([2, 6], "2 of the three so far, and no line too many. Ask of another line: what happens"),
        ([3], "1 of the three so far"),
        ([2, 3, 8], "Line 8 is safe"),
        ([1, 4, 5], "Line 1 is safe"),
        ([0, 2, 3], "from 1 to 8"),
        (["2", "3", "6"], "from 1 to 8"),
    ],
)
def test_wrong_lines_are_told(lines, words):
    assert words in l06.leaking_calls(lines).message


# --- maps and choices ----------------------------------------------------------------------------


def test_bugs_are_named_as_in_the_museum():
    for name in BUGS.values():
        assert museum.named(name).name == name


def test_the_page_draws_the_bugs_that_are_asked_for():
    for letter, bug in DRAWN.items():
        assert f'"{letter}": "{BUGS[bug]}",\n' in PAGE


def test_only_one_answer_about_the_maps_passes():
    passing = [
        answer
        for chosen in permutations(BUGS, 4)
        if l06.bugs_of_maps(answer := dict(zip("ABCD", chosen, strict=True)))
    ]
    assert passing == [DRAWN]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (DRAWN | {"A": "ahead"}, "Map A: its triangle"),
        (DRAWN | {"B": "ahead"}, "Map B: no column of padding"),
        (DRAWN | {"D": "off"}, "Map D: one diagonal"),
        (DRAWN | {"C": "off"}, "Map C: compare its diagonal"),
        (DRAWN | {"C": "nothing"}, "C: one of these was wanted"),
        ({"A": "off"}, "wanted: A, B, C, D"),
    ],
)
def test_the_first_wrong_map_is_told(said, words):
    assert words in l06.bugs_of_maps(said).message


def test_every_choice_but_one_is_a_known_mistake():
    assert len(l06.telling_experiment.mistakes) == 4
    assert l06.telling_experiment(3).message.startswith("One of these was wanted: ")
    assert len(l06.tests_that_find.mistakes) == len(FOUND) * (len(TESTS) - 1)
