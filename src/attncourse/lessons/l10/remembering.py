"""One new token at a time, with the keys and values of those before it."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attncourse.checking import CheckResult, check_function, exercise
from attncourse.checking.calling import as_outputs
from attnlib.masks import causal_mask

LONGEST = 12  # tokens
Look = Callable[[Tensor, Tensor, Tensor], Tensor]  # of q, k, v
Step = Callable[..., tuple[Tensor, Tensor, Tensor]]


def causal_head(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return a head's causal output [T, d_k] by one pass over all tokens, its keys and values."""
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    scores = q @ k.T / math.sqrt(q.shape[-1])
    return scores.masked_fill(~causal_mask(len(x)), -math.inf).softmax(-1) @ v, k, v


def _attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.T / math.sqrt(q.shape[-1])).softmax(-1) @ v


def _behind(old: Tensor, new: Tensor) -> Tensor:
    return torch.cat([old, new])


def next_row(
    *,
    look: Look = _attend,
    join: Callable[[Tensor, Tensor], Tensor] = _behind,
    keep: bool = True,
) -> Step:
    """Make what the reader is to write, possibly with a mistake."""

    def step(
        x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        all_keys = join(keys, x @ W_k)
        all_values = join(values, x @ W_v)
        output = look(x @ W_q, all_keys, all_values)
        return (output, all_keys, all_values) if keep else (output, keys, values)

    return step


def _over_a_text(step: Callable) -> Callable:
    """Turn a step into what it computes token by token: outputs, keys and values of a text."""

    def outputs(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Any:
        keys, values, rows = x.new_zeros(0, W_k.shape[1]), x.new_zeros(0, W_v.shape[1]), []
        for token in x.split(1):
            results = as_outputs(step(token, W_q, W_k, W_v, keys, values))
            if any(result is None for result in results):
                return None
            if len(results) != 3:
                raise TypeError(
                    f"three tensors were wanted, output, keys and values, but {len(results)} came"
                )
            row, keys, values = results
            rows.append(torch.as_tensor(row))
        return torch.cat(rows), keys, values

    return outputs


def _cases() -> list[tuple[Tensor, ...]]:
    W_q, W_k, W_v = torch.randn(3, 6, 4)
    return [(torch.randn(T, 6), W_q, W_k, W_v) for T in range(1, LONGEST + 1)]


@exercise()
def next_token(answer: object) -> CheckResult:
    """Check `next_token(x, W_q, W_k, W_v, keys, values)`: a new token's output, and what to keep.

    x is [1, d], keys and values are [t, d_k], with t = 0 at the beginning. Token by token it must
    give what one causal pass gives, for texts of 1 to 12 tokens.
    """
    praise = (
        "Token by token what one pass gives, for every length from 1 to 12: what is kept is exact."
    )
    return check_function(
        answer,
        causal_head,
        _cases(),
        next_token.mistakes,
        output_names=["the outputs", "the keys", "the values"],
        praise=praise,
        as_function=_over_a_text,
    )
