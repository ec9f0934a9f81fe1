"""All probes that `diagnose` runs, in order; those of dropout run here too."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attndoctor import questions
from attndoctor.call import Adapter, RandomInputs
from attndoctor.options import CallError
from attndoctor.questions import LONGEST, MANY_SAMPLES, MaskCombinations, argument_of
from attndoctor.reference import Answer, Pair, Results

COPIES = 16  # of the same sample, with dropout; in at least one of them each weight stays
MANY = 256  # copies over which dropout is averaged
# Standard errors: with dropout in the right place one number in 10^8 is so far off; before the
# softmax the farthest is off by 8 at least, at all widths that were tried.
FAR_OFF = 6
FORGOTTEN = {  # while something is dropped, by the limit
    "triangle": "tokens see what comes after them.",
    "mask": "a mask is forgotten: tokens see what it forbids.",
    "masks": "a mask [B, T, T] is forgotten: tokens see what it forbids.",
    "key_mask": "padding is forgotten: tokens see it.",
    "causal": "causal=True is forgotten: tokens see what comes after them.",
}


def dropout(run: Adapter, inputs: RandomInputs) -> Results:
    """Whether outputs vary in evaluation; the output; whether they vary in training, by call."""
    x = inputs.tokens(1, 7)
    evaluated, again = run(x), run(x)
    varies = not torch.equal(evaluated[0], again[0])
    run.module.train()
    (dropped, _), (other, _) = (run(x.repeat(COPIES, 1, 1)) for _ in range(2))
    run.module.eval()
    moves = not torch.equal(dropped, other)
    drops = moves or _varies_among_samples(dropped)
    answer: Pair = (torch.zeros(1), None) if varies else evaluated
    flags = [(torch.tensor(float(flag)), None) for flag in (varies, drops, moves)]
    return [flags[0], answer, *flags[1:]]


def dropout_of_each(run: Adapter, inputs: RandomInputs) -> Results:
    """Whether all samples of a batch lose the same in training."""
    x = inputs.tokens(1, 7)
    (evaluated, _) = run(x)
    run.module.train()
    (dropped, _) = run(x.repeat(COPIES, 1, 1))
    run.module.eval()
    drops = not torch.allclose(dropped[:1], evaluated, atol=1e-4)
    same = drops and not _varies_among_samples(dropped)
    return [(torch.tensor(float(same)), None)]


def _varies_among_samples(dropped: Tensor) -> bool:
    return bool(dropped.var(0).amax() > 1e-8)


def limits_in_training(run: Adapter, inputs: RandomInputs) -> Results:
    """Whether the last token moves others' outputs in training, though each limit forbids it.

    The same must be dropped both times: torch gets the same seed, or the module is copied afresh,
    where it has random numbers of its own. The answers are in the order of `FORGOTTEN`.
    """
    B, T = 2, 7
    x = inputs.tokens(B, T)
    other = torch.cat([x[:, :-1], x[:, -1:] + 1], 1)
    mask = torch.ones(T, T, dtype=torch.bool)
    mask[:-1, -1] = False
    each = {"mask": mask, "masks": mask.repeat(B, 1, 1), "key_mask": mask[0].repeat(B, 1)}
    limits: dict[str, dict[str, Any]] = {"triangle": {}} if run.setting.always_causal else {}
    limits |= {name: {argument_of(name): limit} for name, limit in each.items()}
    limits |= {"causal": {"causal": True}}

    def outputs(tokens: Tensor, limit: dict[str, Any], fresh: bool) -> Tensor:
        torch.default_generator.manual_seed(1)
        adapter = run.fresh_copy() if fresh else run
        adapter.module.train()
        return adapter(tokens, **limit)[0][:, :-1]

    def moves(limit: dict[str, Any]) -> bool:
        for fresh in (False, True):
            before, after = (outputs(tokens, limit, fresh) for tokens in (x, other))
            if torch.allclose(before, after, atol=1e-4):
                return False
            if torch.equal(before, outputs(x, limit, fresh)):
                return True
        return False  # the same is never dropped twice, so nothing is known

    there = {name: moves(limits[name]) for name in limits if name in run.takes | {"triangle"}}
    run.module.eval()
    return [(torch.tensor(float(there.get(name, False))), None) for name in FORGOTTEN]


def dropout_on_average(run: Adapter, inputs: RandomInputs) -> Results:
    """Whether the mean of many outputs in training is the output in evaluation.

    It is if dropout comes after the softmax, for from there on everything is linear.
    """
    x = inputs.tokens(1, 3)
    (evaluated, _), (again, _) = run(x), run(x)
    if not torch.equal(evaluated, again):  # another probe reports it
        return [(torch.zeros(()), None)]
    run.module.train()
    dropped, _ = run(x.repeat(MANY, 1, 1))
    if not _varies_among_samples(dropped):  # all samples of a batch may lose the same
        dropped = torch.cat([run(x)[0] for _ in range(MANY)])
    run.module.eval()
    error = dropped.std(0) / MANY**0.5 + 1e-4
    off = ((dropped.mean(0) - evaluated[0]).abs() / error).amax()
    return [((off > FAR_OFF).float(), None)]


def weights_in_training(run: Adapter, inputs: RandomInputs) -> Results:
    """The maximum of each weight: dropout at 0.25 makes those that stay 4/3 times as large."""
    x = inputs.tokens(1, 7)
    run.module.train()
    _, weights = run(x.repeat(COPIES, 1, 1))
    run.module.eval()
    return [(None, None if weights is None else weights.amax(0))]


def share_dropped(run: Adapter, inputs: RandomInputs) -> Results:
    """The share that torch drops, and whether it drops twice from the same numbers."""
    wanted = run.setting.sizes.dropout
    run.module.train()
    with _Shares() as seen:
        run(inputs.tokens(2, 7))
    run.module.eval()
    others = [share for share in seen.shares if share]
    share = wanted if not others or wanted in others else others[0]
    return [(torch.tensor(share), None), (torch.tensor(float(seen.twice)), None)]


class _Shares(TorchFunctionMode):
    """Records the share of each dropout, and whether one gets what another left."""

    def __init__(self) -> None:
        super().__init__()
        self.shares: list[float] = []
        self.twice = False
        self._left: list[Tensor] = []

    def __torch_function__(
        self, function: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        named = kwargs or {}
        result = function(*args, **named)
        if function in (F.dropout, torch.dropout):
            share = named.get("p", args[1] if len(args) > 1 else 0.5)
            self.shares.append(share)
            given = args[0] if args else named["input"]
            self.twice |= share > 0 and any(torch.equal(given, left) for left in self._left)
            if not torch.equal(given, result):  # equal in evaluation
                self._left.append(result)
        elif function is F.scaled_dot_product_attention:
            self.shares.append(named.get("dropout_p", args[4] if len(args) > 4 else 0.0))
        return result


@dataclass(frozen=True, eq=False)
class Probe:
    """One comparison of a module with the reference.

    says: its name within a sentence ("with ..."). needs: what a module must take. sizes: the
    modules that run it, by name. edge: what a difference means for users, if it is at an edge;
    empty if it is plainly wrong. loud: the same, if only an error is at an edge. often: the usual
    bug behind a difference, for reports without an exhibit. of: what is compared, besides weights.
    differs: what to say of a difference in each answer, where its size says nothing. optional: the
    report doesn't mention that it couldn't run. path_needs: "gradients" or "weights".
    """

    name: str
    says: str
    run: Callable[[Adapter, RandomInputs], Results]
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
    path_needs: tuple[str, ...] = ()


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
_PATH_OF_DROPOUT = (
    "Usually a fused kernel is called where nothing is dropped, and another path is taken where "
    "something is. What limits the one must limit the other."
)
_TOO_EARLY = (
    "Usually dropout acts before the softmax, on scores, queries or keys, or what it leaves isn't "
    "divided by 1 - p; or another path is taken where something is dropped, and isn't the same "
    "attention. Let F.dropout act on the weights, after the softmax. Some designs drop keys "
    "before it on purpose (DropKey): then this differs from the paper, and is fine."
)
_BARE = (
    "It takes masks [B, 1, T, T]. It matters only where one without the axis of the heads is "
    "handed over, and B is h: that is read wrongly, in silence."
)
_OF_HEADS = "It matters only where a mask with an axis for heads is handed over."
_READS_PADDING = (
    "It matters only to code that reads the outputs of padding, which mean nothing: many "
    "libraries set them to 0, or let them see what they like."
)
_BETWEEN_TWO = "It is loud, and matters only where queries and keys aren't as many."
_CAUSAL_BETWEEN = (
    "It matters only where `causal` is asked with another number of keys than of queries: what it "
    "means there differs from library to library, but nowhere does it mean nothing."
)
_NUMBERS = (
    "It matters only where a mask of ones and zeros is handed over, as tokenizers make them: take "
    "mask.bool(), or mask == 0 for what is hidden (~mask of numbers is no negation), or refuse it."
)
_ODD_SIZES = "It is loud, and matters only for modules of such sizes."
_SHARE = "Mind what keeps and what drops: nn.Dropout and F.dropout take the share that is dropped."
_TWICE = (
    "what one dropout leaves goes through another, so that more is dropped than was told: of a "
    "share p of the weights, p (2 - p)."
)
_LOUD_CACHE = "It is loud, and matters only where a mask or padding is handed over with a cache."
_SHARED_DROPOUT = (
    "It matters only to how well dropout does its work: some libraries share it on purpose, to "
    "save memory (Flax's broadcast_dropout)."
)
_SO_LONG = "It is loud, and matters only where sequences are as long."
_LEFT_OUT = "It matters only where keys, values or `causal` are left out."
_BLIND = (
    "It matters only where a query of yours may look nowhere (a wholly padded sample, two masks "
    "that leave nothing in common); most libraries leave such rows undefined."
)
ASKED_AGAIN = Probe(
    "asked again", "on one sequence", questions.asked_again, chooses_mode=True,
    path_needs=("gradients", "weights"),
)  # fmt: skip
OF_PADDING = Probe(
    "outputs of padding", "in what stands where the padding is",
    MaskCombinations((questions.ON_THE_RIGHT,), questions.only("key_mask"), of_padding=True),
    ("key_mask",), edge=_READS_PADDING,
)  # fmt: skip
PROBES = (
    Probe("self-attention", "on one sequence", questions.self_attention,
          sizes=("first", "second")),
    Probe("one sample, one token", "on a single sample or token", questions.one_of_each),
    Probe("transposed tokens", "on tokens that aren't contiguous in memory",
          questions.not_contiguous, loud="It is loud, and .contiguous() helps."),
    Probe("what it is handed", "in what it does to its arguments", questions.handed_over,
          path_needs=("gradients",), often=_IN_PLACE,
          differs=("it changes its tokens or its mask in place.",)),
    Probe("dtype", "in the dtype of its output", questions.dtype, chooses_mode=True,
          path_needs=("gradients",),
          differs=("its tokens are float32, and its output isn't.",)),
    Probe("two sequences", "on two sequences", questions.two_sequences, ("two sequences",)),
    Probe("a mask", "with a mask [T, T]", questions.one_mask, ("mask",)),
    Probe("a mask between two sequences", "with a mask [T_q, T_k]", questions.mask_between_two,
          ("mask", "two sequences", "masks of keys"), loud=_BETWEEN_TWO),
    Probe("a mask for each sample", "with masks [B, T, T] where B is the number of heads",
          questions.mask_a_sample_silent, ("masks",)),
    Probe("any number of samples", "with masks [B, T, T]", questions.mask_a_sample, ("masks",)),
    Probe("padding", "with padding",
          MaskCombinations((questions.ON_THE_RIGHT,), questions.only("key_mask")), ("key_mask",)),
    Probe("causal", "with causal=True", questions.causal, ("causal",)),
    Probe("limits together", "with two of mask, padding and causal at once",
          MaskCombinations((questions.ON_THE_RIGHT,), questions.together), ("two limits",)),
    ASKED_AGAIN,
    Probe("other sizes", f"with one head, heads of an odd width, or {MANY_SAMPLES} samples",
          questions.other_sizes, sizes=("one head", "odd"), loud=_ODD_SIZES, chooses_mode=True,
          path_needs=("gradients",), optional=True),
    Probe("padding anywhere", "with padding wherever it may stand",
          MaskCombinations((questions.ANYWHERE,), questions.beside_others("key_mask")),
          ("key_mask",)),
    Probe("padding between two sequences", "with padding of another sequence",
          MaskCombinations((questions.MORE_KEYS, questions.MORE_QUERIES),
                           questions.beside_others("key_mask")),
          ("padding of keys", "two sequences", "key_mask"), loud=_BETWEEN_TWO),
    Probe("limits on few and many", "with a limit, on one sample, one query or many samples",
          MaskCombinations((questions.ONE_SAMPLE, questions.ONE_QUERY, questions.THIRTEEN_SAMPLES),
                   questions.alone_and_together), ("a limit",)),
    Probe("as many samples as tokens", "with a mask [T, T] and as many samples as tokens",
          MaskCombinations((questions.AS_MANY_TOKENS,), questions.alone), ("mask",),
          loud="It is loud, and matters only where there are as many."),
    Probe("masks for samples and others", "with a mask for each sample, alone or beside others",
          MaskCombinations((questions.ON_THE_RIGHT, questions.ONE_SAMPLE, questions.MORE_KEYS,
                    questions.MORE_QUERIES), questions.beside_others("masks"), masks="masks"),
          ("masks",)),
    Probe("a key that shouts", "where scores lie hundreds apart", questions.shouting,
          tolerance=1e-3, often=_SHOUTING),
    Probe("a forbidden key that shouts", "where a forbidden score lies hundreds above the others",
          questions.shouting_forbidden, ("a limit",), tolerance=1e-3, often=_SHOUTING),
    Probe("a long sequence", f"on {LONGEST} tokens", questions.long, ("long",), loud=_SO_LONG),
    Probe("gradients", "in the gradients", questions.gradients, tolerance=1e-3, of="a gradient",
          path_needs=("gradients",)),
    Probe("gradients with a limit", "in the gradients, with a limit",
          MaskCombinations((questions.ON_THE_RIGHT, questions.ONE_QUERY), questions.alone,
                           gradients=True),
          ("a limit",), tolerance=1e-3, of="a gradient", path_needs=("gradients",)),
    Probe("gradients with masks for samples", "in the gradients, with a mask for each sample",
          MaskCombinations((questions.ON_THE_RIGHT,), questions.only("masks"), gradients=True,
                   masks="masks"),
          ("masks",), tolerance=1e-3, of="a gradient", path_needs=("gradients",)),
    Probe("a cache", "token by token with a cache", questions.cached, ("causal", "cache")),
    Probe("grouped heads", "with 6 query heads on 3 key heads", questions.grouped,
          sizes=("grouped",)),
    Probe("limits with grouped heads", "with a limit, with 6 query heads on 3 key heads",
          MaskCombinations((questions.ON_THE_RIGHT, questions.MORE_KEYS),
                           questions.alone_and_together),
          ("a limit",), sizes=("grouped",)),
    Probe("masks with grouped heads",
          "with masks [B, T, T], with 6 query heads on 3 key heads", questions.masks_of_groups,
          ("masks",), sizes=("grouped",)),
    Probe("gradients with grouped heads",
          "in the gradients, with 6 query heads on 3 key heads", questions.gradients,
          sizes=("grouped",), tolerance=1e-3, of="a gradient", path_needs=("gradients",)),
    Probe("training with dropout", "with dropout, in evaluation and in training",
          dropout, sizes=("dropout",), chooses_mode=True,
          differs=("evaluation is random.", "evaluation gives another answer than without dropout.",
                   "training isn't random.",
                   "training drops the same at each call: something inside sets the seed.")),
    Probe("limits in training with dropout", "in training, with dropout and a limit",
          limits_in_training, sizes=("dropout",), chooses_mode=True,
          path_needs=("gradients",), often=_PATH_OF_DROPOUT,
          differs=tuple(FORGOTTEN.values())),
    Probe("dropout on average", "with dropout, on average", dropout_on_average,
          sizes=("dropout",), chooses_mode=True, path_needs=("gradients",), often=_TOO_EARLY,
          differs=(f"the mean of {MANY} answers in training isn't the answer in "
                   "evaluation.",)),
    Probe("the share dropped", "in how much it drops", share_dropped,
          sizes=("dropout",), chooses_mode=True, path_needs=("gradients",), often=_SHARE,
          of="the share", differs=("", _TWICE)),
    Probe("a mask without an axis for heads", "with a mask [B, T, T] where B = h",
          questions.mask_without_head_axis, ("masks without heads",), edge=_BARE, optional=True),
    Probe("a row that may look nowhere", "with a query that may look nowhere",
          questions.fully_masked_row, ("mask",), edge=_BLIND),
    Probe("gradients of such a row", "in the gradient, with a query that may look nowhere",
          questions.fully_masked_gradient, ("mask",), tolerance=1e-3, edge=_BLIND, of="a gradient",
          path_needs=("gradients",)),
    OF_PADDING,
    Probe("a mask of ones and zeros", "with a mask of whole numbers", questions.ones_and_zeros,
          ("a limit",), edge=_NUMBERS, chooses_mode=True, path_needs=("gradients",),
          differs=("numbers aren't read as booleans are.",)),
    Probe("causal between two sequences", "with causal=True on two sequences",
          questions.causal_between_two, ("causal", "two sequences"), edge=_CAUSAL_BETWEEN,
          differs=("the first query sees the last key.",)),
    Probe("half precision", "with a mask, in half precision", questions.half, ("mask",),
          tolerance=2e-2, edge="It matters only where it runs in float16.",
          differs=("", "its tokens are float16, and its output isn't.")),
    Probe("weights in training", "in the weights that it shows while it trains",
          weights_in_training, sizes=("dropout",), chooses_mode=True,
          edge="The output is right. It matters only to code that reads the weights of train().",
          path_needs=("weights",)),
    Probe("a mask for each head", "with masks [B, h, T, T]", questions.mask_a_head,
          ("mask", "head masks"), edge=_OF_HEADS),
    Probe("what may be left out", "where key or value are left out", questions.left_out,
          ("two sequences", "defaults"), edge=_LEFT_OUT, path_needs=("gradients",)),
    Probe("gradients of the weights", "in the gradients of the weights",
          questions.weights_gradients, ("differentiable weights",), sizes=("first", "grouped"),
          tolerance=1e-3, of="a gradient",
          edge="The output is right. It matters only to a loss made of the weights themselves.",
          path_needs=("gradients", "weights")),
    Probe("dropout of each sample", "in what each sample of a batch loses to dropout",
          dropout_of_each, sizes=("dropout",), chooses_mode=True, edge=_SHARED_DROPOUT,
          path_needs=("gradients", "weights"), differs=("all samples of a batch lose the same.",),
          optional=True),
    Probe("padding that hides nothing", "with a mask of padding that hides nothing",
          MaskCombinations((questions.NOWHERE,), questions.all_together), ("key_mask",),
          optional=True),
    Probe("limits with a cache", "token by token with a cache, with a mask or padding",
          questions.limits_with_cache, ("causal", "cache", "two limits"), loud=_LOUD_CACHE,
          optional=True),
    Probe("a cache with grouped heads",
          "token by token with a cache, with 6 query heads on 3 key heads", questions.cached,
          ("causal", "cache"), sizes=("grouped",), optional=True),
    Probe("gradients with grouped heads and a limit",
          "in the gradients, with a limit, with 6 query heads on 3 key heads",
          MaskCombinations((questions.ON_THE_RIGHT,), questions.alone, gradients=True),
          ("a limit",), sizes=("grouped",), tolerance=1e-3, of="a gradient",
          path_needs=("gradients",), optional=True),
)  # fmt: skip


SELF_ATTENTION = PROBES[0]
_SEEDS = {probe.name: seed for seed, probe in enumerate(PROBES, 1)}


def takes_all(probe: Probe, takes: frozenset[str]) -> bool:
    """Return whether a module that takes this can run a probe."""
    number = len(takes & {"mask", "key_mask", "causal"})
    limits = {"a limit"} if number else set()
    if number >= 2:
        limits.add("two limits")
    return takes | limits >= set(probe.needs)


def run_probe(probe: Probe, adapter: Adapter) -> Answer:
    """Run a probe on a module; return its answer, or the error that was raised."""
    # torch.manual_seed also records a stack for each idle kind of device: half a diagnosis.
    torch.default_generator.manual_seed(1)
    try:
        answer = probe.run(adapter, RandomInputs(adapter, _SEEDS.get(probe.name, 1)))
        return [(_without_graph(output), _without_graph(weights)) for output, weights in answer]
    except CallError:
        raise
    except Exception as error:  # whatever a broken attention raises is a symptom
        return error


def _without_graph(numbers: Tensor | None) -> Tensor | None:
    """Detach numbers, for a kept answer would keep their graph too."""
    return numbers.detach() if isinstance(numbers, Tensor) else numbers
