"""From post-norm to pre-norm: how norms, sub-layers and sums are wired."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from attncourse.checking.calling import call
from attncourse.checking.exercise import Mistake, exercise
from attncourse.checking.functions import check_function, not_a_function, not_yet
from attndoctor.verdict import Verdict

Part = Callable[[Tensor], Tensor]  # a norm, or a sub-layer
Layers = Sequence[tuple[Part, Part, Part, Part]]  # attention, norm_1, feed_forward, norm_2


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


def _only_the_second_norm_moved(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    for attention, norm_1, feed_forward, norm_2 in layers:
        x = norm_1(x + attention(x))
        x = x + feed_forward(norm_2(x))
    return final_norm(x)


def _first_norm_twice(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    return _pre_norm(x, [(a, n_1, f, n_1) for a, n_1, f, _ in layers], final_norm)


def _one_skip(x: Tensor, layers: Layers, final_norm: Part, *, of_attention: bool) -> Tensor:
    for attention, norm_1, feed_forward, norm_2 in layers:
        x = attention(norm_1(x)) + (x if of_attention else 0)
        x = feed_forward(norm_2(x)) + (0 if of_attention else x)
    return final_norm(x)


def _side_by_side(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    for attention, norm_1, feed_forward, norm_2 in layers:
        x = x + attention(norm_1(x)) + feed_forward(norm_2(x))
    return final_norm(x)


def _old_x(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    for attention, norm_1, feed_forward, norm_2 in layers:
        x = x + feed_forward(norm_2(x + attention(norm_1(x))))
    return final_norm(x)


def _norms_at_both_ends(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    for attention, norm_1, feed_forward, norm_2 in layers:
        x = norm_1(x + attention(norm_1(x)))
        x = norm_2(x + feed_forward(norm_2(x)))
    return final_norm(x)


def _no_norms(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    for attention, _, feed_forward, _ in layers:
        x = x + attention(x)
        x = x + feed_forward(x)
    return final_norm(x)


def _returned_in_the_loop(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    return _pre_norm(x, layers[:1], final_norm)


def _final_norm_always(x: Tensor, layers: Layers, final_norm: Part) -> Tensor:
    return final_norm(_final_norm_in_the_loop(x, layers, final_norm))


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
        "only the second norm moved",
        _only_the_second_norm_moved,
        "The feed-forward half is pre-norm now. The attention half isn't.",
    ),
    Mistake(
        "norm_1 twice",
        _first_norm_twice,
        "The wiring is right, but norm_1 is used twice: the feed-forward part has norm_2.",
    ),
    Mistake(
        "no skip around attention",
        partial(_one_skip, of_attention=False),
        "The skip around attention got lost: what it answers is added to x.",
    ),
    Mistake(
        "no skip around the feed-forward part",
        partial(_one_skip, of_attention=True),
        "The skip around the feed-forward part got lost: what it answers is added to x.",
    ),
    Mistake(
        "side by side",
        _side_by_side,
        "Your feed-forward part reads what attention read. It should read the sum, after attention "
        "was added. (Some models do run both side by side; this stack doesn't.)",
    ),
    Mistake(
        "attention not kept",
        _old_x,
        "The feed-forward part reads the sum, but its answer is added to the x from before "
        "attention, so attention's own is lost.",
    ),
    Mistake(
        "norms at both ends",
        _norms_at_both_ends,
        "Your norms work on what the sub-layers read, and on the sums once more. In pre-norm the "
        "sums are left alone.",
    ),
    Mistake(
        "no norms",
        _no_norms,
        "The sums are left alone, but the sub-layers read x as it is: norm_1 and norm_2 belong in "
        "front of them.",
    ),
    Mistake(
        "returned in the loop",
        _returned_in_the_loop,
        "Your function returns after the first layer: the return stands inside the loop.",
    ),
    Mistake(
        "final norm always",
        _final_norm_always,
        "The final norm runs after every block, and once more at the end. Once at the end is "
        "enough.",
    ),
    Mistake(
        "norms swapped",
        _norms_swapped,
        "The wiring is right, but norm_1 belongs to attention and norm_2 to the feed-forward part.",
    ),
)


@exercise(mistakes=PRE_NORM_MISTAKES)
def pre_norm(answer: Callable) -> Verdict:
    """Check a function stack(x, layers, final_norm) that runs pre-norm layers.

    layers: (attention, norm_1, feed_forward, norm_2), each a function [B, T, d] -> [B, T, d].
    """
    if not callable(answer):
        return not_a_function(answer)
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
