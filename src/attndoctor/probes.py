"""All probes that `diagnose` runs, in order; those of dropout run here too."""

from collections import defaultdict
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
from attndoctor.questions import LONGEST, MANY_SAMPLES, MaskCombinations, Run, argument_of, flag
from attndoctor.reference import Answer, Pair, Results
from attndoctor.support.texts import read_labels

COPIES = 16  # of the same sample, with dropout; in at least one of them each weight stays
MANY = 256  # copies over which dropout is averaged
# Standard errors: with dropout in the right place one number in 10^8 is so far off; before the
# softmax the farthest is off by 8 at least, at all widths that were tried.
FAR_OFF = 6
LIMITS_IN_TRAINING = "triangle", "mask", "masks", "key_mask", "causal"


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
    return [flag(varies), answer, flag(drops), flag(moves)]


def dropout_of_each(run: Adapter, inputs: RandomInputs) -> Results:
    """Whether all samples of a batch lose the same in training."""
    x = inputs.tokens(1, 7)
    (evaluated, _) = run(x)
    run.module.train()
    (dropped, _) = run(x.repeat(COPIES, 1, 1))
    run.module.eval()
    drops = not torch.allclose(dropped[:1], evaluated, atol=1e-4)
    return [flag(drops and not _varies_among_samples(dropped))]


def _varies_among_samples(dropped: Tensor) -> bool:
    return bool(dropped.var(0).amax() > 1e-8)


def limits_in_training(run: Adapter, inputs: RandomInputs) -> Results:
    """Whether the last token moves others' outputs in training, though each limit forbids it.

    The same must be dropped both times, by torch's seed or in fresh copies.
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
    return [flag(there.get(name, False)) for name in LIMITS_IN_TRAINING]


def dropout_on_average(run: Adapter, inputs: RandomInputs) -> Results:
    """Whether the mean of outputs in training is that of evaluation, as after the softmax."""
    x = inputs.tokens(1, 3)
    (evaluated, _), (again, _) = run(x), run(x)
    if not torch.equal(evaluated, again):  # another probe reports it
        return [flag(False)]
    run.module.train()
    dropped, _ = run(x.repeat(MANY, 1, 1))
    if not _varies_among_samples(dropped):  # all samples of a batch may lose the same
        dropped = torch.cat([run(x)[0] for _ in range(MANY)])
    run.module.eval()
    error = dropped.std(0) / MANY**0.5 + 1e-4
    off = ((dropped.mean(0) - evaluated[0]).abs() / error).amax()
    return [flag(off > FAR_OFF)]


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
    return [(torch.tensor(share), None), flag(seen.twice)]


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

    needs: what a module must take. sizes: the modules that run it, by name. of: what is compared,
    besides weights. mode_needs: what a mode must be, of the names in `CallMode`. optional: the
    report doesn't mention that it couldn't run. The texts are in probes.md, below its name.
    says: it within a sentence ("with ..."). edge: what a difference means for users, if it is at an
    edge; empty if it is plainly wrong. error: the same, if only an error is at an edge. often: the
    usual cause of a difference, for reports without an exhibit. differs: what to say of a
    difference in each answer, where its size says nothing.
    """

    name: str
    run: Run
    needs: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ("first",)
    tolerance: float = 1e-4
    of: str = "the output"
    mode_needs: tuple[str, ...] = ()
    optional: bool = False
    says: str = ""
    edge: str = ""
    error: str = ""
    often: str = ""
    differs: tuple[str, ...] = ()


_LABELS: dict[str, list[tuple[str, str]]] = defaultdict(list)
for names, label in read_labels(__file__).items():
    for each in names.split(" / "):  # some share a text
        _LABELS[each] += label
_ONCE = ("gradients", "evaluation")  # in one mode
_GRADIENTS: dict[str, Any] = {"tolerance": 1e-3, "of": "a gradient", "mode_needs": ("gradients",)}
_DROPPING: dict[str, Any] = {"sizes": ("dropout",), "mode_needs": _ONCE}
_GROUPED: dict[str, Any] = {"sizes": ("grouped",)}


def _probe(name: str, run: Run, needs: tuple[str, ...] = (), **facts: Any) -> Probe:
    """Return a probe with its texts, in which constants may stand."""
    label = _LABELS[name]
    numbers = {"LONGEST": LONGEST, "MANY": MANY, "MANY_SAMPLES": MANY_SAMPLES}
    texts: dict[str, Any] = {
        key.lower(): text.format(**numbers) for key, text in label if key != "Differs"
    }
    differs = tuple(text.format(**numbers) for key, text in label if key == "Differs")
    return Probe(name, run, needs, differs=differs, **texts, **facts)


