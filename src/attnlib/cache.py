"""Keys and values of the tokens that went before, so that generating doesn't compute them again."""

from typing import Any

import torch
from torch import Tensor, nn

from attnlib._checks import require_like, require_tensor, shape_of


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
    """

    def __init__(self) -> None:
        self._keys: Tensor | None = None
        self._values: Tensor | None = None
        self._owner: nn.Module | None = None

    def __len__(self) -> int:
        """Return how many tokens are remembered."""
        return 0 if self._keys is None else self._keys.shape[-2]

    def __repr__(self) -> str:
        """Say what is inside."""
        shape = "empty" if self._keys is None else f"keys {shape_of(self._keys)}"
        return f"KVCache({shape})"

    def __deepcopy__(self, memo: dict[int, Any]) -> "KVCache":
        """Copy what is remembered; the copy serves the same module (or its copy made before)."""
        other = KVCache()
        other._owner = memo.get(id(self._owner), self._owner)
        if self._keys is not None and self._values is not None:
            other._keys, other._values = self._keys.clone(), self._values.clone()
        return other

    @property
    def keys(self) -> Tensor | None:
        """The keys [B, h_kv, T, d_k] so far, or None."""
        return self._keys

    @property
    def values(self) -> Tensor | None:
        """The values [B, h_kv, T, d_k] so far, or None."""
        return self._values

    def clear(self) -> None:
        """Forget everything; the cache may then serve any module."""
        self._keys = self._values = self._owner = None

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
        if self._keys is not None and self._values is not None:
            self._keys, self._values = self._keys[samples], self._values[samples]

    def joined(self, owner: nn.Module, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the remembered keys and values followed by new ones; the cache stays as it is.

        Raises:
            ValueError: the cache belongs to another module, batch or device.
            TypeError: the module has computed in another dtype since.
        """
        if self._keys is None or self._values is None:
            return keys, values
        if owner is not self._owner:
            raise ValueError(
                "cache must be one that this module filled, got one of another module: "
                "each layer needs a KVCache of its own"
            )
        if len(keys) != len(self._keys):
            raise ValueError(
                f"cache must hold the query's batch, got a batch of {len(self._keys)} in the cache "
                f"and {len(keys)} in the query: for another sequence make a new KVCache"
            )
        require_like("the query", keys, "the keys in cache", self._keys)
        return torch.cat([self._keys, keys], -2), torch.cat([self._values, values], -2)

    def keep(self, owner: nn.Module, keys: Tensor, values: Tensor) -> None:
        """Remember all of these keys and values, which `joined` returned."""
        self._owner, self._keys, self._values = owner, keys, values


def require_cache(cache: object) -> None:
    """Raise unless `cache` is a KVCache or None."""
    if cache is not None and not isinstance(cache, KVCache):
        raise TypeError(f"cache must be a KVCache, got {type(cache).__name__}")
