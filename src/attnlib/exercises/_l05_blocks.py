"""Checks of lesson L05, part three: pre-norm, and a block that starts as the identity."""

import copy
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlib._verdict import Verdict
from attnlib.blocks import TransformerBlock
from attnlib.exercises._checking import (
    Mistake,
    call,
    check_function,
    correct,
    keeps_random_state,
    not_yet,
    same_numbers,
)

Part = Callable[[Tensor], Tensor]  # a norm, or a sub-layer
Layers = Sequence[tuple[Part, Part, Part, Part]]  # attention, norm_1, feed_forward, norm_2

# --- from post-norm to pre-norm ------------------------------------------------------------------


class _Stack:
    """Two layers of random parts that write down in which order they run."""

    def __init__(self) -> None:
        self.order: list[str] = []
        generator = torch.Generator().manual_seed(0)

        def matrix() -> Tensor:
            return torch.randn(6, 6, generator=generator, dtype=torch.float64)

        def part(name: str, function: Part) -> Part:
            def run(x: Tensor) -> Tensor:
                self.order.append(name)
                return function(x)

            return run

        def norm(name: str) -> Part:
            gain = matrix()[0]  # its own, so that two norms can't stand in for each other
            return part(name, lambda x: F.layer_norm(x, (6,), gain))

        def mix(x: Tensor, weight: Tensor) -> Tensor:
            return x.flip(-2) @ weight  # tokens meet, as in attention

        def sublayer(name: str, function: Callable) -> Part:
            weight = matrix()
            return part(name, lambda x: function(x, weight))

        self.layers = [
            (
                sublayer("attention", mix),
                norm("norm_1"),
                sublayer("feed_forward", lambda x, weight: torch.tanh(x @ weight)),
                norm("norm_2"),
            )
            for _ in range(2)
        ]
        self.final_norm = norm("final_norm")

    def through(self, function: Callable) -> Part:
        """Return the reader's function with these parts filled in."""
        return lambda x: function(x, self.layers, self.final_norm)


