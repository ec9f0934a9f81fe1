"""Checks of L08: right answers in other words, what is nearly right, and the numbers asked for."""

import copy

import torch
from tools.verdicts import PASSES, verdicts
from torch import nn

from attncourse.lessons import l08
from attncourse.lessons.l08.reading import REPAIRED
from attncourse.lessons.l08.scores import LOOKS, RIGHT


def by_loop(weights):
    B, h, T, _ = weights.shape
    total = sum(weights[:, :, i, i - 1] for i in range(1, T))
    return torch.tensor([float(total[:, head].sum()) / B / (T - 1) for head in range(h)])


def mute_in_a_copy(module, head):
    changed = copy.deepcopy(module)
    width = changed.W_o.in_features // changed.num_heads
    keep = torch.arange(changed.W_o.in_features) // width != head
    changed.W_o.weight = nn.Parameter(changed.W_o.weight.detach() * keep)
    return changed


def mute_all_but_a_column(module, head):
    width = module.d_model // module.num_heads
    with torch.no_grad():
        module.W_o.weight[:, head * width : (head + 1) * width - 1] = 0


test_answers = verdicts(
    {
        l08.previous_token: {
            PASSES: [by_loop],
            "your score is 1.00": [lambda weights: weights.diagonal(-1, -2, -1).amax((0, 2))],
        },
        l08.offset_gain: {"about the sign": [[2, 0.75, 0.875, 0.875]]},
        l08.mute_head: {PASSES: [mute_in_a_copy], "[4, 5, 6]": [mute_all_but_a_column]},
        l08.induction_head: {"'2.2'": [..., 3, "9.9", ["2.2"], torch.ones(2)]},
        l08.role_table: {
            "9: ": [REPAIRED | {9: "maybe"}],
            "coreference": [REPAIRED | {3: "none", 9: "rest"}],
        },
    }
)


def test_the_numbers_of_the_gain_are_those_of_the_looks():
    distances = [partner - asks for asks, partner, _ in LOOKS]
    offset = max(set(distances), key=distances.count)
    baseline = distances.count(offset) / len(LOOKS)
    hits = sum(partner == looks for _, partner, looks in LOOKS) / len(LOOKS)
    assert RIGHT.tolist() == [offset, baseline, hits, hits - baseline]
