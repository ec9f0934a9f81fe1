"""Running a reader's function: whatever it does wrong becomes a hint, never a crash."""

import copy
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import current_thread, main_thread
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from attndoctor.support.torch_settings import usual_settings

LONGEST_CALL = 60  # seconds; a list that grows for longer takes all of the memory
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
    "does not match the shape of the indexed tensor": "A mask that is used as an index must have "
    "the axes that it stands for: look at both shapes, axis by axis.",
    "Boolean value of Tensor": "A tensor of many values is neither true nor false. To ask whether "
    "there is one, write `is not None`; of what is in it, `.any()` or `.all()`.",
    "leaf Variable": "A parameter can't be changed in place while gradients are recorded. Change "
    "it under `with torch.no_grad():` or by a function of nn.init.",
    "as parameter '": "A plain tensor can't take a parameter's place. Copy its numbers into the "
    "parameter that is there, by copy_, under `with torch.no_grad():`.",
    "implicitly created only for scalar": "A gradient says what moves *one* number: add up what "
    "you ask about (or its squares, which can't cancel each other) before you ask for the "
    "gradient.",
    "does not require grad": "Nothing was recorded: call requires_grad_() on (a copy of) x before "
    "you use it.",
    r"as an integer|ints,but got float|ints?, not float|float, int\)": "A size must be a whole "
    "number: divide sizes by //.",
    "shapes cannot be multiplied|first two dimensions of batch2": "In a product A @ B each row of "
    "A meets the columns of B, so A is as wide as B is high. Which two did you mean to meet, and "
    "is one of them transposed, or cut along the wrong axis or into other parts (`chunk(n)` makes "
    "n of them, `split(n)` makes them n long)?",
    "must have the same dtype|same dtype": "A product wants one dtype: convert by `.to(...)`.",
    "must match except in dimension": "`torch.cat` joins along one axis, and all others must be "
    "of one size. Are these the two tensors, and is it the axis, that you want to join?",
    r"The size of tensor a|expanded size of the tensor": "Shapes are compared from the last axis "
    "on: each pair of sizes must be equal, or one of them 1. Which axis has the wrong size, and is "
    "something transposed, cut along another axis or into other parts (`chunk(n)` makes n of them, "
    "`split(n)` makes them n long), or in want of an axis of length 1?",
    "Expected target size": "`cross_entropy` wants the classes on axis 1. Flatten the first two "
    "axes of the logits, and the targets as well.",
    r"Target -1 is out of bounds": "-1 is no token: tell `cross_entropy` to leave it out, by "
    "ignore_index=-1.",
    "list index out of range": "No item has that number: the last one has no neighbor, and a list "
    "that a loop makes shorter ends sooner. Ask whether there is a next one before you look at it.",
    "only one element tensors|converted to Scalar": "The functions of `math` take a single number; "
    "for a tensor take torch's, as torch.sin.",
    r"must be Tensor, not (float|int|list)": "torch's functions take tensors. For a plain number "
    "take those of `math`, and make a tensor of a list by torch.tensor.",
    "math domain error|expected a positive input": "0 has no logarithm, and no number below 0 has "
    "a root or a logarithm: which number comes in there, and should it be left out?",
    "values to unpack": "On the left of = stand more names, or fewer, than there are things on "
    "the right. A tensor counts as the rows along its first axis, a shape as its sizes.",
    r"missing \d+ required positional": "Something is called without it: pass it or, where "
    "it is your function, give it the exercise's default.",
    "cast to the desired output type": "An operation in place, as /=, keeps the dtype, and parts "
    "of whole numbers don't fit in there. Make a new tensor.",
    r"Dimension out of range|t\(\) expects": "A tensor has fewer axes, or more, than you take it "
    "for. Count from the end: -1 is the last axis, and .mT swaps the last two.",
    r"must be a torch\.Tensor, got (tuple|NoneType)": "What returns a pair must be unpacked: "
    "`new, weights = ...`, and the first one goes on.",
    r"takes \d+ positional arguments? but": "Your function needs an argument for each thing that "
    "it is called with, in this order.",
    "'dict' object has no attribute": 'A dictionary\'s entries are in brackets: model["layers"].',
    r"Missing key\(s\) in state_dict": "The two modules call their tensors by other names, so a "
    "state dict doesn't fit as it is: copy tensor by tensor.",
    r"Provided sizes .* don't multiply up": "An axis can be cut only into parts that multiply up "
    "to it: which axis did you cut before, and into how many parts?",
    "[kv] must have the leading dimensions of q": "Queries, keys and values must have as many "
    "heads: which axis is that of the heads, and how often does each one have to come?",
    r"q must have shape \[T": "This function takes one axis of heads at most. Join two axes before "
    "you call it, or repeat the keys and values instead.",
    "must end in d_model": "What comes in there must be as wide as a token: are the parts in "
    "order, and are the positions added rather than joined on?",
    "ids must be tokens": "Padding isn't a token: the model needs another one there, and "
    "the loss must leave it out.",
    r"index \d+ is out of bounds": "That axis is shorter than you take it for. Which axis do you "
    "count along?",
    'missing the required "forward"': "A module is called through its `forward`, and this one has "
    "none: is it a list of modules, or is the name misspelled?",
    "object has no attribute 'W_": "The check looks for layers of these names: W_q, W_k, W_v, W_o.",
    "is invalid for input of size": "A view must hold as many numbers as it is made of: multiply "
    "the sizes. Which axis is narrower, or wider, than you take it for?",
    "to match target batch_size": "There must be one target for each row of logits: which of the "
    "two is still too long by a token, and at which end?",
    "stack expects each tensor to be equal size": "The parts differ in size: did you cut along "
    "the axis that you wanted to cut?",
    "expected Tensor as element": "One of the things that you join is None, such as the bias of a "
    "layer without one: ask for it before you join.",
    "KeyError|^'[^']+'$": "Is the name of the key right? `in` asks whether a case has it.",
    "tensors were wanted, output": "Return all of them, with commas between.",
    r"before Module\.__init__": "The first line of `__init__` must be super().__init__().",
    r"bitwise_\w+\" not implemented": "`&`, `|` and `~` take True and False: make the tensor with "
    "dtype=torch.bool.",
    "'Linear' object has no attribute": "A layer isn't a tensor. Its numbers are in two of them, "
    "its `weight` and its `bias`.",
    "NoneType": "Something is None: was it never given, or made by a function without a return?",
    "object is not callable": "What stands before parentheses is called. To pick from a tensor, a "
    "list or a shape, take brackets.",
    r"'(list|tuple|float|int)' object has no attribute": "Did you mean a tensor? torch.tensor "
    "makes one of numbers, torch.stack of tensors; and what returns a pair must be unpacked.",
}

