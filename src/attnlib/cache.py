"""Keys and values of the tokens that went before, so that generating doesn't compute them again."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnlib._checks import require_like, require_tensor, shape_of


@dataclass
class Room:
    """Memory for more tokens than there are: [B, h_kv, capacity, d_k] of keys and of values.

    A row is written once. So whoever holds a piece of it (a cache, its copy, a caller of `joined`)
    never sees it change: the next rows go to the one who comes first, and others make a room anew.
    """

    keys: Tensor
    values: Tensor
    written: int

    @classmethod
    def like(cls, keys: Tensor, values: Tensor, capacity: int) -> "Room":
        """Make an empty room for such keys and values."""

        def empty(x: Tensor) -> Tensor:
            return x.new_empty(*x.shape[:-2], capacity, x.shape[-1])

        with torch.inference_mode(False):  # else nothing could be written after inference mode
            return cls(empty(keys), empty(values), written=0)

    @property
    def capacity(self) -> int:
        """How many tokens have room."""
        return self.keys.shape[-2]

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write keys and values behind those written so far; return views of all."""
        start, self.written = self.written, self.written + keys.shape[-2]
        self.keys[..., start : self.written, :] = keys
        self.values[..., start : self.written, :] = values
        return self.keys[..., : self.written, :], self.values[..., : self.written, :]


class KVCache:
    """What one attention module remembers of the tokens that it has seen.

    Pass the same cache with every chunk of a sequence. The module then attends to the chunk and to
    all that came before, and the outputs are those of one pass over the whole:

        >>> from attnlib import KVCache, MultiHeadAttention
        >>> attention, x = MultiHeadAttention(8, num_heads=2), torch.randn(1, 10, 8)
        >>> cache, outputs = KVCache(), []
        >>> for chunk in x.split(3, dim=1):
        ...     output, _ = attention(chunk, causal=True, cache=cache)
        ...     outputs.append(output)
        >>> whole, _ = attention(x, causal=True)
        >>> torch.allclose(torch.cat(outputs, dim=1), whole, atol=1e-6)
        True

    Masks given along speak of all keys, those in the cache first. Each module of a stack needs a
    cache of its own. With grouped heads the cache is h / h_kv times as small, which is what they
    were invented for (Shazeer 2019; Ainslie et al. 2023).

    Where no gradients are taken, new tokens are written into spare memory, which grows by half when
    it is full: T tokens one by one cost O(T) copied numbers, and a third of the memory at most is
    spare.
    """

    def __init__(self) -> None:
        self._remembered: tuple[Tensor, Tensor] | None = None  # keys, values
        self._room: Room | None = None  # where they are, if there may be room behind them
        self._owner: nn.Module | None = None

    def __len__(self) -> int:
        """Return how many tokens are remembered."""
        return 0 if self.keys is None else self.keys.shape[-2]

    def __repr__(self) -> str:
        """Say what is inside."""
        return f"KVCache({'empty' if self.keys is None else f'keys {shape_of(self.keys)}'})"

    def __deepcopy__(self, memo: dict[int, Any]) -> "KVCache":
        """Copy what is remembered; the copy serves the same module (or its copy made before)."""
        other = KVCache()
        other._owner = memo.get(id(self._owner), self._owner)
        if self._remembered is not None:
            keys, values = self._remembered
            other._remembered = keys.clone(), values.clone()
        return other

    @property
    def keys(self) -> Tensor | None:
        """The keys [B, h_kv, T, d_k] so far, or None."""
        return None if self._remembered is None else self._remembered[0]

    @property
    def values(self) -> Tensor | None:
        """The values [B, h_kv, T, d_k] so far, or None."""
        return None if self._remembered is None else self._remembered[1]

    def clear(self) -> None:
        """Forget everything; the cache may then serve any module."""
        self._remembered = self._room = self._owner = None

    def select(self, samples: Tensor) -> None:
        """Keep these samples of the batch, in this order and as often as named (for beam search).

        Args:
            samples: whole numbers [B'], rows of the batch.

        Raises:
            TypeError, ValueError: not a tensor of whole numbers of one dimension.
            IndexError: a row that isn't there.
        """
        require_tensor("samples", samples)
        if samples.dtype not in (torch.int32, torch.int64):
            raise TypeError(f"samples must be whole numbers (int64), got {samples.dtype}")
        if samples.dim() != 1:
            raise ValueError(f"samples must have shape [B'], got {shape_of(samples)}")
        if self._remembered is not None:
            keys, values = self._remembered
            self._remembered, self._room = (keys[samples], values[samples]), None

    def joined(self, owner: nn.Module, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the remembered keys and values followed by new ones; the cache stays as it is.

        Raises:
            ValueError: the cache belongs to another module, batch or device.
            TypeError: the module has computed in another dtype since.
        """
        if self._remembered is None:
            return keys, values
        past_keys, past_values = self._remembered
        if owner is not self._owner:
            raise ValueError(
                "cache must be one that this module filled, got one of another module: "
                "each layer needs a KVCache of its own"
            )
        if len(keys) != len(past_keys):
            raise ValueError(
                f"cache must hold the query's batch, got a batch of {len(past_keys)} in the cache "
                f"and {len(keys)} in the query: for another sequence make a new KVCache"
            )
        require_like("the query", keys, "the keys in cache", past_keys)
        if torch.is_grad_enabled():  # a backward pass needs all that it saw as it was
            return torch.cat([past_keys, keys], -2), torch.cat([past_values, values], -2)
        past, T = len(self), len(self) + keys.shape[-2]
        if self._room is None or self._room.written != past or self._room.capacity < T:
            self._room = Room.like(past_keys, past_values, capacity=T + T // 2)
            self._room.append(past_keys, past_values)
        return self._room.append(keys, values)

    def keep(self, owner: nn.Module, keys: Tensor, values: Tensor) -> None:
        """Remember all of these keys and values, which `joined` returned."""
        self._owner, self._remembered = owner, (keys, values)


def require_cache(cache: object) -> None:
    """Raise unless `cache` is a KVCache or None."""
    if cache is not None and not isinstance(cache, KVCache):
        raise TypeError(f"cache must be a KVCache, got {type(cache).__name__}")
