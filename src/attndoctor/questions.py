"""What is asked without a limit, of masks, and of scores that lie far apart.

Wherever one of the questions could hide a bug, B, T, h and d_k all differ; where a bug needs sizes
that agree, they do.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from attndoctor.asking import Asked, Pair
from attndoctor.crossings import ON_THE_RIGHT, alone_and_together, argument_of, limits_in, rows_of
from attndoctor.draw import Draw
from attndoctor.forward import Result
from attnlib.cache import KVCache
from attnlib.masks import padding_mask

Results = Sequence[Pair]

# How many times as long a token is made that shouts: scores with its key are some hundreds. That is
# beyond what an exponential in float32 bridges (e^88 is infinite, e^-104 is 0), and far from -1e4,
# the highest number that people fill in for minus infinity.
LOUD = 40
# And one that is left alone with itself: its score is some hundreds, below 0 in half of all heads.
LOUD_ALONE = 10
# In how many samples the last token shouts where it is forbidden, and in how many the first: by
# chance a score with one may be small.
SHOUTING = 4
LONGEST = 70  # tokens: beyond the blocks, buffers and tables of 64 that code is written with
MANY_SAMPLES = 13  # more than the few that code takes shortcuts for


def self_attention(ask: Asked, draw: Draw) -> Results:
    """Two batches, all of whose sizes differ."""
    return [ask(draw.tokens(2, 7)), ask(draw.tokens(5, 9))]


def grouped(ask: Asked, draw: Draw) -> Results:
    """Also as many samples or tokens as heads, where one may be taken for the other.

    And of two sequences.
    """
    h, h_kv = ask.setting.sizes.num_heads, ask.setting.sizes.num_kv_heads
    sizes = ((1, 7), (5, 9), (h, h_kv), (h_kv, h))
    answers = [ask(draw.tokens(B, T)) for B, T in sizes]
    return [*answers, *two_sequences(ask, draw)] if "two sequences" in ask.takes else answers


def masks_of_groups(ask: Asked, draw: Draw) -> Results:
    """As many samples as heads, as key heads, and another number."""
    h, h_kv = ask.setting.sizes.num_heads, ask.setting.sizes.num_kv_heads
    return [ask(draw.tokens(B, 7), mask=draw.mask(B, 7, 7)) for B in (h, h_kv, 2)]


def other_sizes(ask: Asked, draw: Draw) -> Results:
    """More samples than usual. One head's weights may come without its axis: outputs alone."""
    return [(ask(draw.tokens(MANY_SAMPLES, 3))[0], None)]


def one_of_each(ask: Asked, draw: Draw) -> Results:
    """One sample, one token, and both."""
    return [ask(draw.tokens(B, T)) for B, T in ((1, 7), (MANY_SAMPLES, 1), (1, 1))]


def asked_again(ask: Asked, draw: Draw) -> Results:
    """The same shape twice, and once more after each limit, whose own answers don't count."""
    answers = [ask(draw.tokens(2, 7))]
    limits = limits_in(ON_THE_RIGHT, draw)
    there = tuple(name for name in limits if name in ask.takes - {"masks"})
    for group in alone_and_together(there):
        with suppress(Exception):  # which other probes tell
            ask(draw.tokens(2, 7), **{name: limits[name] for name in group})
        answers.append(ask(draw.tokens(2, 7)))
    return [*answers, ask(draw.tokens(2, 7))]


def not_contiguous(ask: Asked, draw: Draw) -> Results:
    """Sequence first in memory, then feature first."""
    sequence_first = draw.tokens(7, 2).transpose(0, 1)
    feature_first = draw.tokens(2, 7).mT.contiguous().mT
    return [ask(sequence_first), ask(feature_first)]


