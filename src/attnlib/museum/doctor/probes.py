"""The questions that `diagnose` puts to an attention and to attnlib's.

Wherever one of them could hide a bug, B, T, h and d_k all differ; where a bug needs sizes that
agree, they do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlib.cache import KVCache
from attnlib.masks import padding_mask
from attnlib.museum.doctor.asking import Asked, Pair
from attnlib.museum.doctor.forward import Result
from attnlib.museum.doctor.told import CallError

Results = Sequence[Pair]
Answer = Results | Exception

COPIES = 16  # of the same sample, with dropout; in at least one of them each weight stays
# How many times as long a token is made that shouts: scores with its key are some hundreds. That is
# beyond what an exponential in float32 bridges (e^88 is infinite, e^-104 is 0), and far from -1e4,
# the highest number that people fill in for minus infinity.
LOUD = 40
# And one that is left alone with itself: its score is some hundreds, below 0 in half of all heads.
LOUD_ALONE = 10
LONGEST = 70  # tokens: beyond the blocks, buffers and tables of 64 that code is written with
MANY = 256  # copies over which dropout is averaged
# Standard errors. With dropout in the right place one number in 10^8 is so far off; before the
# softmax the farthest is off by 8 at least, at all widths that were tried.
FAR_OFF = 6


class Draw:
    """Random inputs, the same for whoever is asked.

    Each probe draws its own, so that what is kept of one question is wrong for the next.
    """

    def __init__(self, asked: Asked, seed: int = 1) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self.d_model = asked.setting.sizes.d_model
        self._always_causal = asked.setting.always_causal

    def tokens(self, B: int, T: int) -> Tensor:
        """Return tokens [B, T, d]."""
        return 2 * torch.randn(B, T, self.d_model, generator=self._generator)

    def mask(self, *shape: int) -> Tensor:
        """Return a mask in which every query may look somewhere, and not everywhere."""
        order = torch.rand(shape, generator=self._generator).argsort(-1)
        kept = torch.randint(1, shape[-1], (*shape[:-1], 1), generator=self._generator)
        mask = order < kept
        return self.with_first(mask) if self._always_causal else mask

    def with_first(self, mask: Tensor) -> Tensor:
        """Let every query look at the first key, so that masks can be put together."""
        return mask.index_fill(-1, torch.tensor([0]), True)


@dataclass(frozen=True, eq=False)
class Probe:
    """A question to an attention module.

    name: in a few words. says: the same in a sentence's middle ("with ..."). ask: puts it. needs:
    what must be taken. sizes: those of the modules that are asked, by name. edge: at an edge, what
    a difference means for whoever uses the module; empty where a difference is plainly wrong.
    loud: the same, if only an error is at an edge. often: what code of that kind usually does, to
    be told where no exhibit is behind it. of: what is compared, besides weights. differs: what to
    say of a difference whose size says nothing, for each answer in turn.
    optional: whether it is only about a convention that few have. asks_for: what it needs the path
    to have, "gradients" or "weights".
    """

    name: str
    says: str
    ask: Callable[[Asked, Draw], Results]
    needs: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ("first",)
    tolerance: float = 1e-4
    edge: str = ""
    loud: str = ""
    often: str = ""
    of: str = "the output"
    differs: tuple[str, ...] = ()
    optional: bool = False
    chooses_mode: bool = False  # training or evaluation
    asks_for: tuple[str, ...] = ()


def _self_attention(ask: Asked, draw: Draw) -> Results:
    return [ask(draw.tokens(2, 7)), ask(draw.tokens(5, 9))]


def _grouped(ask: Asked, draw: Draw) -> Results:
    """Also as many samples or tokens as heads, where one may be taken for the other."""
    h, h_kv = ask.setting.sizes.num_heads, ask.setting.sizes.num_kv_heads
    sizes = ((2, 7), (5, 9), (h, h_kv), (h_kv, h))
    return [ask(draw.tokens(B, T)) for B, T in sizes]


def _one_of_each(ask: Asked, draw: Draw) -> Results:
    return [ask(draw.tokens(B, T)) for B, T in ((1, 7), (2, 1), (1, 1))]


def _not_contiguous(ask: Asked, draw: Draw) -> Results:
    sequence_first = draw.tokens(7, 2).transpose(0, 1)
    feature_first = draw.tokens(2, 7).mT.contiguous().mT
    return [ask(sequence_first), ask(feature_first)]


def _long(ask: Asked, draw: Draw) -> Results:
    """Without a limit, and behind each one that is taken."""
    T = LONGEST
    x = draw.tokens(2, T)
    limits: dict[str, Any] = {
        "mask": draw.mask(T, T), "key_mask": padding_mask(torch.tensor([T - 3, T]), T),
        "causal": True,
    }  # fmt: skip
    there = [name for name in limits if name in ask.takes]
    return [ask(x), *(ask(x, **{name: limits[name]}) for name in there)]


def _handed_over(ask: Asked, draw: Draw) -> Results:
    """Whether tokens and masks are changed in place, without a limit and behind each one."""
    x = draw.tokens(2, 7)
    limits = {"mask": draw.mask(7, 7), "key_mask": padding_mask(torch.tensor([4, 7]), 7)}
    there = [{}, *({name: limits[name]} for name in limits if name in ask.takes)]
    return [(torch.tensor(float(ask.changes(x.clone(), **each))), None) for each in there]


def _dtype(ask: Asked, draw: Draw) -> Results:
    """Whether the output has the dtype of the tokens; what is in it is asked elsewhere."""
    x = draw.tokens(1, 2)
    return [(torch.tensor(float(ask(x)[0].dtype == x.dtype)), None)]


def _gradients(ask: Asked, draw: Draw) -> Results:
    x = draw.tokens(2, 7).requires_grad_()
    output, _ = ask(x)
    return ask.gradients(output, x)


def _two_sequences(ask: Asked, draw: Draw) -> Results:
    """Queries, keys and values of three sources, where values aren't made of keys.

    Also of equal lengths, which may be taken for one sequence.
    """
    lengths = ((2, 7, 9), (3, 8, 5), (2, 1, 7), (2, 6, 6))
    together = "key_value" in ask.takes
    results: list[Result] = []
    for B, T_q, T_k in lengths:
        query, key, value = draw.tokens(B, T_q), draw.tokens(B, T_k), draw.tokens(B, T_k)
        results.append(ask(query, key, key if together else value))
    return results


def _mask_between_two(ask: Asked, draw: Draw) -> Results:
    """More keys than queries, then fewer."""
    results = []
    for T_q, T_k in ((5, 8), (7, 6)):
        query, key = draw.tokens(2, T_q), draw.tokens(2, T_k)
        results.append(ask(query, key, key, mask=draw.mask(T_q, T_k)))
    return results


def _left_out(ask: Asked, draw: Draw) -> Results:
    """Keys and values, then values alone; and that nothing is to be causal."""
    query, key = draw.tokens(2, 7), draw.tokens(2, 9)
    none, one = ("key", "value", "key_value", "causal"), ("value", "causal")
    together = "key_value" in ask.takes
    return [ask(query, left_out=none), *([] if together else [ask(query, key, left_out=one)])]


def _one_mask(ask: Asked, draw: Draw) -> Results:
    return [ask(draw.tokens(2, 7), mask=draw.mask(7, 7))]


def _mask_a_sample(ask: Asked, draw: Draw) -> Results:
    """As many samples as heads, then another number."""
    h = ask.setting.sizes.num_heads
    return [ask(draw.tokens(B, 7), mask=draw.mask(B, 7, 7)) for B in (h, h + 1)]


def _mask_a_sample_silent(ask: Asked, draw: Draw) -> Results:
    """As many samples as heads, where a mask on the wrong axis raises no error."""
    h = ask.setting.sizes.num_heads
    return [ask(draw.tokens(h, 7), mask=draw.mask(h, 7, 7))]


def _mask_a_head(ask: Asked, draw: Draw) -> Results:
    """The axis of samples, of heads, or both."""
    B, h, T = 2, ask.setting.sizes.num_heads, 7
    shapes = ((B, h, T, T), (1, h, T, T), (B, 1, T, T))
    return [ask(draw.tokens(B, T), mask=draw.mask(*shape)) for shape in shapes]


def _bare_mask(ask: Asked, draw: Draw) -> Results:
    return _mask_a_sample_silent(ask.with_bare_masks(), draw)


def _padding(ask: Asked, draw: Draw) -> Results:
    return [ask(draw.tokens(2, 7), key_mask=padding_mask(torch.tensor([4, 7]), 7))]


def _causal(ask: Asked, draw: Draw) -> Results:
    return [ask(draw.tokens(2, 7), causal=True)]


def _limits_together(ask: Asked, draw: Draw) -> Results:
    """Each two of a mask, padding and causal that it takes, then all three."""
    limits: dict[str, Any] = {
        "mask": draw.with_first(draw.mask(7, 7)),
        "key_mask": padding_mask(torch.tensor([4, 7]), 7),
        "causal": True,
    }
    there = [name for name in limits if name in ask.takes]
    groups = [(a, b) for i, a in enumerate(there) for b in there[i + 1 :]]
    x = draw.tokens(2, 7)
    return [ask(x, **{name: limits[name] for name in group}) for group in groups] + (
        [ask(x, **limits)] if len(there) == 3 else []
    )


def _shouting(ask: Asked, draw: Draw) -> Results:
    """What the tokens that shout see themselves isn't asked.

    But where nothing else is left to the first token: behind a triangle.
    """
    answers = [_but_the_ends(ask(_loud(draw)))]
    return [*answers, _of_the_first(ask(_alone(draw)))] if ask.setting.always_causal else answers


def _shouting_forbidden(ask: Asked, draw: Draw) -> Results:
    """Behind each limit that is taken.

    The mask forbids the keys at both ends in every other row, and allows the first one alone in the
    rows between. So some rows are left with scores far below the forbidden ones.
    """
    x = _loud(draw)
    mask = torch.ones(7, 7, dtype=torch.bool)
    mask[2:-1:2, [0, -1]] = False
    mask[1:-1:2, 1:] = False
    key_mask = torch.ones(2, 7, dtype=torch.bool)
    key_mask[0, -1] = key_mask[1, 1:] = False
    limits: dict[str, Any] = {"mask": mask, "key_mask": key_mask, "causal": True}
    there = [name for name in limits if name in ask.takes]
    answers = [_but_the_ends(ask(x, **{name: limits[name]})) for name in there]
    if "causal" in there:
        answers.append(_of_the_first(ask(_alone(draw), causal=True)))
    return answers


def _loud(draw: Draw) -> Tensor:
    """Tokens of which in the first sample the last one shouts, in the second the first one."""
    x = draw.tokens(2, 7)
    x[0, -1] *= LOUD
    x[1, 0] *= LOUD
    return x


def _alone(draw: Draw) -> Tensor:
    """Tokens of which the first one shouts, in several samples."""
    x = draw.tokens(8, 3)
    x[:, 0] *= LOUD_ALONE
    return x


def _of_the_first(answer: Result) -> Result:
    output, weights = answer
    return output[:, :1], None if weights is None else weights[..., :1, :]


def _but_the_ends(answer: Result) -> Result:
    output, weights = answer
    return output[:, 1:-1], None if weights is None else weights[..., 1:-1, :]


def _mask_and_gradients(ask: Asked, draw: Draw) -> Results:
    x = draw.tokens(2, 7).requires_grad_()
    output, _ = ask(x, mask=draw.mask(7, 7))
    return ask.gradients(output, x)


def _blind(ask: Asked, draw: Draw, x: Tensor) -> Result:
    mask = draw.mask(7, 7)
    mask[1] = False
    return ask(x, mask=mask)


def _fully_masked_row(ask: Asked, draw: Draw) -> Results:
    return [_blind(ask, draw, draw.tokens(2, 7))]


def _fully_masked_gradient(ask: Asked, draw: Draw) -> Results:
    x = draw.tokens(2, 7).requires_grad_()
    output, _ = _blind(ask, draw, x)
    return ask.gradients(output, x)


def _weights_gradients(ask: Asked, draw: Draw) -> Results:
    x = draw.tokens(2, 7).requires_grad_()
    answers: list[Pair] = []
    for masks in ({}, {"mask": draw.mask(7, 7)} if "mask" in ask.takes else {}):
        _, weights = ask(x, **masks)
        if weights is None:
            raise ValueError("no weights came")
        answers += ask.gradients(weights, x)
    return answers


def _half(ask: Asked, draw: Draw) -> Results:
    x = draw.tokens(2, 7).half() / 4  # no exponential of a score may be too large
    return [ask.half()(x, mask=draw.mask(7, 7))]


def _cached(ask: Asked, draw: Draw) -> Results:
    cache = KVCache()
    return [ask(part, causal=True, cache=cache) for part in draw.tokens(2, 6).split([3, 2, 1], 1)]


def _dropout(ask: Asked, draw: Draw) -> Results:
    """Whether answers vary in evaluation, the answer if they don't, and whether in training."""
    x = draw.tokens(1, 7)
    evaluated, again = ask(x), ask(x)
    varies = not torch.equal(evaluated[0], again[0])
    ask.module.train()
    dropped, _ = ask(x.repeat(COPIES, 1, 1))
    ask.module.eval()
    differs = (dropped.var(0).amax() > 1e-8).float()
    answer: Pair = (torch.zeros(1), None) if varies else evaluated
    return [(torch.tensor(float(varies)), None), answer, (differs, None)]