# Two sizes that don't fit, or the one that is too small, in torch's words.
SIZES = re.compile(
    r"tensor a \((\d+)\) must match the size of tensor b \((\d+)|\d+x(\d+) and (\d+)x|size (\d+)$"
)

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


class EndlessError(BaseException):
    """Ends a check whose function runs on and on."""


@contextmanager
def _limited() -> Iterator[None]:
    """Stop what takes too long; on Windows, which has no such alarm, it runs on."""
    if not hasattr(signal, "setitimer") or current_thread() is not main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise EndlessError(
            f"Your function hasn't come to an end in {LONGEST_CALL} seconds. Does each turn of "
            "its loops change what the loop asks for, such as the place that it has reached?"
        )

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_CALL, 1)  # again: a bare except catches one
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def call(function: Callable, arguments: Sequence[Any] = ()) -> Outcome:
    """Call `function` on copies of `arguments` and describe whatever goes wrong."""
    copies = [_copy(argument) for argument in arguments]
    try:
        with usual_settings(), _limited():
            outputs = function(*copies)
    except NotImplementedError as error:
        hint = "Your function is still the stub: replace the raise with your code."
        if str(error):  # torch's own, where a module has no `forward`
            hint = (
                f"Your function raised NotImplementedError: {shortened(error)}.{_advice_on(error)}"
            )
        return Outcome(complaint=hint, error=type(error))
    except READERS_ERRORS as error:
        hint = f"Your function raised {type(error).__name__}: {shortened(error)}"
        with_what = f" (called with {describe(arguments)})." if arguments else "."
        sizes = read_aloud(next(filter(None, SIZES.findall(shortened(error))), ()), arguments)
        return Outcome(complaint=hint + with_what + _advice_on(error) + sizes, error=type(error))
    for position, (before, after) in enumerate(zip(arguments, copies, strict=True), start=1):
        is_other_list = _is_plain(before) and before != after
        if is_other_list or (isinstance(before, torch.Tensor) and not same_tensor(before, after)):
            hint = f"Your function changed its argument number {position} in place. Make a new "
            hint += "list instead." if is_other_list else "tensor instead."
            return Outcome(complaint=hint, error=ChangedInputError)
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


def outputs_of(make: Callable, run: Callable[[Any, torch.Tensor], Any]) -> Callable:
    """Turn a function that makes a module into what its module computes, which can be compared.

    Args:
        make: takes all arguments of a case but the last, which are the tokens.
        run: takes the module and the tokens.
    """

    def outputs(*arguments: Any) -> Any:
        *given, x = arguments
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # whatever wasn't copied is then the same in every module
            module = make(*given)
        if module is not None and not isinstance(module, nn.Module):
            raise TypeError(f"a module was wanted, but a {type(module).__name__} came")
        return None if module is None else run(module, x)

    return outputs


def read_aloud(sizes: Sequence[Any], arguments: Sequence[Any]) -> str:
    """Return which axes of the arguments have these sizes; nothing where one isn't found."""
    found: dict[int, list[str]] = {int(size): [] for size in sizes if size}
    for place, argument in enumerate(arguments, start=1):
        for axis, length in enumerate(getattr(argument, "shape", ())):
            found.get(length, []).append(f"axis {axis} of argument {place}")
        if isinstance(argument, int):
            found.get(argument, []).append(f"argument {place}")
    told = "; ".join(f"{size} may come from {' or '.join(where)}" for size, where in found.items())
    return f" ({told}.)" if found and all(0 < len(where) < 3 for where in found.values()) else ""


def _advice_on(error: BaseException) -> str:
    """Return what to do about an error that is usual; nothing about another one."""
    message = shortened(error)
    return next((f" {says}" for words, says in _ADVICE.items() if re.search(words, message)), "")


def mentions(function: Callable, name: str) -> bool:
    """Return whether a function is the one of this name, or has the name in its code."""
    codes = [getattr(function, "__code__", None)]
    for code in codes:  # grows by what is defined inside: a generator has code of its own
        codes += [inner for inner in getattr(code, "co_consts", ()) if hasattr(inner, "co_names")]
    names = [used for code in codes for used in getattr(code, "co_names", ())]
    return name in (getattr(function, "__name__", ""), *names)


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


def _is_plain(argument: Any) -> bool:
    """Return whether an argument is a list of whole numbers, such as ids."""
    return isinstance(argument, list) and all(isinstance(number, int) for number in argument)


def _copy(argument: Any) -> Any:
    """Copy what a reader's function could change; other arguments are handed on."""
    if isinstance(argument, torch.Tensor):
        return argument.clone()
    if _is_plain(argument):
        return list(argument)
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
