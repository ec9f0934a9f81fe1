"""Calling a class, or a function that builds modules, with the sizes that its arguments name."""

import inspect
from collections.abc import Callable
from typing import Any

from torch import nn

from attndoctor.names import ROLES, SIZES, known_as, parameters_of, takes_anything
from attndoctor.reference import Sizes
from attndoctor.told import CallError, said

LONGEST = 128  # more tokens than any probe has


def construct(
    candidate: Callable[..., nn.Module], sizes: Sizes, untold: tuple[str, ...] = ()
) -> nn.Module | None:
    """Return a module of these sizes, or None if the constructor knows no grouping or dropout.

    Sizes that are `untold` stay as the constructor has them.

    Raises:
        CallError: it can't be called so, or returns no module.
    """
    roles = _roles(candidate)
    known = set(roles.values())
    anything = takes_anything(candidate)
    special = sizes.dropout or sizes.num_kv_heads != sizes.num_heads
    grouped = sizes.num_kv_heads != sizes.num_heads
    if grouped and not anything and not known & {"num_kv_heads", "config"}:
        return None
    numbers = _numbers(sizes)
    if sizes.num_kv_heads == sizes.num_heads:  # left out where None means so
        none = [p.name for p in parameters_of(candidate) if p.default is None]
        roles = {n: r for n, r in roles.items() if not (r == "num_kv_heads" and n in none)}
    told = numbers.keys() - set(untold)
    named = {name: numbers[role] for name, role in roles.items() if role in told}
    extra = {"dropout", "num_kv_heads"} - known - set(untold) if anything else set()
    try:
        module = _call(candidate, named | {role: numbers[role] for role in extra})
    except (Exception, SystemExit) as error:
        if extra and isinstance(error, TypeError) and "unexpected keyword" in str(error):
            return None if special else _call(candidate, named)  # **kwargs that take neither
        name = _name(candidate)
        given = ", ".join(f"{argument}={value!r}" for argument, value in named.items())
        if "Module.__init__() call" in str(error):
            raise CallError(
                f"{name}({given}) raised {said(error)}: write super().__init__() on the first line "
                "of its __init__"
            ) from error
        raise CallError(
            f"{name}({given}) raised {said(error)}. If it wants other arguments, "
            f"hand in a function: diagnose(lambda d_model, num_heads: {name}(...)); if it can't "
            "have these sizes, hand in a built module, which is asked at its own"
        ) from error
    if not isinstance(module, nn.Module):
        raise CallError(
            f"{_name(candidate)} must build a torch.nn.Module, got {type(module).__name__}: "
            "hand in a class of modules, or a function of (d_model, num_heads) that returns the "
            "module"
        )
    of_config = not anything and "num_kv_heads" not in known
    return None if grouped and of_config and not numbers["config"].asked_for_groups else module


def _roles(candidate: Callable) -> dict[str, str | None]:
    """Return what each argument of a constructor is, as its name or its place says.

    Raises:
        CallError: it needs something of which nothing is known.
    """
    parameters = parameters_of(candidate)
    if {"query", "key", "value"} <= {known_as(parameter.name, ROLES) for parameter in parameters}:
        raise CallError(
            f"candidate must be a module or build one, but {_name(candidate)} takes queries, keys "
            "and values itself: hand in the module that calls it"
        )
    if not inspect.signature(candidate).parameters:
        raise CallError(
            f"{_name(candidate)} takes no sizes, so it builds one module only: hand in that module"
        )
    roles = {parameter.name: known_as(parameter.name, SIZES) for parameter in parameters}
    if "d_model" in roles.values():  # a config beside it would be another thing
        roles = {name: None if role == "config" else role for name, role in roles.items()}
    needed = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    foreign = [name for name in needed if roles[name] is None]
    wanted = [size for size in ("d_model", "num_heads") if size not in roles.values()]
    if len(foreign) == 1 and not set(roles.values()) - {None}:
        raise CallError(
            f"candidate must be a module or build one, but {_name(candidate)} takes {foreign[0]!r} "
            "and no sizes: if it is an attention itself, hand in the nn.Module that it is of; if "
            "it builds one, hand in a function of (d_model, num_heads)"
        )
    if len(wanted) == 2 and list(roles)[:2] == foreign[:2] and foreign:  # (a, b), however named
        roles |= dict(zip(list(roles)[:2], wanted, strict=True))
    elif len(wanted) == len(foreign) == 1 and len(needed) == 2:
        roles[foreign[0]] = wanted[0]
    unlimited = takes_anything(candidate) or {"config", "d_k"} & set(roles.values())
    if "d_model" in roles.values() and "num_heads" not in roles.values() and not unlimited:
        raise CallError(
            f"{_name(candidate)} takes d_model but no number of heads: hand in a built module, and "
            "say how many it has: num_heads=..."
        )
    unknown = [name for name in needed if roles[name] in (None, "bias")]
    if unknown:
        lines = ", ".join(f"{name}=..." for name in unknown)
        raise CallError(
            f"{_name(candidate)} needs {' and '.join(map(repr, unknown))}, of which nothing is "
            f"known here: hand in a function, diagnose(lambda d_model, num_heads: "
            f"{_name(candidate)}(..., {lines}))"
        )
    return roles


def _numbers(sizes: Sizes) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        "d_model": sizes.d_model, "num_heads": sizes.num_heads, "dropout": sizes.dropout,
        "num_kv_heads": sizes.num_kv_heads, "d_k": sizes.d_k,
        "length": LONGEST, "layer": 0, "device": "cpu",
    }  # fmt: skip
    return numbers | {"config": Config(numbers)}


def _call(candidate: Callable[..., nn.Module], named: dict[str, Any]) -> nn.Module:
    """Call with arguments by name, but for those that have only a place."""
    places = [
        p.name for p in parameters_of(candidate) if p.kind is inspect.Parameter.POSITIONAL_ONLY
    ]
    return candidate(
        *(named[name] for name in places if name in named),
        **{name: value for name, value in named.items() if name not in places},
    )


def _name(candidate: Callable) -> str:
    return getattr(candidate, "__name__", type(candidate).__name__)


class UnknownSizeError(AttributeError, CallError):
    """A config is asked for what isn't known here; getattr with a default goes on."""


class Config:
    """Stands for the config object that many constructors take: sizes by all their usual names."""

    def __init__(self, numbers: dict[str, Any]) -> None:
        self._numbers = numbers
        self.asked_for_groups = False

    def __getattr__(self, name: str) -> Any:
        if name == "_attn_implementation":  # of transformers
            return "eager"
        role = known_as(name, SIZES) if not name.startswith("__") else None
        if role == "num_kv_heads":
            self.asked_for_groups = True
        if role == "bias":
            return True
        if "drop" in name:
            role = "dropout"
        if role is None or role not in self._numbers:
            raise UnknownSizeError(
                f"config has no {name!r} here: hand in a built module, or a function, "
                "diagnose(lambda d_model, num_heads: ...), that builds one with your own config"
            )
        return self._numbers[role]

    def __repr__(self) -> str:
        return "config"
