"""Naming what is wrong with an attention."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn

from attnlib._verdict import Verdict
from attnlib.attention import MultiHeadAttention
from attnlib.museum import causal, heads, masks, outputs, projections, rows, scale, scores
from attnlib.museum._exhibit import Exhibit
from attnlib.museum._probes import PROBES, Answer, Load, Probe, Result, copy_state, run
from attnlib.museum._steps import SteppedAttention

EXHIBITS: tuple[Exhibit, ...] = (
    *heads.EXHIBITS, *scale.EXHIBITS, *scores.EXHIBITS, *masks.EXHIBITS, *causal.EXHIBITS,
    *rows.EXHIBITS, *projections.EXHIBITS, *outputs.EXHIBITS,
)  # fmt: skip
_BY_NAME = {exhibit.name: exhibit for exhibit in EXHIBITS}


@dataclass(frozen=True, repr=False)
class Diagnosis(Verdict):
    """What `diagnose` found; truthy if nothing is wrong.

    Attributes:
        exhibits: those that the candidate behaves like; none if it is right or wrong in another
            way.
        failed: names of the probes on which it is wrong.
        untried: names of the probes that it can't be asked.
    """

    exhibits: tuple[Exhibit, ...] = ()
    failed: tuple[str, ...] = ()
    untried: tuple[str, ...] = field(default=())

    @property
    def heading(self) -> str:
        """The diagnosis in a word."""
        return "Healthy." if self.passed else "Broken."


def named(name: str) -> Exhibit:
    """Return the exhibit of this name.

    Raises:
        TypeError, ValueError: not a name, or there is none.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {type(name).__name__}")
    if name not in _BY_NAME:
        raise ValueError(f"name must be one of {', '.join(map(repr, _BY_NAME))}, got {name!r}")
    return _BY_NAME[name]


def diagnose(candidate: Callable[..., nn.Module], *, load: Load = copy_state) -> Diagnosis:
    """Compare an attention with attnlib's, and say which exhibit it behaves like.

    The candidate is built and asked in many ways: one sequence and two, masks, padding, rows that
    may look nowhere, half precision, a cache and so on. It is asked what its arguments allow; what
    it can't be asked is named in the diagnosis.

    Args:
        candidate: a class, or a function that returns a module: called with `d_model` and
            `num_heads`, and with `num_kv_heads` and `dropout` if it takes these. The module is
            called as `MultiHeadAttention` is, with those of `key`, `value`, `mask`, `key_mask`,
            `causal`, `cache`, `need_weights` that its `forward` takes, and returns the output, or
            the output and the weights.
        load: copies the weights of the second module, a MultiHeadAttention, into the first, a
            candidate. Left out, both must name their parameters alike.

    Raises:
        TypeError: the candidate isn't callable.
        ValueError: the weights can't be loaded.
    """
    if not callable(candidate) or isinstance(candidate, nn.Module):
        raise TypeError(
            "candidate must be a class or a function that builds a module, "
            f"got {type(candidate).__name__}: it is built many times, so hand in the class itself"
        )
    answers = {probe: run(probe, candidate, load) for probe in PROBES}
    given = {probe: answer for probe, answer in answers.items() if answer}
    tried = list(given)
    failed = [probe for probe in tried if not _agree(given[probe], _right(probe), probe)]
    untried = tuple(probe.name for probe in PROBES if probe not in given)
    names = tuple(probe.name for probe in failed)
    limits = f" Not tried, since it doesn't take what is needed: {', '.join(untried)}."
    limits = limits if untried else ""
    if not failed:
        asked = ", ".join(probe.name for probe in tried)
        message = f"The same as attnlib's attention, asked in {len(tried)} ways: {asked}.{limits}"
        return Diagnosis(True, message, untried=untried)
    first = failed[0]
    for guesses in (((e,) for e in EXHIBITS), _pairs()):
        alike = [
            guess
            for guess in guesses
            if _alike(given[first], _behavior(guess, first), first)
            and all(p in failed or _agree(given[p], _behavior(guess, p), p) for p in tried)
        ]
        if alike:
            best = max(
                alike, key=lambda g: sum(_agree(given[p], _behavior(g, p), p) for p in tried)
            )
            rest = [p for p in failed if not _agree(given[p], _behavior(best, p), p)]
            message = _explain(best, first, rest)
            return Diagnosis(False, message + limits, best, names, untried)
    message = f"Wrong {first.says}, in a way that no exhibit is: "
    message += _difference(given[first], _right(first), first)
    return Diagnosis(False, message + limits, (), names, untried)


