"""What the checks of lesson L08 do beyond what every check does."""

import copy
from fractions import Fraction

import pytest
import torch
from torch import nn

from attncourse.lessons import l08
from attncourse.lessons.l08.baselines import LOOKS, RIGHT
from attncourse.lessons.l08.roles import REPAIRED


def by_loop(weights):
    B, h, T, _ = weights.shape
    total = sum(weights[:, :, i, i - 1] for i in range(1, T))
    return [float(total[:, head].sum()) / B / (T - 1) for head in range(h)]


def mute_in_a_copy(module, head):
    changed = copy.deepcopy(module)
    width = changed.W_o.in_features // changed.num_heads
    keep = torch.arange(changed.W_o.in_features) // width != head
    changed.W_o.weight = nn.Parameter(changed.W_o.weight.detach() * keep)
    return changed


def mute_the_values(module, head):
    """Values of 0, biases included, make a head that adds nothing, too."""
    width = module.d_model // module.num_heads
    rows = slice(head * width, (head + 1) * width)
    with torch.no_grad():
        module.W_v.weight[rows] = 0
        module.W_v.bias[rows] = 0


def test_solutions_may_be_written_in_other_ways():
    assert l08.previous_token(lambda weights: torch.tensor(by_loop(weights)))
    assert l08.offset_gain([-2, Fraction(3, 4), Fraction(7, 8), Fraction(1, 8)])
    assert l08.mute_head(mute_in_a_copy)
    assert l08.mute_head(mute_the_values)
    assert l08.induction_head("2.2")
    assert l08.sweep_sentence("seen")
    assert l08.role_table(dict(reversed(REPAIRED.items())))


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([-3, 0.75, 0.875, 0.125], "The offset: subtract"),
        ([-2, 0.5, 0.875, 0.375], "The offset's accuracy: for how many"),
        ([-2, 0.75, 1, 0.25], "The head's accuracy: for how many"),
        ([2, 0.75, 0.875, 0.875], "is below 0"),
        ([-2, 0.75, 0.875, 0.875], "The gain is what the head has beyond"),
    ],
)
def test_the_first_wrong_number_of_a_gain_is_told(numbers, words):
    assert words in l08.offset_gain(numbers).message


def test_the_numbers_of_the_gain_are_those_of_the_looks():
    distances = [partner - asks for asks, partner, _ in LOOKS]
    offset = max(set(distances), key=distances.count)
    baseline = distances.count(offset) / len(LOOKS)
    hits = sum(partner == looks for _, partner, looks in LOOKS) / len(LOOKS)
    assert RIGHT.tolist() == [offset, baseline, hits, hits - baseline]


def test_an_answer_that_raises_is_told_so():
    verdict = l08.mute_head(lambda module, head: 1 / 0)
    assert not verdict and "ZeroDivisionError" in verdict.message


@pytest.mark.parametrize("check", [l08.induction_head, l08.sweep_sentence])
@pytest.mark.parametrize("answer", [..., None, 3, "9.9", ["2.2"], torch.ones(2)])
def test_what_is_no_choice_is_told_the_choices(check, answer):
    verdict = check(answer)
    assert not verdict and verdict.message.startswith("One of these was wanted: ")


def test_every_choice_but_the_right_one_is_a_known_mistake():
    assert len(l08.induction_head.mistakes) == 7 and len(l08.sweep_sentence.mistakes) == 5


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (REPAIRED | {3: ...}, "3: one of these was wanted"),
        (REPAIRED | {9: "maybe"}, "9: one of these was wanted"),
        ({3: "measured"}, "wanted: 3, 5, 7, 9, 11"),
        (None, "wanted: 3, 5, 7, 9, 11"),
        (REPAIRED | {3: "none", 9: "rest"}, "BERT's head for coreference"),
    ],
)
def test_the_first_row_of_a_role_table_that_is_wrong_is_told(verdicts, words):
    assert words in l08.role_table(verdicts).message
