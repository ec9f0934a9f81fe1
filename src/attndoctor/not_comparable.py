"""Why an answer may differ from attention's though nothing is broken."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attndoctor import report
from attndoctor.build import construct, copy_of
from attndoctor.call import Adapter, RandomInputs
from attndoctor.examine import EQUAL, examine, short_context
from attndoctor.match import ABOUT_SHAPES, Answers
from attndoctor.module_under_test import ModuleUnderTest
from attndoctor.names import SIZES, known_as, words_of
from attndoctor.options import CallError, error_text, is_deliberate, name_list
from attndoctor.probes import SELF_ATTENTION, Probe
from attndoctor.questions import USUAL, on_sizes
from attndoctor.reference import Answer, Results, Sizes
from attndoctor.support.texts import Texts
from attndoctor.weights import find_weights, guessed

TEXT = Texts(__file__)
# What Python, convolutions and einops say where tokens are taken for a tuple or for images.
ABOUT_OTHER_FORMS = (
    "values to unpack", "expected input[", "Expected 4D", "or 4D (batched)",
    "Wrong shape: expected",
)  # fmt: skip
ABOUT_NORMS = "'Identity' object has no attribute"  # where a normalization was set aside
ABOUT_DTYPES = re.compile("same dtype|dtype.*did not match|expected scalar type")
JOINED = Probe("two sequences, joined", lambda run, inputs: _joins_both(run, inputs))
Reason = tuple[str, dict[str, Any]]  # the name of a text, and what stands in it
_MOST_TOKENS = 4096  # of all samples together, when certain sizes are tried
_WIDTHS = (64, 32, 16)  # of heads, for which kernels are written
_OTHER_FORMULAS = {  # words of names
    "performer", "favor", "nystrom", "nystromformer", "linformer", "reformer", "channel", "xca",
    "cosformer", "fnet", "synthesizer", "hyena", "retention",
}  # fmt: skip
_POSITIONAL = {  # words of names
    "rot", "rotary", "rotate", "rotation", "rotemb", "rope", "freq", "freqs", "frequencies",
    "position", "positions", "positional", "pos", "posemb", "alibi", "relative", "rel", "relpos",
}  # fmt: skip


def why_not_comparable(answers: Answers, named: bool) -> str | None:
    """Return why answers may differ from attention's though nothing is broken, if they may.

    With an exhibit `named`, only parameters that `load` forgot are a reason.
    """
    adapter = answers.tested.first
    extra = answers.tested.extra_parameters if answers.fails_self_attention else ()
    if extra and adapter.weight_map is None:
        return TEXT("not loaded", names=name_list(extra))
    if named:
        return None
    if answers.takes_no_mask:
        return report.other_masks(answers)
    given = answers.given[answers.wrong[0]]
    if answers.wrong[0][0].name == "two sequences" and answers.tested.right(JOINED):
        return TEXT("joined")
    if isinstance(given, Exception):
        reason = _why_it_raises(given, answers)
        if reason or not isinstance(given, ABOUT_SHAPES):
            return reason
    if answers.fails_self_attention:
        return _why_it_fails_self_attention(answers, extra, given)
    return _positions_inside(adapter.module, given)


def _why_it_raises(error: Exception, answers: Answers) -> str | None:
    """Return why a module raises an error though it may be right."""
    adapter = answers.tested.first
    if answers.fails_self_attention:
        if ABOUT_NORMS in str(error):
            return TEXT("norms", hand_in=_hand_in(adapter))
        if _takes_one_sequence(answers.tested):
            return TEXT("one sequence")
        found = _by_message(str(error), adapter) or _by_size(error, answers.tested)
        if found:
            return TEXT(found[0], error=error_text(error), **found[1])
    context = short_context(adapter.module, USUAL)
    return TEXT("short triangle", tokens=context, usual=USUAL) if context else None


def _by_message(message: str, adapter: Adapter) -> Reason | None:
    """Find the reason of an error in its message."""
    unused = adapter.signature.unused
    if ABOUT_DTYPES.search(message):
        return "other dtype", {}
    if any(words in message for words in ABOUT_OTHER_FORMS):
        return "other form", {}
    if "NoneType" in message and unused:
        arguments = ", ".join(f"{name!r}: ..." for name in unused)
        return "left out", {"names": name_list(unused), "arguments": arguments}
    return None


def _by_size(error: Exception, tested: ModuleUnderTest) -> Reason | None:
    """Find the reason of an error that doesn't come at other sizes."""
    sizes = _sizes_taken(tested, error)
    if sizes:
        return "certain sizes", {"sizes": sizes}
    width = _width_taken(tested) if is_deliberate(error) else None
    d_k = tested.first.setting.sizes.d_k
    return ("certain widths", {"width": width, "d_k": d_k}) if width else None


