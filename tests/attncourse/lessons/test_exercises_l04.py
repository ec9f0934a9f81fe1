"""Checks of L04: right answers in other words, and what is nearly right."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from tools import ROOT
from tools.broken_attentions import Plain, but, filled_with, fit
from tools.verdicts import PASSES, verdicts
from torch import nn

from attncourse.lessons import l04
from attncourse.lessons.l04 import building, repair
from attncourse.lessons.l04.by_hand import _six_numbers
from attncourse.lessons.l04.repair import BUGGY_LISTING
from attnlib import MultiHeadAttention, split_heads

BY_HAND = _six_numbers().tolist()


def by_backward(head, heads_of, x):
    x.requires_grad_()
    heads_of(x)[:, head].abs().sum().backward()
    return (x.grad != 0).flatten(0, 1).any(0).numpy()


def backwards(theirs):
    """Copied the wrong way around."""
    ours = MultiHeadAttention(theirs.embed_dim, theirs.num_heads)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.W_q.weight, ours.W_k.weight, ours.W_v.weight]))
        theirs.in_proj_bias.zero_()
        theirs.out_proj.load_state_dict(ours.W_o.state_dict())
    return ours


class Right(Plain):
    def forward(self, x, mask=None):
        return self.attend(x, allowed=fit(mask))


def low(self, scores, allowed):
    return filled_with(-1e4)(self, scores, allowed) * allowed.any(-1, keepdim=True)


def dropping(self, weights, v):
    return Right.mix(self, F.dropout(weights, 0.9, self.training), v)


def refusing(self, x, mask=None):
    if mask is not None:
        raise ValueError("five axes were wanted")
    return self.attend(x)


def returning(change):
    return but(Right, forward=lambda self, x, mask=None: change(*Right.forward(self, x, mask)))


class Listed(Plain):
    def __init__(self, d, h):
        super().__init__(d, h)
        del self.W_q, self.W_k, self.W_v
        each = (nn.ModuleList([nn.Linear(d, d // h) for _ in range(h)]) for _ in range(3))
        self.three = nn.ModuleList(each)

    def forward(self, x, mask=None):
        q, k, v = (torch.stack([W(x) for W in each], 1) for each in self.three)
        weights = self.scores(q, k).softmax(-1)
        return self.mix(weights, v), weights


def without_scale_and_transpose(x, W_q, W_k, W_v, W_o, h):
    q, k, v = (split_heads(x @ W, h) for W in (W_q, W_k, W_v))
    return ((q @ k.mT).softmax(-1) @ v).reshape(x.shape) @ W_o


def runs_in(order=(0, 1, 2, 3), symbols=(8, 16), seeds=range(3), heads=(1,)):
    runs = [(h, s, 400, seed) for h in heads for seed in seeds for s in symbols]
    return [tuple(run[i] for i in order) for run in runs]


listed = {"math": math}
exec(BUGGY_LISTING, listed)

test_answers = verdicts({
    l04.head_by_hand: {
        "token 1": [[*BY_HAND[:2], 0.4, 0.6, *BY_HAND[4:]]],
        "scale": [[*_six_numbers(scale=1.0).tolist()[:4], 9, 9]],
    },
    l04.one_token: {PASSES: [[[4, 11], [6, 9]]]},
    l04.split: {PASSES: [lambda x, h: torch.stack(x.chunk(h, -1), 1)]},
    l04.merge: {PASSES: [lambda x: torch.cat(x.unbind(1), -1)]},
    l04.sum_over_heads: {
        PASSES: [lambda heads, W, b: (heads @ W.unflatten(0, heads.shape[1::2])).sum(1) + b]
    },
    l04.reads: {PASSES: [by_backward]},
    l04.loaded: {
        "changed the module": [backwards],
        "of another kind": [lambda theirs: Right(theirs.embed_dim, theirs.num_heads)],
    },
    l04.module: {
        PASSES: [Right, but(Right, weigh=low), but(Right, mix=dropping)],
        "[2, 5, 3, 5] in": [
            but(returning(lambda o, w: (o, w.transpose(1, 2))), weigh=filled_with(-1e9))
        ],
        building._REACHED[2]: [  # of one mask, [T, T]
            but(Plain, forward=lambda self, x, mask=None: self.attend(x, allowed=mask))
        ],
        "[B, T, T] into [T, T, B]": [but(Plain, forward=refusing)],
        "[6, 5, 5] in": [returning(lambda output, weights: (output, weights.flatten(0, 1)))],
        building._REACHED[3]: [but(Right, weigh=filled_with(-math.inf))],
        building._LOST_LAYERS: [Listed],
        "is None": [returning(lambda output, weights: (output, None))],
        "sum to 1": [returning(lambda output, weights: (output, weights.log()))],
        "the mean": [returning(lambda output, weights: (output, weights.mean(1)))],
        "Tensor, ndarray": [returning(lambda o, weights: (o, weights.detach().numpy()))],
        "the class": [Plain(12, 3)],
        "a Tensor was": [lambda d, h: torch.zeros(d, h)],
    },
    l04.mended: {
        "the scale, the merge": [without_scale_and_transpose],
        "at line 8": [repair._with_steps(repair._ONE_TOKEN | repair._steps_of(["the softmax"]))],
        repair._hint(repair._BUGS): [listed["attention"]],
    },
    l04.buggy_lines: {
        PASSES: [{5, 7, 8, 10}, torch.tensor([10, 7, 8, 5])],
        repair._BUGGY[5]: [[7, 10]],
        repair._BUGGY[7]: [[5, 8, 10]],
        repair._INNOCENT[2]: [[2, 3, 5, 7]],
    },
    l04.comparison: {
        PASSES: [runs_in(seeds=np.array([7, 1, 5, 3])), torch.tensor(runs_in())],
        "(heads, symbols, steps, seed)": [runs_in((3, 0, 1, 2))],
        "Heads and symbols": [runs_in(heads=(1, 2))],
        "other runs": [runs_in(symbols=(8, 12, 16))],
        "different runs": [runs_in(seeds=(0, 0, 1))],
    },
})  # fmt: skip


def test_the_page_shows_the_listing():
    page = (ROOT / "book/L04_Multi_Head_Attention.md").read_text(encoding="utf-8")
    assert f"{BUGGY_LISTING}\n\n\ncheck.mended(attention)" in page
