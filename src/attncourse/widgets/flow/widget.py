"""Flow: multi-head attention step by step, each number traced to those it was computed from."""

from collections.abc import Sequence
from typing import Self

import torch
import traitlets
from torch import Tensor

from attncourse.widgets._base import CourseWidget, Numbers, browser_files, summary_trait
from attncourse.widgets._inputs import checked_numbers, checked_rows, require_same_output
from attncourse.widgets._origins import mask_of_training
from attncourse.widgets.two_heads.widget import EXAMPLE_HEADS, EXAMPLE_X
from attnlib.attention import MultiHeadAttention
from attnlib.checks import (
    checked_texts,
    require_divisible,
    require_flag,
    require_text,
    shape_of,
)
from attnlib.functional import merge_heads, scaled_dot_product_attention, split_heads

MOST_TOKENS, WIDEST = 6, 6  # what can be read on a phone
PROJECTIONS = ("w_q", "w_k", "w_v", "w_o")
MADE = ("x", "q", "k", "v", "scores", "scaled", "masked", "weights", "heads", "joined", "output")

# The example of lesson L04 goes on where that of TwoHeads ends.
EXAMPLE_W_O = [[1.0, 0, 0, 1], [0, 1, 1, 0], [1, 0, -1, 0], [0, 1, 0, -1]]


class Flow(CourseWidget):
    """Multi-head attention step by step, from the tokens to the output, every number traced.

    Each step shows one matrix and the matrices that it is made of. A reader plays or steps, presses
    a number to see what it was computed from, cuts the same matrices into another number of heads,
    forbids looks into the future, and puts other tokens in each other's places. The browser
    computes all of it. In a notebook::

        Flow()                                     # lesson L04's example
        Flow(x, w_q, w_k, w_v, w_o, 2, ["cat", "sat"])
        widget = Flow.from_module(module, x, ["cat", "sat"], origin="random (seed 0)")
        widget                                     # show it
        widget.matrix = "weights"                  # go to a step
        widget.observe(lambda change: print(change["new"]), "num_heads")

    Traits that a reader changes:
        matrix (str): whose numbers are traced: "x", "q", "k", "v", "scores" (q k^T), "scaled",
            "masked", "weights", "heads" (weights v), "joined" or "output", each made in a step of
            its own; or one of "w_q", "w_k", "w_v" and "w_o", shown in the step that needs it.
        place (list of int): the number that is traced, as [row, head, column in that head],
            0-based. Of a place that the matrix lacks, the nearest is shown.
        num_heads (int): h, a divisor of d.
        causal (bool): whether every look into the future is forbidden.
        sequence (list of int): which of the given tokens stands at each place.

    An origin that begins with none of "random", "hand-built", "built by hand" and "as given" claims
    a training: with the number of heads and the mask at the start. Where a reader leaves these, the
    widget says that nobody trained or built such heads.

    Args:
        x: tokens [T, d], at most 6 of width at most 6; L04's if left out, and with it the matrices.
        w_q, w_k, w_v: [d, d], all heads side by side (x @ w_q).
        w_o: [d, d].
        num_heads: h at the start; must divide d.
        tokens: T strings; "token 0", "token 1", ... if left out.
        causal: whether looks into the future are forbidden at the start.
        origin: where the numbers come from, shown to the reader: "random (seed 0)", "hand-built",
            "trained (seed 3)". If left out, "hand-built" for L04's example, else "as given".
    """

    _esm, _css = browser_files("flow")
    summary = summary_trait(
        "Multi-head attention in eleven steps, from the tokens to the output; any number can be "
        "pressed to see what it was computed from."
    )

    tokens = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    x = Numbers()
    w_q, w_k, w_v, w_o = Numbers(), Numbers(), Numbers(), Numbers()
    T = traitlets.Int(read_only=True).tag(sync=True)
    d = traitlets.Int(read_only=True).tag(sync=True)
    origin = traitlets.Unicode(read_only=True).tag(sync=True)
    trained = traitlets.Dict(read_only=True).tag(sync=True)
    matrix = traitlets.Enum([*MADE, *PROJECTIONS], "x").tag(sync=True)
    place = traitlets.List(traitlets.Int(), [0, 0, 0]).tag(sync=True)
    num_heads = traitlets.Int(1).tag(sync=True)
    causal = traitlets.Bool(False).tag(sync=True)
    sequence = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(
        self,
        x: Tensor | None = None,
        w_q: Tensor | None = None,
        w_k: Tensor | None = None,
        w_v: Tensor | None = None,
        w_o: Tensor | None = None,
        num_heads: int = 2,
        tokens: Sequence[str] | None = None,
        *,
        causal: bool = False,
        origin: str | None = None,
    ) -> None:
        given = dict(zip(("x", *PROJECTIONS), (x, w_q, w_k, w_v, w_o), strict=True))
        if all(value is None for value in given.values()):
            given = _example()
            origin = "hand-built" if origin is None else origin
        numbers = {name: _checked(name, value) for name, value in given.items()}
        T, d = numbers["x"].shape
        for name in PROJECTIONS:
            if shape_of(numbers[name]) != [d, d]:
                raise ValueError(
                    f"{name} must have shape [{d}, {d}], as wide as x, got "
                    f"{shape_of(numbers[name])}: the matrices of all heads side by side"
                )
        require_divisible(d, num_heads)
        names = [f"token {i}" for i in range(T)] if tokens is None else tokens
        names = checked_texts("tokens", names)
        if len(names) != T:
            raise ValueError(f"tokens must name the {T} rows of x, got {len(names)} tokens")
        require_flag("causal", causal)
        origin = "as given" if origin is None else origin
        require_text("origin", origin)
        trained = {"num_heads": num_heads, "causal": mask_of_training(origin, causal)}
        start = {"num_heads": num_heads, "causal": causal, "sequence": list(range(T))}
        super().__init__(tokens=names, T=T, d=d, origin=origin, trained=trained, **numbers, **start)

    @classmethod
    def from_module(
        cls,
        module: MultiHeadAttention,
        x: Tensor,
        tokens: Sequence[str] | None = None,
        *,
        causal: bool = False,
        origin: str = "as given",
    ) -> Self:
        """Take the matrices of an attnlib attention, and one sequence that it attends to.

        Args:
            module: its projections, without a bias or with one of zeros.
            x: the module's input, [T, d] or [1, T, d].
            tokens, causal, origin: as for Flow.

        Raises:
            TypeError, ValueError: as Flow; the module isn't attnlib's, shares keys between heads or
                takes them from elsewhere, or does more than its four matrices.
        """
        rows = checked_rows(module, x, "pass its four matrices to Flow(x, w_q, w_k, w_v, w_o)")
        d, h = module.d_model, module.num_heads
        if module.num_kv_heads != h or {module.kdim, module.vdim} != {d}:
            raise ValueError(
                f"module must make queries, keys and values of one x and for the same heads, got "
                f"num_kv_heads={module.num_kv_heads} of {h}, kdim={module.kdim} and "
                f"vdim={module.vdim}: Flow draws four square matrices"
            )
        require_flag("causal", causal)
        with torch.no_grad():
            w_q, w_k, w_v, w_o = (getattr(module, f"W_{letter}").weight.T for letter in "qkvo")
            output, _ = module(rows[None], causal=causal)
            q, k, v = (split_heads(rows[None] @ w, h) for w in (w_q, w_k, w_v))
            heads, _ = scaled_dot_product_attention(q, k, v, causal=causal)
            found = merge_heads(heads) @ w_o
        require_same_output(
            found,
            output,
            "module must do no more than multiply by four matrices and attend, but its output "
            "differs from that by {}: does it add a bias, or leave out looks?",
        )
        return cls(rows, w_q, w_k, w_v, w_o, h, tokens, causal=causal, origin=origin)

    def __repr__(self) -> str:
        sizes = f"{self.T} tokens, d={self.d}, num_heads={self.num_heads}"
        return f"Flow({sizes}, causal={self.causal}, at {self.matrix})"