def _why_it_fails_self_attention(
    answers: Answers, extra: tuple[str, ...], given: Answer
) -> str | None:
    """Return why self-attention may be wrong though nothing is broken."""
    tested, adapter = answers.tested, answers.tested.first
    raw, length = guessed(adapter.weight_map or []), answers.other_length
    if raw:
        return TEXT("raw parameters", names=name_list(raw))
    if length:
        return TEXT("other length", output=length[0], tokens=length[1])
    if answers.varies:
        return None
    low = tested.low_precisions if answers.off_by_rounding else ()
    if low:
        return TEXT("low precision", dtypes=" and ".join(low))
    positions = _positions_inside(adapter.module, given)
    if positions:
        return positions
    if extra:
        hand_in = _hand_in(adapter)
        return TEXT("more parameters", names=name_list(extra), hand_in=hand_in)
    if tested.changed(residual=True).right(SELF_ATTENTION):
        return TEXT("residual inside")
    if _ignores_size_of_scores(adapter):
        return TEXT("size of scores")
    if _depends_on_order(tested):
        return TEXT("order inside")
    formula = _formula_named(adapter.module)
    return formula and TEXT("other formula", name=formula)


def _positions_inside(module: nn.Module, given: Answer) -> str | None:
    """Return which part of a module seems to be about positions, if one does."""
    part, what = hints_at_positions(module), "Its answer isn't attention's"
    if isinstance(given, Exception):
        what = f"It raises {error_text(given)}"
    return part and TEXT("positions inside", what=what, part=part)


def _hand_in(adapter: Adapter) -> str:
    """Advise to hand in the attention alone, and say which part it seems to be."""
    parts = [
        (name, part)
        for name, part in list(adapter.module.named_modules())[1:]
        if set(dict(part.named_parameters())) - {"weight", "bias"}  # no single layer
    ]
    inside = next((n for n, part in parts if find_weights(part, adapter.setting.sizes)), None)
    part = f", which seems to be its .{inside}" if inside else ""
    return f"Hand in the attention alone{part}"


class _OneByOne(nn.Module):
    """Calls a module with one sample after the other, without the axis of the batch."""

    def __init__(self, inside: nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, *first: Tensor, **named: Any) -> Any:
        """Stack what comes for each sample, as the advice for one sequence has it."""

        def inside(*each: Any) -> Any:
            rest = dict(zip(named, each[len(first) :], strict=True))
            return self.inside(*each[: len(first)], **rest)

        given = (*first, *named.values())
        axes = tuple(0 if isinstance(x, Tensor) and x.dim() == 3 else None for x in given)
        return torch.vmap(inside, axes, randomness="different")(*given)


def _takes_one_sequence(tested: ModuleUnderTest) -> bool:
    """Return whether a module is right on tokens [T, d]."""
    one_by_one = replace(tested.first, module=_OneByOne(tested.first.module))
    return replace(tested, adapters={"first": one_by_one}).right(SELF_ATTENTION)