def _pairs() -> Iterator[tuple[Exhibit, ...]]:
    """Yield any two bugs that can be in one module."""
    for pair in combinations(EXHIBITS, 2):
        if not set(pair[0].steps) & set(pair[1].steps):
            yield pair


@cache
def _behavior(exhibits: tuple[Exhibit, ...], probe: Probe) -> Answer:
    """Return what a module with these bugs answers."""
    steps: dict[str, Any] = {}
    for exhibit in exhibits:
        steps |= exhibit.steps
    return run(probe, partial(SteppedAttention, steps=steps), copy_state)


@cache
def _right(probe: Probe) -> Answer:
    return run(probe, MultiHeadAttention, copy_state)


def _agree(given: Answer, other: Answer, probe: Probe) -> bool:
    """Tell whether two answers are the same; weights count where both give them."""
    if isinstance(given, Exception) or isinstance(other, Exception):
        return type(given) is type(other)
    return all(_same(a, b, probe.tolerance) for a, b in zip(given, other, strict=True))


def _alike(given: Answer, other: Answer, probe: Probe) -> bool:
    """Tell whether two answers agree so well that they must have one cause."""
    return _agree(given, other, probe) and (
        not isinstance(given, Exception) or str(given) == str(other)
    )


def _same(left: Result, right: Result, tolerance: float) -> bool:
    for ours, theirs in zip(left, right, strict=True):
        if ours is None or theirs is None:
            continue
        if ours.shape != theirs.shape:
            return False
        ours, theirs = ours.double(), theirs.double()  # weights may be float32 in half precision
        if not torch.allclose(ours, theirs, atol=tolerance, rtol=tolerance, equal_nan=True):
            return False
    return True


def _explain(exhibits: tuple[Exhibit, ...], first: Probe, rest: list[Probe]) -> str:
    names = " and ".join(f'"{exhibit.name}"' for exhibit in exhibits)
    message = f"It behaves like {names}, first seen {first.says}. "
    message += " ".join(f"{exhibit.cause} {exhibit.hint}" for exhibit in exhibits)
    if rest:
        more = ", ".join(probe.name for probe in rest)
        message += f" There is more ({more}): mend this first, and diagnose again."
    return message


def _difference(given: Answer, right: Answer, probe: Probe) -> str:
    if isinstance(right, Exception):
        raise right
    if isinstance(given, Exception):
        return f"it raises {type(given).__name__}: {given}"
    for ours, theirs in zip(given, right, strict=True):
        pairs = zip(("the output", "the weights"), ours, theirs, strict=True)
        for name, a, b in reversed(list(pairs)):  # weights say more
            if a is None or b is None or _same((a, None), (b, None), probe.tolerance):
                continue
            return _describe(name, a, b)
    raise ValueError("no difference: both agree")


def _describe(name: str, ours: Tensor, theirs: Tensor) -> str:
    if ours.shape != theirs.shape:
        return f"{name} has shape {list(ours.shape)} instead of {list(theirs.shape)}."
    if ours.isnan().any() and not theirs.isnan().any():
        return f"{name} holds NaN."
    sums = ours.sum(-1)
    if name == "the weights" and not torch.allclose(sums, theirs.sum(-1), atol=1e-3):
        return f"rows of the weights sum to {sums.min():.3g} up to {sums.max():.3g}."
    return f"{name} differs by up to {(ours - theirs).abs().max().item():.2g}."
