"""One new token at a time, with the keys and values of those before it."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlib._verdict import Verdict
from attnlib.exercises._calling import as_outputs
from attnlib.exercises._checking import check_function
from attnlib.exercises._exercise import Mistake, exercise
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
    values_of: int = 2,
) -> Step:
    """Make what the reader is to write, possibly with a mistake.

    Args:
        look: makes the output of the query and all keys and values.
        join: puts new rows to the old ones.
        keep: whether what was joined is handed back.
        values_of: which matrix makes the values: 2 is W_v.
    """

    def step(
        x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        all_keys = join(keys, x @ W_k)
        all_values = join(values, x @ (W_q, W_k, W_v)[values_of])
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
            rows.append(torch.as_tensor(row).reshape(1, -1))
        return torch.cat(rows), keys, values

    return outputs


NEXT_MISTAKES = (
    Mistake(
        next_row(look=lambda q, k, v: v[:1].clone()),
        "Each token sees the first one alone. `is_causal=True` counts from the top left, where one "
        "query has one key: a new token may look at all keys so far, so leave it out.",
    ),
    Mistake(
        next_row(look=lambda q, k, v: _attend(q, k[:-1], v[:-1]) if len(k) > 1 else v),
        "The new token looks at those before it, and not at itself. Put its own key and value to "
        "the others first.",
    ),
    Mistake(
        next_row(keep=False),
        "You hand back the keys and values that you were given. The next token needs the new ones "
        "as well.",
    ),
    Mistake(
        next_row(join=lambda old, new: new),
        "Each token has nothing but its own key and value. Put them behind the old ones "
        "(torch.cat).",
    ),
    Mistake(
        next_row(join=lambda old, new: torch.cat([new, old])),
        "The outputs are right, as no position is told here. But you put new rows in front: keys "
        "and values stand in the order of the tokens, or no mask and no position will fit them.",
    ),
    Mistake(
        next_row(look=lambda q, k, v: (q @ k.T).softmax(-1) @ v),
        "The scale is missing: divide the scores by the root of d_k.",
    ),
    Mistake(
        next_row(look=lambda q, k, v: (q @ k.T / math.sqrt(len(k))).softmax(-1) @ v),
        "You divide by the root of the number of keys. The scale is that of d_k, the width of a "
        "query.",
    ),
    Mistake(
        next_row(values_of=1),
        "Your values are made by W_k. They have a matrix of their own.",
    ),
)


def _cases() -> list[tuple[Tensor, ...]]:
    W_q, W_k, W_v = torch.randn(3, 6, 4)
    return [(torch.randn(T, 6), W_q, W_k, W_v) for T in range(1, LONGEST + 1)]


@exercise(mistakes=NEXT_MISTAKES)
def next_token(answer: Callable) -> Verdict:
    """Check `next_token(x, W_q, W_k, W_v, keys, values)`: a new token's output, and what to keep.

    x is [1, d], keys and values are [t, d_k], with t = 0 at the beginning. Token by token it must
    give what one causal pass gives, for texts of 1 to 12 tokens.
    """
    return check_function(
        answer,
        causal_head,
        _cases(),
        NEXT_MISTAKES,
        output_names=["the outputs", "the keys", "the values"],
        praise="Token by token what one pass gives, for every length from 1 to 12: what is kept is "
        "exact.",
        as_function=_over_a_text,
    )
