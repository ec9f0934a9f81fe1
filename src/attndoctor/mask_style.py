"""How a module wants its mask: what it means, of which numbers and with which axes."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class MaskStyle:
    """A convention of masks; attnlib's own unless told otherwise.

    meaning: "keep" (True = may look), "hide" (True = hidden) or "add" (0 or -inf, added to the
    scores). dtype: of a mask that is not to be added. one, several: the axes of a mask for all
    samples and of a mask for each; None where it takes none.
    """

    meaning: str = "keep"
    dtype: torch.dtype = torch.bool
    one: str | None = "[T, T]"
    several: str | None = "[B, T, T]"

    def fit(self, mask: Tensor, like: Tensor, num_heads: int) -> Tensor:
        """Write a mask [T_q, T_k], [B, T_q, T_k] or with an axis for heads in this style.

        Args:
            mask: attnlib's mask, True = may look.
            like: tokens [B, T, d], for the batch and the dtype.
            num_heads: h.
        """
        axes = self.one if mask.dim() == 2 else self.several
        if mask.dim() == 4:
            if axes == "[B h, T, T]":
                mask = mask.expand(len(like), num_heads, -1, -1).flatten(0, 1)
            return self.write(mask, like)
        if mask.dim() == 2 and axes != "[T, T]":
            mask = mask.expand(len(like), -1, -1)
        if axes == "[B, 1, T, T]":
            mask = mask[:, None]
        if axes == "[B h, T, T]":
            mask = mask.repeat_interleave(num_heads, 0)
        return self.write(mask, like)

    def write(self, mask: Tensor, like: Tensor) -> Tensor:
        """Write True = may look as this style has it, on the same axes."""
        if self.meaning == "add":
            return torch.zeros_like(mask, dtype=like.dtype).masked_fill(~mask, -math.inf)
        return (~mask if self.meaning == "hide" else mask).to(self.dtype)

    def __str__(self) -> str:
        axes = " or ".join(dict.fromkeys(axes for axes in (self.one, self.several) if axes))
        if self.meaning == "add":
            return f"{axes} that is added"
        yes = "True" if self.dtype == torch.bool else "1"
        return f"{axes} where {yes} = {'hidden' if self.meaning == 'hide' else 'may look'}"


PADDING, ANY = "[B, T]", "[1, 1, 1, 1]"  # axes of a mask that hides nothing
OWN = MaskStyle()
ADDED = MaskStyle("add", torch.float32)
TORCH = MaskStyle("hide", several="[B h, T, T]")  # nn.MultiheadAttention
