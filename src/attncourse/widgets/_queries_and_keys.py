"""A widget that holds tokens with their queries and keys."""

from collections.abc import Sequence

import anywidget
import traitlets
from torch import Tensor

from attncourse.widgets._base import set_fixed
from attncourse.widgets._inputs import checked_queries_and_keys, float32_bytes, require_light
from attnlib.checks import checked_texts, require_text


class QueriesAndKeys(anywidget.AnyWidget):
    """A widget whose browser code computes attention weights from queries and keys that it holds.

    Traits that are fixed: tokens (list of str), T, d, origin, and q and k as T x d float32 numbers,
    row by row, little endian.
    """

    tokens = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    q = traitlets.Bytes(read_only=True).tag(sync=True)
    k = traitlets.Bytes(read_only=True).tag(sync=True)
    T = traitlets.Int(read_only=True).tag(sync=True)
    d = traitlets.Int(read_only=True).tag(sync=True)
    origin = traitlets.Unicode(read_only=True).tag(sync=True)

    def _hold(self, tokens: Sequence[str], q: Tensor, k: Tensor, origin: str) -> None:
        """Check and set what is fixed; call it before `__init__` of ipywidgets."""
        tokens = checked_texts("tokens", tokens)
        q, k = checked_queries_and_keys(q, k, len(tokens))
        require_text("origin", origin)
        T, d = q.shape
        require_light(
            f"q and k [T={T}, d={d}]",
            2 * T * d,
            "take a part of the sequence, or some heads' columns of q and k",
        )
        fixed = {"tokens": tokens, "T": T, "d": d, "origin": origin}
        fixed |= {"q": float32_bytes(q), "k": float32_bytes(k)}
        set_fixed(self, fixed)
