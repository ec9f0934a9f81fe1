"""The inputs of the probes, and all combinations of limits: a mask, padding, causal.

B, T, h and d_k all differ wherever equal sizes could hide a bug, and agree where a bug needs that.
Outputs of padded queries aren't compared, for no convention says what they are; one probe alone
compares them.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from attndoctor.build import copy_of
from attndoctor.call import Adapter, RandomInputs, Result
from attndoctor.reference import Pair, Results
from attnlib.cache import KVCache
from attnlib.masks import padding_mask

SAYS = {
    "mask": "a mask", "masks": "a mask for each sample", "key_mask": "padding",
    "causal": "causal=True",
}  # fmt: skip
Group = tuple[str, ...]  # limits that are passed together
ALL = 0  # limits
Run = Callable[[Adapter, RandomInputs], Results]


@dataclass(frozen=True)
class Situation:
    """Tokens to which limits apply.

    says: the same in words. padding: the keys of each sample, x for a token and - for padding.
    queries: of another sequence; None where tokens look at themselves. transposed: masks aren't
    contiguous in memory.
    """

    says: str
    padding: str
    queries: int | None = None
    transposed: bool = False

    @property
    def real(self) -> Tensor:
        """Which keys are tokens: [B, T_k]."""
        samples = self.padding.split()
        return torch.tensor([[token == "x" for token in sample] for sample in samples])


def groups(*numbers: int, of: str = "") -> Callable[[Group], list[Group]]:
    """Return a function that lists all groups of n limits (0: all), or those with `of`."""

    def choose(there: Group) -> list[Group]:
        found = (group for n in numbers for group in combinations(there, n or len(there)))
        return [group for group in dict.fromkeys(found) if group and (of in group or not of)]

    return choose


@dataclass(frozen=True)
class MaskCombinations:
    """A probe's inputs: all groups of limits that a module takes, in each of some situations.

    gradients: compare these, and not the outputs. of_padding: compare the outputs of padded queries
    alone. masks: "mask" for one or "masks" for one of each sample. forgets: limits to leave out, to
    see what comes without.
    """

    situations: tuple[Situation, ...]
    groups: Callable[[Group], list[Group]]
    gradients: bool = False
    of_padding: bool = False
    masks: str = "mask"
    forgets: frozenset[str] = field(default=frozenset())

    def combinations(self, takes: frozenset[str]) -> list[tuple[Situation, Group]]:
        """Return the combinations for a module that takes this, in order."""
        return [
            (situation, group)
            for situation in self.situations
            if situation.queries is None or "two sequences" in takes
            for group in self.groups(self._there(situation, takes))
        ]

    def __call__(self, run: Adapter, inputs: RandomInputs) -> list[Pair]:
        """Run all combinations."""
        answers: list[Pair] = []
        for situation, group in self.combinations(run.takes):
            answers += self._run_one(run, inputs, situation, group)
        return answers

    def _run_one(
        self, run: Adapter, inputs: RandomInputs, situation: Situation, group: Group
    ) -> list[Pair]:
        real, tokens = situation.real, inputs.tokens
        B, T = real.shape
        query = tokens(B, situation.queries or T).requires_grad_(self.gradients)
        key = None if situation.queries is None else tokens(B, T)
        limits = limits_in(situation, inputs)
        handed = {argument_of(name): limits[name] for name in group if name not in self.forgets}
        output, weights = run(query, key, key, **handed)
        if key is None and "key_mask" in group:
            output, weights = rows_of(~real if self.of_padding else real, (output, weights))
        return run.gradients(output, query) if self.gradients else [(output, weights)]

    def _there(self, situation: Situation, takes: frozenset[str]) -> Group:
        """Return the limits that apply in a situation; causal applies to one sequence alone."""
        left_out = {"mask", "masks"} - {self.masks}
        if situation.queries is not None:
            left_out |= {"causal"} if "padding of keys" in takes else {"causal", "key_mask"}
            left_out |= set() if "masks of keys" in takes else {"mask", "masks"}
        return tuple(limit for limit in SAYS if limit in takes - left_out)


def argument_of(limit: str) -> str:
    """Return the argument by which a limit is passed."""
    return "mask" if limit == "masks" else limit


def limits_in(situation: Situation, inputs: RandomInputs) -> dict[str, Any]:
    """Return all limits; each hides something, and every real query may look at a real key."""
    real = situation.real
    B, T_k = real.shape
    T_q = situation.queries or T_k
    masks = {"mask": inputs.mask(T_q, T_k), "masks": inputs.mask(B, T_q, T_k)}
    for name, mask in masks.items():
        if situation.queries is None:
            masks[name] = mask = mask | torch.eye(T_k, dtype=torch.bool)
            mask[..., -1, 0] = False
        else:
            tokens = real.all(0).nonzero()  # in all samples
            mask[..., tokens[0]], mask[..., -1, tokens[-1]] = True, False
        if situation.transposed:
            masks[name] = mask.mT.contiguous().mT
    return {**masks, "key_mask": real, "causal": True}


def rows_of(queries: Tensor, answer: Result) -> Result:
    """Set an answer to 0 but for the rows of some queries, [B, T_q]."""
    output, weights = answer
    B, T = queries.shape
    if output.shape[:2] == (B, T):
        output = output.masked_fill(~queries[..., None], 0.0)
    if weights is not None and weights.dim() == 4 and weights.shape[2] == T:
        weights = weights.masked_fill(~queries[:, None, :, None], 0.0)
    return output, weights


ON_THE_RIGHT = Situation("", "xxxx--- xxxxxxx")
# As many samples and tokens as ON_THE_RIGHT: what a module keeps of one is wrong for the other.
NOWHERE = Situation("where nothing is padded", "xxxxxxx xxxxxxx")
ANYWHERE = Situation("anywhere, and not in the first sample", "xxxxxxx --xxxxx x-xx--x xxxx---")
ONE_SAMPLE = Situation("on one sample", "xxxxx--")
THIRTEEN_SAMPLES = Situation("on 13 samples", "-xx xxx xx- x-x " * 3 + "xxx")
ONE_QUERY = Situation("on one query of another sequence", "xxxxx-- -xxxxxx", queries=1)
AS_MANY_TOKENS = Situation(
    "not contiguous, on as many samples as tokens", "xxxx xxx- -xxx x--x", transposed=True
)
MORE_KEYS = Situation("with more keys than queries", "xxxxx--- xxxxxxxx", queries=5)
MORE_QUERIES = Situation("with more queries than keys", "xx--xx xxxxx-", queries=7)


# How many times as long a shouting token is: scores with its key are some hundreds. An exponential
# in float32 can't bridge that (e^88 is infinite, e^-104 is 0), and it is far from -1e4, the highest
# number that people fill in for minus infinity.
LOUD = 40
# And one that may look at itself alone: its score is some hundreds, below 0 in half of all heads.
LOUD_ALONE = 10
FIRST, MIDDLE = slice(1), slice(1, -1)  # queries
# Samples in which the last token shouts and is forbidden, and in which the first: by chance a score
# with one may be small.
SHOUTING = 4
LONGEST = 70  # tokens: beyond the blocks, buffers and tables of 64 that code is written with
USUAL = 9  # tokens at most, in all probes but the one for long sequences
MANY_SAMPLES = 13  # more than the few that code takes shortcuts for


def on_sizes(*sizes: tuple[int, int]) -> Run:
    """Return what asks about tokens of these numbers of samples and tokens."""
    return lambda run, inputs: [run(inputs.tokens(B, T)) for B, T in sizes]


def grouped(run: Adapter, inputs: RandomInputs) -> Results:
    """As many samples or tokens as heads too, which may be confused; and two sequences."""
    h, h_kv = run.setting.sizes.num_heads, run.setting.sizes.num_kv_heads
    answers = on_sizes((1, 7), (5, 9), (h, h_kv), (h_kv, h))(run, inputs)
    return [*answers, *two_sequences(run, inputs)] if "two sequences" in run.takes else answers


def masks_for(samples: Callable[[int, int], tuple[int, ...]]) -> Run:
    """Return what asks with a mask for each of so many samples, given h and h_kv."""

    def ask(run: Adapter, inputs: RandomInputs) -> Results:
        sizes = run.setting.sizes
        numbers = samples(sizes.num_heads, sizes.num_kv_heads)
        return [run(inputs.tokens(B, 7), mask=inputs.mask(B, 7, 7)) for B in numbers]

    return ask


def asked_again(run: Adapter, inputs: RandomInputs) -> Results:
    """The same shape twice, and once more after each limit, whose own outputs don't count."""
    answers = [run(inputs.tokens(2, 7))]
    limits = limits_in(ON_THE_RIGHT, inputs)
    there = tuple(name for name in limits if name in run.takes - {"masks"})
    for group in groups(1, ALL)(there):
        with suppress(Exception):  # other probes report it
            run(inputs.tokens(2, 7), **{name: limits[name] for name in group})
        answers.append(run(inputs.tokens(2, 7)))
    return [*answers, run(inputs.tokens(2, 7))]


