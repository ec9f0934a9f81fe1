"""A block that starts as the identity, and can learn."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from attnlib._verdict import Verdict
from attnlib.blocks import TransformerBlock
from attnlib.exercises._calling import call
from attnlib.exercises._checking import correct, not_a_function, not_yet, same_numbers
from attnlib.exercises._exercise import Mistake, exercise

NEARLY = 1e-2  # an output that is no farther off is made of small numbers


def _zero(*names: str) -> Callable[[TransformerBlock], None]:
    """Return a function that zeroes the named parameters of a block; none named means all."""

    def change(block: TransformerBlock) -> None:
        for name, parameter in block.named_parameters():
            if not names or name.removeprefix("attention.").removeprefix("feed_forward.") in names:
                nn.init.zeros_(parameter)

    return change


def _identity_matrix(block: TransformerBlock) -> None:
    nn.init.eye_(block.attention.W_o.weight)
    nn.init.zeros_(block.attention.W_o.bias)


def _identity_matrices(block: TransformerBlock) -> None:
    _identity_matrix(block)
    nn.init.eye_(block.feed_forward.W_2.weight)
    nn.init.zeros_(block.feed_forward.W_2.bias)


def _shrink(block: TransformerBlock) -> None:
    with torch.no_grad():
        for last in (block.attention.W_o, block.feed_forward.W_2):
            last.weight.mul_(1e-6)
            last.bias.mul_(1e-6)


_IDENTITY_MATRIX = Mistake(
    _identity_matrix,
    "With the identity matrix W_o hands the heads' output on, and it is added to x. The *block* "
    "should be the identity: which matrix adds nothing?",
)
_NEARLY_ZERO = Mistake(
    _shrink,
    "Small numbers come nearer, but the output should equal the input exactly, for every input. "
    "Which number adds nothing at all?",
)
IDENTITY_MISTAKES = (
    Mistake(
        lambda block: None,
        "No parameter of the block has changed. (Another module in its place, or another forward, "
        "wouldn't learn.) Which matrix is the last thing that attention's answer passes?",
    ),
    Mistake(
        _zero("W_o.weight", "W_2.weight"),
        "The right two matrices are zero, but a Linear also adds its bias: zero times anything, "
        "plus something, is something.",
    ),
    Mistake(
        _zero("W_o.weight", "W_o.bias"),
        "Attention adds nothing any more. The feed-forward part still does.",
    ),
    Mistake(
        _zero("W_2.weight", "W_2.bias"),
        "The feed-forward part adds nothing any more. Attention still does.",
    ),
    Mistake(
        _zero("W_v.weight", "W_v.bias", "W_2.weight", "W_2.bias"),
        "You zeroed the values. They are not the last step: W_o still adds its bias after them.",
    ),
    Mistake(
        _zero("W_o.weight", "W_o.bias", "W_1.weight", "W_1.bias"),
        "You zeroed the feed-forward part's first matrix; the second one still adds its bias.",
    ),
    Mistake(
        _zero("norm_1.gain", "norm_1.bias", "norm_2.gain", "norm_2.bias"),
        "With the norms at zero the sub-layers read nothing, but their biases still come out of "
        "them. Stop what a sub-layer writes, not what it reads.",
    ),
    Mistake(
        _zero("norm_1.gain", "norm_2.gain"),
        "With their gains at zero the norms give their biases, whatever comes in, and the "
        "sub-layers make something of those. Stop what a sub-layer writes, not what it reads.",
    ),
    Mistake(
        _zero("W_o.bias", "W_2.bias"),
        "Only the biases of the last matrices are zero. The matrices still pass something on.",
    ),
    Mistake(
        _zero("W_v.weight", "W_v.bias", "W_1.weight", "W_1.bias"),
        "You zeroed what the sub-layers begin with. After it W_o and W_2 come, and each adds its "
        "bias. What comes last?",
    ),
    Mistake(
        _zero("W_q.weight", "W_q.bias", "W_k.weight", "W_k.bias"),
        "Without queries and keys all weights are equal: a token gets the mean of the values, "
        "which is something. Stop what is written, not who is looked at.",
    ),
    _IDENTITY_MATRIX,
    _NEARLY_ZERO,
    Mistake(
        _zero(),
        "The output equals the input, but nothing is left that could learn: when every matrix is "
        "zero, every matrix's gradient is zero too. Zero as little as possible.",
    ),
)


# The same mistake in other clothes.
_TOO = (replace(_IDENTITY_MATRIX, answer=_identity_matrices),)


@exercise(mistakes=IDENTITY_MISTAKES)
def identity_at_start(answer: Callable) -> Verdict:
    """Check a function that changes a pre-norm TransformerBlock so that it returns its input."""
    if not callable(answer):
        return not_a_function(answer)
    generator = torch.Generator().manual_seed(0)
    block = TransformerBlock(12, 3, dtype=torch.float64)
    with torch.no_grad():  # also the biases are random: they may not be 0 when a reader comes
        for parameter in block.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    x = torch.randn(2, 5, 12, generator=generator, dtype=torch.float64)
    outcome = call(lambda: _changed(block, answer))
    if outcome.complaint:
        return not_yet(outcome.complaint)
    changed = outcome.outputs
    if not changed.residual:
        return not_yet("The residual is switched off, so nothing carries x to the output.")
    for mistake in (*IDENTITY_MISTAKES, *_TOO):
        if _same_parameters(changed, _changed(block, mistake.answer)):
            return not_yet(mistake.hint)
    outcome = call(lambda tokens: changed(tokens)[0], (x,))
    if outcome.complaint:
        return not_yet(f"The changed block doesn't run any more. {outcome.complaint}")
    output = outcome.outputs
    if not torch.equal(output, x):
        return not_yet(_still_added(changed, x))
    if output.requires_grad:  # it doesn't when the reader has frozen everything
        output.square().sum().backward()
    last = changed.attention.W_o, changed.feed_forward.W_2
    gradients = [getattr(getattr(layer, "weight", None), "grad", None) for layer in last]
    if not all(gradient is not None and gradient.any() for gradient in gradients):
        return not_yet(
            "The output equals the input, but W_o or W_2 gets no gradient, so it would stay zero "
            "forever. Too much is zero, frozen or gone."
        )
    return correct("The block starts as the identity, and W_o and W_2 still get a gradient.")


def _changed(block: TransformerBlock, change: Callable) -> TransformerBlock:
    """Return what a function makes of a copy of the block: in place, or by returning another."""
    copied = copy.deepcopy(block)
    returned = change(copied)
    return returned if isinstance(returned, TransformerBlock) else copied


def _still_added(block: Any, x: torch.Tensor) -> str:
    """Say which sub-layers of a pre-norm block still add something to x."""
    with torch.no_grad():
        gap = (block(x)[0] - x).abs().max().item()
        answers = {
            "attention": block.attention(block.norm_1(x))[0],
            "the feed-forward part": block.feed_forward(block.norm_2(x)),
        }
    if gap < NEARLY:
        return _NEARLY_ZERO.hint
    adding = [name for name, answer in answers.items() if answer.any()]
    return (
        f"The output still differs from the input, by up to {gap:.2g}. What still adds something: "
        f"{' and '.join(adding)}."
    )


def _same_parameters(left: nn.Module, right: nn.Module) -> bool:
    ours, theirs = dict(left.named_parameters()), dict(right.named_parameters())
    return ours.keys() == theirs.keys() and all(
        same_numbers(ours[name], theirs[name], 1e-9) for name in ours
    )