def _pre_norm(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    for attention, norm_1, feed_forward, norm_2 in layers:
        x = x + attention(norm_1(x))
        x = x + feed_forward(norm_2(x))
    return final_norm(x)


def _post_norm(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    for attention, norm_1, feed_forward, norm_2 in layers:
        x = norm_1(x + attention(x))
        x = norm_2(x + feed_forward(x))
    return x


def _post_norm_and_final(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    return final_norm(_post_norm(x, layers, final_norm))


def _norm_of_the_change(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    for attention, norm_1, feed_forward, norm_2 in layers:
        x = x + norm_1(attention(x))
        x = x + norm_2(feed_forward(x))
    return final_norm(x)


def _no_final_norm(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    return _pre_norm(x, layers, lambda x: x)


def _final_norm_in_the_loop(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    for layer in layers:
        x = _pre_norm(x, [layer], final_norm)
    return x


def _residual_from_the_normed(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    for attention, norm_1, feed_forward, norm_2 in layers:
        x = norm_1(x)
        x = x + attention(x)
        x = norm_2(x)
        x = x + feed_forward(x)
    return final_norm(x)


def _no_residual(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    for attention, norm_1, feed_forward, norm_2 in layers:
        x = feed_forward(norm_2(attention(norm_1(x))))
    return final_norm(x)


def _only_the_first_norm_moved(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    for attention, norm_1, feed_forward, norm_2 in layers:
        x = x + attention(norm_1(x))
        x = norm_2(x + feed_forward(x))
    return final_norm(x)


def _norms_swapped(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    return _pre_norm(x, [(a, n_2, f, n_1) for a, n_1, f, n_2 in layers], final_norm)


PRE_NORM_MISTAKES = (
    Mistake(
        "still post-norm",
        _post_norm,
        "This is post-norm still: each norm works on the sum. In pre-norm it works on what the "
        "sub-layer reads, and the sum is left alone.",
    ),
    Mistake(
        "post-norm with a final norm",
        _post_norm_and_final,
        "The final norm is there, but the norms in the blocks still work on the sums.",
    ),
    Mistake(
        "norm of the change",
        _norm_of_the_change,
        "You normalize what a sub-layer answers. Pre-norm normalizes what it reads.",
    ),
    Mistake(
        "no final norm",
        _no_final_norm,
        "The blocks are pre-norm. Nothing has normalized their sum when it leaves the stack, "
        "though: one norm isn't used yet.",
    ),
    Mistake(
        "final norm after each block",
        _final_norm_in_the_loop,
        "The final norm runs after every block; it should run once, when all blocks are done.",
    ),
    Mistake(
        "residual from the normed tokens",
        _residual_from_the_normed,
        "You overwrite x by its norm, so the skip carries the normed tokens. What is added must be "
        "the x from before the norm.",
    ),
    Mistake(
        "no residual",
        _no_residual,
        "The order is right, but the skips got lost: what a sub-layer answers is added to x.",
    ),
    Mistake(
        "only the first norm moved",
        _only_the_first_norm_moved,
        "The attention half is pre-norm now. The feed-forward half isn't.",
    ),
    Mistake(
        "norms swapped",
        _norms_swapped,
        "The wiring is right, but norm_1 belongs to attention and norm_2 to the feed-forward part.",
    ),
)


def pre_norm(answer: Callable) -> Verdict:
    """Check a function stack(x, layers, final_norm) that runs pre-norm layers.

    layers: (attention, norm_1, feed_forward, norm_2), each a function [B, T, d] -> [B, T, d].
    """
    if not callable(answer):
        return not_yet(
            f"A function was wanted, but a {type(answer).__name__} came. "
            "Hand in the function itself, without calling it."
        )
    stack = _Stack()
    x = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    verdict = check_function(
        stack.through(answer),
        stack.through(_pre_norm),
        [(x,), (10 * x[:1],)],
        [Mistake(m.name, stack.through(m.answer), m.hint) for m in PRE_NORM_MISTAKES],
        output_names=["the stack's output"],
        praise="Norms at the sub-layers' inputs, sums left alone, one norm at the end.",
    )
    if verdict or any(verdict.message == m.hint for m in PRE_NORM_MISTAKES):
        return verdict
    stack.order.clear()
    call(stack.through(answer), (x,))
    order = ", ".join(stack.order) or "none of them ran"
    return not_yet(f"{verdict.message} The order in which your parts ran: {order}.")


# --- the identity at the start -------------------------------------------------------------------


def _zero(*names: str) -> Callable[[TransformerBlock], None]:
    """Return a function that zeroes the named parameters of a block; none named means all."""

    def change(block: TransformerBlock) -> None:
        for name, parameter in block.named_parameters():
            if not names or name.removeprefix("attention.").removeprefix("feed_forward.") in names:
                nn.init.zeros_(parameter)

    return change


IDENTITY_MISTAKES = (
    Mistake(
        "nothing changed",
        lambda block: None,
        "The block is unchanged. Which matrix is the last thing that attention's answer passes?",
    ),
    Mistake(
        "biases forgotten",
        _zero("W_o.weight", "W_2.weight"),
        "The right two matrices are zero, but a Linear also adds its bias: zero times anything, "
        "plus something, is something.",
    ),
    Mistake(
        "only attention",
        _zero("W_o.weight", "W_o.bias"),
        "Attention adds nothing any more. The feed-forward part still does.",
    ),
    Mistake(
        "only feed-forward",
        _zero("W_2.weight", "W_2.bias"),
        "The feed-forward part adds nothing any more. Attention still does.",
    ),
    Mistake(
        "values instead of output",
        _zero("W_v.weight", "W_v.bias", "W_2.weight", "W_2.bias"),
        "You zeroed the values. They are not the last step: W_o still adds its bias after them.",
    ),
    Mistake(
        "first matrix instead of second",
        _zero("W_o.weight", "W_o.bias", "W_1.weight", "W_1.bias"),
        "You zeroed the feed-forward part's first matrix; the second one still adds its bias.",
    ),
    Mistake(
        "norms",
        _zero("norm_1.gain", "norm_1.bias", "norm_2.gain", "norm_2.bias"),
        "With the norms at zero the sub-layers read nothing, but their biases still come out of "
        "them. Stop what a sub-layer writes, not what it reads.",
    ),
    Mistake(
        "everything",
        _zero(),
        "The output equals the input, but nothing is left that could learn: when every matrix is "
        "zero, every matrix's gradient is zero too. Zero as little as possible.",
    ),
)


@keeps_random_state
def identity_at_start(answer: Callable) -> Verdict:
    """Check a function that changes a pre-norm TransformerBlock so that it returns its input."""
    if not callable(answer):
        return not_yet(f"A function was wanted, but a {type(answer).__name__} came.")
    generator = torch.Generator().manual_seed(0)
    block = TransformerBlock(12, 3, dtype=torch.float64)
    with torch.no_grad():  # also the biases are random: they may not be 0 when a reader comes
        for parameter in block.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    x = torch.randn(2, 5, 12, generator=generator, dtype=torch.float64)
    changed = copy.deepcopy(block)
    try:
        returned = answer(changed)
    except Exception as error:  # whatever a reader's code raises becomes a hint, not a crash
        hint = f"Your function raised {type(error).__name__}: {error}"
        if "leaf" in str(error):  # torch's word for a parameter that is changed while it learns
            hint += " Change parameters under `with torch.no_grad():` or by a function of nn.init."
        return not_yet(hint)
    changed = returned if isinstance(returned, TransformerBlock) else changed
    if not changed.residual:
        return not_yet("The residual is switched off, so nothing carries x to the output.")
    for mistake in IDENTITY_MISTAKES:
        wrong = copy.deepcopy(block)
        mistake.answer(wrong)
        if _same_parameters(changed, wrong):
            return not_yet(mistake.hint)
    outcome = call(lambda tokens: changed(tokens)[0], (x,))
    if outcome.complaint:
        return not_yet(f"The changed block doesn't run any more. {outcome.complaint}")
    output = outcome.outputs
    if not torch.equal(output, x):
        gap = (output - x).abs().max().item()
        return not_yet(f"The output still differs from the input, by up to {gap:.2g}.")
    if output.requires_grad:  # it doesn't when the reader has frozen everything
        output.square().sum().backward()
    last = changed.attention.W_o, changed.feed_forward.W_2
    gradients = [getattr(getattr(layer, "weight", None), "grad", None) for layer in last]
    if not all(gradient is not None and gradient.any() for gradient in gradients):
        return not_yet(
            "The output equals the input, but W_o or W_2 gets no gradient, so it would stay zero "
            "for ever. Too much is zero, frozen or gone."
        )
    return correct("The block starts as the identity, and W_o and W_2 still get a gradient.")


def _same_parameters(left: nn.Module, right: nn.Module) -> bool:
    ours, theirs = dict(left.named_parameters()), dict(right.named_parameters())
    return ours.keys() == theirs.keys() and all(
        same_numbers(ours[name], theirs[name], 1e-9) for name in ours
    )
