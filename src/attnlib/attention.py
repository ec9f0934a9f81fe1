"""Attention, once: the function, splitting into heads, and the module.

Letters: B batch, T tokens (T_q queries, T_k keys), d model width, h heads, d_k width of one head.
Row vectors (x @ W). Weights are [B, h, T_q, T_k]: rows are queries (who looks), columns are keys
(what is looked at). A boolean mask says True = may look.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlib._checks import (
    require_divisible,
    require_floating,
    require_like,
    require_sequence,
    require_tokens,
    shape_of,
)
from attnlib.masks import combine_masks


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """Let every query mix the values, weighted by how well its key matches.

        weights = softmax(q @ k^T / sqrt(d_k)),   output = weights @ v

    (Vaswani et al. 2017, section 3.2.1.) A query that may look nowhere has weights 0 and output 0.

    Args:
        q: queries [..., T_q, d_k], with no, one (B) or two (B, h) dimensions in front.
        k: keys [..., T_k, d_k].
        v: values [..., T_k, d_v].
        mask: boolean, True = may look; [T_q, T_k], [B, T_q, T_k], or broadcasting to
            [B, h, T_q, T_k].
        causal: also forbid every look to the right; needs T_q = T_k.

    Returns:
        The output [..., T_q, d_v] and the weights [..., T_q, T_k].

    Raises:
        TypeError: not floating point tensors of one dtype, or a mask that isn't boolean.
        ValueError: shapes that don't fit, or no tokens.
    """
    _require_matching(q, k, v)
    allowed = combine_masks((*q.shape[:-1], k.shape[-2]), q.device, mask=mask, causal=causal)
    weights = _weights(q, k, allowed)
    return weights @ v, weights


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Cut the last dimension into heads: [B, T, d] -> [B, h, T, d_k] with d_k = d / h.

    The transpose matters: reading memory as [B, h, T, d_k] at once would mix tokens with features.

    Raises:
        TypeError, ValueError: x isn't [B, T, d], or d isn't divisible by `num_heads`.
    """
    require_floating("x", x)
    if x.dim() != 3:
        raise ValueError(f"x must have shape [B, T, d], got {shape_of(x)}")
    B, T, d = x.shape
    require_divisible(d, num_heads)
    x = x.view(B, T, num_heads, d // num_heads)  # [B, T, d] -> [B, T, h, d_k]
    return x.transpose(1, 2)  # [B, T, h, d_k] -> [B, h, T, d_k]


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads side by side again: [B, h, T, d_k] -> [B, T, d]; undoes `split_heads`.

    Raises:
        TypeError, ValueError: x isn't a floating point tensor [B, h, T, d_k].
    """
    require_floating("x", x)
    if x.dim() != 4:
        raise ValueError(f"x must have shape [B, h, T, d_k], got {shape_of(x)}")
    return x.transpose(1, 2).flatten(2)  # [B, h, T, d_k] -> [B, T, h, d_k] -> [B, T, d]


class MultiHeadAttention(nn.Module):
    """h attentions side by side, each reading all of x through its own projections.

        x [B, T, d] --W_q, split--> q [B, h, T, d_k] --+
                    --W_k, split--> k [B, h, T, d_k] --+--> attention --merge, W_o--> [B, T, d]
                    --W_v, split--> v [B, h, T, d_k] --+

    (Vaswani et al. 2017, section 3.2.2.) When the weights aren't asked for, the attention runs in
    PyTorch's fused kernel, which never holds a T_q x T_k map; both paths give the same output.

    Args:
        d_model: width d of tokens, in and out.
        num_heads: h; must divide d_model.
        bias: whether the four projections add a bias.
        device, dtype: of the parameters, as for every torch module.

    Raises:
        TypeError, ValueError: sizes that aren't whole numbers, or d_model not divisible by h.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_divisible(d_model, num_heads)
        self.d_model, self.num_heads = d_model, num_heads
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.W_q = nn.Linear(d_model, d_model, **options)
        self.W_k = nn.Linear(d_model, d_model, **options)
        self.W_v = nn.Linear(d_model, d_model, **options)
        self.W_o = nn.Linear(d_model, d_model, **options)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights: Xavier-uniform matrices (Glorot & Bengio 2010), biases 0."""
        for projection in (self.W_q, self.W_k, self.W_v, self.W_o):
            nn.init.xavier_uniform_(projection.weight)
            if projection.bias is not None:
                nn.init.zeros_(projection.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        causal: bool = False,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from `query` to `key`, mixing `value`.

        Args:
            query: tokens that look, [B, T_q, d].
            key: tokens that are looked at, [B, T_k, d]; the query itself if left out.
            value: tokens that are mixed, [B, T_k, d]; the key if left out.
            mask: boolean, True = may look: [T_q, T_k], [B, T_q, T_k], or broadcasting to
                [B, h, T_q, T_k].
            key_mask: boolean [B, T_k], True = a real token (see `padding_mask`).
            causal: also forbid every look to the right; needs T_q = T_k.
            need_weights: also return each head's weights.

        Returns:
            The output [B, T_q, d], and the weights [B, h, T_q, T_k] or None. A query that may look
            nowhere has weights 0 and output `W_o.bias`.

        Raises:
            TypeError: not floating point tensors of the module's dtype, or a mask that isn't
                boolean.
            ValueError: shapes that don't fit, or no tokens.
        """
        key = query if key is None else key
        value = key if value is None else value
        self._require_fitting(query, key, value)
        q = split_heads(self.W_q(query), self.num_heads)  # [B, T_q, d] -> [B, h, T_q, d_k]
        k = split_heads(self.W_k(key), self.num_heads)  # [B, T_k, d] -> [B, h, T_k, d_k]
        v = split_heads(self.W_v(value), self.num_heads)  # [B, T_k, d] -> [B, h, T_k, d_k]
        limits = {"mask": mask, "key_mask": key_mask, "causal": causal}
        allowed = combine_masks((*q.shape[:-1], k.shape[-2]), q.device, **limits)
        if need_weights:
            weights = _weights(q, k, allowed)
            heads = weights @ v  # [B, h, T_q, T_k] @ [B, h, T_k, d_k] -> [B, h, T_q, d_k]
        else:
            weights = None
            only_causal = causal and mask is None and key_mask is None
            heads = _fused(q, k, v, None if only_causal else allowed, causal=only_causal)
        return self.W_o(merge_heads(heads)), weights

    def extra_repr(self) -> str:
        """Say the sizes when the module is printed."""
        return f"d_model={self.d_model}, num_heads={self.num_heads}"

    def _require_fitting(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        for name, x in (("query", query), ("key", key), ("value", value)):
            require_sequence(name, x, self.d_model)
            require_like(name, x, "the module's weights", self.W_q.weight)
        for name, x in (("key", key), ("value", value)):
            if x.shape[0] != query.shape[0]:
                raise ValueError(
                    f"{name} must have the query's batch size, "
                    f"got {shape_of(x)} and query {shape_of(query)}"
                )
        if value.shape[1] != key.shape[1]:
            raise ValueError(
                f"value must have one row a key, got {shape_of(value)} and key {shape_of(key)}"
            )


def _weights(q: Tensor, k: Tensor, allowed: Tensor | None) -> Tensor:
    """softmax(q k^T / sqrt(d_k)) over the allowed keys; rows that may look nowhere are 0."""
    # The scale goes on q: [T_q, d_k] numbers to multiply instead of [T_q, T_k].
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)  # -> [..., T_q, T_k]
    if allowed is None:
        return scores.softmax(-1)
    # softmax of a row of -inf is NaN, also in the gradient, so such a row first looks everywhere.
    blind = ~allowed.any(-1, keepdim=True)
    weights = scores.masked_fill(~(allowed | blind), -math.inf).softmax(-1)
    return weights.masked_fill(blind, 0.0)


def _fused(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, *, causal: bool) -> Tensor:
    """Return the heads' outputs by the fused kernel, with the same meaning of blind rows."""
    if allowed is None:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    blind = ~allowed.any(-1, keepdim=True)
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed | blind)
    return heads.masked_fill(blind, 0.0)


def _require_matching(q: Tensor, k: Tensor, v: Tensor) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        require_floating(name, x)
        if not 2 <= x.dim() <= 4:
            raise ValueError(
                f"{name} must have shape [T, d_k], [B, T, d_k] or [B, h, T, d_k], got {shape_of(x)}"
            )
        require_tokens(name, x)
        require_like(name, x, "q", q)
    if k.shape[-1] != q.shape[-1]:
        raise ValueError(
            f"k must have the width of q, got {shape_of(k)} and q {shape_of(q)}: "
            "a score is the dot product of a query and a key"
        )
    if v.shape[-2] != k.shape[-2]:
        raise ValueError(f"v must have one row a key, got {shape_of(v)} and k {shape_of(k)}")
    for name, x in (("k", k), ("v", v)):
        if x.shape[:-2] != q.shape[:-2]:
            raise ValueError(
                f"{name} must have the leading dimensions of q, "
                f"got {shape_of(x)} and q {shape_of(q)}"
            )