def not_contiguous(run: Adapter, inputs: RandomInputs) -> Results:
    """Sequence first in memory, then feature first."""
    sequence_first = inputs.tokens(7, 2).transpose(0, 1)
    feature_first = inputs.tokens(2, 7).mT.contiguous().mT
    return [run(sequence_first), run(feature_first)]


def long(run: Adapter, inputs: RandomInputs) -> Results:
    """Without a limit, and with each one."""
    T = LONGEST
    x = inputs.tokens(2, T)
    real = padding_mask(torch.tensor([T - 3, T]), T)
    limits: dict[str, Any] = {"mask": inputs.mask(T, T), "key_mask": real, "causal": True}
    answers = {name: run(x, **{name: limits[name]}) for name in limits if name in run.takes}
    if "key_mask" in answers:
        answers["key_mask"] = rows_of(real, answers["key_mask"])
    return [run(x), *answers.values()]


def handed_over(run: Adapter, inputs: RandomInputs) -> Results:
    """Whether it changes tokens or masks in place: without limits, with each, with all, of two."""
    limits = limits_in(ON_THE_RIGHT, inputs)
    there = tuple(name for name in limits if name in run.takes - {"masks"})
    changed = []
    of_each_sample = [("masks",)] if "masks" in run.takes else []
    for group in [(), *groups(1, ALL)(there), *of_each_sample]:
        now = {argument_of(name): limit.clone() if isinstance(limit, Tensor) else limit
               for name, limit in limits.items() if name in group}  # fmt: skip
        changed.append(run.changes(inputs.tokens(2, 7), **now))
    if "two sequences" in run.takes:
        key, value = inputs.tokens(2, 5), inputs.tokens(2, 5)
        changed.append(run.changes(inputs.tokens(2, 7), key, _values(run, key, value)))
    return [flag(each) for each in changed]