def long(ask: Asked, draw: Draw) -> Results:
    """Without a limit, and behind each one that is taken."""
    T = LONGEST
    x = draw.tokens(2, T)
    real = padding_mask(torch.tensor([T - 3, T]), T)
    limits: dict[str, Any] = {"mask": draw.mask(T, T), "key_mask": real, "causal": True}
    answers = {name: ask(x, **{name: limits[name]}) for name in limits if name in ask.takes}
    if "key_mask" in answers:
        answers["key_mask"] = rows_of(real, answers["key_mask"])
    return [ask(x), *answers.values()]


def handed_over(ask: Asked, draw: Draw) -> Results:
    """Whether tokens and masks are changed in place, without a limit, behind each one and all.

    Also those of another sequence.
    """
    limits = limits_in(ON_THE_RIGHT, draw)
    there = tuple(name for name in limits if name in ask.takes - {"masks"})
    changed = []
    of_each_sample = [("masks",)] if "masks" in ask.takes else []
    for group in [(), *alone_and_together(there), *of_each_sample]:
        now = {argument_of(name): limit.clone() if isinstance(limit, Tensor) else limit
               for name, limit in limits.items() if name in group}  # fmt: skip
        changed.append(ask.changes(draw.tokens(2, 7), **now))
    if "two sequences" in ask.takes:
        key, value = draw.tokens(2, 5), draw.tokens(2, 5)
        changed.append(ask.changes(draw.tokens(2, 7), key, _values(ask, key, value)))
    return [(torch.tensor(float(each)), None) for each in changed]


def _values(ask: Asked, key: Tensor, value: Tensor) -> Tensor:
    """Return values, or the keys where both are made of the same tokens."""
    return key if "key_value" in ask.takes else value


def dtype(ask: Asked, draw: Draw) -> Results:
    """Whether the output has the dtype of the tokens; what is in it is asked elsewhere."""
    x = draw.tokens(1, 2)
    return [(torch.tensor(float(ask(x)[0].dtype == x.dtype)), None)]


def gradients(ask: Asked, draw: Draw) -> Results:
    """Of one sequence, and of queries, keys and values of three."""
    x = draw.tokens(2, 7).requires_grad_()
    answers = ask.gradients(ask(x)[0], x)
    if "two sequences" in ask.takes:
        x = draw.tokens(2, 14).requires_grad_()
        query, key, value = x.split((6, 4, 4), 1)
        answers += ask.gradients(ask(query, key, _values(ask, key, value))[0], x)
    return answers


def two_sequences(ask: Asked, draw: Draw) -> Results:
    """Queries, keys and values of three sources, where values aren't made of keys.

    Also of equal lengths, which may be taken for one sequence.
    """
    lengths = ((2, 7, 9), (MANY_SAMPLES, 8, 5), (2, 1, 7), (2, 6, 6))
    results: list[Result] = []
    for B, T_q, T_k in lengths:
        query, key, value = draw.tokens(B, T_q), draw.tokens(B, T_k), draw.tokens(B, T_k)
        results.append(ask(query, key, _values(ask, key, value)))
    return results


def mask_between_two(ask: Asked, draw: Draw) -> Results:
    """More keys than queries, then fewer."""
    results = []
    for T_q, T_k in ((5, 8), (7, 6)):
        query, key = draw.tokens(2, T_q), draw.tokens(2, T_k)
        results.append(ask(query, key, key, mask=draw.mask(T_q, T_k)))
    return results


def left_out(ask: Asked, draw: Draw) -> Results:
    """Keys and values, then values alone; and that nothing is to be causal."""
    query, key = draw.tokens(2, 7), draw.tokens(2, 9)
    none, one = ("key", "value", "key_value", "causal"), ("value", "causal")
    together = "key_value" in ask.takes
    return [ask(query, left_out=none), *([] if together else [ask(query, key, left_out=one)])]


def one_mask(ask: Asked, draw: Draw) -> Results:
    """A mask for all samples."""
    return [ask(draw.tokens(2, 7), mask=draw.mask(7, 7))]


