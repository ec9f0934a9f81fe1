"""A readout that has no weights of its own."""

import torch.nn.functional as F
from torch import Tensor, nn


class TiedReadout(nn.Module):
    """Read tokens out with the matrix that embeds them: x @ W_embedding^T (Press & Wolf 2017).

    The embedding is asked for its weight at every call, so whatever weight it is given counts here
    as well. A state dict holds it once.

    Args:
        embedding: of the tokens, whose weight is [V, d].
    """

    bias = None

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self._embedding = (embedding,)  # within a tuple, where torch doesn't take it for a part

    @property
    def weight(self) -> Tensor:
        """The embedding's weight, [V, d]."""
        return self._embedding[0].weight

    @property
    def out_features(self) -> int:
        """How many answers there are: V."""
        return len(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return a logit for each token: [B, T, d] -> [B, T, V]."""
        return F.linear(x, self.weight)
