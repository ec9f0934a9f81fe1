"""Random inputs of the questions: tokens and masks, the same for whoever is asked."""

import torch
from torch import Tensor

from attndoctor.asking import Asked


class Draw:
    """Random inputs, the same for whoever is asked.

    Each probe draws its own, so that what is kept of one question is wrong for the next.
    """

    def __init__(self, asked: Asked, seed: int = 1) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self.d_model = asked.setting.sizes.d_model
        self._always_causal = asked.setting.always_causal

    def tokens(self, B: int, T: int) -> Tensor:
        """Return tokens [B, T, d]."""
        return 2 * torch.randn(B, T, self.d_model, generator=self._generator)

    def mask(self, *shape: int) -> Tensor:
        """Return a mask in which every query may look somewhere, and not everywhere.

        With a triangle too: behind one, every query may look at the first key.
        """
        order = torch.rand(shape, generator=self._generator).argsort(-1)
        kept = torch.randint(1, shape[-1], (*shape[:-1], 1), generator=self._generator)
        mask = order < kept
        return mask.index_fill(-1, torch.tensor([0]), True) if self._always_causal else mask