def mask_a_sample(ask: Asked, draw: Draw) -> Results:
    """As many samples as heads, then another number."""
    h = ask.setting.sizes.num_heads
    return [ask(draw.tokens(B, 7), mask=draw.mask(B, 7, 7)) for B in (h, h + 1)]


def mask_a_sample_silent(ask: Asked, draw: Draw) -> Results:
    """As many samples as heads, where a mask on the wrong axis raises no error."""
    h = ask.setting.sizes.num_heads
    return [ask(draw.tokens(h, 7), mask=draw.mask(h, 7, 7))]


def mask_a_head(ask: Asked, draw: Draw) -> Results:
    """The axis of samples, of heads, or both."""
    B, h, T = 2, ask.setting.sizes.num_heads, 7
    shapes = ((B, h, T, T), (1, h, T, T), (B, 1, T, T))
    return [ask(draw.tokens(B, T), mask=draw.mask(*shape)) for shape in shapes]


def bare_mask(ask: Asked, draw: Draw) -> Results:
    """Masks without an axis for heads."""
    return mask_a_sample_silent(ask.with_bare_masks(), draw)


def causal(ask: Asked, draw: Draw) -> Results:
    """A triangle."""
    return [ask(draw.tokens(2, 7), causal=True)]


def shouting(ask: Asked, draw: Draw) -> Results:
    """What the tokens that shout see themselves isn't asked.

    But where nothing else is left to the first token: behind a triangle.
    """
    x = _loud(draw)
    both = draw.tokens(1, 7)  # one of them half as loud: no clamped score tells them apart
    both[:, 0] *= LOUD
    both[:, -1] *= LOUD / 2
    answers = [_but_the_ends(ask(torch.cat([x, both])))]
    return [*answers, _of_the_first(ask(_alone(draw)))] if ask.setting.always_causal else answers


def shouting_forbidden(ask: Asked, draw: Draw) -> Results:
    """Behind each limit that is taken.

    The mask forbids the keys at both ends in every other row, and allows the first one alone in the
    rows between. So some rows are left with scores far below the forbidden ones. Padding is what
    shouts.
    """
    x = _loud(draw, SHOUTING)
    mask = torch.ones(7, 7, dtype=torch.bool)
    mask[2:-1:2, [0, -1]] = False
    mask[1:-1:2, 1:] = False
    key_mask = torch.ones(2 * SHOUTING, 7, dtype=torch.bool)
    key_mask[:SHOUTING, -1] = key_mask[SHOUTING:, 0] = False
    limits: dict[str, Any] = {"mask": mask, "key_mask": key_mask, "causal": True}
    there = [name for name in limits if name in ask.takes]
    answers = [_but_the_ends(ask(x, **{name: limits[name]})) for name in there]
    if "causal" in there:
        answers.append(_of_the_first(ask(_alone(draw), causal=True)))
    return answers


def _loud(draw: Draw, each: int = 1) -> Tensor:
    """Tokens of which in the first samples the last one shouts, in as many others the first one."""
    x = draw.tokens(2 * each, 7)
    x[:each, -1] *= LOUD
    x[each:, 0] *= LOUD
    return x


def _alone(draw: Draw) -> Tensor:
    """Tokens of which the first one shouts, in several samples."""
    x = draw.tokens(8, 3)
    x[:, 0] *= LOUD_ALONE
    return x


def _of_the_first(answer: Result) -> Result:
    return _of_queries(answer, slice(1))


def _but_the_ends(answer: Result) -> Result:
    return _of_queries(answer, slice(1, -1))


def _of_queries(answer: Result, queries: slice) -> Result:
    """Return an answer's rows of some queries; what has other axes than weights stays whole."""
    output, weights = answer
    if weights is not None and weights.dim() == 4:
        weights = weights[..., queries, :]
    return output[:, queries], weights


def _blind(ask: Asked, draw: Draw, x: Tensor) -> Result:
    mask = draw.mask(7, 7)
    mask[1] = False
    return ask(x, mask=mask)