def _dropout_on_average(ask: Asked, draw: Draw) -> Results:
    """Whether the mean of many answers in training is the answer in evaluation.

    It is where dropout comes after the softmax, for from there on everything is linear.
    """
    x = draw.tokens(1, 3)
    (evaluated, _), (again, _) = ask(x), ask(x)
    if not torch.equal(evaluated, again):  # which another probe tells
        return [(torch.zeros(()), None)]
    ask.module.train()
    dropped, _ = ask(x.repeat(MANY, 1, 1))
    ask.module.eval()
    error = dropped.std(0) / MANY**0.5 + 1e-4
    off = ((dropped.mean(0) - evaluated[0]).abs() / error).amax()
    return [((off > FAR_OFF).float(), None)]


def _weights_in_training(ask: Asked, draw: Draw) -> Results:
    """Each weight's largest: dropout at 0.25 makes those that stay 4/3 times as large."""
    x = draw.tokens(1, 7)
    ask.module.train()
    _, weights = ask(x.repeat(COPIES, 1, 1))
    ask.module.eval()
    return [(None, None if weights is None else weights.amax(0))]


_SHOUTING = (
    "Usually exponentials are taken of all scores, and forbidden ones are taken out afterward: "
    "then one loud key leaves 0 for all others, even if it is forbidden. Or the largest score of a "
    "row isn't subtracted before, or the number that stands for minus infinity is too small. Mask "
    "the scores with -inf, and leave the rest to softmax."
)
_IN_PLACE = (
    "The caller's tensors are the caller's: the next layer gets them as this one leaves them. "
    "Change a copy (masked_fill and not masked_fill_, x = x + y and not x += y)."
)
_TOO_EARLY = (
    "Usually dropout acts before the softmax, on scores, queries or keys, or what it leaves isn't "
    "divided by 1 - p. Let F.dropout act on the weights, after the softmax. Some designs drop keys "
    "before it on purpose (DropKey): then this differs from the paper, and is fine."
)
_BARE = (
    "It takes masks [B, 1, T, T]. It matters only where one without the axis of the heads is "
    "handed over, and B is h: that is read wrongly, in silence."
)
_OF_HEADS = "It matters only where a mask with an axis for heads is handed over."
_SO_LONG = "It is loud, and matters only where sequences are as long."
_LEFT_OUT = "It matters only where keys, values or `causal` are left out."
_BLIND = (
    "It matters only where a query of yours may look nowhere (a wholly padded sample, two masks "
    "that leave nothing in common); most libraries leave such rows undefined."
)
PROBES = (
    Probe("self-attention", "on one sequence", _self_attention, sizes=("first", "second")),
    Probe("one sample, one token", "on a single sample or token", _one_of_each),
    Probe("transposed tokens", "on tokens that aren't contiguous in memory", _not_contiguous,
          loud="It is loud, and .contiguous() helps."),
    Probe("what it is handed", "in what it does to its arguments", _handed_over,
          asks_for=("gradients",), often=_IN_PLACE,
          differs=("it changes its tokens or its mask in place.",)),
    Probe("dtype", "in the dtype of its output", _dtype, chooses_mode=True,
          asks_for=("gradients",),
          differs=("its tokens are float32, and its output isn't.",)),
    Probe("two sequences", "on two sequences", _two_sequences,
          ("two sequences",)),
    Probe("a mask", "with a mask [T, T]", _one_mask, ("mask",)),
    Probe("a mask between two sequences", "with a mask [T_q, T_k]", _mask_between_two,
          ("mask", "two sequences"),
          loud="It is loud, and matters only where queries and keys aren't as many."),
    Probe("a mask for each sample", "with masks [B, T, T] where B is the number of heads",
          _mask_a_sample_silent, ("masks",)),
    Probe("any number of samples", "with masks [B, T, T]", _mask_a_sample, ("masks",)),
    Probe("padding", "with padding", _padding, ("key_mask",)),
    Probe("causal", "with causal=True", _causal, ("causal",)),
    Probe("limits together", "with two of mask, padding and causal at once", _limits_together,
          ("two limits",)),
    Probe("a key that shouts", "where scores lie hundreds apart", _shouting, tolerance=1e-3,
          often=_SHOUTING),
    Probe("a forbidden key that shouts", "where a forbidden score lies hundreds above the others",
          _shouting_forbidden, ("a limit",), tolerance=1e-3, often=_SHOUTING),
    Probe("a long sequence", f"on {LONGEST} tokens", _long, ("long",), loud=_SO_LONG),
    Probe("gradients", "in the gradients", _gradients, tolerance=1e-3, of="a gradient",
          asks_for=("gradients",)),
    Probe("gradients with a mask", "in the gradients, with a mask", _mask_and_gradients, ("mask",),
          tolerance=1e-3, of="a gradient", asks_for=("gradients",)),
    Probe("a cache", "token by token with a cache", _cached, ("causal", "cache")),
    Probe("grouped heads", "with 6 query heads on 3 key heads", _grouped, sizes=("grouped",)),
    Probe("training with dropout", "with dropout, in evaluation and in training", _dropout,
          sizes=("dropping",), chooses_mode=True,
          differs=("evaluation is random.", "evaluation gives another answer than without dropout.",
                   "training isn't random.")),
    Probe("dropout on average", "with dropout, on average", _dropout_on_average,
          sizes=("dropping",), chooses_mode=True, asks_for=("gradients",), often=_TOO_EARLY,
          differs=(
              f"the mean of {MANY} answers in training isn't the answer in evaluation.",)),
    Probe("a mask without an axis for heads", "with a mask [B, T, T] where B = h", _bare_mask,
          ("bare masks",), edge=_BARE, optional=True),
    Probe("a row that may look nowhere", "with a query that may look nowhere", _fully_masked_row,
          ("mask",), edge=_BLIND),
    Probe("gradients of such a row", "in the gradient, with a query that may look nowhere",
          _fully_masked_gradient, ("mask",), tolerance=1e-3, edge=_BLIND, of="a gradient",
          asks_for=("gradients",)),
    Probe("half precision", "with a mask, in half precision", _half, ("mask",), tolerance=2e-2,
          edge="It matters only to whoever runs it in float16."),
    Probe("weights in training", "in the weights that it shows while it trains",
          _weights_in_training, sizes=("dropping",), chooses_mode=True,
          edge="The output is right. It matters only to whoever looks at weights of train().",
          asks_for=("weights",)),
    Probe("a mask for each head", "with masks [B, h, T, T]", _mask_a_head, ("mask", "head masks"),
          edge=_OF_HEADS),
    Probe("what may be left out", "where key or value are left out", _left_out,
          ("two sequences", "defaults"),
          edge=_LEFT_OUT),
    Probe("gradients of the weights", "in the gradients of the weights", _weights_gradients,
          ("differentiable weights",), sizes=("first", "grouped"), tolerance=1e-3, of="a gradient",
          edge="The output is right. It matters only to whoever trains on the weights themselves.",
          asks_for=("gradients", "weights")),
)  # fmt: skip


_SEEDS = {probe: seed for seed, probe in enumerate(PROBES, 1)}


def takes_all(probe: Probe, takes: frozenset[str]) -> bool:
    """Tell whether a probe can be put to whoever takes this."""
    number = len(takes & {"mask", "key_mask", "causal"})
    limits = {"a limit"} if number else set()
    if number >= 2:
        limits.add("two limits")
    return takes | limits >= set(probe.needs)


def put(probe: Probe, asked: Asked) -> Answer:
    """Put a probe to a module; return what came, or the error that was raised."""
    torch.manual_seed(1)
    try:
        return probe.ask(asked, Draw(asked, _SEEDS.get(probe, 1)))
    except CallError:
        raise
    except Exception as error:  # whatever a broken attention raises is a symptom
        return error
