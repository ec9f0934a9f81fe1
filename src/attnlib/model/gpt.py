"""A GPT: a Transformer that predicts the next token."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from attnlib.blocks import Activation
from attnlib.checks import require_positive_int
from attnlib.model.sizes import TaskSizes
from attnlib.model.transformer import EMBEDDING_STD, Positions, TransformerModel
from attnlib.norms import LayerNorm


def GPT(
    vocabulary_size: int,
    length: int,
    d_model: int,
    num_heads: int,
    num_layers: int = 1,
    *,
    d_ff: int | None = None,
    positions: Positions = "learned",
    tied: bool = False,
    norm: Callable[..., nn.Module] = LayerNorm,
    num_kv_heads: int | None = None,
    bias: bool = False,
    activation: Activation = "gelu",
    dropout: float = 0.0,
    std: float = EMBEDDING_STD,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> TransformerModel:
    """Make a GPT: a causal `TransformerModel` of pre-norm blocks with one readout, "next".

    The readout predicts the token after each token, [B, T, vocabulary_size]. Famous sizes::

        microgpt      GPT(27, 16, 16, 4, 1, norm=partial(RMSNorm, gain=False), activation="relu")
                      4,192 parameters
        GPT-2 small   GPT(50257, 1024, 768, 12, 12, tied=True, bias=True, activation="gelu_tanh")
                      124,439,808 parameters

    (Karpathy, microgpt, whose last norm comes after the embeddings instead; Radford et al. 2019.)
    Embeddings and readout begin at N(0, std), as in GPT-2, so that at first all tokens are nearly
    equally likely. Other matrices begin Xavier-uniform.

    Args:
        vocabulary_size: how many tokens there are.
        length: the longest text, in tokens.
        d_model: width d of a token.
        num_heads: h of every layer; must divide d_model.
        num_layers: how many blocks.
        d_ff: hidden width of the feed-forward networks; 4 d if left out, none at all if 0.
        positions: "learned", "sinusoidal", "rotary" or None, as for `TransformerModel.of_sizes`.
        tied: whether the readout uses the embedding's matrix.
        norm: makes a norm: LayerNorm, RMSNorm.
        num_kv_heads: how many heads keys and values have; h if left out.
        bias: whether projections and feed-forward networks add biases; the readout doesn't.
        activation: of the feed-forward networks, as for `FeedForward`.
        dropout: as for `TransformerBlock.of_parts`.
        std: standard deviation of the initial embeddings and readout.
        device, dtype: of all parameters.

    Raises:
        TypeError, ValueError: as `TransformerModel.of_sizes`.
    """
    require_positive_int("d_model", d_model)
    sizes = TaskSizes(vocabulary_size, length, {"next": vocabulary_size}, causal=True)
    options: dict[str, Any] = {"device": device, "dtype": dtype}
    return TransformerModel.of_sizes(
        sizes,
        d_model,
        num_heads,
        num_layers,
        d_ff=4 * d_model if d_ff is None else d_ff,
        norm=norm,
        num_kv_heads=num_kv_heads,
        bias=bias,
        readout_bias=False,
        activation=activation,
        positions=positions,
        tied=tied,
        dropout=dropout,
        embedding_std=std,
        readout_std=std,
        **options,
    )