def _example() -> dict[str, Tensor | None]:
    heads = torch.tensor(EXAMPLE_HEADS)  # [h, 3, d, d_k]
    projections = heads.permute(1, 2, 0, 3).flatten(2)  # [h, 3, d, d_k] -> [3, d, h * d_k]
    matrices = [torch.tensor(EXAMPLE_X), *projections, torch.tensor(EXAMPLE_W_O)]
    return dict(zip(("x", *PROJECTIONS), matrices, strict=True))


def _checked(name: str, value: Tensor | None) -> Tensor:
    """Return a matrix as float32 on the CPU, or raise unless it can be written out."""
    if value is None:
        raise TypeError(
            f"{name} must be given, for x and its four matrices belong together: Flow() alone "
            "shows an example"
        )
    numbers = checked_numbers(name, value)
    if numbers.dim() != 2:
        raise ValueError(
            f"{name} must be a matrix, got {shape_of(value)}: one sequence, all heads side by side"
        )
    if name == "x":
        for letter, size, limit in zip("Td", numbers.shape, (MOST_TOKENS, WIDEST), strict=True):
            if not 1 <= size <= limit:
                raise ValueError(
                    f"x must have shape [T, d] with {letter} from 1 to {limit}, got "
                    f"{shape_of(value)}: Flow writes out every number"
                )
    return numbers
