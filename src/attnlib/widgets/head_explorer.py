"""HeadExplorer: what each head looks at, for every number of heads that divides the width."""

import math
from collections.abc import Sequence
from typing import Self

import torch
import traitlets
from torch import Tensor

from attnlib._checks import require_divisible, require_flag
from attnlib.attention import MultiHeadAttention
from attnlib.widgets._base import summary_trait
from attnlib.widgets._browser_code import browser_code, style_sheet
from attnlib.widgets._inputs import checked_rows
from attnlib.widgets._queries_and_keys import QueriesAndKeys

MOST_TOKENS = 512  # labels of more would make a map wider than anyone scrolls
MOST_WEIGHTS = 2**25  # of all heads; the browser computes them in some seconds


class HeadExplorer(QueriesAndKeys):
    """All heads as heatmaps, with a slider over the number of heads.

    The browser cuts the columns of q and k into heads and computes every head's weights
    softmax(q_i k_i^T / sqrt(d_k)) itself, so each number of heads is exact, also where no Python
    runs. In a notebook::

        explorer = HeadExplorer(["the", "cat", "sat"], torch.randn(3, 8), torch.randn(3, 8))
        explorer                                                   # show it
        explorer.num_heads = 8                                     # moves the slider
        explorer.observe(lambda change: print(change["new"]), "num_heads")

    The browser computes anew whenever the slider moves, and a page carries q and k as text. So
    there are limits: 512 tokens; T * d = 262,144 (q and k then weigh 2.8 MB in a page); and
    T * T * d = 2**25, the weights that d heads of width 1 have. That allows 512 tokens at d = 64,
    362 at d = 256 and 209 at d = 768. Longer sequences are for `attnlib.heatmap` and
    `plot_long_heads`.

    Traits that a reader changes:
        num_heads (int): into how many heads the d columns are cut.
        causal (bool): whether no query may look to the right.
        head (int): the enlarged head, 0-based as in `weights[:, head]`.

    Traits that are fixed: tokens (list of str), T, d, origin, and q and k as T x d float32 numbers,
    row by row, little endian.

    Args:
        tokens: T strings.
        q: projected queries [T, d], all heads side by side.
        k: projected keys [T, d].
        num_heads: the number of heads at the start; the largest of 4, 3, 2, 1 that divides d if
            left out.
        causal: whether the causal mask is on at the start.
        origin: where the weights come from, told to the reader: "random (seed 0)",
            "hand-built", "trained (seed 3)".

    Raises:
        TypeError: tokens that aren't strings; q or k not a tensor of floating point numbers.
        ValueError: no tokens or too many, shapes that don't fit or are too large, NaN or infinity,
            or a number of heads that doesn't divide d.
    """

    _esm = browser_code("head_explorer.js")
    _css = style_sheet("head_explorer.css")
    summary = summary_trait(
        "Maps of what every head looks at, with a slider over the number of heads."
    )

    num_heads = traitlets.Int(1).tag(sync=True)
    causal = traitlets.Bool(False).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        tokens: Sequence[str],
        q: Tensor,
        k: Tensor,
        *,
        num_heads: int | None = None,
        causal: bool = False,
        origin: str = "as given",
    ) -> None:
        self._hold(tokens, q, k, origin)
        _require_quick(self.T, self.d)
        require_flag("causal", causal)
        if num_heads is None:
            num_heads = max(h for h in (1, 2, 3, 4) if self.d % h == 0)
        require_divisible(self.d, num_heads)
        super().__init__(num_heads=num_heads, causal=causal)

    @classmethod
    def from_module(
        cls,
        module: MultiHeadAttention,
        x: Tensor,
        tokens: Sequence[str],
        *,
        causal: bool = False,
        origin: str = "as given",
    ) -> Self:
        """Explore the heads of an attnlib attention on one sequence.

        Args:
            module: its projections W_q and W_k make q and k; the slider starts at its head count.
                Not one with grouped heads, whose k has fewer columns than q: there is no slider
                that cuts both alike.
            x: the module's input, [T, d] or [1, T, d].
            tokens, causal, origin: as for HeadExplorer.

        Raises:
            TypeError: not an attnlib MultiHeadAttention, or x not a floating point tensor.
            ValueError: x of another shape, a module with grouped heads or other keys than x; and
                what HeadExplorer raises.
        """
        otherwise = "pass its projected queries and keys to HeadExplorer(tokens, q, k)"
        rows = checked_rows(module, x, otherwise)
        _require_equal_heads(module)
        with torch.no_grad():
            q, k = module.W_q(rows), module.W_k(rows)  # [T, d] -> [T, d]
        return cls(tokens, q, k, num_heads=module.num_heads, causal=causal, origin=origin)

    def __repr__(self) -> str:
        """Say what is shown, without the bytes."""
        return f"HeadExplorer({self.T} tokens, d={self.d}, num_heads={self.num_heads})"

    @traitlets.validate("num_heads")
    def _num_heads_divides_d(self, proposal: dict) -> int:
        try:
            require_divisible(self.d, proposal["value"])
        except ValueError as error:
            raise traitlets.TraitError(str(error)) from None
        return proposal["value"]

    @traitlets.validate("head")
    def _head_exists(self, proposal: dict) -> int:
        if not 0 <= proposal["value"] < self.num_heads:
            raise traitlets.TraitError(
                f"head must be one of 0 to {self.num_heads - 1} (0-based), got {proposal['value']}"
            )
        return proposal["value"]

    @traitlets.observe("num_heads")
    def _keep_head_in_range(self, change: dict) -> None:
        self.head = min(self.head, change["new"] - 1)


def _require_quick(T: int, d: int) -> None:
    """Raise ValueError if the browser would have too much to compute or to draw."""
    way = "take a part of the sequence, or draw it whole with attnlib.heatmap and plot_long_heads"
    if T > MOST_TOKENS:
        raise ValueError(f"tokens must be at most {MOST_TOKENS}, got {T}: {way}")
    if T * T * d > MOST_WEIGHTS:
        raise ValueError(
            f"q and k must have T * T * d at most {MOST_WEIGHTS:,}, got T={T} and d={d}: the "
            f"browser computes so many weights for d heads, and {math.isqrt(MOST_WEIGHTS // d)} "
            f"tokens are the most for this d; {way}"
        )


def _require_equal_heads(module: MultiHeadAttention) -> None:
    """Raise ValueError unless a module's keys have as many heads as its queries, made of one x."""
    h, kv = module.num_heads, module.num_kv_heads
    if kv != h:
        raise ValueError(
            f"module must have as many heads for keys as for queries, got num_kv_heads={kv} and "
            f"num_heads={h}: the slider cuts q and k alike. To see these {h} heads, give each its "
            f"own copy of the keys: k.unflatten(-1, ({kv}, -1)).repeat_interleave({h // kv}, dim=1)"
            ".flatten(1), and pass that to HeadExplorer(tokens, q, k, num_heads="
            f"{h})"
        )
    if module.kdim != module.d_model:
        raise ValueError(
            f"module must take its keys from x, got kdim={module.kdim} and "
            f"d_model={module.d_model}: pass its projected queries and keys to HeadExplorer"
        )
