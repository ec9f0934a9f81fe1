"""What the checks of lesson L09 do beyond what every check does."""

import copy
import math
from fractions import Fraction
from itertools import product

import pytest
import torch

from attncourse.lessons import l09
from attncourse.lessons.l09.content import CONTENTS
from attncourse.lessons.l09.costs import HEADS, KEYS, WIDTH
from attncourse.lessons.l09.costs import RIGHT as COSTS
from attncourse.lessons.l09.mixtures import DIFFERENCES, RIGHT
from attncourse.lessons.l09.one_more_model import BLEU, RUN, SCORES, SIZES, UNEQUAL
from attncourse.lessons.l09.ranks import score_rank
from attncourse.lessons.l09.reach import KEYS as PLANE
from attncourse.lessons.l09.reach import REACHED
from attnlib import MultiHeadAttention


def by_signs(first, second):
    """Plain numbers, and other ones than in the solution."""
    return [20 * (2 * first - 1) + 3, 20 * (1 - 2 * second) + 3, 3]


def by_singular_values(module, head):
    d_k = module.d_model // module.num_heads
    W_q, W_k = (W.weight.unflatten(0, (-1, d_k))[head] for W in (module.W_q, module.W_k))
    return (torch.linalg.svdvals(W_q.mT @ W_k) > 1e-4).sum()


def test_solutions_may_be_written_in_other_ways():
    assert l09.fourth_content([Fraction(-1, 2), Fraction(3, 4), 0.25])
    assert l09.one_head(by_signs)
    assert l09.reachable(dict(reversed(REACHED.items())))
    assert l09.head_rank(by_singular_values)
    assert l09.cost_of_heads([1024, 1024, 4096, 320, 320, 1280])
    assert l09.number_or_width(RUN | {"heads": 16, "d_k": 16, "bleu": 25.4})


# --- the numbers that are asked for ------------------------------------------------------------


def test_the_fourth_content_is_that_of_a_mixture_with_fixed_weights():
    first, second = 0.75, 0.25
    threes, sevens = DIFFERENCES[3, 3], DIFFERENCES[7, 7]

    def readout(a, b):
        own = {3: threes, 7: sevens}
        return first * own[a] + second * own[b]

    assert all(readout(*content) == said for content, said in DIFFERENCES.items())
    assert RIGHT.tolist() == [readout(3, 7), first, second]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([0, 0.75, 0.25], "The difference: from (3, 3)"),
        ([-0.5, 0.9, 0.25], "The first box's share: what"),
        ([-0.5, 0.75, 0.1], "The second box's share: what"),
        ([-2.5, 0.25, 0.75], "the opposite of 2.5"),
    ],
)
def test_the_first_wrong_number_of_a_mixture_is_told(numbers, words):
    assert words in l09.fourth_content(numbers).message


def test_costs_are_those_of_the_module():
    for (h, d_k), (size, work) in zip(HEADS.values(), COSTS.T.tolist(), strict=True):
        columns = [(WIDTH, h * d_k)] * 3 + [(h * d_k, WIDTH)]
        assert size == sum(rows * width for rows, width in columns)
        assert work == h * (KEYS * d_k + KEYS * d_k)
    module = MultiHeadAttention(WIDTH, 4, bias=False)
    assert sum(p.numel() for p in module.parameters()) == COSTS[0, 0]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([1, 1024, 4096, 320, 320, 1280], "Parameters: W_q, W_k and W_v"),
        ([1024, 1024, 4096, 320, 320, 999], "Multiplications: in one head"),
        ([256, 1024, 1024, 320, 320, 1280], "You counted one head"),
        ([768, 768, 3072, 160, 160, 640], "One matrix is missing"),
        ([256, 256, 1024, 32, 32, 128], "This is one matrix"),
        ([4096, 1024, 4096, 320, 320, 1280], "each of the narrow heads all 16"),
    ],
)
def test_the_first_wrong_row_of_costs_is_told(numbers, words):
    assert words in l09.cost_of_heads(numbers).message


def test_keys_that_are_reached_are_those_that_a_query_can_favor():
    angles = torch.linspace(0, 2 * math.pi, 3601)
    queries = torch.stack([angles.cos(), angles.sin()], dim=1)
    won = (queries @ torch.tensor([*PLANE.values()]).T).argmax(-1).unique().tolist()
    reached = [name for name, said in REACHED.items() if said == "yes"]
    assert reached == [list(PLANE)[i] for i in won]


# --- one head with scores that change ------------------------------------------------------------


