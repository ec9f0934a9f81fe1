"""Texts as ids, and ids as tokens that can be read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlib.checks import checked_list, shape_of


@dataclass(frozen=True)
class Text:
    """One text: its ids, int64 [T], and what they are called."""

    ids: Tensor
    tokens: tuple[str, ...]


def checked_texts(texts: Any, tokenizer: Any) -> list[Text]:
    """Return texts that a model can read, or raise TypeError or ValueError."""
    if isinstance(texts, str):
        raise TypeError("texts must be a list of texts, got one string: put it into a list")
    if isinstance(texts, Mapping):
        raise TypeError(
            f"texts must be strings, or the ids of each text without padding, got a "
            f"{type(texts).__name__}: each text is read alone"
        )
    given = checked_list("texts", texts)
    if not given:
        raise ValueError("texts must hold at least one text, got none")
    return [_text(f"texts[{i}]", one, tokenizer) for i, one in enumerate(given)]


def pieces_of(text: Text, longest: int) -> list[Text]:
    """Cut a text into pieces of about the same length, none longer than this."""
    count = -(-len(text.ids) // longest)
    places = torch.arange(len(text.ids)).tensor_split(count)
    return [Text(text.ids[own], tuple(text.tokens[i] for i in own.tolist())) for own in places]


def needs_tokenizer(texts: Any) -> bool:
    """Return whether there are strings among texts."""
    return isinstance(texts, Sequence) and any(isinstance(one, str) for one in texts)


def _text(name: str, given: Any, tokenizer: Any) -> Text:
    ids = _encoded(name, given, tokenizer) if isinstance(given, str) else _ids(name, given)
    if len(ids) < 2:
        raise ValueError(
            f"{name} must have at least two tokens, got {len(ids)}: a token that is alone has "
            "nothing to choose from"
        )
    return Text(ids, tuple(_readable(name, id, tokenizer) for id in ids.tolist()))


def _encoded(name: str, text: str, tokenizer: Any) -> Tensor:
    if not hasattr(tokenizer, "encode"):
        raise TypeError(
            f"tokenizer must be the model's, with .encode and .decode, as {name} is a string; got "
            f"{type(tokenizer).__name__}: pass tokenizer=AutoTokenizer.from_pretrained(...), or "
            "token ids as texts"
        )
    encoded = tokenizer.encode(text)
    return _ids(f"tokenizer.encode({name})", getattr(encoded, "ids", encoded))


def _ids(name: str, given: Any) -> Tensor:
    """Return token ids as int64 [T], or raise."""
    ids = given if isinstance(given, Tensor) else _as_tensor(name, given)
    whole = not (ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool)
    if ids.numel() and not whole:  # of an empty list torch makes floating point numbers
        raise TypeError(f"{name} must be a string or token ids (whole numbers), got {ids.dtype}")
    if ids.dim() != 1:
        alone = ": put the ids of a single text into a list of texts" if ids.dim() == 0 else ""
        raise ValueError(f"{name} must be ids of one text, [T], got {shape_of(ids)}{alone}")
    ids = ids.detach().to("cpu", torch.int64)
    if len(ids) and int(ids.min()) < 0:
        raise ValueError(f"{name} must be ids from 0 on, got {int(ids.min())}")
    return ids


def _as_tensor(name: str, given: Any) -> Tensor:
    try:
        return torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"{name} must be a string or a list of token ids, got {type(given).__name__}"
        ) from None


def _readable(name: str, id: int, tokenizer: Any) -> str:
    """Return what a token is called: as a tokenizer or a list of names says, or its number."""
    if isinstance(tokenizer, Sequence):  # names
        if id >= len(tokenizer):
            raise ValueError(
                f"tokenizer must name every id of {name}, got {len(tokenizer)} names and id {id}"
            )
        return str(tokenizer[id])
    if not hasattr(tokenizer, "decode"):
        return str(id)
    try:
        token = tokenizer.decode([id])
    except (IndexError, KeyError, ValueError, OverflowError, TypeError) as error:
        raise ValueError(
            f"tokenizer must know every id of {name}, got {id}, which it can't decode ({error}): "
            "is it another model's?"
        ) from error
    if (not token or "\N{REPLACEMENT CHARACTER}" in token) and hasattr(
        tokenizer, "convert_ids_to_tokens"
    ):  # a piece of a letter
        token = tokenizer.convert_ids_to_tokens(id)
    return token or str(id)
