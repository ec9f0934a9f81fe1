"""HeadExplorer: what each head looks at, for every number of heads that divides the width."""

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


class HeadExplorer(QueriesAndKeys):
    """All heads as heatmaps, with a slider over the number of heads.

    The browser cuts the columns of q and k into heads and computes every head's weights
    softmax(q_i k_i^T / sqrt(d_k)) itself, so each number of heads is exact, also where no Python
    runs. In a notebook::

        explorer = HeadExplorer(["the", "cat", "sat"], torch.randn(3, 8), torch.randn(3, 8))
        explorer                                                   # show it
        explorer.num_heads = 8                                     # moves the slider
        explorer.observe(lambda change: print(change["new"]), "num_heads")

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
        ValueError: no tokens, shapes that don't fit, NaN or infinity, or a number of heads that
            doesn't divide d.
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
            x: the module's input, [T, d] or [1, T, d].
            tokens, causal, origin: as for HeadExplorer.

        Raises:
            TypeError: not an attnlib MultiHeadAttention, or x not a floating point tensor.
            ValueError: x of another shape; and what HeadExplorer raises.
        """
        otherwise = "pass its projected queries and keys to HeadExplorer(tokens, q, k)"
        rows = checked_rows(module, x, otherwise)
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