def fully_masked_row(ask: Asked, draw: Draw) -> Results:
    """What a query sees that may look nowhere."""
    return [_blind(ask, draw, draw.tokens(2, 7))]


def fully_masked_gradient(ask: Asked, draw: Draw) -> Results:
    """The gradient through such a query."""
    x = draw.tokens(2, 7).requires_grad_()
    output, _ = _blind(ask, draw, x)
    return ask.gradients(output, x)


def weights_gradients(ask: Asked, draw: Draw) -> Results:
    """Of the weights that are shown, also behind a mask."""
    x = draw.tokens(2, 7).requires_grad_()
    answers: list[Pair] = []
    for masks in ({}, {"mask": draw.mask(7, 7)}) if "mask" in ask.takes else ({},):
        _, weights = ask(x, **masks)
        if weights is None:
            raise ValueError("no weights came")
        answers += ask.gradients(weights, x)
    return answers


def half(ask: Asked, draw: Draw) -> Results:
    """The answer, and whether its dtype is that of the tokens."""
    x = draw.tokens(2, 7).half() / 4  # no exponential of a score may be too large
    answer = ask.half()(x, mask=draw.mask(7, 7))
    return [answer, (torch.tensor(float(answer[0].dtype == x.dtype)), None)]


def ones_and_zeros(ask: Asked, draw: Draw) -> Results:
    """Whether a mask of whole numbers is taken, and not taken as the boolean one is."""
    x, limits = draw.tokens(2, 7), limits_in(ON_THE_RIGHT, draw)
    answers: list[Pair] = []
    for name in ("mask", "key_mask"):
        if name not in ask.takes:
            continue
        with_numbers = ask.with_masks_of(torch.int64)
        boolean, _ = rows_of(limits["key_mask"], ask(x, **{name: limits[name]}))
        same = True
        with suppress(Exception):  # to refuse it is right
            given, _ = with_numbers(x, **{name: limits[name]})
            given, _ = rows_of(limits["key_mask"], (given, None))
            same = torch.allclose(given, boolean, atol=1e-4)
        answers.append((torch.tensor(float(not same)), None))
    return answers


def causal_between_two(ask: Asked, draw: Draw) -> Results:
    """Whether the first query is moved by the last key, wherever the triangle's corner is."""
    query, key = draw.tokens(1, 3), draw.tokens(1, 5)
    other = torch.cat([key[:, :-1], key[:, -1:] + 1], 1)
    moved = False
    with suppress(Exception):  # to refuse it is right
        (before, _), (after, _) = (ask(query, x, x, causal=True) for x in (key, other))
        moved = not torch.allclose(before[:, 0], after[:, 0], atol=1e-4)
    return [(torch.tensor(float(moved)), None)]


def cached(ask: Asked, draw: Draw) -> Results:
    """Three tokens, two and one."""
    cache = KVCache()
    return [ask(part, causal=True, cache=cache) for part in draw.tokens(2, 6).split([3, 2, 1], 1)]


def limits_with_cache(ask: Asked, draw: Draw) -> Results:
    """The same chunks behind a mask and behind padding, which speak of all keys so far."""
    chunks, T = [3, 2, 1], 6
    real = torch.tensor([[False, True, True, True, True, True], [True] * T])
    limits = {"mask": draw.mask(T, T).index_fill(1, torch.tensor([0]), True), "key_mask": real}
    answers: list[Pair] = []
    for name in sorted(limits.keys() & ask.takes):
        cache, stop = KVCache(), 0
        for part in draw.tokens(2, T).split(chunks, 1):
            start, stop = stop, stop + part.shape[1]
            now = limits[name][start:stop] if name == "mask" else real
            answer = ask(part, causal=True, cache=cache, **{name: now[:, :stop]})
            answers.append(rows_of(real[:, start:stop], answer) if name == "key_mask" else answer)
    return answers
