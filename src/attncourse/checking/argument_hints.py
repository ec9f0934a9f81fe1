"""Arguments that a wrong function ignores, and what it seems to use in an argument's place."""

import dis
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any

import torch
from torch import Tensor, nn

Case = Sequence[Any]
SEEMS = "Your function seems to use"
VARIABLE = re.compile("(LOAD|STORE)_(?:FAST|DEREF|CLOSURE)")  # in the name of a step


def _names(function: Callable, case: Case) -> list[str]:
    try:
        named = [f"`{name}`" for name in inspect.signature(function).parameters][: len(case)]
    except (TypeError, ValueError):  # a class of torch's, say
        named = []
    return named + [f"argument {place + 1}" for place in range(len(named), len(case))]


def where(function: Callable, right: Sequence[Case], wrong: Sequence[Case]) -> str:
    """Return that all right cases, and no wrong one, have so many axes, or a number that is 0."""
    fewest = min(map(len, [*right, *wrong]))
    for i, name in enumerate(_names(function, wrong[0])[:fewest]):
        kept, lost = ({_feature(case[i]) for case in cases} for cases in (right, wrong))
        if len(kept) == 1 and kept != {""} and not kept & lost:
            return f"Right where {name} {kept.pop()}, and wrong in all other cases."
    return ""


def _feature(argument: Any) -> str:
    if isinstance(argument, Tensor):
        return f"has {argument.dim()} axes"
    return "is 0" if type(argument) is int and argument == 0 else ""


def changes(function: Callable, case: Case) -> Iterator[tuple[str, Callable[[Case], Case]]]:
    """Yield what to say of each change of an argument, and the change, for cases like this one."""
    named = _names(function, case)
    for i, argument in enumerate(case):
        taken: list[tuple[str, int, Callable[[Any], Any]]] = []
        if type(argument) is int:
            taken += [("{} + 1", i, lambda number: number + 1)]
            taken += [("{} - 1", i, lambda number: number - 1)]
        if type(argument) is float:
            taken += [
                ("the square of {}", i, lambda number: number * number),
                ("1", i, lambda number: 1.0),
            ]
        if isinstance(argument, Tensor):
            taken += [("the transpose of {}", i, lambda x: x.mT if x.dim() > 1 else x)]
        if isinstance(argument, Tensor) and argument.is_floating_point():
            taken += [("-{}", i, torch.neg), ("1 / {}", i, torch.reciprocal)]
            taken += [("zeros", i, torch.zeros_like), ("ones", i, torch.ones_like)]
        for j, other in enumerate(case):
            if (
                i != j
                and isinstance(argument, Tensor | nn.Module)
                and type(other) is type(argument)
            ):
                taken += [(named[j], j, lambda other: other)]
                swap = {i: j, j: i}

                def swapped(case: Case, swap: Mapping[int, int] = swap) -> Case:
                    return [case[swap.get(place, place)] for place in range(len(case))]

                if i < j:
                    yield f"{SEEMS} {named[i]} and {named[j]} in each other's place.", swapped
        for words, source, change in taken:

            def changed(case: Case, i: int = i, j: int = source, by: Callable = change) -> Case:
                return [*case[:i], by(case[j]), *case[i + 1 :]]

            yield f"{SEEMS} {words.format(named[i])} in place of {named[i]}.", changed


def ignored(function: Callable, reference: Callable) -> str:
    """Return which arguments a function never reads, if `reference` reads them."""
    ours, needed = _read(function), _read(reference)
    names = [f"`{name}`" for (name, read), (_, wanted) in zip(ours, needed, strict=False)
             if wanted and not read]  # fmt: skip
    return f" Your function never uses {' and '.join(names)}." if names else ""


def _read(function: Callable) -> list[tuple[str, bool]]:
    """Return the name of each argument, and whether the function reads it before it sets it."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or inspect.ismethod(function):
        return []
    read: dict[Any, bool] = {}
    branches = bool(code.co_exceptiontable)  # what is set below may be set in one branch alone
    for step in dis.get_instructions(code):
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        # From Python 3.13 on one step may set a name and read another: STORE_FAST_LOAD_FAST.
        for name, way in zip(names, VARIABLE.findall(step.opname), strict=False):
            read.setdefault(name, branches or way == "LOAD")
        branches |= step.opcode in dis.hasjrel
    return [(name, read.get(name, False)) for name in code.co_varnames[: code.co_argcount]]
