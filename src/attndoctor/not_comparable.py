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
from attndoctor.call import PATHS, Adapter, RandomInputs
from attndoctor.examine import EQUAL, examine, short_context
from attndoctor.match import ABOUT_SHAPES, Answers
from attndoctor.module_under_test import ModuleUnderTest
from attndoctor.names import SIZES, known_as, words_of
from attndoctor.options import CallError, error_text, is_deliberate, name_list
from attndoctor.probes import SELF_ATTENTION, Probe
from attndoctor.questions import USUAL
from attndoctor.reference import Answer, Results, Sizes
from attndoctor.weights import find_weights, guessed

_OTHER_ANSWER = "Its answer isn't attention's"
# What Python, convolutions and einops say where tokens are taken for a tuple or for images.
ABOUT_OTHER_FORMS = (
    "values to unpack", "expected input[", "Expected 4D", "or 4D (batched)",
    "Wrong shape: expected",
)  # fmt: skip
ABOUT_NORMS = "'Identity' object has no attribute"  # where a normalization was set aside
ABOUT_DTYPES = re.compile("same dtype|dtype.*did not match|expected scalar type")
_ONE_SEQUENCE = (
    "It takes one sequence [T, d], and is right on it: attention takes a batch [B, T, d]. Hand "
    "in a module around it, whose forward(self, x) returns torch.vmap(self.inner)(x)."
)
_JOINED = (
    "Its keys and values are made of both sequences, joined: torch.cat([x, context], 1). That is "
    "another attention than the paper's, and fine if it is meant. Hand in a module around it that "
    "takes one sequence, whose attention can be compared."
)
_ORDER_INSIDE = (
    f"{_OTHER_ANSWER}, and depends on the order of the tokens: equal tokens come out "
    "right, but when some change places, another one's output moves. If that is meant (positions, "
    "relative biases, a window), hand it in without, and ask again. If it isn't, tokens are mixed "
    "up somewhere between the projections and the softmax."
)
_NORMALIZED_INSIDE = (
    f"{_OTHER_ANSWER}, and stays the same when W_q is made twice as long: queries are "
    "normalized before the dot product (QK-norm). That differs from the paper, and is fine if it "
    "is meant. To have the rest asked, hand it in without, or with that normalization as a module "
    "(nn.RMSNorm, nn.LayerNorm), which is set aside."
)
_RESIDUAL_INSIDE = (
    f"{_OTHER_ANSWER}, but it is with the tokens taken off: x is added inside. That is "
    "the residual of the block around attention. Hand it in without, and ask again."
)
JOINED = Probe("two sequences, joined", "", lambda run, inputs: _joins_both(run, inputs))
_MOST_TOKENS = 4096  # of all samples together, when certain sizes are tried
_WIDTHS = (64, 32, 16)  # of heads, for which kernels are written
_OTHER_FORMULA = (
    f"{_OTHER_ANSWER}, and a name in it says {{!r}}: another formula seems to be meant than the "
    "paper's, none that is known here, and can't be compared with it."
)
_OTHER_FORMULAS = {  # words of names
    "performer", "favor", "nystrom", "nystromformer", "linformer", "reformer", "channel", "xca",
    "cosformer", "fnet", "synthesizer", "hyena", "retention",
}  # fmt: skip
_POSITIONAL = {  # words of names
    "rot", "rotary", "rotate", "rotation", "rotemb", "rope", "freq", "freqs", "frequencies",
    "position", "positions", "positional", "pos", "posemb", "alibi", "relative", "rel", "relpos",
}  # fmt: skip


def why_not_comparable(answers: Answers, named: bool) -> str | None:
    """Say why answers may differ from attention's though nothing is broken, if they may.

    With an exhibit `named`, only parameters that `load` forgot are a reason.
    """
    adapter = answers.tested.first
    extra = answers.tested.extra_parameters if answers.wrong_at_once else ()
    if extra and adapter.weight_map is None:
        return (
            f"{_OTHER_ANSWER}, but load left {name_list(extra)} as before: let it copy into them "
            "too, and ask again."
        )
    if named:
        return None
    if answers.takes_no_mask:
        return report.other_masks(answers)
    given = answers.given[answers.wrong[0]]
    if answers.wrong[0][0].name == "two sequences" and answers.tested.right(JOINED):
        return _JOINED
    if isinstance(given, Exception):
        reason = _why_it_raises(given, answers)
        if reason or not isinstance(given, ABOUT_SHAPES):
            return reason
    if answers.wrong_at_once:
        return _why_wrong_at_once(answers, extra, given)
    return _positions_inside(adapter.module, given)


def _why_it_raises(error: Exception, answers: Answers) -> str | None:
    """Say why a module raises an error though it may be right."""
    if answers.wrong_at_once:
        adapter = answers.tested.first
        if ABOUT_NORMS in str(error):
            return (
                "Its normalization is used otherwise than by calling it, so that it can't be set "
                f"aside to ask the attention alone. {_hand_in(adapter)}, and ask again."
            )
        if _takes_one_sequence(answers.tested):
            return _ONE_SEQUENCE
        by_message = _why_by_message(str(error), adapter)
        reason = by_message or _why_by_size(error, answers.tested)
        if reason:
            return f"It raises {error_text(error)}{reason}"
    context = short_context(answers.tested.first.module, USUAL)
    if context is None:
        return None
    return (
        f"It raises an error, and has a triangle for {context} tokens only: it is called with up "
        f"to {USUAL}. Hand in one that is built for as many."
    )


