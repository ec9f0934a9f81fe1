"""A block that starts as the identity, and can learn."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from attncourse.checking import CheckResult, exercise
from attncourse.checking.calling import call
from attncourse.checking.functions import correct, not_a_function, not_yet
from attncourse.checking.numbers import same_numbers
from attnlib.blocks import TransformerBlock

NEARLY = 1e-2  # an output that is no farther off is made of small numbers


def _zero(*names: str) -> Callable[[TransformerBlock], None]:
    """Return a function that zeroes the named parameters of a block; none named means all."""

    def change(block: TransformerBlock) -> None:
        for name, parameter in block.named_parameters():
            if not names or name.removeprefix("attention.").removeprefix("feed_forward.") in names:
                nn.init.zeros_(parameter)

    return change


@exercise()
def identity_at_start(answer: object) -> CheckResult:
    """Check a function that changes a pre-norm TransformerBlock so that it returns its input."""
    if not callable(answer):
        return not_a_function(answer)
    generator = torch.Generator().manual_seed(0)
    block = TransformerBlock(12, 3, dtype=torch.float64)
    with torch.no_grad():  # biases are random, too: in a trained block they aren't 0
        for parameter in block.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    x = torch.randn(2, 5, 12, generator=generator, dtype=torch.float64)
    outcome = call(lambda: _changed(block, answer))
    if outcome.complaint:
        return not_yet(outcome.complaint)
    changed = outcome.outputs
    if not changed.residual:
        return not_yet("The residual is switched off, so nothing carries x to the output.")
    for mistake in identity_at_start.mistakes:
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
    """Return which sub-layers of a pre-norm block still add something to x."""
    with torch.no_grad():
        gap = (block(x)[0] - x).abs().max().item()
        answers = {
            "attention": block.attention(block.norm_1(x))[0],
            "the feed-forward part": block.feed_forward(block.norm_2(x)),
        }
    if gap < NEARLY:
        return identity_at_start.hints["nearly_zero"]
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
