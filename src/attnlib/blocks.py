"""The feed-forward network, and the Transformer block: attention, feed-forward network and norms.

Letters: B batch, T tokens, d model width (`d_model`), h heads (`num_heads`), d_ff hidden width.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlib.attention import AttentionOptions, MultiHeadAttention
from attnlib.checks import (
    require_dropout,
    require_flag,
    require_parameter_dtype,
    require_positive_int,
    require_sequence,
    require_width,
    shape_of,
)
from attnlib.norms import LayerNorm, make_norms

NormPosition = Literal["pre", "post"] | None
Activation = Literal["gelu", "gelu_tanh", "relu"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
}


class FeedForward(nn.Module):
    """Two matrices with a GELU (or its like) between them, applied to each token by itself.

    As in Vaswani et al. 2017, section 3.3, with an exact GELU instead of ReLU::

        x [..., d] --W_1--> [..., d_ff] --GELU--> [..., d_ff] --W_2--> [..., d]

    Args:
        d_model: width d of a token, in and out.
        d_ff: width in between; 4 d if left out.
        activation: "gelu", the exact one (Hendrycks & Gimpel 2016); "gelu_tanh", the approximation
            with which GPT-2 was trained; "relu".
        bias: whether the two layers add one.
        device, dtype: of the parameters, as for every torch module.

    Raises:
        TypeError, ValueError: sizes that aren't whole numbers of at least 1, an unknown activation,
            a bias that isn't a boolean, or a dtype that isn't floating point.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int | None = None,
        *,
        activation: Activation = "gelu",
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_positive_int("d_model", d_model)
        d_ff = 4 * d_model if d_ff is None else d_ff
        require_positive_int("d_ff", d_ff)
        if not isinstance(activation, str) or activation not in ACTIVATIONS:
            raise ValueError(
                f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}"
            )
        require_flag("bias", bias)
        require_parameter_dtype(dtype)
        self.d_model, self.d_ff, self.activation = d_model, d_ff, activation
        self.W_1 = nn.Linear(d_model, d_ff, bias, device, dtype)
        self.W_2 = nn.Linear(d_ff, d_model, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights as attention does: Xavier-uniform matrices, biases 0."""
        for layer in (self.W_1, self.W_2):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    __call__: Callable[..., Tensor]  # for type checkers; as forward

    def forward(self, x: Tensor) -> Tensor:
        """Transform each token by itself: [..., d] -> [..., d].

        Raises:
            TypeError: x isn't a floating point tensor of the module's dtype.
            ValueError: x doesn't end in d.
        """
        require_width(x, self.d_model, getattr(self.W_1, "weight", None))
        hidden = ACTIVATIONS[self.activation](self.W_1(x))  # [..., d] -> [..., d_ff]
        return self.W_2(hidden)  # [..., d_ff] -> [..., d]

    def extra_repr(self) -> str:
        """Return the activation, to be printed."""
        return f"activation={self.activation!r}"


class TransformerBlock(nn.Module):
    """Attention, then a feed-forward network, each with a residual and a norm.

    With f for either of the two sub-layers::

        norm_position="pre"     x + f(norm(x))     GPT-2 (Radford et al. 2019, section 2.3)
        norm_position="post"    norm(x + f(x))     Vaswani et al. 2017, section 3.1
        norm_position=None      x + f(x)

    `residual=False` leaves out the "x +". A pre-norm stack also needs one norm after its last
    block, which belongs to the model. `of_parts` makes a block from parts of your own.

    Args:
        d_model: width d of tokens, in and out.
        num_heads: h; must divide d_model.
        d_ff: hidden width of the feed-forward network; 4 d if left out.
        norm_position: "pre", "post" or None.
        residual: whether each sub-layer's result is added to its input.
        norm: makes a norm, called as norm(d_model, device=..., dtype=...): LayerNorm, RMSNorm.
        device, dtype: of the parameters, as for every torch module.

    Raises:
        TypeError, ValueError: sizes that don't fit, an unknown norm_position, or a norm that makes
            no module.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int | None = None,
        *,
        norm_position: NormPosition = "pre",
        residual: bool = True,
        norm: Callable[..., nn.Module] = LayerNorm,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        attention = MultiHeadAttention(d_model, num_heads, **options)
        feed_forward = FeedForward(d_model, d_ff, **options)
        norms = make_norms(norm, 2 if norm_position else 0, d_model, options)
        self._assemble(attention, feed_forward, norms, norm_position, residual, dropout=0.0)

    @staticmethod
    def of_parts(
        attention: MultiHeadAttention,
        feed_forward: nn.Module | None = None,
        norms: Sequence[nn.Module] | nn.ModuleList | None = None,
        *,
        norm_position: NormPosition = "pre",
        residual: bool = True,
        dropout: float = 0.0,
    ) -> "TransformerBlock":
        """Make a block from parts, so that each may have options of its own.

        Args:
            attention: from tokens to the same tokens; its kdim and vdim are d.
            feed_forward: [B, T, d] -> [B, T, d], each token by itself; None for a block of
                attention alone.
            norms: a module per sub-layer, [B, T, d] -> [B, T, d]; LayerNorms if left out.
            norm_position, residual: as for a block from sizes.
            dropout: share of a sub-layer's result that is left out in training (Vaswani et al.
                2017, section 5.4), at least 0 and below 1.

        Example:
            >>> from attnlib import MultiHeadAttention, RMSNorm, TransformerBlock
            >>> attention = MultiHeadAttention(8, num_heads=4, num_kv_heads=2, bias=False)
            >>> TransformerBlock.of_parts(attention, norms=[RMSNorm(8)])  # no feed-forward network
            TransformerBlock(
              norm_position='pre', residual=True
              (attention): MultiHeadAttention(
              ...

        Raises:
            TypeError: a part that is no module, or an attention that isn't attnlib's.
            ValueError: parts of other widths, one part in two places, a wrong number of norms, an
                unknown norm_position, or another dropout.
        """
        if not isinstance(attention, MultiHeadAttention):
            raise TypeError(
                f"attention must be an attnlib MultiHeadAttention, got {type(attention).__name__}"
            )
        if norms is None:
            like = next(attention.parameters(), torch.empty(0))  # quantized layers have none
            sublayers = 1 if feed_forward is None else 2
            norms = [
                LayerNorm(attention.d_model, device=like.device, dtype=like.dtype)
                for _ in range(sublayers if norm_position else 0)
            ]
        block = TransformerBlock.__new__(TransformerBlock)
        nn.Module.__init__(block)
        block._assemble(attention, feed_forward, norms, norm_position, residual, dropout)
        return block

    __call__: Callable[..., tuple[Tensor, Tensor | None]]  # for type checkers; as forward

    def forward(
        self, x: Tensor, **options: Unpack[AttentionOptions]
    ) -> tuple[Tensor, Tensor | None]:
        """Pass tokens through the block: [B, T, d] -> [B, T, d].

        Args:
            x: tokens, [B, T, d].
            **options: mask, key_mask, score_bias, causal, need_weights, head_mask and cache, as
                for `MultiHeadAttention`.

        Returns:
            The tokens [B, T, d], and the attention weights [B, h, T, T_k] or None.

        Raises:
            TypeError, ValueError: as `MultiHeadAttention`.
        """
        require_sequence("x", x, self.d_model)
        _require_options(options)
        weights = None

        def attend(x: Tensor) -> Tensor:
            nonlocal weights
            output, weights = self.attention(x, **options)
            return output

        x = self._sublayer(x, attend, self.norm_1)
        if self.feed_forward is not None:
            x = self._sublayer(x, self.feed_forward, self.norm_2)
        return x, weights

    def extra_repr(self) -> str:
        """Return the options, to be printed."""
        options = f"norm_position={self.norm_position!r}, residual={self.residual}"
        return f"{options}, dropout={self.dropout}" if self.dropout else options

    def _sublayer(self, x: Tensor, f: Callable[[Tensor], Tensor], norm: Any) -> Tensor:
        y = f(norm(x) if self.norm_position == "pre" else x)
        _require_kept_shape(y, x)
        if self.dropout:
            y = F.dropout(y, self.dropout, self.training)
        y = x + y if self.residual else y
        return norm(y) if self.norm_position == "post" else y

    def _assemble(
        self,
        attention: MultiHeadAttention,
        feed_forward: nn.Module | None,
        norms: Sequence[nn.Module] | nn.ModuleList,
        norm_position: NormPosition,
        residual: bool,
        dropout: float,
    ) -> None:
        """Check that the parts fit, and keep them."""
        if norm_position not in ("pre", "post", None):
            raise ValueError(f'norm_position must be "pre", "post" or None, got {norm_position!r}')
        require_flag("residual", residual)
        require_dropout(dropout)
        _require_parts(attention, feed_forward, norms, norm_position)
        self.d_model = attention.d_model
        self.norm_position, self.residual, self.dropout = norm_position, residual, dropout
        self.attention = attention
        self.feed_forward: Any = feed_forward  # attributes of any module, for type checkers
        self.norm_1 = norms[0] if norms else None
        self.norm_2 = norms[1] if len(norms) > 1 else None


def _require_options(options: Mapping[str, object]) -> None:
    """Raise unless all are options of attention; key and value aren't, as x takes their place."""
    for name in options:
        if name not in AttentionOptions.__annotations__:
            raise TypeError(
                f"a block takes x and the options {', '.join(AttentionOptions.__annotations__)}, "
                f"got {name}"
            )


def _require_kept_shape(y: Tensor, x: Tensor) -> None:
    """Raise unless a sub-layer kept the shape of its input: the residual would broadcast."""
    if not isinstance(y, Tensor):
        raise TypeError(f"feed_forward must return a tensor, got {type(y).__name__}")
    if y.shape != x.shape:
        raise ValueError(
            f"feed_forward must return the shape of its input {shape_of(x)}, got {shape_of(y)}"
        )


def _require_parts(
    attention: MultiHeadAttention,
    feed_forward: nn.Module | None,
    norms: Sequence[nn.Module] | nn.ModuleList,
    norm_position: NormPosition,
) -> None:
    """Raise unless the parts are different modules of one width, with the norms they need."""
    d = attention.d_model
    if attention.kdim != d or attention.vdim != d:
        raise ValueError(
            f"attention must read keys and values of width d_model={d}, got kdim={attention.kdim} "
            f"and vdim={attention.vdim}: in a block tokens look at each other"
        )
    if not isinstance(norms, Sequence | nn.ModuleList):
        raise TypeError(f"norms must be a list of modules, got {type(norms).__name__}")
    parts = {} if feed_forward is None else {"feed_forward": feed_forward}
    if len(norms) and norm_position is None:
        raise ValueError(f"norms must be left out where norm_position is None, got {len(norms)}")
    if norm_position and len(norms) != 1 + len(parts):
        raise ValueError(f"norms must hold one per sub-layer, {1 + len(parts)}, got {len(norms)}")
    parts |= {f"norms[{i}]": norm for i, norm in enumerate(norms)}
    places: dict[nn.Module, str] = {attention: "attention"}
    for name, part in parts.items():
        if not isinstance(part, nn.Module):
            raise TypeError(f"{name} must be a module, got {type(part).__name__}")
        if part in places:
            raise ValueError(
                f"{name} must be a module of its own, got {places[part]} once more: they would "
                "share their weights (copy.deepcopy makes another)"
            )
        places[part] = name
        if isinstance(part, nn.modules.batchnorm._NormBase):
            raise TypeError(
                f"{name} must normalize each token by itself, [B, T, d] -> [B, T, d], got "
                f"{type(part).__name__}, which takes tokens for channels: use LayerNorm or RMSNorm"
            )
        width = getattr(part, "d_model", (*getattr(part, "normalized_shape", ()), d)[0])
        if width != d:
            raise ValueError(f"{name} must have the attention's d_model={d}, got {width}")