def _why_by_message(message: str, adapter: Adapter) -> str | None:
    """Go on after an error whose message says why."""
    unused = adapter.signature.unused
    if ABOUT_DTYPES.search(message):
        return (
            ". It is called with weights and tokens in float32, and turns some of them into "
            "another dtype inside: hand in one that computes in the dtype of its tokens."
        )
    if any(words in message for words in ABOUT_OTHER_FORMS):
        return (
            ". If it takes its tokens in another form, such as several sequences in a tuple or "
            "images [B, C, H, W], hand in a module around it, whose forward(self, x) takes x "
            "[B, T, d] and hands it over so: return self.inner((x, x, x))."
        )
    if "NoneType" in message and unused:
        listed = ", ".join(f"{name!r}: ..." for name in unused)
        return (
            f", and was called without {name_list(unused)}, unknown here: if it "
            f"needs one of them, hand it over with arguments={{{listed}}}, and ask again."
        )
    return None


def _why_by_size(error: Exception, tested: ModuleUnderTest) -> str | None:
    """Go on after an error that doesn't come at other sizes."""
    sizes = _sizes_taken(tested, error)
    if sizes:
        return (
            f", and is right on {sizes}: it takes certain sizes only. Hand in a module around it "
            "that pads its tokens to such a size, and ask again."
        )
    width = _width_taken(tested) if is_deliberate(error) else None
    if width is None:
        return None
    return (
        f". That was with heads of {tested.first.setting.sizes.d_k} numbers; with heads of {width} "
        "it answers. Hand in a built module, which is tested at its own sizes."
    )


def _why_wrong_at_once(answers: Answers, extra: tuple[str, ...], given: Answer) -> str | None:
    """Say why self-attention may be wrong at once though nothing is broken."""
    tested, adapter = answers.tested, answers.tested.first
    raw, length = guessed(adapter.weight_map or []), answers.other_length
    if raw:
        return (
            f"{_OTHER_ANSWER}, and {name_list(raw)} are parameters without a layer, whose shape "
            "doesn't tell how they are used: neither x @ W nor x @ W.T is right. Pass load=..., a "
            "function of (your module, a MultiHeadAttention) that copies the second one's weights "
            "into the first (its W_q.weight is used as x @ W_q.weight.T), and ask again."
        )
    if length:
        return (
            f"Its output is {length[0]} for tokens {length[1]}: attention gives as many as there "
            "are queries. Hand in the part that does, or one that returns all of them."
        )
    if answers.varies:
        return None
    low = tested.low_precisions if answers.nearly_right else ()
    if low:
        return (
            "Its answer is attention's but for some digits, and it computes in "
            f"{' and '.join(low)} inside, whose roundings give as much: no smaller bug would show. "
            "Hand in one that computes in the dtype of its tokens, and ask again."
        )
    positions = _positions_inside(adapter.module, given)
    if positions:
        return positions
    if extra:
        return (
            f"{_OTHER_ANSWER}, and it has parameters that attention hasn't ({name_list(extra)}). "
            f"{_hand_in(adapter)}, or fill them with numbers that change nothing, and ask again."
        )
    if tested.changed(residual=True).right(SELF_ATTENTION):
        return _RESIDUAL_INSIDE
    if _normalizes_inside(adapter):
        return _NORMALIZED_INSIDE
    if _depends_on_order(tested):
        return _ORDER_INSIDE
    formula = _formula_named(adapter.module)
    return formula and _OTHER_FORMULA.format(formula)


def _positions_inside(module: nn.Module, given: Answer) -> str | None:
    """Say which part of a module seems to be about positions, if one does."""
    part = hints_at_positions(module)
    what = f"It raises {error_text(given)}" if isinstance(given, Exception) else _OTHER_ANSWER
    return part and (
        f"{what}, and {part!r} looks as if positions had a part in it (queries and keys turned, "
        "scores with a bias for each distance): hand in the module without them (cos = 1 and "
        "sin = 0 by arguments=..., a table of biases filled with 0), and ask again."
    )


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
        """Stack what comes for each sample, as `_ONE_SEQUENCE` advises."""

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
    """Return the numbers of samples and tokens that a module takes, if it takes certain ones only.

    They may stand in its error, or in an attribute for the length of sequences.
    """
    shape = re.search(r"shape '\[(\d+), (\d+)[,\]]", str(error))
    sizes = [(int(shape[1]), int(shape[2]))] if shape else []
    for part in tested.first.module.modules():
        lengths = (x for name, x in vars(part).items() if known_as(name, SIZES) == "length")
        sizes += [(2, T) for T in lengths if isinstance(T, int)]
    probes = {"8 and 16 tokens": _of_sizes((2, 8), (2, 16))}
    for B, T in dict.fromkeys(sizes):
        if 0 < B * T <= _MOST_TOKENS:
            probes[f"{B} samples of {T} tokens"] = _of_sizes((B, T))
    return next((words for words, probe in probes.items() if tested.right(probe)), None)


def _of_sizes(*sizes: tuple[int, int]) -> Probe:
    """Return a probe of these numbers of samples and tokens."""
    return Probe(
        "certain sizes", "", lambda run, inputs: [run(inputs.tokens(B, T)) for B, T in sizes]
    )


def _depends_on_order(tested: ModuleUnderTest) -> bool:
    """Return whether scores or weights depend on the tokens' order.

    Equal tokens come out right, whatever their weights are; but the last one's output moves when
    those before it change places.
    """
    if not tested.right(EQUAL):
        return False
    x = RandomInputs(tested.first).tokens(1, 7)
    other = torch.cat([x[:, :-1].flip(1), x[:, -1:]], 1)
    with suppress(Exception), tested.first.on(PATHS[0]) as on_path:
        before, after = (on_path(tokens)[0][:, -1] for tokens in (x, other))
        return not torch.allclose(before, after, atol=1e-4)
    return False


def _normalizes_inside(adapter: Adapter) -> bool:
    """Return whether only the direction of queries matters, and not their length."""
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
