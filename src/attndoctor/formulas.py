"""Other formulas that public code has in place of the paper's, to be told from bugs.

Each is held against what a candidate answers on one sequence. A formula with a number in it, which
nobody told, is tried with many, and the best is made better until it fits or doesn't.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attndoctor.asking import PATHS, Pair, ask_of_attnlib
from attndoctor.comparing import agree, mean_difference
from attndoctor.naming import Answers
from attndoctor.probes import PROBES, put
from attndoctor.reference import stepped
from attndoctor.told import Steps

_PLAIN = PROBES[0]
_GOLDEN = (math.sqrt(5) - 1) / 2
_STEPS = 30  # of a golden section, after which a number is known to six digits
Weigh = Callable[[Tensor, Tensor, float], Tensor]  # of scores, what may be seen, and a number


@dataclass(frozen=True)
class Formula:
    """Another way from queries and keys to weights.

    says: what it is, with a place for its number. weigh: the weights. numbers: those to begin with.
    score: what is made of queries and keys, if that isn't their scaled dot products. shares:
    whether rows of weights sum to 1, so that equal tokens come out as by the paper's formula; None
    where some do. family: what it has in common with others, among which the nearest is taken;
    empty where it is alone.
    """

    says: str
    weigh: Weigh
    numbers: Sequence[float] = (1.0,)
    score: Callable[[Tensor, Tensor], Tensor] | None = None
    shares: bool | None = True
    family: str = ""

    def steps(self, number: float) -> dict[str, Any]:
        """Return the steps of attention that it replaces."""
        everything = torch.tensor(True)
        steps: dict[str, Any] = {
            "softmax": lambda scores: self.weigh(scores, everything, number),
            "weigh": lambda scores, allowed: self.weigh(scores, allowed, number),
        }
        return steps | {"score": self.score} if self.score else steps


@dataclass(frozen=True)
class Found:
    """A formula that answers as a candidate does on one sequence: what it is, and its steps."""

    says: str
    steps: Steps

    def __str__(self) -> str:
        return self.says


@dataclass(frozen=True)
class Scale:
    """What dot products are multiplied by, by a module with heads of width d_k."""

    number: float
    d_k: int

    def __str__(self) -> str:
        return f"{self.number:.10g}"

    @property
    def is_likely(self) -> bool:
        """Whether it isn't the root of d_k, rounded: a mistake that looks like a number."""
        rounded = math.floor(math.sqrt(self.d_k)), math.ceil(math.sqrt(self.d_k))
        return not any(math.isclose(self.number * n, 1, rel_tol=1e-4) for n in rounded)

    @property
    def times_d_k(self) -> float:
        """What is divided by d_k, if the scale falls with it."""
        return _rounded(self.number * self.d_k)


def _softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    return scores.masked_fill(~allowed, -math.inf).softmax(-1)


def _shares(numbers: Tensor, allowed: Tensor) -> Tensor:
    numbers = numbers * allowed
    return numbers / numbers.sum(-1, keepdim=True)


def _with_one_added(scores: Tensor, allowed: Tensor, _: float) -> Tensor:
    scores = scores.masked_fill(~allowed, -math.inf)
    return F.pad(scores, (1, 0)).softmax(-1)[..., 1:]  # 1 is the exponential of the padding


def _products(features: Callable[[Tensor], Tensor], q: Tensor, k: Tensor) -> Tensor:
    return features(q) @ features(k).mT


def _of_halves(power: float, q: Tensor, k: Tensor) -> Tensor:
    """Return scores [2, B, h, T_q, T_k] of the first and the second halves of heads."""
    halves = zip(q.chunk(2, -1), k.chunk(2, -1), strict=True)
    return torch.stack([q @ k.mT for q, k in halves]) / (q.shape[-1] / 2) ** power


def _forbid(scores: Tensor, allowed: Tensor) -> Tensor:
    """Take the largest score of each row off, and make those far less that may not be seen."""
    scores = scores.masked_fill(~allowed, -1e9)
    return scores - scores.amax(-1, keepdim=True)


def _sparsemax(scores: Tensor) -> Tensor:
    """Take the same number off all scores of a row, so that what is above 0 sums to 1."""
    ordered = scores.sort(-1, descending=True).values
    sums, ranks = ordered.cumsum(-1), torch.arange(1, scores.shape[-1] + 1)
    last = (1 + ranks * ordered > sums).sum(-1, keepdim=True)
    return (scores - (sums.gather(-1, last - 1) - 1) / last).relu()


def _entmax(scores: Tensor) -> Tensor:
    """Do the same to half the scores, so that the squares of what is above 0 sum to 1."""
    ordered = scores.sort(-1, descending=True).values / 2
    ranks = torch.arange(1, scores.shape[-1] + 1)
    means, squares = ordered.cumsum(-1) / ranks, ordered.square().cumsum(-1) / ranks
    thresholds = means - ((1 - ranks * (squares - means**2)) / ranks).relu().sqrt()
    last = (thresholds <= ordered).sum(-1, keepdim=True)
    return (scores / 2 - thresholds.gather(-1, last - 1)).relu() ** 2


