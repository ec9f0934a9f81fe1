"""The questions that `diagnose` puts to an attention and to attnlib's: all of them, in turn."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from attndoctor import crossings, dropping, questions
from attndoctor.asking import Asked
from attndoctor.crossings import Crossing
from attndoctor.draw import Draw
from attndoctor.questions import LONGEST, MANY_SAMPLES, Results
from attndoctor.told import CallError

Answer = Results | Exception


@dataclass(frozen=True, eq=False)
class Probe:
    """A question to an attention module.

    name: in a few words. says: the same in a sentence's middle ("with ..."). ask: puts it. needs:
    what must be taken. sizes: those of the modules that are asked, by name. edge: at an edge, what
    a difference means for whoever uses the module; empty where a difference is plainly wrong.
    loud: the same, if only an error is at an edge. often: what code of that kind usually does, to
    be told where no exhibit is behind it. of: what is compared, besides weights. differs: what to
    say of a difference whose size says nothing, for each answer in turn; empty where it does.
    optional: whether nothing is said where it can't be asked. asks_for: what it needs the path to
    have, "gradients" or "weights".
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
    "It matters only to whoever reads the outputs of padding, which stand for nothing: many "
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
    asks_for=("gradients", "weights"),
)  # fmt: skip
OF_PADDING = Probe(
    "outputs of padding", "in what stands where the padding is",
    Crossing((crossings.ON_THE_RIGHT,), crossings.padding_alone, of_padding=True), ("key_mask",),
    edge=_READS_PADDING,
)  # fmt: skip
PROBES = (
    Probe("self-attention", "on one sequence", questions.self_attention,
          sizes=("first", "second")),
    Probe("one sample, one token", "on a single sample or token", questions.one_of_each),
    Probe("transposed tokens", "on tokens that aren't contiguous in memory",
          questions.not_contiguous, loud="It is loud, and .contiguous() helps."),
    Probe("what it is handed", "in what it does to its arguments", questions.handed_over,
          asks_for=("gradients",), often=_IN_PLACE,
          differs=("it changes its tokens or its mask in place.",)),
    Probe("dtype", "in the dtype of its output", questions.dtype, chooses_mode=True,
          asks_for=("gradients",),
          differs=("its tokens are float32, and its output isn't.",)),
    Probe("two sequences", "on two sequences", questions.two_sequences, ("two sequences",)),
    Probe("a mask", "with a mask [T, T]", questions.one_mask, ("mask",)),
    Probe("a mask between two sequences", "with a mask [T_q, T_k]", questions.mask_between_two,
          ("mask", "two sequences", "masks of keys"), loud=_BETWEEN_TWO),
    Probe("a mask for each sample", "with masks [B, T, T] where B is the number of heads",
          questions.mask_a_sample_silent, ("masks",)),
    Probe("any number of samples", "with masks [B, T, T]", questions.mask_a_sample, ("masks",)),
    Probe("padding", "with padding",
          Crossing((crossings.ON_THE_RIGHT,), crossings.padding_alone), ("key_mask",)),
    Probe("causal", "with causal=True", questions.causal, ("causal",)),
    Probe("limits together", "with two of mask, padding and causal at once",
          Crossing((crossings.ON_THE_RIGHT,), crossings.together), ("two limits",)),
    ASKED_AGAIN,
    Probe("other sizes", f"with one head, heads of an odd width, or {MANY_SAMPLES} samples",
          questions.other_sizes, sizes=("one head", "odd"), loud=_ODD_SIZES, chooses_mode=True,
          asks_for=("gradients",), optional=True),
    Probe("padding anywhere", "with padding wherever it may stand",
          Crossing((crossings.ANYWHERE,), crossings.padding_and_others), ("key_mask",)),
    Probe("padding between two sequences", "with padding of another sequence",
          Crossing((crossings.MORE_KEYS, crossings.MORE_QUERIES), crossings.padding_and_others),
          ("padding of keys", "two sequences", "key_mask"), loud=_BETWEEN_TWO),
    Probe("limits on few and many", "with a limit, on one sample, one query or many samples",
          Crossing((crossings.ONE_SAMPLE, crossings.ONE_QUERY, crossings.MANY_SAMPLES),
                   crossings.alone_and_together), ("a limit",)),
    Probe("as many samples as tokens", "with a mask [T, T] and as many samples as tokens",
          Crossing((crossings.AS_MANY_TOKENS,), crossings.alone), ("mask",),
          loud="It is loud, and matters only where there are as many."),
    Probe("masks for samples and others", "with a mask for each sample, alone or beside others",
          Crossing((crossings.ON_THE_RIGHT, crossings.ONE_SAMPLE, crossings.MORE_KEYS,
                    crossings.MORE_QUERIES), crossings.masks_and_others, masks="masks"),
          ("masks",)),
    Probe("a key that shouts", "where scores lie hundreds apart", questions.shouting,
          tolerance=1e-3, often=_SHOUTING),
    Probe("a forbidden key that shouts", "where a forbidden score lies hundreds above the others",
          questions.shouting_forbidden, ("a limit",), tolerance=1e-3, often=_SHOUTING),
    Probe("a long sequence", f"on {LONGEST} tokens", questions.long, ("long",), loud=_SO_LONG),
    Probe("gradients", "in the gradients", questions.gradients, tolerance=1e-3, of="a gradient",
          asks_for=("gradients",)),
    Probe("gradients with a limit", "in the gradients, with a limit",
          Crossing((crossings.ON_THE_RIGHT, crossings.ONE_QUERY), crossings.alone, gradients=True),
          ("a limit",), tolerance=1e-3, of="a gradient", asks_for=("gradients",)),
    Probe("gradients with masks for samples", "in the gradients, with a mask for each sample",
          Crossing((crossings.ON_THE_RIGHT,), crossings.masks_alone, gradients=True,
                   masks="masks"),
          ("masks",), tolerance=1e-3, of="a gradient", asks_for=("gradients",)),
    Probe("a cache", "token by token with a cache", questions.cached, ("causal", "cache")),
    Probe("grouped heads", "with 6 query heads on 3 key heads", questions.grouped,
          sizes=("grouped",)),
    Probe("limits with grouped heads", "with a limit, with 6 query heads on 3 key heads",
          Crossing((crossings.ON_THE_RIGHT, crossings.MORE_KEYS), crossings.alone_and_together),
          ("a limit",), sizes=("grouped",)),
    Probe("masks with grouped heads",
          "with masks [B, T, T], with 6 query heads on 3 key heads", questions.masks_of_groups,
          ("masks",), sizes=("grouped",)),
    Probe("gradients with grouped heads",
          "in the gradients, with 6 query heads on 3 key heads", questions.gradients,
          sizes=("grouped",), tolerance=1e-3, of="a gradient", asks_for=("gradients",)),
    Probe("training with dropout", "with dropout, in evaluation and in training",
          dropping.dropout, sizes=("dropping",), chooses_mode=True,
          differs=("evaluation is random.", "evaluation gives another answer than without dropout.",
                   "training isn't random.",
                   "training drops the same at each call: something inside sets the seed.")),
    Probe("limits in training with dropout", "in training, with dropout and a limit",
          dropping.limits_in_training, sizes=("dropping",), chooses_mode=True,
          asks_for=("gradients",), often=_PATH_OF_DROPOUT,
          differs=tuple(dropping.FORGOTTEN.values())),
    Probe("dropout on average", "with dropout, on average", dropping.dropout_on_average,
          sizes=("dropping",), chooses_mode=True, asks_for=("gradients",), often=_TOO_EARLY,
          differs=(f"the mean of {dropping.MANY} answers in training isn't the answer in "
                   "evaluation.",)),
    Probe("the share dropped", "in how much it drops", dropping.share_dropped,
          sizes=("dropping",), chooses_mode=True, asks_for=("gradients",), often=_SHARE,
          of="the share", differs=("", _TWICE)),
    Probe("a mask without an axis for heads", "with a mask [B, T, T] where B = h",
          questions.bare_mask, ("bare masks",), edge=_BARE, optional=True),
    Probe("a row that may look nowhere", "with a query that may look nowhere",
          questions.fully_masked_row, ("mask",), edge=_BLIND),
    Probe("gradients of such a row", "in the gradient, with a query that may look nowhere",
          questions.fully_masked_gradient, ("mask",), tolerance=1e-3, edge=_BLIND, of="a gradient",
          asks_for=("gradients",)),
    OF_PADDING,
    Probe("a mask of ones and zeros", "with a mask of whole numbers", questions.ones_and_zeros,
          ("a limit",), edge=_NUMBERS, chooses_mode=True, asks_for=("gradients",),
          differs=("numbers aren't read as booleans are.",)),
    Probe("causal between two sequences", "with causal=True on two sequences",
          questions.causal_between_two, ("causal", "two sequences"), edge=_CAUSAL_BETWEEN,
          differs=("the first query sees the last key.",)),
    Probe("half precision", "with a mask, in half precision", questions.half, ("mask",),
          tolerance=2e-2, edge="It matters only to whoever runs it in float16.",
          differs=("", "its tokens are float16, and its output isn't.")),
    Probe("weights in training", "in the weights that it shows while it trains",
          dropping.weights_in_training, sizes=("dropping",), chooses_mode=True,
          edge="The output is right. It matters only to whoever looks at weights of train().",
          asks_for=("weights",)),
    Probe("a mask for each head", "with masks [B, h, T, T]", questions.mask_a_head,
          ("mask", "head masks"), edge=_OF_HEADS),
    Probe("what may be left out", "where key or value are left out", questions.left_out,
          ("two sequences", "defaults"), edge=_LEFT_OUT, asks_for=("gradients",)),
    Probe("gradients of the weights", "in the gradients of the weights",
          questions.weights_gradients, ("differentiable weights",), sizes=("first", "grouped"),
          tolerance=1e-3, of="a gradient",
          edge="The output is right. It matters only to whoever trains on the weights themselves.",
          asks_for=("gradients", "weights")),
    Probe("dropout of each sample", "in what each sample of a batch loses to dropout",
          dropping.dropout_of_each, sizes=("dropping",), chooses_mode=True, edge=_SHARED_DROPOUT,
          asks_for=("gradients", "weights"), differs=("all samples of a batch lose the same.",),
          optional=True),
    Probe("padding that hides nothing", "with a mask of padding that hides nothing",
          Crossing((crossings.NOWHERE,), crossings.all_together), ("key_mask",), optional=True),
    Probe("limits with a cache", "token by token with a cache, with a mask or padding",
          questions.limits_with_cache, ("causal", "cache", "two limits"), loud=_LOUD_CACHE,
          optional=True),
    Probe("a cache with grouped heads",
          "token by token with a cache, with 6 query heads on 3 key heads", questions.cached,
          ("causal", "cache"), sizes=("grouped",), optional=True),
    Probe("gradients with grouped heads and a limit",
          "in the gradients, with a limit, with 6 query heads on 3 key heads",
          Crossing((crossings.ON_THE_RIGHT,), crossings.alone, gradients=True), ("a limit",),
          sizes=("grouped",), tolerance=1e-3, of="a gradient", asks_for=("gradients",),
          optional=True),
)  # fmt: skip


_SEEDS = {probe.name: seed for seed, probe in enumerate(PROBES, 1)}


def takes_all(probe: Probe, takes: frozenset[str]) -> bool:
    """Tell whether a probe can be put to whoever takes this."""
    number = len(takes & {"mask", "key_mask", "causal"})
    limits = {"a limit"} if number else set()
    if number >= 2:
        limits.add("two limits")
    return takes | limits >= set(probe.needs)


def put(probe: Probe, asked: Asked) -> Answer:
    """Put a probe to a module; return what came, or the error that was raised."""
    # torch.manual_seed also notes a stack for each kind of device that sleeps: half a diagnosis.
    torch.default_generator.manual_seed(1)
    try:
        answer = probe.ask(asked, Draw(asked, _SEEDS.get(probe.name, 1)))
        return [(_without_graph(output), _without_graph(weights)) for output, weights in answer]
    except CallError:
        raise
    except Exception as error:  # whatever a broken attention raises is a symptom
        return error


def _without_graph(numbers: Tensor | None) -> Tensor | None:
    """Return numbers without their graph, which a kept answer would keep, too."""
    return numbers.detach() if isinstance(numbers, Tensor) else numbers
