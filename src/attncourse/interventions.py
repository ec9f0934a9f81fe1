"""Interventions: what a trained model still gets right when something in it is changed.

A map shows where a head looks. These show whether anything depends on it: forbid a look, or put a
head's mean in the place of what it says. Both change a layer's attention within a `with`, and leave
the model as it was.

    >>> from attncourse import data
    >>> from attncourse.interventions import attention_knockout
    >>> from attncourse.tasks import concord, pack
    >>> from attnlib.pattern_sums import partner_pairs
    >>> model, _ = data.load("concord")
    >>> batch = pack(concord.sentences(2, seed=0))
    >>> objects = partner_pairs(batch.partners["verb>object"])  # bool [B, T, T]
    >>> with attention_knockout(model, objects):
    ...     answers = model(batch.tokens, key_mask=batch.key_mask)
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attncourse.tasks import Batch, Relation
from attnlib import MultiHeadAttention
from attnlib.checks import (
    checked_list,
    require_count,
    require_positive_int,
    require_tensor,
    shape_of,
)
from attnlib.model import TransformerModel
from attnlib.pattern_sums import follower_targets

__all__ = [
    "attention_knockout", "follower_looks", "mean_ablation", "right_answers", "zero_ablation",
]  # fmt: skip


def follower_looks(tokens: Tensor, after: int = 1) -> Tensor:
    """Return what stood `after` places after each word's own earlier places, bool [B, T, T].

    Prefix matching, which makes an induction head, is the weight on these (Olsson et al. 2022).

    Args:
        tokens: whole numbers [B, T].
        after: at least 1.

    Raises:
        TypeError: tokens that are no tensor, or an `after` that is no whole number.
        ValueError: tokens that aren't [B, T], or an `after` below 1.
    """
    require_tensor("tokens", tokens)
    if tokens.dim() != 2:
        raise ValueError(f"tokens must be [B, T], got {shape_of(tokens)}")
    require_positive_int("after", after)
    return follower_targets(tokens, range(tokens.shape[1]), after)


@contextmanager
def attention_knockout(
    model: TransformerModel,
    forbidden: Tensor,
    *,
    layer: int = -1,
    heads: Sequence[int] | None = None,
) -> Iterator[None]:
    """Forbid looks within a `with`: their scores are -inf, and the rest of a row sums to 1.

    Args:
        model: whose looks.
        forbidden: bool [B, T, T] of the batch that the model is asked about.
        layer: in which layer, counted from 0, or from the end if negative.
        heads: of these heads alone, counted from 0; of all if left out.

    Raises:
        TypeError: no `TransformerModel`, a forbidden that isn't boolean, or heads that are no list.
        ValueError: a forbidden of another batch, or a layer or a head that the model doesn't have.
    """
    require_tensor("forbidden", forbidden)
    if forbidden.dtype != torch.bool:
        raise TypeError(f"forbidden must be boolean, got {forbidden.dtype}")
    if forbidden.dim() != 3 or forbidden.shape[1] != forbidden.shape[2]:
        raise ValueError(f"forbidden must be [B, T, T], got {shape_of(forbidden)}")
    attention = _attention(model, layer)
    chosen = torch.zeros(attention.num_heads, dtype=torch.bool, device=forbidden.device)
    chosen[_checked_heads(heads, attention)] = True
    mask = ~(forbidden[:, None] & chosen[:, None, None])  # [B, 1, T, T] & [h, 1, 1] -> [B, h, T, T]

    def forbid(_: nn.Module, args: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        B, T, _ = args[0].shape
        if forbidden.shape != (B, T, T):
            raise ValueError(
                f"forbidden must be {[B, T, T]} for this batch, got {shape_of(forbidden)}"
            )
        before = options.get("mask")  # of another intervention
        return args, options | {"mask": mask if before is None else mask & before}

    with attention.register_forward_pre_hook(forbid, with_kwargs=True):
        yield


@contextmanager
def zero_ablation(
    model: TransformerModel, heads: Sequence[int], *, layer: int = -1
) -> Iterator[None]:
    """Let heads add nothing within a `with`.

    Args, raises: as `mean_ablation`.
    """
    attention = _attention(model, layer)
    head_mask = torch.ones(attention.num_heads, device=attention.W_o.weight.device)
    head_mask[_checked_heads(heads, attention)] = 0

    def mute(_: nn.Module, args: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        before = options.get("head_mask")
        return args, options | {"head_mask": head_mask if before is None else head_mask * before}

    with attention.register_forward_pre_hook(mute, with_kwargs=True):
        yield


@contextmanager
def mean_ablation(
    model: TransformerModel, heads: Sequence[int], *, layer: int = -1
) -> Iterator[None]:
    """Put the mean of what heads add in its place within a `with`.

    What a head adds to each word becomes its mean over the words of the batch, so that what it adds
    to every word alike stays. Muting takes that away, too.

    Args:
        model: whose heads.
        heads: which, counted from 0.
        layer: in which layer, counted from 0, or from the end if negative.

    Raises:
        TypeError: no `TransformerModel`, or heads that are no list of whole numbers.
        ValueError: a layer or a head that the model doesn't have.
    """
    attention = _attention(model, layer)
    chosen = _checked_heads(heads, attention)

    def average(_: nn.Module, args: Any, options: dict[str, Any], result: Any) -> Any:
        output, weights = result
        added = attention.contributions(*args, **options)[:, chosen].sum(1)  # [B, T, d]
        real = options.get("key_mask")
        words = added.flatten(0, 1) if real is None else added[real]
        return output - added + words.mean(0), weights

    with attention.register_forward_hook(average, with_kwargs=True):
        yield


@torch.no_grad()
def right_answers(
    model: TransformerModel, batch: Batch, relations: Sequence[Relation]
) -> dict[str, float]:
    """Return, for each relation, the share of right answers at words that have a partner.

    Args:
        model: in evaluation mode.
        batch: sentences of the model's task.
        relations: those that are counted, such as `task.relations`. One that no word of the batch
            has gets nan.

    Raises:
        TypeError: no `TransformerModel`, or no batch.
    """
    _require_model(model)
    if not isinstance(batch, Batch):
        raise TypeError(f"batch must be a Batch, as of `pack`, got {type(batch).__name__}")
    logits = model(batch.tokens, key_mask=batch.key_mask).logits
    found = {}
    for name, readout in ((relation.name, relation.readout) for relation in relations):
        right = logits[readout].argmax(-1) == batch.answers[readout]  # [B, T]
        found[name] = right[batch.partners[name] >= 0].float().mean().item()
    return found


def _require_model(model: object) -> None:
    if not isinstance(model, TransformerModel):
        raise TypeError(f"model must be a TransformerModel, got {type(model).__name__}")


def _attention(model: TransformerModel, layer: int) -> MultiHeadAttention:
    _require_model(model)
    layers = len(model.blocks)
    if layer not in range(-layers, layers):
        raise ValueError(f"layer must be from {-layers} to {layers - 1}, got {layer!r}")
    attention = model.blocks[layer].attention
    assert isinstance(attention, MultiHeadAttention)
    return attention


def _checked_heads(heads: Sequence[int] | None, attention: MultiHeadAttention) -> list[int]:
    every = range(attention.num_heads)
    chosen = list(every) if heads is None else checked_list("heads", heads)
    for head in chosen:
        require_count("heads", head)
        if head not in every:
            raise ValueError(f"heads must be from 0 to {len(every) - 1}, got {head!r}")
    return sorted(set(chosen))