def _values(run: Adapter, key: Tensor, value: Tensor) -> Tensor:
    """Return values, or the keys where both are made of the same tokens."""
    return key if "key_value" in run.takes else value


def flag(fact: bool | Tensor) -> Pair:
    """Return an answer that compares whether something is so."""
    return torch.tensor(float(fact)), None


def gradients(run: Adapter, inputs: RandomInputs) -> Results:
    """Of one sequence, and of queries, keys and values of three."""
    x = inputs.tokens(2, 7).requires_grad_()
    answers = run.gradients(run(x)[0], x)
    if "two sequences" in run.takes:
        x = inputs.tokens(2, 14).requires_grad_()
        query, key, value = x.split((6, 4, 4), 1)
        answers += run.gradients(run(query, key, _values(run, key, value))[0], x)
    return answers


def two_sequences(run: Adapter, inputs: RandomInputs) -> Results:
    """Three sources, or two where values are made of keys; also of equal lengths."""
    lengths = ((2, 7, 9), (MANY_SAMPLES, 8, 5), (2, 1, 7), (2, 6, 6))
    results: list[Result] = []
    for B, T_q, T_k in lengths:
        query, key, value = inputs.tokens(B, T_q), inputs.tokens(B, T_k), inputs.tokens(B, T_k)
        results.append(run(query, key, _values(run, key, value)))
    return results


