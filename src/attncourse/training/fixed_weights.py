"""Attention whose weights can't depend on the values that it fetches."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from attncourse.tasks import Lookup
from attnlib.attention import MultiHeadAttention
from attnlib.functional import merge_heads, scaled_dot_product_attention, split_heads
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
        usual = d_model // num_heads
        self.attention: nn.Module = (
            MultiHeadAttention(d_model, num_heads, bias=False)
            if d_k is None and d_v is None
            else _UnequalHeads(d_model, num_heads, d_k or usual, d_v or usual)
        )
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


class _UnequalHeads(nn.Module):
    """A `MultiHeadAttention` without biases, whose queries and values may differ in width."""

    def __init__(self, d_model: int, num_heads: int, d_k: int, d_v: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.W_q, self.W_k, self.W_v = (
            nn.Linear(d_model, num_heads * width, bias=False) for width in (d_k, d_k, d_v)
        )
        self.W_o = nn.Linear(num_heads * d_v, d_model, bias=False)
        for projection in (self.W_q, self.W_k, self.W_v, self.W_o):
            nn.init.xavier_uniform_(projection.weight)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        need_weights: bool,
        head_mask: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        projected = self.W_q(query), self.W_k(key), self.W_v(value)
        q, k, v = (split_heads(x, self.num_heads) for x in projected)
        heads, weights = scaled_dot_product_attention(q, k, v)  # [B, h, T_q, d_v]
        if head_mask is not None:
            heads = heads * head_mask[..., None, None]
        return self.W_o(merge_heads(heads)), weights if need_weights else None
