"""MaskPainter: paint who may look at whom, and see what that does to the weights."""

from collections.abc import Sequence

import torch
import traitlets
from torch import Tensor

from attncourse.widgets._base import CourseWidget, Numbers, browser_files, summary_trait
from attncourse.widgets._inputs import FEWER_COLUMNS, checked_queries_and_keys, require_light
from attnlib.checks import (
    checked_texts,
    require_boolean_mask,
    require_flag,
    require_tensor,
    require_text,
    shape_of,
)

MOST_TOKENS = 16  # more cells would be too small to hit


class MaskPainter(CourseWidget):
    """A mask to be painted cell by cell, the weights under it, and an alarm for leaks.

    Rows are queries, columns are keys, and a colored cell may look. The browser computes
    softmax(q k^T / sqrt(d)) over the cells that may look. Of a mask that is meant to be causal, it
    says which tokens see a later one. A row that may look nowhere has weights 0 and output 0.
    Beside the mask stands the row that was changed last, before and after. In a notebook::

        painter = MaskPainter(["the", "cat", "sat"], torch.randn(3, 8), torch.randn(3, 8))
        painter                                                    # show it and paint
        output, weights = scaled_dot_product_attention(q, k, v, painter.mask_tensor())
        painter.mask = causal_mask(3).flatten().tolist()           # paints it from here
        painter.observe(lambda change: print(painter.mask_tensor()), "mask")

    Traits that a reader changes:
        mask (list of T * T bool): row by row, True = may look.
        meant_causal (bool): whether a look to the right is a leak.

    Args:
        tokens: T strings, at most 16.
        q: queries [T, d] of one head; T * d at most 262,144, for a page of 2.8 MB.
        k: keys [T, d].
        mask: boolean [T, T], True = may look, at the start; everything if left out.
        meant_causal: whether a look to the right is called a leak; if left out, whether the mask at
            the start has none. A preset says it anew, and so does the reader.
        puzzle: whether the reader is to find the causal mask. Until it is painted, ready-made masks
             are hidden, and the alarm counts leaks without showing them.
        origin: where q and k come from, shown to the reader: "random (seed 0)", "hand-built".
    """

    _esm, _css = browser_files("mask_painter")
    summary = summary_trait(
        "A mask to paint, the weights under it, and an alarm when a token sees a later one."
    )

    tokens = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    q, k = Numbers(), Numbers()
    T = traitlets.Int(read_only=True).tag(sync=True)
    d = traitlets.Int(read_only=True).tag(sync=True)
    origin = traitlets.Unicode(read_only=True).tag(sync=True)
    mask = traitlets.List(traitlets.Bool()).tag(sync=True)
    meant_causal = traitlets.Bool(False).tag(sync=True)
    puzzle = traitlets.Bool(False, read_only=True).tag(sync=True)

    def __init__(
        self,
        tokens: Sequence[str],
        q: Tensor,
        k: Tensor,
        *,
        mask: Tensor | None = None,
        meant_causal: bool | None = None,
        puzzle: bool = False,
        origin: str = "as given",
    ) -> None:
        tokens = checked_texts("tokens", tokens)
        T = len(tokens)
        if T > MOST_TOKENS:
            raise ValueError(
                f"tokens must be at most {MOST_TOKENS}, got {T}: more cells would be too small to "
                "paint; take a part of the sequence"
            )
        q, k = checked_queries_and_keys(q, k, T)
        require_text("origin", origin)
        require_light(f"q and k {shape_of(q)}", 2 * q.numel(), FEWER_COLUMNS)
        mask = torch.ones(T, T, dtype=torch.bool) if mask is None else _checked_mask(mask, T)
        if meant_causal is None:
            meant_causal = not mask.triu(1).any().item()
        require_flag("meant_causal", meant_causal)
        require_flag("puzzle", puzzle)
        super().__init__(
            tokens=tokens,
            q=q,
            k=k,
            T=T,
            d=q.shape[1],
            origin=origin,
            mask=mask.flatten().tolist(),
            meant_causal=meant_causal,
            puzzle=puzzle,
        )

    def mask_tensor(self) -> Tensor:
        """Return the mask as painted: boolean [T, T], True = may look, as attnlib takes it."""
        return torch.tensor(self.mask, dtype=torch.bool).view(self.T, self.T)

    def __repr__(self) -> str:
        return f"MaskPainter({self.T} tokens, d={self.d}, {sum(self.mask)} looks allowed)"


def _checked_mask(mask: Tensor, T: int) -> Tensor:
    require_tensor("mask", mask)
    require_boolean_mask("mask", mask, mask.device)
    if mask.shape != (T, T):
        raise ValueError(f"mask must have shape [T, T] = [{T}, {T}], got {shape_of(mask)}")
    return mask