def mask_between_two(run: Adapter, inputs: RandomInputs) -> Results:
    """More keys than queries, then fewer."""
    results = []
    for T_q, T_k in ((5, 8), (7, 6)):
        query, key = inputs.tokens(2, T_q), inputs.tokens(2, T_k)
        results.append(run(query, key, key, mask=inputs.mask(T_q, T_k)))
    return results


def left_out(run: Adapter, inputs: RandomInputs) -> Results:
    """Leave out keys and values, then values alone; and that nothing is causal."""
    query, key = inputs.tokens(2, 7), inputs.tokens(2, 9)
    none, one = ("key", "value", "key_value", "causal"), ("value", "causal")
    one_source = "key_value" in run.takes
    return [run(query, left_out=none), *([] if one_source else [run(query, key, left_out=one)])]


def mask_a_head(run: Adapter, inputs: RandomInputs) -> Results:
    """The axis of samples, of heads, or both."""
    B, h, T = 2, run.setting.sizes.num_heads, 7
    shapes = ((B, h, T, T), (1, h, T, T), (B, 1, T, T))
    return [run(inputs.tokens(B, T), mask=inputs.mask(*shape)) for shape in shapes]


def mask_without_head_axis(run: Adapter, inputs: RandomInputs) -> Results:
    """Masks without an axis for heads."""
    mask = replace(run.signature.mask, several="[B, T, T]")
    run = replace(run, signature=replace(run.signature, mask=mask))
    return masks_for(lambda h, _: (h,))(run, inputs)


def shouting(run: Adapter, inputs: RandomInputs) -> Results:
    """Compare the tokens that don't shout; with a triangle also a first one that does."""
    x = _loud(inputs)
    both = inputs.tokens(1, 7)  # one of them half as loud: no clamped score parts them
    both[:, 0] *= LOUD
    both[:, -1] *= LOUD / 2
    answers = [_of_queries(run(torch.cat([x, both])), MIDDLE)]
    if run.setting.always_causal:
        answers.append(_of_queries(run(_alone(inputs)), FIRST))
    return answers


def shouting_forbidden(run: Adapter, inputs: RandomInputs) -> Results:
    """With each limit; some rows keep only scores far below the forbidden ones."""
    x = _loud(inputs, SHOUTING)
    mask = torch.ones(7, 7, dtype=torch.bool)  # in every other row the first key alone is allowed
    mask[2:-1:2, [0, -1]] = False
    mask[1:-1:2, 1:] = False
    key_mask = torch.ones(2 * SHOUTING, 7, dtype=torch.bool)
    key_mask[:SHOUTING, -1] = key_mask[SHOUTING:, 0] = False
    limits: dict[str, Any] = {"mask": mask, "key_mask": key_mask, "causal": True}
    there = [name for name in limits if name in run.takes]
    answers = [_of_queries(run(x, **{name: limits[name]}), MIDDLE) for name in there]
    if "causal" in there:
        answers.append(_of_queries(run(_alone(inputs), causal=True), FIRST))
    return answers


def _loud(inputs: RandomInputs, each: int = 1) -> Tensor:
    """Tokens; the last one shouts in the first samples, the first one in as many others."""
    x = inputs.tokens(2 * each, 7)
    x[:each, -1] *= LOUD
    x[each:, 0] *= LOUD
    return x


def _alone(inputs: RandomInputs) -> Tensor:
    """Tokens; the first one is much larger than the others."""
    x = inputs.tokens(8, 3)
    x[:, 0] *= LOUD_ALONE
    return x


def _of_queries(answer: Result, queries: slice) -> Result:
    """Return an answer's rows of some queries; weights of other axes stay whole."""
    output, weights = answer
    if weights is not None and weights.dim() == 4:
        weights = weights[..., queries, :]
    return output[:, queries], weights


def _blind(run: Adapter, inputs: RandomInputs, x: Tensor) -> Result:
    mask = inputs.mask(7, 7)
    mask[1] = False
    return run(x, mask=mask)


def fully_masked_row(run: Adapter, inputs: RandomInputs) -> Results:
    """A query that may look nowhere."""
    return [_blind(run, inputs, inputs.tokens(2, 7))]


