"""Multi-head attention as a module: projections and options around `attnlib.functional`.

Letters: B batch, T tokens (T_q queries, T_k keys), d model width, h heads (h_kv of keys and
values), d_k width of one head. Row vectors (x @ W). Weights are [B, h, T_q, T_k]: rows are queries
(who looks), columns are keys (what is looked at). In a mask True means: may look.
"""

import copy
from collections.abc import Callable
from typing import TypedDict, Unpack

import torch
from torch import Tensor, nn

from attnlib import _attention_checks as checks
from attnlib._projection import project_heads
from attnlib.cache import KVCache, require_cache
from attnlib.checks import require_flag, require_parameter_dtype
from attnlib.functional import (
    checkpointed_weights,
    explicit_attention,
    fused_attention,
    merge,
    split,
)
from attnlib.masks import AttentionMask
from attnlib.positions import RotaryPositions


class AttentionOptions(TypedDict, total=False):
    """The options of `MultiHeadAttention.forward`, for callers that pass them on."""

    mask: Tensor | None
    key_mask: Tensor | None
    score_bias: Tensor | None
    causal: bool
    need_weights: bool
    head_mask: Tensor | None
    cache: KVCache | None


class MultiHeadAttention(nn.Module):
    """h attentions side by side, each reading all of x through its own projections.

    What happens to the tokens x::

        x [B, T, d] --W_q, split--> q [B, h,    T, d_k] -+
                    --W_k, split--> k [B, h_kv, T, d_k] -+-> attention --merge, W_o--> [B, T, d]
                    --W_v, split--> v [B, h_kv, T, d_k] -+

    (Vaswani et al. 2017, section 3.2.2; there h_kv is h.) Without weights, attention runs in
    PyTorch's fused kernel, which never holds a T_q x T_k map; the output is the same up to
    rounding. On a CPU PyTorch does hold the map for dropout or a score_bias that learns.

    Args:
        d_model: width d of the tokens that look, and of the output.
        num_heads: h; must divide d_model.
        num_kv_heads: heads of keys and values: h if left out; fewer for grouped-query attention
            (Ainslie et al. 2023), 1 for multi-query attention (Shazeer 2019). It must divide h;
            h / num_kv_heads neighboring query heads share one.
        kdim, vdim: widths of the tokens passed as key and as value; d_model if left out.
        bias: whether the four projections add a bias.
        dropout: probability that a weight is dropped in training, at least 0 and below 1. It acts
            on the output, not on the weights returned.
        rotary: turns queries and keys by their positions (see `attnlib.positions`), counted from
            the first token of the cache. There must be as many queries as new keys. The cache
            holds turned keys.
        device, dtype: of the parameters, as for every torch module.

    Raises:
        TypeError, ValueError: sizes that aren't whole numbers or don't divide, another dropout, a
            rotary of another type or with heads of odd width, or a dtype that isn't floating point.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        kdim: int | None = None,
        vdim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        rotary: RotaryPositions | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        kdim = d_model if kdim is None else kdim
        vdim = d_model if vdim is None else vdim
        checks.require_sizes(d_model, num_heads, num_kv_heads, kdim, vdim, dropout)
        require_flag("bias", bias)
        checks.require_rotary(rotary, d_model // num_heads)
        require_parameter_dtype(dtype)
        self.d_model, self.num_heads, self.num_kv_heads = d_model, num_heads, num_kv_heads
        self.kdim, self.vdim, self.dropout = kdim, vdim, dropout
        self.rotary = rotary
        d_kv = d_model // num_heads * num_kv_heads
        self.W_q = nn.Linear(d_model, d_model, bias, device, dtype)
        self.W_k = nn.Linear(kdim, d_kv, bias, device, dtype)
        self.W_v = nn.Linear(vdim, d_kv, bias, device, dtype)
        self.W_o = nn.Linear(d_model, d_model, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights: Xavier-uniform matrices (Glorot & Bengio 2010), biases 0."""
        for projection in (self.W_q, self.W_k, self.W_v, self.W_o):
            nn.init.xavier_uniform_(projection.weight)
            if projection.bias is not None:
                nn.init.zeros_(projection.bias)

    __call__: Callable[..., tuple[Tensor, Tensor | None]]  # for type checkers; as forward

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        score_bias: Tensor | None = None,
        causal: bool = False,
        need_weights: bool = False,
        head_mask: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from `query` to `key`, mixing `value`.

        Numbers themselves aren't checked, as that would stall a GPU: NaN in tokens, `score_bias` or
        `head_mask` gives NaN, as does +inf.

        Args:
            query: tokens that look, [B, T_q, d].
            key: tokens that are looked at, [B, T_k, kdim]; the query itself if left out.
            value: tokens that are mixed, [B, T_k, vdim]; the key if left out.
            mask: boolean, True = may look: [T_q, T_k], [B, T_q, T_k], or broadcasting to
                [B, h, T_q, T_k].
            key_mask: boolean [B, T_k], True = a real token. Padding must hold finite numbers (see
                `padding_mask`).
            score_bias: numbers added to the scores, [T_q, T_k] or broadcasting to [B, h, T_q, T_k]
                (as ALiBi's are: Press et al. 2022); -inf forbids a look.
            causal: also forbid every look to the right. There must be as many queries as new keys;
                they stand after the keys in the cache.
            need_weights: also return each head's weights.
            head_mask: a factor for each head's output, [h] or [B, h]; 0 mutes the head. Gradients
                flow through it (Michel et al. 2019, sections 2.3 and 4.1).
            cache: the keys and values so far; the new ones are added to it. T_k of the masks and
                weights counts all of them.

        Returns:
            The output [B, T_q, d], and the weights [B, h, T_q, T_k] or None: those before dropout
            and head_mask. A query that may look nowhere has weights 0 and output `W_o.bias`. The
            backward pass doesn't keep the weights: it computes them again if their own gradient is
            needed.

        Raises:
            TypeError: not floating point tensors of the module's dtype, a mask that isn't boolean,
                or options of another type.
            ValueError: shapes or devices that don't fit, no tokens, or a cache of another module or
                batch.
        """
        heads, weights, remembered = self._heads(
            query, key, value, mask=mask, key_mask=key_mask, score_bias=score_bias, causal=causal,
            need_weights=need_weights, head_mask=head_mask, cache=cache,
        )  # fmt: skip
        output = self.W_o(merge(heads))  # [B, h, T_q, d_k] -> [B, T_q, d]
        if cache is not None and remembered is not None:  # last: after an error it is unchanged
            cache.keep(self, *remembered)
        return output, weights

    def contributions(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        **options: Unpack[AttentionOptions],
    ) -> Tensor:
        """Return what each head adds to the output, [B, h, T_q, d], and leave a cache unchanged.

        Joining the heads and multiplying by W_o is a sum over heads (Elhage et al. 2021, "Attention
        heads are independent and additive"), so contributions.sum(1) + W_o.bias is the output, up
        to dropout. Takes the arguments of `forward` and raises what it raises.

        A W_o that is no plain `nn.Linear` any more (LoRA, a hook, sharded) is called h + 2 times:
        on each head alone, on all, and on 0 for its bias. Hooks on this module itself don't run.

        Raises:
            ValueError: also for a W_o whose result is no sum over heads, such as a quantized one.
        """
        for name in options.keys() - AttentionOptions.__annotations__.keys():
            raise TypeError(f"contributions got an unexpected keyword argument {name!r}")
        options["cache"] = copy.copy(options.get("cache"))  # a branch, thrown away afterwards
        heads, *_ = self._heads(query, key, value, **options)
        return project_heads(heads, self.W_o)

    def extra_repr(self) -> str:
        """Return the sizes, to be printed."""
        sizes = f"d_model={self.d_model}, num_heads={self.num_heads}"
        if self.num_kv_heads != self.num_heads:
            sizes += f", num_kv_heads={self.num_kv_heads}"
        return sizes

    def _heads(
        self, query: Tensor, key: Tensor | None, value: Tensor | None, *,
        mask: Tensor | None = None, key_mask: Tensor | None = None,
        score_bias: Tensor | None = None, causal: bool = False, need_weights: bool = False,
        head_mask: Tensor | None = None, cache: KVCache | None = None,
    ) -> tuple[Tensor, Tensor | None, tuple[Tensor, Tensor] | None]:  # fmt: skip
        """Return the heads' outputs [B, h, T_q, d_k], the weights or None, and what to cache."""
        key = query if key is None else key
        value = key if value is None else value
        widths = {"query": self.d_model, "key": self.kdim, "value": self.vdim}
        checks.require_inputs(query, key, value, widths, getattr(self.W_q, "weight", None))
        checks.require_head_mask(head_mask, query, self.num_heads)
        require_flag("need_weights", need_weights)
        require_cache(cache)

        q = split(self.W_q(query), self.num_heads)  # [B, T_q, d] -> [B, h, T_q, d_k]
        k = split(self.W_k(key), self.num_kv_heads)  # [B, T_k, kdim] -> [B, h_kv, T_k, d_k]
        v = split(self.W_v(value), self.num_kv_heads)  # [B, T_k, vdim] -> [B, h_kv, T_k, d_k]
        past = 0 if cache is None else len(cache)
        if self.rotary is not None:
            checks.require_one_sequence(q, k)
            q, k = self.rotary(q, start=past), self.rotary(k, start=past)
        if cache is not None:
            k, v = cache.joined(self, k, v)
        limits = AttentionMask.of(
            q, k, mask=mask, key_mask=key_mask, score_bias=score_bias, causal=causal, past=past
        )
        needs_grad = torch.is_grad_enabled() and any(
            x.requires_grad for x in (q, k, v, score_bias) if x is not None
        )

        dropout = self.dropout if self.training else 0.0
        weights = None
        explicit = need_weights and not needs_grad and not dropout
        if self.num_kv_heads != self.num_heads and torch.compiler.is_compiling():
            explicit = False  # a compiler can't prove for every T that groups of a map are a view
        if explicit:
            heads, weights = explicit_attention(q, k, v, limits)
        else:
            heads = fused_attention(q, k, v, limits, dropout)
            if need_weights:
                weights = checkpointed_weights(q, k, limits)
        if head_mask is not None:
            heads = heads * head_mask.to(heads.dtype)[..., None, None]  # [h] or [B, h], for all T_q
        return heads, weights, None if cache is None else (k, v)
