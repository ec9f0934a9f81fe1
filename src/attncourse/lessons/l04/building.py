"""Multi-head attention as a module, which the doctor of the museum examines."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attncourse.checking import (
    CheckResult,
    Mistake,
    correct,
    exercise,
    not_a_function,
    not_yet,
    read_mistakes,
)
from attncourse.checking.calling import as_outputs, call
from attncourse.checking.numbers import same_numbers
from attndoctor import CallError, Diagnosis, diagnose
from attndoctor.museum import Exhibit, SteppedAttention, heads, masks, outputs, rows, scale, scores
from attnlib.attention import MultiHeadAttention

# What each level asks: probes of `diagnose`.
_LEVELS = (
    {"self-attention", "one sample, one token", "gradients"},
    {"a mask", "gradients with a limit"},
    {"a mask for each sample", "any number of samples", "a mask without an axis for heads"},
    {"a row that may look nowhere", "gradients of such a row"},
)
_REACHED = (
    "Level 1, without a mask: ",
    "Level 1 is reached: right without a mask. Level 2, a mask [T, T]: ",
    "Level 2 is reached: right with a mask [T, T]. Level 3, a mask per sample [B, T, T]: ",
    "Level 3 lacks only the rows that may look nowhere: ",
)
_UNASKED = (
    "`forward` can't be run on tokens [B, T, d] alone.",
    "`forward` takes no mask so far: give it an argument `mask`, None if nothing is forbidden.",
    "masks [B, T, T] can't be handed over. They need an axis for the heads.",
    "these can't be tried.",
)


_LOST_LAYERS = (
    "Your layers can't be found. Call them W_q, W_k, W_v and W_o, each an nn.Linear(d, d) "
    "of its own, so that the check can load them."
)


class _MaskedOnly(SteppedAttention):
    """Attention in steps that takes tokens and a mask, as the lesson's module does.

    It returns what `arrange` makes of the output and the weights.
    """

    def __init__(self, d: int, h: int, *, arrange: Callable = lambda *both: both, **options: Any):
        super().__init__(d, h, **options)
        self.arrange = arrange

    def forward(  # type: ignore[override]  # fewer arguments
        self, x: Tensor, mask: Tensor | None = None
    ) -> Any:
        return self.arrange(*super().forward(x, mask=mask))


class _WithoutMask(_MaskedOnly):
    def forward(self, x: Tensor) -> Any:  # type: ignore[override]  # fewer arguments
        return super().forward(x)


def _on_level(level: int, *exhibits: Exhibit) -> list[Mistake]:
    return [
        Mistake(
            lambda d, h, steps=exhibit.steps: _MaskedOnly(d, h, steps=steps),
            _REACHED[level] + exhibit.hint,
        )
        for exhibit in exhibits
    ]


def _renormalize(products: Tensor, allowed: Tensor) -> Tensor:
    weights = products.softmax(-1) * allowed
    return weights / weights.sum(-1, keepdim=True)


_D, _H = 12, 3  # the check looks at a module of these sizes itself, with two samples of five tokens
_WEIGHTS_FIRST = [(2, _H, 5, 5), (2, 5, _D)]  # shapes
_LEARNED = 4 * (_D * _D + _D)  # numbers in four nn.Linear(d, d)


@exercise(
    mistakes=(
        *read_mistakes("module", globals()),
        *_on_level(
            0,
            heads.VIEW,
            heads.MERGE,
            heads.HEADS_OF_ONE_TOKEN,
            scale.NO_SCALE,
            scale.SQRT_D_MODEL,
            scores.SOFTMAX_OVER_QUERIES,
            outputs.NO_W_O,
        ),
        *_on_level(1, masks.INVERTED, masks.AFTER_SOFTMAX),
        *_on_level(2, masks.CROSSES),
        *_on_level(3, rows.NAN_ROWS, rows.NAN_GRADIENTS, rows.FINITE_MINIMUM),
    )
)
def module(answer: object) -> CheckResult:
    """Check a class `Module(d, h)` whose modules are called with (x, mask=None).

    `attndoctor.diagnose` examines it on three levels: without a mask, with a mask [T, T], and with
    masks [B, T, T] and rows that may look nowhere.
    """
    if isinstance(answer, nn.Module):
        return not_yet("Hand in the class itself; the check builds modules of it.")
    if not callable(answer):
        return not_a_function(answer)
    built = call(answer, (_D, _H))
    if built.complaint:
        return not_yet(built.complaint)
    if not isinstance(built.outputs, nn.Module):
        return not_yet(f"A module was wanted, but a {type(built.outputs).__name__} was built.")
    built.outputs.eval()  # dropout is as random as a mistake
    output = call(built.outputs, (torch.randn(2, 5, _D),))
    if output.complaint:
        return not_yet(output.complaint)
    results = as_outputs(output.outputs)
    if len(results) > 2 or not all(isinstance(result, Tensor) for result in results):
        came = ", ".join(type(result).__name__ for result in results)
        return not_yet(
            "Return two tensors, the output [B, T, d] and the weights [B, h, T, T]. Yours returns: "
            f"{came}."
        )
    if [result.shape for result in results] == _WEIGHTS_FIRST:
        return not_yet(module.hints["swapped"])
    try:
        found = diagnose(answer)
    except CallError as error:
        lost = "weights W_q, W_k, W_v and W_o" in str(error)
        return not_yet(_LOST_LAYERS if lost else str(error))
    level = next((i for i, probes in enumerate(_LEVELS) if not _stands(found, probes)), None)
    misshapen = any(weights.shape != _WEIGHTS_FIRST[0] for weights in results[1:])
    if misshapen and (level != 0 or not found.exhibits):
        came = f"The weights have shape {list(results[1].shape)} in place of {[2, _H, 5, 5]}. "
        so_far = "The output is right. " if level != 0 else ""
        return not_yet(so_far + came + "Is each token cut into h pieces, a head for each?")
    if level != 0 and "always causal" in found.taken:
        return not_yet(module.hints["causal"])
    if level != 0 and _is_another(built.outputs):
        return not_yet(module.hints["another"])
    if level != 0 and (missing := _missing(built.outputs, results[1:])):
        return not_yet(missing)
    all_allowed = call(built.outputs, (torch.randn(2, 5, _D), torch.ones(5, 5, dtype=torch.bool)))
    if level not in (0, 1) and all_allowed.complaint:
        return not_yet(_REACHED[1] + all_allowed.complaint)
    if level != 0 and _hears_forbidden(built.outputs):
        return not_yet(module.hints["loud"])
    if level is None:
        return correct(
            "All three levels: right without a mask, with one mask, with a mask per sample and in "
            "rows that may look nowhere."
        )
    if level == 1 and found.exhibits and found.exhibits[0] is masks.THROWN_AWAY:
        return not_yet(module.hints["ignored"])
    return not_yet(_REACHED[level] + _advice(found, level))


def _is_another(built: nn.Module) -> bool:
    """Return whether attnlib's module can't hold these weights, or gives another output with them.

    The doctor takes heads of any width and layout and a layer more after W_o, which others'
    modules have.
    """
    attention = MultiHeadAttention(_D, _H)
    try:
        if attention.load_state_dict(built.state_dict(), strict=False).missing_keys:
            return False
    except RuntimeError:  # their sizes
        return True
    x = torch.randn(2, 5, _D)
    return not same_numbers(as_outputs(built(x))[0], attention(x)[0], 1e-3)


def _missing(built: nn.Module, weights: Sequence[Tensor]) -> str:
    """Return what a module lacks whose output is right without a mask, or nothing."""
    linear = [layer for layer in built.modules() if isinstance(layer, nn.Linear)]
    learned = sum(parameter.numel() for parameter in built.parameters())
    if any(layer.bias is None for layer in linear) or learned < _LEARNED:
        return module.hints["no_bias"]
    if not weights:
        return module.hints["alone"]
    if not same_numbers(weights[0].sum(-1), torch.ones(weights[0].shape[:-1]), 1e-3):
        return "The output is right. But the rows beside it don't sum to 1: return the weights."
    return ""


def _hears_forbidden(module: nn.Module) -> bool:
    """Return whether forbidden tokens change what others get, where scores are far apart alone.

    Two of four tokens are very long, in opposite directions: with one of them any query scores far
    above the short ones, and with the other far below.
    """
    tokens = 3 * torch.randn(4, 12)
    tokens[3] = -tokens[2]
    long = tokens * torch.tensor([1.0, 1, 1000, 1000])[:, None]
    return any(
        _are_left_out(module, tokens, seen) and not _are_left_out(module, long, seen)
        for seen in ([0, 1], [2], [3])
    )


def _are_left_out(module: nn.Module, tokens: Tensor, seen: list[int]) -> bool:
    """Return whether masking all tokens [T, d] but some has the effect of leaving them out."""
    mask = torch.zeros(len(tokens), len(tokens), dtype=torch.bool)
    mask[:, seen] = True
    masked = call(module, (tokens[None], mask))
    without = call(module, (tokens[None, seen],))
    if masked.complaint or without.complaint:
        return False
    ours, theirs = (as_outputs(result.outputs)[0] for result in (masked, without))
    return same_numbers(ours[:, : len(seen)], theirs, 1e-3)


def _stands(found: Diagnosis, probes: set[str]) -> bool:
    """Return whether all probes were passed that can be put; one at least."""
    return probes.isdisjoint(found.failed) and not probes.issubset(found.not_run)


def _advice(found: Diagnosis, level: int) -> str:
    if _LEVELS[level].issubset(found.not_run):
        return _UNASKED[level]
    if found.exhibits:
        return found.exhibits[0].hint
    return found.message.splitlines()[0].partition(" That is fine if")[0]  # here it isn't
