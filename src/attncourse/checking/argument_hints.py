"""Other arguments for which a wrong function's results would be right."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

Case = Sequence[Any]


def changes(function: Callable, case: Case) -> Iterator[tuple[str, Callable[[Case], Case]]]:
    """Yield what to say of each change of an argument, and the change, for cases like this one."""
    try:
        named = [f"`{name}`" for name in inspect.signature(function).parameters][: len(case)]
    except (TypeError, ValueError):  # a class of torch's, say
        named = []
    named += [f"argument {place + 1}" for place in range(len(named), len(case))]
    for i, argument in enumerate(case):
        taken: list[tuple[str, int, Callable[[Any], Any]]] = []
        if type(argument) is int:
            taken += [("one larger", i, lambda number: number + 1)]
            taken += [("one smaller", i, lambda number: number - 1)]
        if isinstance(argument, Tensor):
            taken += [("transposed", i, lambda x: x.mT if x.dim() > 1 else x)]
        if isinstance(argument, Tensor) and argument.is_floating_point():
            taken += [("negated", i, torch.neg), ("1 divided by it", i, torch.reciprocal)]
            taken += [("all 0", i, torch.zeros_like), ("all 1", i, torch.ones_like)]
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
                    yield (
                        f"All would be right if {named[i]} and {named[j]} changed places.",
                        swapped,
                    )
        for words, source, change in taken:

            def changed(case: Case, i: int = i, j: int = source, by: Callable = change) -> Case:
                return [*case[:i], by(case[j]), *case[i + 1 :]]

            yield f"All would be right if {named[i]} were {words}.", changed