def _shares_and_more(more: float, numbers: Tensor, allowed: Tensor, _: float) -> Tensor:
    numbers = numbers * allowed
    return numbers / (numbers.sum(-1, keepdim=True) + more)


def _of_both_softmaxes(power: float, q: Tensor, k: Tensor) -> Tensor:
    """Return products of queries' shares among features and keys' shares among tokens."""
    return q.softmax(-1) @ k.softmax(-2).mT / q.shape[-1] ** power


def _of_the_larger_half(scores: Tensor, allowed: Tensor, _: float) -> Tensor:
    return _of_the_largest(max(scores.shape[-1] // 2, 1), scores, allowed, _)


def _of_the_largest(most: int, scores: Tensor, allowed: Tensor, _: float) -> Tensor:
    scores = scores.masked_fill(~allowed, -math.inf)
    least = scores.topk(min(most, scores.shape[-1])).values[..., -1:]
    return _softmax(scores, scores >= least)


def _count(allowed: Tensor, scores: Tensor) -> Tensor:
    return allowed.expand(scores.shape[-2:]).sum(-1, keepdim=True)


FEATURES: dict[str, Callable[[Tensor], Tensor]] = {
    "elu(x) + 1 (arXiv:2006.16236)": lambda x: F.elu(x) + 1,
    "relu(x)": torch.relu,
    "relu(x) + 0.001 (arXiv:2009.14794)": lambda x: torch.relu(x) + 1e-3,
    "exp(x)": torch.exp,
    "x ** 2": torch.square,
}


def _between(low: float, high: float) -> list[float]:
    """Return numbers that grow by the same factor."""
    return torch.logspace(math.log10(low), math.log10(high), 13, dtype=torch.float64).tolist()


SCALED = Formula(
    "dot products multiplied by another scale",
    lambda scores, allowed, c: _softmax(c * scores, allowed),
    _between(0.01, 100),
)
FORMULAS = (
    Formula(
        "a sigmoid of the scores in place of the softmax",
        lambda scores, allowed, _: scores.sigmoid() * allowed,
        shares=False,
    ),
    Formula(
        "softcapped scores (c tanh(s / c) with c = {}, as Gemma 2 has them, arXiv:2408.00118)",
        lambda scores, allowed, c: _softmax(c * torch.tanh(scores / c), allowed),
        _between(0.1, 2000),
    ),
    Formula(
        "a sigmoid of the scores in place of the softmax, with {} added (arXiv:2409.04431)",
        lambda scores, allowed, c: (scores + c).sigmoid() * allowed,
        [-12.0, -10.0, -8.0, -6.0, -4.0, -2.0, 0.0, 2.0],
        shares=False,
    ),
    Formula(
        "a sigmoid of the scores in place of the softmax, with the logarithm of the number of keys "
        "taken off (arXiv:2409.04431)",
        lambda scores, allowed, _: (scores - math.log(scores.shape[-1])).sigmoid() * allowed,
        shares=False,
    ),
    Formula(
        'a softmax with 1 added to its sum ("off by one", E. Miller 2023)',
        _with_one_added,
        shares=False,
    ),
    Formula(
        "ReLU of the scores, divided by the number of keys (arXiv:2309.08586)",
        lambda scores, allowed, _: scores.relu() * allowed / scores.shape[-1],
        shares=False,
    ),
    Formula(
        "ReLU of the scores, divided by the number of keys that may be seen",
        lambda scores, allowed, _: scores.relu() * allowed / _count(allowed, scores),
        shares=False,
    ),
    Formula(
        "ReLU of the scores, squared, divided by the number of keys (arXiv:2309.08586)",
        lambda scores, allowed, _: scores.relu() ** 2 * allowed / scores.shape[-1],
        shares=False,
    ),
    Formula(
        "ReLU of the scores, divided by its sum",
        lambda scores, allowed, _: _shares(scores.relu(), allowed),
        shares=None,
    ),
    *(
        Formula(
            f"linear attention with the features {says}",
            lambda products, allowed, _: _shares(products, allowed),
            score=partial(_products, features),
            shares=None,
            family=says,
        )
        for says, features in FEATURES.items()
    ),
    *(
        Formula(
            f"linear attention with the features {says}, with {more:g} added to each sum",
            partial(_shares_and_more, more),
            score=partial(_products, features),
            shares=None,
            family=says,
        )
        for more in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
        for says, features in FEATURES.items()
    ),
    *(
        Formula(
            "efficient attention, with one softmax of each query over its features, and one of "
            f"each feature over the keys{scaled} (arXiv:1812.01243)",
            lambda products, allowed, _: products * allowed,
            score=partial(_of_both_softmaxes, power),
            shares=None,
        )
        for power, scaled in ((0.0, ""), (0.5, ", scaled"))
    ),
    *(
        Formula(
            f"{says} dot products, divided by the number of keys, without a softmax",
            lambda scores, allowed, _: scores * allowed / scores.shape[-1],
            score=score,
            shares=False,
        )
        for says, score in (("scaled", None), ("unscaled", partial(_products, torch.Tensor.clone)))
    ),
    Formula(
        "sparsemax in place of the softmax (arXiv:1602.02068)",
        lambda scores, allowed, _: _sparsemax(_forbid(scores, allowed)),
    ),
    Formula(
        "entmax with alpha = 1.5 in place of the softmax (arXiv:1905.05702)",
        lambda scores, allowed, _: _entmax(_forbid(scores, allowed)),
    ),
    *(
        Formula(
            f"a softmax of the {most} largest scores of a query (arXiv:1912.11637)",
            partial(_of_the_largest, most),
        )
        for most in range(1, 9)
    ),
    Formula(
        "a softmax of the larger half of a query's scores (arXiv:1912.11637)", _of_the_larger_half
    ),
    *(
        Formula(
            f"a difference of two softmaxes, the second one taken {{}} times, {says} "
            "(differential attention, arXiv:2410.05258)",
            lambda scores, allowed, c: (
                _softmax(scores[0], allowed) - c * _softmax(scores[1], allowed)
            ),
            _between(0.05, 5),
            shares=False,
            score=partial(_of_halves, power),
        )
        for power, says in ((0.5, "each of half a head"), (0.0, "each of half a head, unscaled"))
    ),
)


def other_formula(answers: Answers) -> Found | None:
    """Return another formula that answers as the candidate does on one sequence, if one does."""
    if (_PLAIN, PATHS[0]) not in answers.failed:
        return None
    found: list[tuple[float, Found]] = []
    family = ""
    for formula in FORMULAS:
        if formula.shares not in (None, answers.right_on_equal_tokens):
            continue
        if found and formula.family != family:
            continue
        fitted = _fitted(formula, answers)
        if fitted is None:
            continue
        number, distance = fitted
        steps = tuple(sorted(formula.steps(number).items()))
        if answers.patient.behaves_like(steps, _PLAIN, answers.given[_PLAIN, PATHS[0]]):
            one = Found(formula.says.format(f"{round(number, 6):.4g}"), steps)
            if not formula.family:
                return one
            family = formula.family
            found.append((distance, one))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def other_scale(answers: Answers) -> Scale | None:
    """Return what dot products are multiplied by, if that is another number than 1 / sqrt(d_k)."""
    fitted = _fitted(SCALED, answers)
    if fitted is None:
        return None
    number, _ = fitted
    d_k = answers.patient.first.setting.sizes.d_k
    return Scale(_rounded(number * answers.patient.first.stretched / math.sqrt(d_k)), d_k)


def _rounded(number: float) -> float:
    """Return the shortest number that is as near as the fit goes."""
    near = (float(f"{number:.{digits}g}") for digits in range(1, 10))
    return next(short for short in near if math.isclose(short, number, rel_tol=3e-6))


def _fitted(formula: Formula, answers: Answers) -> tuple[float, float] | None:
    """Return the number with which a formula answers as the first module does, if one does.

    And how far from it the answers are on the average.
    """
    given, patient = answers.given[_PLAIN, PATHS[0]], answers.patient
    if isinstance(given, Exception):
        return None

    def answer(number: float) -> list[Pair]:
        first = patient.first
        module = stepped(first.setting, formula.steps(number))
        with ask_of_attnlib(module, first.setting, first.takes).on(PATHS[0]) as asked:
            pairs = put(_PLAIN, asked)
        assert not isinstance(pairs, Exception)
        return [(output, None) for output, _ in pairs]

    def distance(number: float) -> float:
        theirs = answer(number)
        return mean_difference(given[: len(theirs)], theirs)

    number = _best(distance, formula.numbers)
    theirs = answer(number)
    agreed = agree(given[: len(theirs)], theirs, _PLAIN.tolerance)
    return (number, distance(number)) if agreed else None


def _best(distance: Callable[[float], float], numbers: Sequence[float]) -> float:
    """Return the number at the smallest distance, by a golden section beside the best of some."""
    i = min(range(len(numbers)), key=lambda i: distance(numbers[i]))
    low, high = numbers[max(i - 1, 0)], numbers[min(i + 1, len(numbers) - 1)]
    if low == high:
        return low
    a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_a, at_b = distance(a), distance(b)
    for _ in range(_STEPS):  # each asks for one distance alone
        if at_a < at_b:
            high, b, at_b = b, a, at_a
            a = high - _GOLDEN * (high - low)
            at_a = distance(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + _GOLDEN * (high - low)
            at_b = distance(b)
    return (low + high) / 2
