"""Other conventions and formulas, under which an answer is right."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from attndoctor.call import NoGradientError, RandomInputs, attnlib_adapter
from attndoctor.match import FIRST_QUESTION, Answers, Guess
from attndoctor.module_under_test import ModuleUnderTest, reference_answer
from attndoctor.museum import Exhibit, named
from attndoctor.names import SCALES
from attndoctor.options import CallError, DiagnoseOptions, Steps
from attndoctor.probes import SELF_ATTENTION, run_probe
from attndoctor.reference import Pair, agree, differences, parts_agree, stepped
from attndoctor.support.texts import Texts
from attnlib.attention import MultiHeadAttention

_GOLDEN = (math.sqrt(5) - 1) / 2
_STEPS = 30  # of a golden section, after which a number is known to six digits
Weigh = Callable[[Tensor, Tensor, float], Tensor]  # of scores, what may be seen, and a number


@dataclass(frozen=True)
class Formula:
    """Another way from queries and keys to weights.

    says: its name, with a place for its number. numbers: the first to try. score: of queries and
    keys, if not their scaled dot products. shares: rows of weights sum to 1, so that equal tokens
    come out right; None if some do. family: similar formulas, from which the nearest is taken.
    """

    says: str
    weigh: Weigh
    numbers: Sequence[float] = (1.0,)
    score: Callable[[Tensor, Tensor], Tensor] | None = None
    shares: bool | None = True
    family: str = ""

    def steps(self, number: float) -> dict[str, Any]:
        """Return the steps that it replaces."""
        everything = torch.tensor(True)
        steps: dict[str, Any] = {
            "softmax": lambda scores: self.weigh(scores, everything, number),
            "weigh": lambda scores, allowed: self.weigh(scores, allowed, number),
        }
        return steps | {"score": self.score} if self.score else steps


class Found(NamedTuple):
    """A formula that is right on one sequence."""

    says: str
    steps: Steps


@dataclass(frozen=True)
class Scale:
    """A scale of dot products, found in a module with heads of width d_k."""

    number: float
    d_k: int

    def __str__(self) -> str:
        return f"{self.number:.10g}"


def _softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    return scores.masked_fill(~allowed, -math.inf).softmax(-1)


def _shares(numbers: Tensor, allowed: Tensor, more: float) -> Tensor:
    numbers = numbers * allowed
    return numbers / (numbers.sum(-1, keepdim=True) + more)


def _with_one_added(scores: Tensor, allowed: Tensor, _: float) -> Tensor:
    scores = scores.masked_fill(~allowed, -math.inf)
    return F.pad(scores, (1, 0)).softmax(-1)[..., 1:]  # 1 is the exponential of the padding


def _products(features: Callable[[Tensor], Tensor], q: Tensor, k: Tensor) -> Tensor:
    return features(q) @ features(k).mT


def _of_halves(power: float, q: Tensor, k: Tensor) -> Tensor:
    """Return scores [2, B, h, T_q, T_k] of the first and the second halves of heads."""
    halves = zip(q.chunk(2, -1), k.chunk(2, -1), strict=True)
    return torch.stack([q @ k.mT for q, k in halves]) / (q.shape[-1] / 2) ** power


def _difference(scores: Tensor, allowed: Tensor, number: float) -> Tensor:
    first, second = (_softmax(half, allowed) for half in scores)
    return first - number * second


def _forbid(scores: Tensor, allowed: Tensor) -> Tensor:
    """Subtract each row's largest score; make forbidden scores far smaller."""
    scores = scores.masked_fill(~allowed, -1e9)
    return scores - scores.amax(-1, keepdim=True)


def _sparsemax(scores: Tensor, allowed: Tensor, _: float) -> Tensor:
    """Subtract a number from each row, so that what is above 0 sums to 1."""
    scores = _forbid(scores, allowed)
    ordered = scores.sort(-1, descending=True).values
    sums, ranks = ordered.cumsum(-1), torch.arange(1, scores.shape[-1] + 1)
    last = (1 + ranks * ordered > sums).sum(-1, keepdim=True)
    return (scores - (sums.gather(-1, last - 1) - 1) / last).relu()