def outcome(scores):
    """What the head brings back for each content, by the softmax of a function's scores."""
    values = torch.tensor([[0.0, 0], [1, 1], [0, 1]])
    return {
        (a, b): torch.tensor(scores(a, b)).float().softmax(-1) @ values[[a, b, 2]]
        for a, b in CONTENTS
    }


def test_what_passes_answers_both_questions_by_linear_readouts():
    for (a, b), (x, y) in outcome(by_signs).items():
        assert (2 * x - 0.5 > 0) == bool(a) and (y - 0.75 > 0) == bool(b)


def test_fixed_scores_never_pass():
    for scores in torch.cartesian_prod(*[torch.linspace(-6, 6, 7)] * 3):
        verdict = l09.one_head(lambda first, second, scores=scores: scores)
        assert not verdict and "fixed weights" in verdict.message


def test_wrong_scores_of_no_usual_kind_are_told_with_their_weights():
    verdict = l09.one_head(lambda first, second: [8 * first, 1 - second, 0])
    assert not verdict
    assert "With 0 in the first box and 1 in the second the weights are" in verdict.message


@pytest.mark.parametrize(
    ("scores", "box"),
    [
        (lambda first, second: [0.0, 8 - 16 * second, 0.0], "first"),
        (lambda first, second: [0.0, 8 * second, 0.0], "first"),
        (lambda first, second: [16 * first - 8, 1.0, 0.0], "second"),
    ],
)
def test_a_box_whose_digit_decides_nothing_is_named(scores, box):
    verdict = l09.one_head(lambda *digits: torch.tensor(scores(*digits)))
    assert not verdict and f"score of the {box} box is the same" in verdict.message


@pytest.mark.parametrize(
    "scores", [lambda a, b: [1, 2], lambda a, b: [1, 2, math.inf], lambda a, b: 3, lambda a, b: {}]
)
def test_other_things_than_three_numbers_are_told_so(scores):
    assert "Three finite scores" in l09.one_head(scores).message


# --- ranks -------------------------------------------------------------------------------------


def test_the_rank_is_that_of_the_scores():
    torch.manual_seed(0)
    module, x = MultiHeadAttention(12, 4, bias=False), torch.randn(40, 12)
    q, k = (W(x).unflatten(-1, (4, 3))[:, 2] for W in (module.W_q, module.W_k))
    rank = torch.linalg.matrix_rank(q @ k.T, rtol=1e-4)
    assert score_rank(module, 2) == rank == 3
    narrow = copy.deepcopy(module)
    with torch.no_grad():
        narrow.W_k.weight[6:9] = narrow.W_k.weight[6]  # head 2: three times the same key
    assert score_rank(narrow, 2) == 1


# --- choices -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (REACHED | {"e": "yes"}, "e lies just behind"),
        (REACHED | {"a": "no"}, "a lies furthest out"),
        (REACHED | {"b": "perhaps"}, "b: one of these was wanted: yes, no"),
        ({"a": "yes"}, "wanted: a, b, c"),
    ],
)
def test_the_first_wrong_key_is_told(said, words):
    assert words in l09.reachable(said).message


# --- number or width -----------------------------------------------------------------------------


def test_two_models_alone_tell_the_number_from_the_width():
    every = product(SIZES, SIZES, SCORES, UNEQUAL)
    right = [answer for answer in every if l09.number_or_width(dict(zip(RUN, answer, strict=True)))]
    assert right == [(16, 16, 25.4, "parameters"), (32, 32, 25.8, "parameters")]
    for h, d_k, bleu, _ in right:
        alike = [(h == heads) + (d_k == width) for heads, width in BLEU]
        assert alike == [1, 1]  # in one of both
        assert bleu == next(BLEU[model] for model in BLEU if model[1] == d_k)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"d_k": 16}, "in the row already"),
        ({"heads": 8, "d_k": 64}, "goes on along the row"),
        ({"heads": 64}, "64 heads of 32 differ from 32 heads of 16 in number"),
        ({"heads": 8, "d_k": 8}, "8 heads of 8 differ from 16 heads of 32 and from 32 heads of 16"),
        ({"heads": 16, "d_k": 16}, "the *number* would have done it"),
        ({"heads": 16, "d_k": 16, "bleu": 25.6}, "Halfway"),
        ({"heads": 12}, '"heads" wants one of 8, 16'),
        ({"bleu": "25.8"}, '"bleu" wants one of 25.4'),
        ({"unequal": None}, "\"unequal\" wants one of 'nothing'"),
        ({"seeds": 5}, "A dictionary with the keys 'heads'"),
    ],
)
def test_what_a_model_can_t_tell_is_told(changes, words):
    assert words in l09.number_or_width(RUN | changes).message
