"""Attention whose weights can't depend on the values that it fetches."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from attncourse.tasks import Lookup
from attnlib.attention import MultiHeadAttention
from attnlib.model import ModelOutput


class FixedWeights(nn.Module):
    """Attention for a `lookup` whose weights depend on question and keys, never on values.

    In a `TransformerModel` a slot's key and value are one token, so a row of weights may change
    with the values. Here they come apart::

        two keys that are asked for [B, 2] --embed, add--> q [B, 1, d]
        the slots' keys [B, M]             --embed-------> k [B, M, d]
        the slots' values [B, M]           --embed-------> v [B, M, d]

    Only the row of the question, the last one, says anything, to linear readouts without bias. It
    takes and gives what a `TransformerModel` does, so that `train(..., make=FixedWeights)`
    trains it.

    Args:
        task: a `lookup`.
        d_model: width d of keys, values and rows.
        num_heads: h; must divide d_model.
        d_k: width of a head's queries and keys; d_model / h if left out.
        d_v: width of its values, likewise.
    """

    def __init__(
        self,
        task: Lookup,
        d_model: int,
        num_heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
    ) -> None:
        super().__init__()
        self.task = task
        self.asked = nn.ModuleList([nn.Embedding(task.slots, d_model) for _ in range(2)])
        self.keys = nn.Embedding(task.slots, d_model)
        self.values = nn.Embedding(task.values, d_model)
        replaced = d_k or d_v
        device = "meta" if replaced else None  # whose matrices draw no random numbers
        self.attention = MultiHeadAttention(d_model, num_heads, bias=False, device=device)
        if replaced:  # it computes with any width that its matrices have
            look, brought = (num_heads * width if width else d_model for width in (d_k, d_v))
            self.attention.W_q, self.attention.W_k, self.attention.W_v = (
                nn.Linear(d_model, width, bias=False) for width in (look, look, brought)
            )
            self.attention.W_o = nn.Linear(brought, d_model, bias=False)
            self.attention.reset_parameters()
        self.readouts = nn.ModuleDict(
            {name: nn.Linear(d_model, task.values, bias=False) for name in task.readouts}
        )

    def forward(
        self,
        tokens: Tensor,
        *,
        key_mask: Tensor | None = None,
        head_masks: Sequence[Tensor | None] | Tensor | None = None,
        need_weights: bool = False,
    ) -> ModelOutput:
        """Answer about tokens [B, M + 1], as `TransformerModel.forward` does.

        The one layer's weights are the row of the question, [B, h, 1, M].
        """
        asked, keys, values = self.task.parts(tokens)
        query = self.asked[0](asked[:, :1]) + self.asked[1](asked[:, 1:])  # [B, 1, d]
        row, weights = self.attention(
            query, self.keys(keys), self.values(values), need_weights=need_weights,
            head_mask=None if head_masks is None else head_masks[0],
        )  # fmt: skip
        rows = F.pad(row, (0, 0, self.task.slots, 0))  # [B, 1, d] -> [B, M + 1, d]
        logits = {name: readout(rows) for name, readout in self.readouts.items()}
        return ModelOutput(logits, None if weights is None else [weights])