def _entmax(scores: Tensor, allowed: Tensor, _: float) -> Tensor:
    """Subtract a number from half of each row, so that the squares above 0 sum to 1."""
    scores = _forbid(scores, allowed) / 2
    ordered = scores.sort(-1, descending=True).values
    ranks = torch.arange(1, scores.shape[-1] + 1)
    means, squares = ordered.cumsum(-1) / ranks, ordered.square().cumsum(-1) / ranks
    thresholds = means - ((1 - ranks * (squares - means**2)) / ranks).relu().sqrt()
    last = (thresholds <= ordered).sum(-1, keepdim=True)
    return (scores - thresholds.gather(-1, last - 1)).relu() ** 2


def _of_both_softmaxes(power: float, q: Tensor, k: Tensor) -> Tensor:
    """Return products of q's softmax over features and k's softmax over tokens."""
    return q.softmax(-1) @ k.softmax(-2).mT / q.shape[-1] ** power


def _of_the_largest(most: int, scores: Tensor, allowed: Tensor, _: float) -> Tensor:
    """Return the softmax of so many scores in each row, or of half of them."""
    most = min(most or max(scores.shape[-1] // 2, 1), scores.shape[-1])
    scores = scores.masked_fill(~allowed, -math.inf)
    return _softmax(scores, scores >= scores.topk(most).values[..., -1:])


FEATURES: dict[str, Callable[[Tensor], Tensor]] = {
    "elu(x) + 1 (arXiv:2006.16236)": lambda x: F.elu(x) + 1,
    "relu(x)": torch.relu,
    "relu(x) + 0.001 (arXiv:2009.14794)": lambda x: torch.relu(x) + 1e-3,
    "exp(x)": torch.exp,
    "x ** 2": torch.square,
}


_ADDED = {0.0: "", **{10.0**n: f", with {10.0**n:g} added to each sum" for n in range(-6, -1)}}


def _between(low: float, high: float) -> list[float]:
    """Return 13 numbers that grow by the same factor."""
    return torch.logspace(math.log10(low), math.log10(high), 13, dtype=torch.float64).tolist()


SCALED = Formula(
    "dot products multiplied by another scale",
    lambda scores, allowed, c: _softmax(c * scores, allowed),
    _between(0.01, 100),
)
_SIGMOID = "a sigmoid of the scores in place of the softmax"
FORMULAS = (
    Formula(_SIGMOID, lambda scores, allowed, _: scores.sigmoid() * allowed, shares=False),
    Formula("softcapped scores (c tanh(s / c) with c = {}, as Gemma 2 has them, arXiv:2408.00118)",
            lambda scores, allowed, c: _softmax(c * torch.tanh(scores / c), allowed),
            _between(0.1, 2000)),
    Formula(f"{_SIGMOID}, with {{}} added (arXiv:2409.04431)",
            lambda scores, allowed, c: (scores + c).sigmoid() * allowed,
            [-12.0, -10.0, -8.0, -6.0, -4.0, -2.0, 0.0, 2.0], shares=False),
    Formula(f"{_SIGMOID}, with the logarithm of the number of keys taken off (arXiv:2409.04431)",
            lambda scores, allowed, _: (scores - math.log(scores.shape[-1])).sigmoid() * allowed,
            shares=False),
    Formula('a softmax with 1 added to its sum ("off by one", E. Miller 2023)', _with_one_added,
            shares=False),
    *(Formula(f"ReLU of the scores, {says}", weigh, shares=shares) for says, shares, weigh in (
        ("divided by the number of keys (arXiv:2309.08586)", False,
         lambda scores, allowed, _: scores.relu() * allowed / scores.shape[-1]),
        ("divided by the number of keys that may be seen", False,
         lambda scores, allowed, _: scores.relu() * allowed
         / allowed.expand(scores.shape[-2:]).sum(-1, keepdim=True)),
        ("squared, divided by the number of keys (arXiv:2309.08586)", False,
         lambda scores, allowed, _: scores.relu() ** 2 * allowed / scores.shape[-1]),
        ("divided by its sum", None,
         lambda scores, allowed, _: _shares(scores.relu(), allowed, 0)))),
    *(Formula(f"linear attention with the features {says}{added}",
              _shares, [more], score=partial(_products, features), shares=None, family=says)
      for more, added in _ADDED.items()
      for says, features in FEATURES.items()),
    *(Formula("efficient attention, with one softmax of each query over its features, and one of "
              f"each feature over the keys{scaled} (arXiv:1812.01243)",
              lambda products, allowed, _: products * allowed,
              score=partial(_of_both_softmaxes, power), shares=None)
      for power, scaled in ((0.0, ""), (0.5, ", scaled"))),
    *(Formula(f"{says} dot products, divided by the number of keys, without a softmax",
              lambda scores, allowed, _: scores * allowed / scores.shape[-1], score=score,
              shares=False)
      for says, score in (("scaled", None), ("unscaled", partial(_products, torch.Tensor.clone)))),
    Formula("sparsemax in place of the softmax (arXiv:1602.02068)", _sparsemax),
    Formula("entmax with alpha = 1.5 in place of the softmax (arXiv:1905.05702)", _entmax),
    *(Formula(f"a softmax of the {which} (arXiv:1912.11637)", partial(_of_the_largest, most))
      for most, which in {
          **{most: f"{most} largest scores of a query" for most in range(1, 9)},
          0: "larger half of a query's scores",
      }.items()),
    *(Formula("a difference of two softmaxes, the second one taken {} times, each of half a head"
              f"{unscaled} (differential attention, arXiv:2410.05258)",
              _difference, _between(0.05, 5), shares=False, score=partial(_of_halves, power))
      for power, unscaled in ((0.5, ""), (0.0, ", unscaled"))),
)  # fmt: skip


def other_formula(answers: Answers) -> Found | None:
    """Return another formula by which the candidate is right on one sequence, if there is one."""
    if not answers.fails_self_attention:
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
        if answers.tested.behaves_like(steps, SELF_ATTENTION, answers.given[FIRST_QUESTION]):
            one = Found(formula.says.format(f"{round(number, 6):.4g}"), steps)
            if not formula.family:
                return one
            family = formula.family
            found.append((distance, one))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def other_scale(answers: Answers) -> Scale | None:
    """Return the scale by which the candidate is right on one sequence, if there is one."""
    fitted = _fitted(SCALED, answers)
    if fitted is None:
        return None
    number, _ = fitted
    d_k = answers.tested.first.setting.sizes.d_k
    return Scale(_rounded(number * answers.tested.first.scale_ratio / math.sqrt(d_k)), d_k)


def _rounded(number: float) -> float:
    """Return the shortest number within the precision of the fit."""
    near = (float(f"{number:.{digits}g}") for digits in range(1, 10))
    return next(short for short in near if math.isclose(short, number, rel_tol=3e-6))


def _fitted(formula: Formula, answers: Answers) -> tuple[float, float] | None:
    """Return the number with which a formula is right, and the mean distance left, if it is."""
    given, tested = answers.given[FIRST_QUESTION], answers.tested
    if isinstance(given, Exception):
        return None

    def answer(number: float) -> list[Pair]:
        first = tested.first
        module = stepped(first.setting, formula.steps(number))
        with attnlib_adapter(module, first.setting, first.takes).on() as adapter:
            pairs = run_probe(SELF_ATTENTION, adapter)
        assert not isinstance(pairs, Exception)
        return [(output, None) for output, _ in pairs]

    def distance(number: float) -> float:
        theirs = answer(number)
        return differences(given[: len(theirs)], theirs).mean().item()

    number = _best(distance, formula.numbers)
    theirs = answer(number)
    agreed = agree(given[: len(theirs)], theirs, SELF_ATTENTION.tolerance)
    return (number, distance(number)) if agreed else None


def _best(distance: Callable[[float], float], numbers: Sequence[float]) -> float:
    """Return the number with the smallest distance: a golden section beside the best of these."""
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


_MOST = 3  # conventions at once
TEXT = Texts(__file__)
_MASKED = {"a mask", "a mask for each sample", "any number of samples"}  # under its meaning right
_LIMITED = {  # what is needed by questions that ask limits too, or the name of one
    "mask", "masks", "key_mask", "a limit", "two limits", "long", "limits in training with dropout",
}  # fmt: skip


@dataclass(frozen=True)
class Convention:
    """Another convention: the options of `diagnose` for it, and what to say of it."""

    options: dict[str, Any]
    says: str


HIDING = Convention({"mask": "hide"}, TEXT("hiding"))
ADDED = Convention({"mask": "add"}, TEXT("added"))
PADDING_HIDES = Convention({"key_mask": "hide"}, TEXT("padding hides"))
PADDING_ADDED = Convention({"key_mask": "add"}, TEXT("padding added"))
FOR_INFERENCE = Convention({"gradients": False}, TEXT("for inference"))
_FIRST = {"returns": lambda result: result[0]}
OUTPUT_ALONE = Convention(_FIRST, TEXT("output alone"))
CONVENTIONS = {  # by the exhibit that each looks like
    "no scale": Convention({"scale": 1}, TEXT("no scale")),
    "scale applied twice": Convention({"scale": lambda d_k: 1 / d_k}, TEXT("scale applied twice")),
    "inverted mask": HIDING,
    "0/1 mask added": ADDED,
    "mask crosses batch and heads": Convention({"mask_shape": "[B, 1, T, T]"}, TEXT("four axes")),
    "attention across the batch": Convention({"batch_first": False}, TEXT("tokens first")),
    "averaged heads": Convention(_FIRST, TEXT("averaged heads")),
    "forgotten W_o": Convention({"out_projection": False}, TEXT("no projection")),
}


def convention_hints(exhibits: Guess, tested: ModuleUnderTest) -> str:
    """Return which conventions some exhibits may be, of those left open by the options."""
    return "".join(f" {one.says}" for one in conventions(exhibits, tested))


def conventions_that_fit(
    answers: Answers, exhibits: Guess, most: int = _MOST
) -> tuple[Convention, ...]:
    """Return the conventions under which nothing is wrong; none for attnlib's own modules."""
    if isinstance(answers.tested.first.module, MultiHeadAttention):
        return ()
    for convention in _possible(answers, exhibits) if most else ():
        with suppress(CallError):
            now = answers.under(**convention.options)
            if not now.wrong:
                return (convention,)
            guess = now.explain(now.wrong[0], limit=1)
            fewer = len(now.wrong) < len(answers.wrong) or 0 < len(guess) < len(exhibits)
            if now.wrong[0] == answers.wrong[0] and not fewer and not other_formula(now):
                continue  # no nearer
            rest = conventions_that_fit(now, guess, most - 1)
            if rest:
                return (convention, *rest)
    return ()


def _possible(answers: Answers, exhibits: Guess) -> Iterator[Convention]:
    """Yield the conventions that may explain what is wrong."""
    options = answers.tested.options
    if options.num_heads is not None and answers.fails_self_attention:
        yield from _of_heads(answers)
    known = conventions(exhibits, answers.tested)
    yield from known
    if exhibits and not known:
        return
    if not exhibits and options.returns is None and answers.shows_something_else:
        yield OUTPUT_ALONE
    if all(isinstance(answers.given[question], NoGradientError) for question in answers.wrong):
        yield FOR_INFERENCE
    if answers.fails_self_attention:
        if exhibits or options.formula:
            return
        formula = other_formula(answers)
        if formula:
            yield Convention({"formula": formula.steps}, TEXT("formula", says=formula.says))
        elif options.scale is None and (scale := other_scale(answers)):
            yield from _of_scale(scale, answers)
        else:
            yield from conventions(_beside_a_formula(answers), answers.tested)
            yield from _of_scale_attribute(answers)
    elif all(_LIMITED & {*probe.needs, probe.name} for probe, _ in answers.wrong):
        roles = answers.tested.first.signature.roles
        failed = {probe.name for probe, _ in answers.failed}
        if "mask" in roles and options.mask is None and failed & _MASKED:
            yield from (HIDING, ADDED)
        if "key_mask" in roles and options.mask is options.key_mask is None and "padding" in failed:
            yield from (PADDING_HIDES, PADDING_ADDED)


def _beside_a_formula(answers: Answers) -> list[Exhibit]:
    """Return the exhibits that are seen in spite of another formula: crossed samples, no W_o."""
    adapter = answers.tested.first
    found = []
    x = RandomInputs(adapter).tokens(2, 7).requires_grad_()
    with suppress(Exception), adapter.on() as in_mode:
        output, _ = in_mode(x)
        (slopes,) = torch.autograd.grad(output[0].square().sum(), x)
        if slopes[1].any():
            found.append(named("attention across the batch"))
    if not any(entry.ours.startswith("W_o") for entry in adapter.weight_map or []):
        found.append(named("forgotten W_o"))
    return found


def conventions(exhibits: Sequence[Exhibit], tested: ModuleUnderTest) -> list[Convention]:
    """Return the conventions that look like these exhibits, and are left open by the options."""
    found = (CONVENTIONS[e.name] for e in exhibits if e.name in CONVENTIONS)
    says_batch_first = getattr(tested.first.module, "batch_first", None) is not None
    given, default = tested.options, DiagnoseOptions()
    return [
        one
        for one in found
        if all(getattr(given, name) == getattr(default, name) for name in one.options)
        and not ("batch_first" in one.options and says_batch_first)
    ]


def _of_heads(answers: Answers) -> Iterator[Convention]:
    """Yield other numbers of heads than the given one, by which its outputs are right."""
    setting, takes = answers.tested.first.setting, answers.tested.first.takes
    d_model, width = setting.sizes.d_model, setting.sizes.all_heads
    for h in range(1, d_model + 1):
        head_dim = width // h if width != d_model else 0
        sizes = replace(setting.sizes, num_heads=h, num_kv_heads=h, head_dim=head_dim)
        if d_model % h or width % h or sizes == setting.sizes:
            continue
        right = reference_answer(SELF_ATTENTION, replace(setting, sizes=sizes), takes)
        if parts_agree(answers.given[FIRST_QUESTION], right, SELF_ATTENTION.tolerance):
            yield Convention({"num_heads": h}, TEXT("number of heads", h=h))


def _of_scale_attribute(answers: Answers) -> Iterator[Convention]:
    """Yield the scale in an attribute of the module, which may have another formula besides."""
    d_k = answers.tested.first.setting.sizes.d_k
    if answers.tested.options.scale is not None:
        return
    for name, value in vars(answers.tested.first.module).items():
        if name in SCALES and isinstance(value, float) and 0 < value < math.inf:
            if not math.isclose(value, d_k**-0.5, rel_tol=1e-6):
                yield from _of_scale(Scale(_rounded(value), d_k), answers)


def _of_scale(scale: Scale, answers: Answers) -> Iterator[Convention]:
    """Yield another scale: a number, or one that falls with d_k."""
    root = math.sqrt(scale.d_k)
    if any(math.isclose(scale.number * n, 1, rel_tol=1e-4) for n in (int(root), math.ceil(root))):
        return  # the root of d_k, rounded, is a bug
    says = partial(TEXT, "another scale", scale=scale, right=scale.d_k**-0.5)
    yield Convention({"scale": scale.number}, says(say=scale))
    share = _rounded(scale.number * scale.d_k)
    if "second" in answers.tested.adapters:
        formula = f"lambda d_k: {share:.6g} / d_k"
        yield Convention({"scale": lambda d_k: share / d_k}, says(say=formula))
