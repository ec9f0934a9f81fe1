"""What a picture of one layer needs: pooled maps, the keys most looked at, lengths of values."""

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlib.heatmap import cell_edges

CELLS = 64  # a side of a map, at most
MOST_KEYS = 8  # of each query


@dataclass(frozen=True)
class Picture:
    """What is kept of one layer; see `Atlas`."""

    maps: Tensor  # float32 [h, cells, cells]
    top_keys: Tensor  # int32 [h, T, k]
    top_weights: Tensor  # float32 [h, T, k]
    value_norms: Tensor | None  # float32 [h, T], if the values are known


class PictureView:
    """A picture that is being drawn, from rows that come block by block."""

    def __init__(self, heads: int, T: int) -> None:
        cell = torch.arange(T) // cell_edges(T, CELLS)[1]  # of each token
        self._member = torch.nn.functional.one_hot(cell).double()  # [T, cells]
        cells = self._member.shape[1]
        self._sums = torch.zeros(heads, cells, cells, dtype=torch.float64)
        shape = heads, T, min(MOST_KEYS, T)
        self._top_keys = torch.full(shape, -1, dtype=torch.int32)
        self._top_weights = torch.zeros(shape, dtype=torch.float32)

    def add(self, maps: Tensor, rows: range) -> None:
        """Take in the next rows, float64 [h, R, T]."""
        place = slice(rows.start, rows.stop)
        member = self._member[place].T  # [cells, R]: a sum by cells is a product
        shares = maps @ self._member  # [h, R, T] -> [h, R, cells]
        self._sums += member @ shares  # -> [h, cells, cells]
        weights, keys = maps.topk(self._top_keys.shape[-1], dim=-1)
        self._top_weights[:, place] = weights.float()
        self._top_keys[:, place] = keys.int().masked_fill(weights == 0, -1)

    def picture(self, values: Tensor | None) -> Picture:
        """Return what was drawn; `values` as for `LayerView.layer`."""
        mass = self._sums.sum(-1, keepdim=True)  # of rows in half precision not quite 1 each
        maps = (self._sums / mass.where(mass > 0, 1)).float()
        norms = None
        if values is not None:
            norms = values.detach().float().norm(dim=-1).cpu()  # [h_kv, T, d_v] -> [h_kv, T]
            norms = norms.repeat_interleave(len(maps) // len(norms), dim=0)
        return Picture(maps, self._top_keys, self._top_weights, norms)
