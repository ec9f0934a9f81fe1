"""What a picture of one layer needs: pooled maps, the keys most looked at, lengths of values."""

import torch
from torch import Tensor

from attnlib.heatmap import cell_edges

CELLS = 64  # a side of a map, at most
MOST_KEYS = 8  # of each query


class Picture:
    """Maps and keys of one layer, gathered from rows that come block by block.

    Attributes:
        top_keys: int32 [h, T, k], -1 where a query gives weight to fewer keys.
        top_weights: float32 [h, T, k].
        value_norms: float32 [h, T], once `measure` was called.
    """

    def __init__(self, heads: int, T: int) -> None:
        size = cell_edges(T, CELLS)[1]
        self._cell = torch.arange(T) // size  # of each token
        cells = int(self._cell[-1]) + 1
        self._member = torch.nn.functional.one_hot(self._cell, cells).double()  # [T, cells]
        self._sums = torch.zeros(heads, cells, cells, dtype=torch.float64)
        self._attending = torch.zeros(heads, cells, dtype=torch.float64)
        shape = heads, T, min(MOST_KEYS, T)
        self.top_keys = torch.full(shape, -1, dtype=torch.int32)
        self.top_weights = torch.zeros(shape)
        self.value_norms: Tensor | None = None

    def add(self, maps: Tensor, rows: range) -> None:
        """Take in the next rows, float64 [h, R, T]."""
        place = slice(rows.start, rows.stop)
        member = self._member[place].T  # [cells, R]: a sum by cells is a product
        self._sums += member @ (
            maps @ self._member
        )  # [h, R, T] -> [h, R, cells] -> [h, cells, cells]
        self._attending += (maps.sum(-1) > 0).double() @ member.T  # [h, R] -> [h, cells]
        weights, keys = maps.topk(self.top_keys.shape[-1], dim=-1)
        self.top_weights[:, place] = weights.float()
        self.top_keys[:, place] = keys.int().masked_fill(weights == 0, -1)

    def measure(self, values: Tensor) -> None:
        """Take in the value rows, [h_kv, T, d_v]."""
        norms = values.detach().float().norm(dim=-1).cpu()  # [h_kv, T, d_v] -> [h_kv, T]
        self.value_norms = norms.repeat_interleave(len(self._sums) // len(norms), dim=0)

    def maps(self) -> Tensor:
        """Return the shares of a row's cells, float32 [h, cells, cells]."""
        return (self._sums / self._attending.clamp_min(1)[..., None]).float()
