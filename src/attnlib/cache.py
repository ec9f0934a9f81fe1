"""Keys and values of earlier tokens, so that generating doesn't compute them again."""

from typing import Any

import torch
from torch import Tensor, nn

from attnlib.checks import require_like, require_whole_numbers, shape_of


class KVCache:
    """Keys and values of the tokens that one attention module has seen.

    Pass the same cache with every chunk of a sequence. The module then attends to the chunk and to
    everything before it, and the outputs are those of one pass over the whole:

        >>> from attnlib import KVCache, MultiHeadAttention
        >>> attention, x = MultiHeadAttention(8, num_heads=2), torch.randn(1, 10, 8)
        >>> cache, outputs = KVCache(), []
        >>> for chunk in x.split(3, dim=1):
        ...     output, _ = attention(chunk, causal=True, cache=cache)
        ...     outputs.append(output)
        >>> whole, _ = attention(x, causal=True)
        >>> torch.allclose(torch.cat(outputs, dim=1), whole, atol=1e-6)
        True

    Masks cover all keys, those in the cache first. Each module of a stack needs a cache of its own.
    Grouped heads make the cache h / h_kv times smaller, their purpose (Shazeer 2019; Ainslie et al.
    2023).

    After an error within the module its cache is unchanged. After an error elsewhere (a hook on the
    module, a layer above) it isn't: to be able to try again, pass a branch, `copy.copy(cache)`, and
    keep the branch if all went well.

    Gradient checkpointing calls a module again in the backward pass and would add its tokens twice:
    use no cache there.

    A cache refers to its module, so copy and pickle the two together: `copy.deepcopy((module,
    cache))` in this order, `pickle.dumps((module, cache))` in any. A cache that is pickled alone
    takes a copy of its module along, and serves no other.

    New tokens are joined to the old ones in new memory, so T tokens one by one copy O(T^2) numbers.
    Programs that serve many texts set the memory aside beforehand, or in pages (Kwon et al. 2023).
    """

    def __init__(self) -> None:
        self._keys_values: tuple[Tensor, Tensor] | None = None  # keys, values
        self._owner: nn.Module | None = None

    def __len__(self) -> int:
        """Return how many tokens are remembered."""
        return 0 if self.keys is None else self.keys.shape[-2]

    def __repr__(self) -> str:
        """Return what is inside."""
        return f"KVCache({'empty' if self.keys is None else f'keys {shape_of(self.keys)}'})"

    def __copy__(self) -> "KVCache":
        """Return a branch: it holds the same tokens, and adds its own from here on."""
        other = KVCache()
        other._keys_values, other._owner = self._keys_values, self._owner
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> "KVCache":
        """Copy keys and values; the copy serves the same module, or the module's copy in `memo`."""
        other = KVCache()
        other._owner = memo.get(id(self._owner), self._owner)
        if self._keys_values is not None:
            keys, values = self._keys_values
            other._keys_values = keys.clone(), values.clone()
        return other

    @property
    def keys(self) -> Tensor | None:
        """The keys [B, h_kv, T, d_k] so far, or None."""
        return None if self._keys_values is None else self._keys_values[0]

    @property
    def values(self) -> Tensor | None:
        """The values [B, h_kv, T, d_k] so far, or None."""
        return None if self._keys_values is None else self._keys_values[1]

    def clear(self) -> None:
        """Forget everything; the cache may then serve any module."""
        self._keys_values = self._owner = None

    def select(self, samples: Tensor) -> None:
        """Keep these samples of the batch, in this order and as often as named (for beam search).

        Args:
            samples: whole numbers [B'], rows of the batch.

        Raises:
            TypeError, ValueError: not a tensor of whole numbers of one dimension.
            IndexError: a row that isn't there.
        """
        require_whole_numbers("samples", samples)
        if samples.dim() != 1:
            raise ValueError(f"samples must have shape [B'], got {shape_of(samples)}")
        if self._keys_values is not None:
            keys, values = self._keys_values
            self._keys_values = keys[samples], values[samples]

    def joined(self, owner: nn.Module, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the remembered keys and values followed by new ones, for `keep` to remember.

        Raises:
            ValueError: the cache belongs to another module, batch or device, or the module had
                other heads then.
            TypeError: the module has computed in another dtype since.
        """
        if self._keys_values is None:  # they may be the caller's tokens, if nothing projects them
            return keys.clone(), values.clone()
        past_keys, past_values = self._keys_values
        if owner is not self._owner:
            raise ValueError(
                "cache must be one that this module filled, got one of another module: "
                "each layer needs a KVCache of its own, and a copy of a layer is another layer "
                "(copy or pickle the pair (module, cache))"
            )
        if len(keys) != len(past_keys):
            raise ValueError(
                f"cache must hold the query's batch, got a batch of {len(past_keys)} in the cache "
                f"and {len(keys)} in the query: for another sequence make a new KVCache"
            )
        require_like("the query", keys, "the keys in cache", past_keys)
        require_like("the new values", values, "the values in cache", past_values)
        for name, new, past in (("keys", keys, past_keys), ("values", values, past_values)):
            if new.shape[1::2] != past.shape[1::2]:  # one head would be broadcast to all
                raise ValueError(
                    f"cache must hold {name} [B, h_kv, T, d_k] of the module's present heads, got "
                    f"{shape_of(past)} in the cache and {shape_of(new)} to add: did W_k, W_v or "
                    "num_kv_heads change?"
                )
        return torch.cat([past_keys, keys], -2), torch.cat([past_values, values], -2)

    def keep(self, owner: nn.Module, keys: Tensor, values: Tensor) -> None:
        """Remember all of these keys and values, which `joined` returned."""
        self._owner, self._keys_values = owner, (keys, values)


def require_cache(cache: object) -> None:
    """Raise unless `cache` is a KVCache or None."""
    if cache is not None and not isinstance(cache, KVCache):
        raise TypeError(f"cache must be a KVCache, got {type(cache).__name__}")