def fully_masked_gradient(run: Adapter, inputs: RandomInputs) -> Results:
    """The gradient through a query that may look nowhere."""
    x = inputs.tokens(2, 7).requires_grad_()
    output, _ = _blind(run, inputs, x)
    return run.gradients(output, x)


def weights_gradients(run: Adapter, inputs: RandomInputs) -> Results:
    """Gradients of the returned weights, also with a mask."""
    x = inputs.tokens(2, 7).requires_grad_()
    answers: list[Pair] = []
    for masks in ({}, {"mask": inputs.mask(7, 7)}) if "mask" in run.takes else ({},):
        _, weights = run(x, **masks)
        assert weights is not None
        answers += run.gradients(weights, x)
    return answers


def half(run: Adapter, inputs: RandomInputs) -> Results:
    """The answer, and whether its dtype is that of the tokens."""
    x = inputs.tokens(2, 7).half() / 4  # no exponential of a score may be too large
    answer = replace(run, module=copy_of(run.module).half())(x, mask=inputs.mask(7, 7))
    return [answer, flag(answer[0].dtype == x.dtype)]


def ones_and_zeros(run: Adapter, inputs: RandomInputs) -> Results:
    """Whether it takes a mask of whole numbers, and otherwise than a boolean one."""
    x, limits = inputs.tokens(2, 7), limits_in(ON_THE_RIGHT, inputs)
    answers: list[Pair] = []
    for name in ("mask", "key_mask"):
        if name not in run.takes:
            continue
        style = replace(getattr(run.signature, name), dtype=torch.int64)
        with_numbers = replace(run, signature=replace(run.signature, **{name: style}))
        boolean, _ = rows_of(limits["key_mask"], run(x, **{name: limits[name]}))
        same = True
        with suppress(Exception):  # to refuse it is right
            given, _ = with_numbers(x, **{name: limits[name]})
            given, _ = rows_of(limits["key_mask"], (given, None))
            same = torch.allclose(given, boolean, atol=1e-4)
        answers.append(flag(not same))
    return answers


def causal_between_two(run: Adapter, inputs: RandomInputs) -> Results:
    """Whether the last key moves the first query's output, wherever the triangle's corner is."""
    query, key = inputs.tokens(1, 3), inputs.tokens(1, 5)
    other = torch.cat([key[:, :-1], key[:, -1:] + 1], 1)
    moved = False
    with suppress(Exception):  # to refuse it is right
        (before, _), (after, _) = (run(query, x, x, causal=True) for x in (key, other))
        moved = not torch.allclose(before[:, 0], after[:, 0], atol=1e-4)
    return [flag(moved)]


def cached(run: Adapter, inputs: RandomInputs) -> Results:
    """Three tokens, two and one."""
    return _in_chunks(run, inputs.tokens(2, 6))


def _in_chunks(run: Adapter, x: Tensor, **limit: Tensor) -> list[Result]:
    """Ask with a cache; of a mask [T, T] or padding pass what concerns the tokens so far."""
    cache, stop, answers = KVCache(), 0, []
    for part in x.split([3, 2, 1], 1):
        start, stop = stop, stop + part.shape[1]
        rows = slice(start, stop) if "mask" in limit else slice(None)
        now = {name: allowed[rows, :stop] for name, allowed in limit.items()}
        answers.append(run(part, causal=True, cache=cache, **now))
    return answers


def limits_with_cache(run: Adapter, inputs: RandomInputs) -> Results:
    """The same chunks with a mask and with padding, both of all keys so far."""
    real = torch.tensor([[False, True, True, True, True, True], [True] * 6])
    mask = inputs.mask(6, 6).index_fill(1, torch.tensor([0]), True)
    answers: list[Pair] = []
    if "key_mask" in run.takes:
        given = _in_chunks(run, inputs.tokens(2, 6), key_mask=real)
        answers += map(rows_of, real.split([3, 2, 1], 1), given)
    if "mask" in run.takes:
        answers += _in_chunks(run, inputs.tokens(2, 6), mask=mask)
    return answers
