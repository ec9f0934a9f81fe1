"""A readout without weights of its own."""

import torch.nn.functional as F
from torch import Tensor, nn


class TiedReadout(nn.Module):
    """Read tokens out with the matrix that embeds them: x @ W_embedding^T (Press & Wolf 2017).

    Every call uses the embedding's weight [V, d] of that moment. A state dict holds it once.
    """

    bias = None

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self._embedding = (embedding,)  # in a tuple torch doesn't register it as a submodule

    @property
    def weight(self) -> Tensor:
        """The embedding's weight [V, d]."""
        return self._embedding[0].weight

    @property
    def out_features(self) -> int:
        """The number of answers, V."""
        return len(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return a logit for each token: [B, T, d] -> [B, T, V]."""
        return F.linear(x, self.weight)
