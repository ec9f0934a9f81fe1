"""HeadMute: the output as a sum of what the heads add, and what is left when some are muted."""

from collections.abc import Sequence
from typing import Self

import torch
import traitlets
from torch import Tensor

from attncourse.widgets._base import CourseWidget, Numbers, browser_files, summary_trait
from attncourse.widgets._inputs import (
    checked_numbers,
    checked_rows,
    require_light,
    require_same_output,
    require_within,
)
from attnlib.attention import MultiHeadAttention
from attnlib.checks import checked_texts, require_count, require_text, shape_of

MOST_HEADS, WIDEST = 16, 128  # more can't be told apart in a drawing


class HeadMute(CourseWidget):
    """One token's output as stacked bars, a color a head; heads are ticked off one by one.

    A head is a term in a sum, output = sum over heads of head_i W_o^(i) + bias, so muting it is
    leaving its term out (Elhage et al. 2021, "Attention heads are independent and additive"). In
    a notebook::

        widget = HeadMute.from_module(module, x, tokens)
        widget                                     # show it
        widget.muted = [2]                         # heads are counted from 0
        widget.observe(lambda change: print(change["new"]), "muted")

    Traits that a reader changes:
        muted (list of int): the heads that are left out, 0-based, in order.
        token (int): the token whose output is shown, 0-based.

    Args:
        parts: what each head adds to each token's output, [h, T, d], h at most 16, d at most 128,
            and at most 524,288 numbers, which weigh 2.8 MB in a page.
        bias: what is added besides, [d].
        tokens: T strings.
        labels: h strings; "head 1", "head 2", ... if left out.
        token: the token that is shown at the start.
        origin: where the numbers come from, shown to the reader: "random (seed 3)", "hand-built",
            "trained (seed 3)".
    """

    _esm, _css = browser_files("head_mute")
    summary = summary_trait(
        "One token's output, stacked from what each head adds, with a switch to mute each head."
    )

    tokens = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    labels = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    parts, bias = Numbers(), Numbers()
    h = traitlets.Int(read_only=True).tag(sync=True)
    T = traitlets.Int(read_only=True).tag(sync=True)
    d = traitlets.Int(read_only=True).tag(sync=True)
    origin = traitlets.Unicode(read_only=True).tag(sync=True)
    muted = traitlets.List(traitlets.Int()).tag(sync=True)
    token = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        parts: Tensor,
        bias: Tensor | None = None,
        *,
        tokens: Sequence[str],
        labels: Sequence[str] | None = None,
        token: int = 0,
        origin: str = "as given",
    ) -> None:
        parts, tokens = _checked_parts(parts), checked_texts("tokens", tokens)
        h, T, d = parts.shape
        if labels is None:
            labels = [f"head {i + 1}" for i in range(h)]
        labels = checked_texts("labels", labels)
        for name, texts, size in (("tokens", tokens, T), ("labels", labels, h)):
            if len(texts) != size:
                raise ValueError(
                    f"parts must have shape [h, T, d] with h labels and T tokens, "
                    f"got {shape_of(parts)} and {len(texts)} {name}"
                )
        if bias is not None:
            bias = checked_numbers("bias", bias)
            if shape_of(bias) != [d]:
                raise ValueError(
                    f"bias must have shape [{d}] like a token's output, got {shape_of(bias)}: "
                    "it is the same for all tokens"
                )
        require_text("origin", origin)
        require_count("token", token)
        require_within("token", token, 0, T - 1)
        super().__init__(
            tokens=tokens,
            labels=labels,
            parts=parts,
            bias=b"" if bias is None else bias,
            h=h,
            T=T,
            d=d,
            origin=origin,
            token=token,
        )

    @classmethod
    def from_module(
        cls,
        module: MultiHeadAttention,
        x: Tensor,
        tokens: Sequence[str],
        *,
        causal: bool = False,
        token: int = 0,
        origin: str = "as given",
    ) -> Self:
        """Take an attnlib attention's output on one sequence apart into its heads.

        Args:
            module: head i adds head_i W_o^(i), its output times its d_k columns of `W_o.weight`.
            x: the module's input, [T, d] or [1, T, d].
            causal: whether the module attends causally.
            tokens, token, origin: as for HeadMute.

        Raises:
            TypeError, ValueError: an argument isn't as above, or the parts don't sum to the
                module's output.
        """
        rows = checked_rows(
            module, x, "pass what its heads add to HeadMute(parts, bias, tokens=tokens)"
        )
        bias = module.W_o.bias
        with torch.no_grad():
            output, _ = module(rows[None], causal=causal)
            parts = module.contributions(rows[None], causal=causal)[0]  # [h, T, d]
            total = parts.sum(0) if bias is None else parts.sum(0) + bias
        require_same_output(
            total,
            output[0],
            "the heads' parts must sum to the module's output, but differ by {}: does the module "
            "do more than attnlib's MultiHeadAttention?",
        )
        return cls(parts, bias, tokens=tokens, token=token, origin=origin)

    def __repr__(self) -> str:
        return f"HeadMute({self.h} heads, {self.T} tokens, d={self.d}, muted={self.muted})"


def _checked_parts(parts: Tensor) -> Tensor:
    """Return parts as float32 [h, T, d] on the CPU, or raise if they can't be drawn."""
    numbers = checked_numbers("parts", parts)
    if numbers.dim() != 3 or 0 in numbers.shape:
        raise ValueError(
            f"parts must have shape [h, T, d], got {shape_of(parts)}: what each head adds to each "
            "token's output, one sequence"
        )
    h, _, d = numbers.shape
    if h > MOST_HEADS or d > WIDEST:
        raise ValueError(
            f"parts must have at most {MOST_HEADS} heads and {WIDEST} numbers a token, got "
            f"{shape_of(parts)}: more can't be told apart"
        )
    require_light(f"parts {shape_of(parts)}", parts.numel(), "take a part of the sequence")
    return numbers
