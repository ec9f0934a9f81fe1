"""Running a reader's function: whatever it does wrong becomes a hint, never a crash."""

import copy
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from attndoctor.torch_settings import usual_settings

LONGEST_ERROR = 240  # letters of an error or an answer that a hint repeats
LONGEST_LIST = 40  # letters of a list that a hint shows whole
LONGEST_DICT = 80  # letters of a dict, whose keys take room as well

# What to say of an error beside its own words, by words that its message has.
_ADVICE = {
    r"return_types\.max|concatenate tuple \(not \"(int|float)\"\)": "Along an axis, `max` returns "
    "two tensors: the largest numbers and their places. Take `.values`, or use `amax`, which "
    "returns the largest numbers alone.",
    "view size is not compatible": "After a transpose the numbers no longer lie in memory in that "
    "order, and a view can't move them. `reshape` copies where it must.",
    "does not match the shape of the indexed tensor": "A mask that is used as an index needs the "
    "axes in front as well. `masked_fill` and torch.where add them by themselves.",
    "Boolean value of Tensor": "A tensor of many values is neither true nor false. To ask whether "
    "there is one, write `is not None`; of what is in it, `.any()` or `.all()`.",
    "leaf Variable": "A parameter can't be changed in place while gradients are recorded. Change "
    "it under `with torch.no_grad():` or by a function of nn.init.",
    "as parameter '": "A plain tensor can't take a parameter's place. Copy its numbers into the "
    "parameter that is there, by copy_, under `with torch.no_grad():`.",
    "implicitly created only for scalar": "A gradient says what moves *one* number: add up what "
    "you ask about (or its squares, of which none can cancel another) before you ask for the "
    "gradient.",
    "does not require grad": "Nothing was recorded: call requires_grad_() on (a copy of) x before "
    "you use it.",
    "cannot be interpreted as an integer|ints,but got float|ints?, not float": "A size must be a "
    "whole number: divide sizes by //.",
}

# What a reader's code raises becomes a hint, exit() included; only the reader's own Ctrl+C doesn't.
READERS_ERRORS = (Exception, SystemExit)


@dataclass(frozen=True)
class Outcome:
    """What one call of a function gave: outputs, or the complaint and the kind of error."""

    outputs: Any = None
    complaint: str = ""
    error: type | None = None


class ChangedInputError(Exception):
    """Marks an outcome whose function changed its input."""


def call(function: Callable, arguments: Sequence[Any] = ()) -> Outcome:
    """Call `function` on copies of `arguments` and describe whatever goes wrong."""
    copies = [_copy(argument) for argument in arguments]
    try:
        with usual_settings():
            outputs = function(*copies)
    except NotImplementedError as error:
        hint = "Your function is still the stub: replace the raise with your code."
        return Outcome(complaint=hint, error=type(error))
    except READERS_ERRORS as error:
        hint = f"Your function raised {type(error).__name__}: {shortened(error)}"
        with_what = f" (called with {describe(arguments)})." if arguments else ""
        return Outcome(complaint=hint + with_what + _advice_on(error), error=type(error))
    for position, (before, after) in enumerate(zip(arguments, copies, strict=True), start=1):
        if isinstance(before, torch.Tensor) and not same_tensor(before, after):
            hint = f"Your function changed its argument number {position} in place. "
            return Outcome(complaint=hint + "Make a new tensor instead.", error=ChangedInputError)
        if isinstance(before, nn.Module) and not _same_state(before, after):
            hint = f"Your function changed the module that it was given (argument {position}). "
            return Outcome(complaint=hint + "Copy from it, not into it.", error=ChangedInputError)
    if any(output is None for output in as_outputs(outputs)):
        hint = (
            "Your function returned None: did you forget the return? (print only shows.)"
            if outputs is None
            else "One of the things that your function returned is None."
        )
        return Outcome(complaint=hint, error=type(None))
    return Outcome(outputs=outputs)


def _advice_on(error: BaseException) -> str:
    """Say what to do about an error that is usual; nothing about another one."""
    message = shortened(error)
    return next((f" {says}" for words, says in _ADVICE.items() if re.search(words, message)), "")


class Watch(TorchFunctionMode):
    """Notes the names of torch's functions that are called meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


def as_outputs(result: Any) -> tuple[Any, ...]:
    """Return what a function returned as a tuple, one entry per output."""
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def shortened(error: object) -> str:
    """Return an error's message, or an answer, in words; long ones (with a tensor) are cut."""
    try:
        message = str(error)
    except READERS_ERRORS:
        return "(and its message can't be read)"
    return message if len(message) <= LONGEST_ERROR else message[:LONGEST_ERROR] + " ..."


def describe(arguments: Sequence[Any]) -> str:
    """Describe arguments by shape, so that a hint can say which input failed."""
    return ", ".join(_describe_one(argument) for argument in arguments)


def _describe_one(argument: Any) -> str:
    if isinstance(argument, torch.Tensor):
        return f"a tensor {list(argument.shape)}"
    longest = LONGEST_DICT if isinstance(argument, dict) else LONGEST_LIST
    is_short = isinstance(argument, list | tuple | dict) and len(repr(argument)) <= longest
    if is_short or isinstance(argument, int | float | str):
        return repr(argument)
    return type(argument).__name__


def _copy(argument: Any) -> Any:
    """Copy what a reader's function could change; other arguments are handed on."""
    if isinstance(argument, torch.Tensor):
        return argument.clone()
    if isinstance(argument, dict):
        return {key: _copy(value) for key, value in argument.items()}
    return copy.deepcopy(argument) if isinstance(argument, nn.Module) else argument


def _same_state(left: nn.Module, right: nn.Module) -> bool:
    ours, theirs = left.state_dict(), right.state_dict()
    return ours.keys() == theirs.keys() and all(same_tensor(ours[k], theirs[k]) for k in ours)


def same_tensor(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Return whether two tensors have the same shape and values (NaN equals NaN)."""
    return left.shape == right.shape and bool(
        ((left == right) | ((left != left) & (right != right))).all()
    )