def _joins_both(run: Adapter, inputs: RandomInputs) -> Results:
    """Two sequences; the reference's keys are made of both, joined."""
    x, context = inputs.tokens(2, 7), inputs.tokens(2, 5)
    return [run(x, torch.cat([x, context], 1) if run.of_attnlib else context)]


def _width_taken(tested: ModuleUnderTest) -> int | None:
    """Return a usual width of heads at which a candidate's modules answer, if there is one."""
    if isinstance(tested.candidate, nn.Module):
        return None
    options = replace(tested.options, num_heads=2)
    for d_k in _WIDTHS:
        with suppress(CallError):
            module = construct(tested.candidate, Sizes(2 * d_k, 2, 2))
            if module and examine(module, options).gives_outputs(SELF_ATTENTION):
                return d_k
    return None


def _sizes_taken(tested: ModuleUnderTest, error: Exception) -> str | None:
    """Return the sizes that a module takes, found in its error or in an attribute for lengths."""
    shape = re.search(r"shape '\[(\d+), (\d+)[,\]]", str(error))
    sizes = [(int(shape[1]), int(shape[2]))] if shape else []
    for part in tested.first.module.modules():
        lengths = (x for name, x in vars(part).items() if known_as(name, SIZES) == "length")
        sizes += [(2, T) for T in lengths if isinstance(T, int)]
    probes = {"8 and 16 tokens": Probe("certain sizes", on_sizes((2, 8), (2, 16)))}
    for B, T in dict.fromkeys(sizes):
        if 0 < B * T <= _MOST_TOKENS:
            probes[f"{B} samples of {T} tokens"] = Probe("certain sizes", on_sizes((B, T)))
    return next((words for words, probe in probes.items() if tested.right(probe)), None)


def _depends_on_order(tested: ModuleUnderTest) -> bool:
    """Return whether the last token's output moves when those before it change places."""
    if not tested.right(EQUAL):
        return False
    x = RandomInputs(tested.first).tokens(1, 7)
    other = torch.cat([x[:, :-1].flip(1), x[:, -1:]], 1)
    with suppress(Exception), tested.first.on() as in_mode:
        before, after = (in_mode(tokens)[0][:, -1] for tokens in (x, other))
        return not torch.allclose(before, after, atol=1e-4)
    return False


def _ignores_size_of_scores(adapter: Adapter) -> bool:
    """Return whether only the direction of queries matters, and not their length.

    They are normalized, or the weights are such as relu(scores)^2 / sum.
    """
    W_q = [entry for entry in adapter.weight_map or [] if entry.ours.startswith("W_q")]
    module = copy_of(adapter.module)
    x = RandomInputs(adapter).tokens(2, 7)

    def after(change: Callable[[Tensor], Tensor]) -> Tensor:
        for entry in W_q:
            numbers = entry.select(module.get_parameter(entry.theirs))
            numbers.copy_(change(numbers))
        return replace(adapter, module=module)(x)[0]

    with suppress(Exception), torch.no_grad():
        given, longer = after(torch.clone), after(lambda W: 2 * W)
        near = torch.allclose(given, longer, atol=1e-3, rtol=1e-3)
        return near and not torch.allclose(given, after(torch.neg), atol=1e-3, rtol=1e-3)
    return False


def _formula_named(module: nn.Module) -> str | None:
    """Return the word by which a class or a file of a module names another formula, if one does."""
    kinds = [type(part) for part in module.modules()]
    words = [word for kind in kinds for word in words_of(f"{kind.__module__} {kind.__name__}")]
    return next((word for word in words if word in _OTHER_FORMULAS), None)


def hints_at_positions(module: nn.Module) -> str | None:
    """Return the name of a part or an attribute that seems to be about positions."""
    names = [name for name, _ in [*module.named_modules(), *module.named_buffers()]]
    plain = (bool, int, float, str, type(None))  # settings, which turn nothing by themselves
    names += [name for name, value in vars(module).items() if not isinstance(value, plain)]
    return next((name for name in names if _POSITIONAL & set(words_of(name))), None)
