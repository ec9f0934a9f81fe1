"""Continuing a text with a model, token by token."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attnlib.cache import KVCache
from attnlib.checks import require_count, require_flag, require_number, require_positive_int
from attnlib.model._checks import require_token_ids
from attnlib.model.transformer import TransformerModel


@torch.no_grad()
def generate(
    model: TransformerModel,
    tokens: Tensor,
    steps: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
    stop: int | None = None,
    use_cache: bool = True,
) -> Tensor:
    """Continue texts: [B, T] -> [B, T + n], where n is `steps` unless all texts stop earlier.

    Each new token is drawn from softmax(logits / temperature) of the last token. With a cache each
    step computes only the new token; the result is the same. The model runs in evaluation mode and
    then returns to its own.

    Args:
        model: causal, with a readout "next" whose answers are tokens, as `GPT` makes them.
        tokens: the beginnings, int64 [B, T], equally long.
        steps: how many tokens are added at most. The model never reads the last one, so T + steps
            may be `model.length` + 1.
        temperature: below 1 likely tokens become likelier; 0 always takes the likeliest.
        top_k: draw from the k likeliest tokens only (Fan, Lewis & Dauphin 2018, section 5.1); from
            all if left out.
        generator: draws, on the model's device; torch's own if left out.
        stop: a token that ends a text; it also fills the rest.
        use_cache: whether a `KVCache` for each layer remembers keys and values.

    Example:
        >>> from attnlib.model import GPT
        >>> model, begin = GPT(27, length=16, d_model=16, num_heads=4), torch.tensor([[26], [26]])
        >>> seeded = torch.Generator().manual_seed(0)
        >>> generate(model, begin, 15, temperature=0.8, top_k=5, generator=seeded, stop=26).shape[0]
        2

    Raises:
        TypeError: another model, tokens that aren't int64, or options of another type.
        ValueError: a model that isn't causal or has no such readout, tokens that don't fit it, more
            steps than it has positions, another option out of range, or logits that are NaN or
            infinite.
    """
    answers = require_next(model)
    require_count("steps", steps)
    _require_options(temperature, top_k, stop, answers)
    require_flag("use_cache", use_cache)
    weight = model.token_embedding.weight
    require_token_ids(tokens, weight, model.length, past=0)
    if tokens.shape[1] + steps - 1 > model.length:
        raise ValueError(
            f"steps must be at most {model.length + 1 - tokens.shape[1]} after "
            f"{tokens.shape[1]} tokens, got {steps}: the model has {model.length} positions"
        )
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(f"generator must be a torch.Generator, got {type(generator).__name__}")
    caches = [KVCache() for _ in model.blocks] if use_cache else None
    new = tokens
    stopped = torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
    with in_evaluation(model):
        for _ in range(steps):
            logits = model(new if use_cache else tokens, caches=caches).logits["next"][:, -1]
            drawn = _draw(logits, temperature, top_k, generator)  # [B, V] -> [B]
            if stop is not None:
                drawn = drawn.masked_fill(stopped, stop)
                stopped = stopped | (drawn == stop)
            new = drawn[:, None]
            tokens = torch.cat([tokens, new], dim=1)
            if stop is not None and stopped.all():
                break
    return tokens


def _draw(
    logits: Tensor, temperature: float, top_k: int | None, generator: torch.Generator | None
) -> Tensor:
    """Draw a token for each text: [B, V] -> [B]."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if not logits.isfinite().all():
        raise ValueError(
            "the model's logits must be finite, got NaN or infinity: its weights are damaged, or "
            "the training diverged"
        )
    if temperature == 0:
        return logits.argmax(-1)
    likely, ids = logits.topk(top_k or logits.shape[-1])  # [B, V] -> [B, k], falling
    # Minus the largest, so that a tiny temperature makes no +infinity; its own 0 / 0 becomes 0.
    scaled = ((likely - likely[:, :1]) / temperature).nan_to_num()
    place = torch.multinomial(scaled.softmax(-1), 1, generator=generator)  # [B, k] -> [B, 1]
    return ids.gather(-1, place)[:, 0]


@contextmanager
def in_evaluation(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode, and each part back into its own mode afterwards."""
    in_training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        yield
    finally:
        for part in in_training:
            part.training = True


def require_next(model: object) -> int:
    """Return how many answers the readout "next" has, or raise unless a model predicts tokens."""
    if not isinstance(model, TransformerModel):
        raise TypeError(f"model must be an attnlib TransformerModel, got {type(model).__name__}")
    if not model.causal:
        raise ValueError("model must be causal: else it sees the token that it is to predict")
    if "next" not in model.readouts:
        raise ValueError(
            f"model must have a readout 'next', got {', '.join(map(repr, model.readouts))}"
        )
    readout: Any = model.readouts["next"]
    answers: int = readout.out_features
    if answers > model.vocabulary_size:
        raise ValueError(
            f"model must predict one of {model.vocabulary_size} tokens, but its readout 'next' has "
            f"{answers} answers"
        )
    return answers


def _require_options(temperature: float, top_k: int | None, stop: int | None, answers: int) -> None:
    require_number("temperature", temperature)
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be a number from 0 on, got {temperature}")
    if top_k is not None:
        require_positive_int("top_k", top_k)
        if top_k > answers:
            raise ValueError(f"top_k must be at most {answers}, the tokens there are, got {top_k}")
    if stop is not None:
        require_count("stop", stop)
        if stop >= answers:
            raise ValueError(f"stop must be a token from 0 to {answers - 1}, got {stop}")