ASKED_AGAIN = _probe(
    "a second call", questions.asked_again, mode_needs=("gradients", "weights", "evaluation")
)
OF_PADDING = _probe(
    "outputs of padding",
    MaskCombinations(
        (questions.ON_THE_RIGHT,), questions.groups(1, of="key_mask"), of_padding=True
    ),
    ("key_mask",),
)
PROBES = (
    _probe("self-attention", questions.on_sizes((2, 7), (5, 9)), sizes=("first", "second")),
    _probe("one sample, one token", questions.on_sizes((1, 7), (MANY_SAMPLES, 1), (1, 1))),
    _probe("transposed tokens", questions.not_contiguous),
    _probe("arguments left unchanged", questions.handed_over, mode_needs=("gradients",)),
    _probe("dtype", lambda run, inputs: [flag(run(x := inputs.tokens(1, 2))[0].dtype == x.dtype)],
           mode_needs=_ONCE),
    _probe("two sequences", questions.two_sequences, ("two sequences",)),
    _probe("a mask", lambda run, inputs: [run(inputs.tokens(2, 7), mask=inputs.mask(7, 7))],
           ("mask",)),
    _probe("a mask between two sequences", questions.mask_between_two,
           ("mask", "two sequences", "masks of keys")),
    _probe("a mask for each sample", questions.masks_for(lambda h, _: (h,)), ("masks",)),
    _probe("any number of samples", questions.masks_for(lambda h, _: (h, h + 1)), ("masks",)),
    _probe("padding",
           MaskCombinations((questions.ON_THE_RIGHT,), questions.groups(1, of="key_mask")),
           ("key_mask",)),
    _probe("causal", lambda run, inputs: [run(inputs.tokens(2, 7), causal=True)], ("causal",)),
    _probe("limits together", MaskCombinations((questions.ON_THE_RIGHT,), questions.groups(2, 3)),
           ("two limits",)),
    ASKED_AGAIN,
    _probe("other sizes",  # outputs alone: one head's weights may come without its axis
           lambda run, inputs: [(run(inputs.tokens(MANY_SAMPLES, 3))[0], None)],
           sizes=("one head", "odd"), mode_needs=_ONCE, optional=True),
    _probe("padding anywhere",
           MaskCombinations((questions.ANYWHERE,), questions.groups(1, 2, 3, of="key_mask")),
           ("key_mask",)),
    _probe("padding between two sequences",
           MaskCombinations((questions.MORE_KEYS, questions.MORE_QUERIES),
                            questions.groups(1, 2, 3, of="key_mask")),
           ("padding of keys", "two sequences", "key_mask")),
    _probe("limits on few and many",
           MaskCombinations((questions.ONE_SAMPLE, questions.ONE_QUERY, questions.THIRTEEN_SAMPLES),
                            questions.groups(1, questions.ALL)), ("a limit",)),
    _probe("as many samples as tokens",
           MaskCombinations((questions.AS_MANY_TOKENS,), questions.groups(1)), ("mask",)),
    _probe("masks for samples and others",
           MaskCombinations((questions.ON_THE_RIGHT, questions.ONE_SAMPLE, questions.MORE_KEYS,
                             questions.MORE_QUERIES),
                            questions.groups(1, 2, 3, of="masks"), masks="masks"), ("masks",)),
    _probe("a very large score", questions.shouting, tolerance=1e-3),
    _probe("a forbidden key that shouts", questions.shouting_forbidden, ("a limit",),
           tolerance=1e-3),
    _probe("a long sequence", questions.long, ("long",)),
    _probe("gradients", questions.gradients, **_GRADIENTS),
    _probe("gradients with a limit",
           MaskCombinations((questions.ON_THE_RIGHT, questions.ONE_QUERY), questions.groups(1),
                            gradients=True), ("a limit",), **_GRADIENTS),
    _probe("gradients with masks for samples",
           MaskCombinations((questions.ON_THE_RIGHT,), questions.groups(1, of="masks"),
                            gradients=True, masks="masks"), ("masks",), **_GRADIENTS),
    _probe("a cache", questions.cached, ("causal", "cache")),
    _probe("grouped heads", questions.grouped, **_GROUPED),
    _probe("limits with grouped heads",
           MaskCombinations((questions.ON_THE_RIGHT, questions.MORE_KEYS),
                            questions.groups(1, questions.ALL)), ("a limit",), **_GROUPED),
    _probe("masks with grouped heads", questions.masks_for(lambda h, h_kv: (h, h_kv, 2)),
           ("masks",), **_GROUPED),
    _probe("gradients with grouped heads", questions.gradients, **_GROUPED, **_GRADIENTS),
    _probe("training with dropout", dropout, sizes=("dropout",), mode_needs=("evaluation",)),
    _probe("limits in training with dropout", limits_in_training, **_DROPPING),
    _probe("dropout on average", dropout_on_average, **_DROPPING),
    _probe("the dropout rate", share_dropped, of="the share", **_DROPPING),
    _probe("a mask without an axis for heads", questions.mask_without_head_axis,
           ("masks without heads",), optional=True),
    _probe("a row that may look nowhere", questions.fully_masked_row, ("mask",)),
    _probe("gradients of such a row", questions.fully_masked_gradient, ("mask",), **_GRADIENTS),
    OF_PADDING,
    _probe("a mask of ones and zeros", questions.ones_and_zeros, ("a limit",), mode_needs=_ONCE),
    _probe("causal between two sequences", questions.causal_between_two,
           ("causal", "two sequences")),
    _probe("half precision", questions.half, ("mask",), tolerance=2e-2),
    _probe("weights in training", weights_in_training, sizes=("dropout",),
           mode_needs=("weights", "evaluation")),
    _probe("a mask for each head", questions.mask_a_head, ("mask", "head masks")),
    _probe("arguments left out", questions.left_out, ("two sequences", "defaults"),
           mode_needs=("gradients",)),
    _probe("gradients of the weights", questions.weights_gradients, ("differentiable weights",),
           sizes=("first", "grouped"), **_GRADIENTS | {"mode_needs": ("gradients", "weights")}),
    _probe("dropout of each sample", dropout_of_each, sizes=("dropout",),
           mode_needs=("gradients", "weights", "evaluation"), optional=True),
    _probe("padding that hides nothing",
           MaskCombinations((questions.NOWHERE,), questions.groups(questions.ALL)), ("key_mask",),
           optional=True),
    _probe("limits with a cache", questions.limits_with_cache, ("causal", "cache", "two limits"),
           optional=True),
    _probe("a cache with grouped heads", questions.cached, ("causal", "cache"), optional=True,
           **_GROUPED),
    _probe("gradients with grouped heads and a limit",
           MaskCombinations((questions.ON_THE_RIGHT,), questions.groups(1), gradients=True),
           ("a limit",), optional=True, **_GROUPED, **_GRADIENTS),
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
