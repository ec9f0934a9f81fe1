"""Attention from its four projections."""

from torch import Tensor, nn

from attnlib._projection import is_plain_linear, runs_nothing_but
from attnlib.attention import MultiHeadAttention
from attnlib.checks import require_dense, require_divisible, require_positive_int, shape_of
from attnlib.interop._assembly import assemble

Projection = nn.Module | Tensor | tuple[Tensor, Tensor | None]


def from_projections(
    q: Projection,
    k: Projection,
    v: Projection,
    out: Projection,
    num_heads: int,
    *,
    num_kv_heads: int | None = None,
) -> MultiHeadAttention:
    """Return a `MultiHeadAttention` with the four projections of another attention.

    This serves every library with plain attention under other names: DistilBERT (`q_lin`, `k_lin`,
    `v_lin`, `out_lin`), CLIP, OPT, Whisper and BART (`q_proj`, `k_proj`, `v_proj`, `out_proj`), ViT
    (`o_proj`), and layers of your own.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> q, k, v, out = (nn.Linear(12, 12) for _ in range(4))
        >>> attention = from_projections(q, k, v, out, num_heads=3)
        >>> x = torch.randn(2, 5, 12)
        >>> torch.equal(attention.W_k(x), k(x))
        True

    **The projections must be the whole attention.** They don't show what happens between them, such
    as rotary or relative positions (Llama, T5), norms of queries and keys, another scale than
    1 / sqrt(d_k), or heads that aren't side by side; none of it is done here. Call the attention of
    a decoder such as OPT with causal=True.

    Args:
        q, k, v, out: each an `nn.Linear`, a `Conv1D` of transformers, a matrix [d_out, d_in] as
            `nn.Linear` keeps it, or a pair (matrix, bias or None). q and out are [d, d], k is
            [d_kv, kdim] and v [d_kv, vdim], where d_kv is num_kv_heads heads wide. Weights are
            copied, and keep their dtype and device.
        num_heads: h, which the projections don't show.
        num_kv_heads: how many heads keys and values have; h if left out.

    Returns:
        A module without dropout. If only some projections have a bias (Whisper's keys have none),
        those of the others are 0.

    Raises:
        TypeError: a projection of another kind, wrapped, hooked or quantized.
        ValueError: sizes that don't fit, or numbers that are NaN or infinite.
    """
    num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    given = {"q": q, "k": k, "v": v, "out": out}
    read = {name: _read(name, projection) for name, projection in given.items()}
    _require_sizes({name: matrix for name, (matrix, _) in read.items()}, num_heads, num_kv_heads)
    weights: dict[str, Tensor | None] = {}
    for ours, (matrix, bias) in zip(("W_q", "W_k", "W_v", "W_o"), read.values(), strict=True):
        weights |= {f"{ours}.weight": matrix, f"{ours}.bias": bias}
    return assemble(weights, num_heads, num_kv_heads=num_kv_heads)


def _read(name: str, projection: Projection) -> tuple[Tensor, Tensor | None]:
    """Return a projection's matrix [d_out, d_in] and bias [d_out] or None."""
    if isinstance(projection, nn.Module):
        matrix, bias = _read_layer(name, projection)
    elif isinstance(projection, tuple) and len(projection) == 2:
        matrix, bias = projection
    else:
        matrix, bias = projection, None
    if not isinstance(matrix, Tensor) or not isinstance(bias, Tensor | None):
        raise TypeError(
            f"{name} must be an nn.Linear, a matrix [d_out, d_in] or a pair (matrix, bias), got "
            f"{type(projection).__name__}"
        )
    for tensor in (matrix, bias):
        if tensor is not None:
            require_dense(name, tensor)
    if matrix.dim() != 2 or (bias is not None and bias.shape != matrix.shape[:1]):
        with_bias = "" if bias is None else f" and bias {shape_of(bias)}"
        raise ValueError(
            f"{name} must have a matrix [d_out, d_in] and a bias [d_out] or none, "
            f"got {shape_of(matrix)}{with_bias}"
        )
    return matrix.detach(), None if bias is None else bias.detach()


def _read_layer(name: str, layer: nn.Module) -> tuple[Tensor, Tensor | None]:
    if is_plain_linear(layer):
        return layer.weight, layer.bias
    weights = dict(layer.named_parameters())
    if (
        type(layer).__name__ == "Conv1D"  # transformers' own
        and weights.keys() == {"weight", "bias"}
        and runs_nothing_but(layer, type(layer).forward)
    ):
        return weights["weight"].T, weights["bias"]  # [d_in, d_out] -> [d_out, d_in]
    raise TypeError(
        f"{name} must be an nn.Linear that computes with its weight alone, got "
        f"{type(layer).__name__}: it is another layer, or wrapped (LoRA: merge it first), hooked "
        "or quantized; a pair (matrix [d_out, d_in], bias) will do"
    )


def _require_sizes(matrices: dict[str, Tensor], num_heads: int, num_kv_heads: int) -> None:
    """Raise ValueError unless the four matrices fit each other."""
    d = len(matrices["q"])
    require_divisible(d, num_heads)
    require_positive_int("num_kv_heads", num_kv_heads)
    d_k = d // num_heads
    d_kv = d_k * num_kv_heads
    wanted = {"q": (d, d), "k": (d_kv, None), "v": (d_kv, None), "out": (d, d)}
    for name, (d_out, d_in) in wanted.items():
        rows, columns = matrices[name].shape
        if rows == d_out and d_in in (None, columns):
            continue
        message = (
            f"{name} must be a matrix {[d_out, d_in or 'any width']} where q makes {d} numbers, of "
            f"{num_heads} heads with d_k={d_k}, got {[rows, columns]}"
        )
        if name in "kv" and rows % d_k == 0 and rows != d_out:
            message += f": these are num_kv_heads={rows // d_k} heads"
        raise ValueError(message)
