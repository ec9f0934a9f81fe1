"""Checks of what is to be drawn."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from attnlib.checks import (
    Item,
    checked_list,
    checked_texts,
    dense_numbers,
    require_floating,
    require_number,
    require_positive_int,
    require_text,
    shape_of,
)


def checked_tensor(
    name: str,
    value: Tensor,
    shape: str,
    *,
    integers: bool = False,
    nan: bool = False,
    infinity: bool = False,
    **sizes: int,
) -> Tensor:
    """Return a tensor's numbers in float64 on the CPU, or raise if they can't be drawn.

    Args:
        name: the caller's name of the argument.
        value: the argument.
        shape: a word for each dimension, "T d" or "n 2": a size, or a letter for one; "..." for any
            shape.
        integers: whether to accept whole numbers and booleans, too.
        nan, infinity: whether to accept them, as the figure leaves their places blank.
        sizes: sizes of letters, `d=4`; other letters may have any size.

    Raises:
        TypeError: not a tensor, or one of other numbers.
        ValueError: another shape, no number at all, NaN, or a number beyond float32.
    """
    if not integers:
        require_floating(name, value)
    numbers = dense_numbers(name, value)
    words = shape.split()
    wanted = [int(word) if word.isdigit() else sizes.get(word) for word in words]
    fits = len(wanted) == numbers.dim() and all(
        size in (None, found) for size, found in zip(wanted, numbers.shape, strict=True)
    )
    if not fits and shape != "...":
        letters = [f"{word}={sizes[word]}" if word in sizes else word for word in words]
        batch = numbers.dim() > len(words)
        raise ValueError(
            f"{name} must have shape [{', '.join(letters)}], got {shape_of(value)}"
            + (f": pick one sample of a batch with {name}[0]" if batch else "")
        )
    if not numbers.numel():
        raise ValueError(f"{name} must hold at least one number, got shape {shape_of(value)}")
    wrong = (numbers.isnan() & (not nan)) | (numbers.float().isinf() & (not infinity))
    if wrong.any():
        place = wrong.nonzero()[0].tolist()
        kind = "finite or NaN" if nan else "finite"
        raise ValueError(
            f"{name} must be {kind} (as float32), got {numbers[tuple(place)].item()} at {place}"
        )
    return numbers


def checked_number(name: str, value: float) -> float:
    """Return a number as a float, or raise unless it is one that float32 can hold."""
    require_number(name, value)
    if not abs(value) <= torch.finfo(torch.float32).max:
        raise ValueError(f"{name} must be finite (as float32), got {value!r}")
    return float(value)


def checked_positive(name: str, value: float) -> float:
    """Return a number as a float, or raise unless it is one above 0 that float32 can hold."""
    if checked_number(name, value) <= 0:
        raise ValueError(f"{name} must be above 0, got {value!r}")
    return float(value)


def checked_items(name: str, items: Iterable[Item], count: int, each: str) -> list[Item]:
    """Return a list of `count` items, one per `each`, or raise if there are fewer or more."""
    found = checked_list(name, items)
    if len(found) != count:
        raise ValueError(f"{name} must hold {count} entries, got {len(found)}: one per {each}")
    return found


def checked_labels(name: str, labels: Iterable[str], count: int, each: str) -> list[str]:
    """Return a list of `count` texts, one per `each`, or raise if they aren't."""
    texts = checked_texts(name, labels)
    if len(texts) != count:
        raise ValueError(f"{name} must hold {count} labels, got {len(texts)}: one per {each}")
    return texts


def checked_mapping(name: str, value: Mapping[str, Item], of: str) -> dict[str, Item]:
    """Return title -> item as a dict, or raise unless it has items and its titles are strings."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict, title -> {of}, got {type(value).__name__}")
    if not value:
        raise ValueError(f"{name} must hold at least one {of}, got none")
    for title in value:
        require_text(f"each title of {name}", title)
    return dict(value)


def require_same_names(name: str, panels: Mapping[str, Mapping[str, object]], of: str) -> None:
    """Raise ValueError unless all panels hold the same names in one order, as a legend needs."""
    wanted = list(next(iter(panels.values())))
    for title, items in panels.items():
        if list(items) != wanted:
            raise ValueError(
                f"{name} must have the same {of} in one order, got {wanted} and, in {title!r}, "
                f"{list(items)}"
            )


def require_columns(columns: int, most: int) -> None:
    """Raise unless from 1 to `most` panels are to stand in a line."""
    require_positive_int("columns", columns)
    if columns > most:
        raise ValueError(
            f"columns must be at most {most}, got {columns}: panels would be too small"
        )


def checked_tensors(name: str, tensors: Iterable[Tensor], shape: str) -> list[Tensor]:
    """Return at least one tensor, each as `checked_tensor` returns it, or raise."""
    found = [
        checked_tensor(f"{name}[{i}]", tensor, shape, integers=True)
        for i, tensor in enumerate(checked_list(name, tensors))
    ]
    if not found:
        raise ValueError(f"{name} must hold at least one tensor, got none")
    return found
