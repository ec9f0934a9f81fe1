"""Getting modules out of a candidate: a class, a function that builds one, or a built module."""

import copy
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from attnlib.museum._names import (
    SIZES,
    known_as,
    parameters_of,
    takes_anything,
)
from attnlib.museum._places import find_places
from attnlib.museum._reference import Sizes
from attnlib.museum._told import CallError, Told

Candidate = nn.Module | Callable[..., nn.Module]

# No formula of them meets the root of d_k at both widths, and no two axes are equally long.
FIRST = Sizes(d_model=30, num_heads=3, num_kv_heads=3)
SECOND = Sizes(d_model=56, num_heads=4, num_kv_heads=4)
GROUPED = Sizes(d_model=60, num_heads=6, num_kv_heads=3)
DROPPED = 0.25  # dropout, where it is asked for
_LONGEST = 64  # more tokens than any probe has


def build(candidate: Candidate, sizes: Sizes, told: Told) -> nn.Module | None:
    """Return a module of these sizes, or None if there is none with this dropout or grouping.

    Raises:
        CallError: it can't be built.
    """
    if isinstance(candidate, nn.Module):
        own = copy_of(candidate).float()
        return own if set_dropout(own, sizes.dropout) or not sizes.dropout else None
    module = _construct(candidate, sizes)
    if module is None:
        return None
    names = {known_as(p.name, SIZES): p.name for p in parameters_of(candidate)}
    if "dropout" not in names and not takes_anything(candidate):
        can_drop = set_dropout(module, sizes.dropout)
        return module if (can_drop and "config" in names) or not sizes.dropout else None
    return module


def set_dropout(module: nn.Module, dropout: float) -> bool:
    """Set all dropout inside a module; return whether there is any."""
    found = False
    for part in module.modules():
        if isinstance(part, nn.modules.dropout._DropoutNd):
            part.p, found = dropout, True
        for name, value in vars(part).items():
            if "drop" in name and isinstance(value, float):
                setattr(part, name, dropout)
                found = True
    return found


def own_sizes(module: nn.Module, told: Told) -> Sizes:
    """Find out the sizes of a built module.

    Raises:
        CallError: the number of heads or the width isn't to be found.
    """
    heads = told.num_heads or _attribute(module, "num_heads")
    if heads is None:
        raise CallError(
            f"num_heads of this {type(module).__name__} isn't to be found: "
            "say it with num_heads=..."
        )
    d_model = _attribute(module, "d_model")
    for linear in module.modules():
        weight = getattr(linear, "weight", None)
        for width in set(weight.shape) if isinstance(weight, nn.Parameter) else ():
            for kv_heads in range(heads, 0, -1):
                sizes = Sizes(int(width), heads, kv_heads)
                if width % heads == 0 and heads % kv_heads == 0 and find_places(module, sizes):
                    return sizes
    if d_model is None or told.load is None:
        raise CallError(unloadable(module))
    return Sizes(d_model, heads, _attribute(module, "num_kv_heads") or heads)


def _attribute(module: nn.Module, size: str) -> int | None:
    """Find a size among the attributes of a module, its parts and its config."""
    for part in module.modules():
        for holder in (part, getattr(part, "config", None)):
            for name in SIZES[size]:
                value = getattr(holder, name, None)
                if isinstance(value, int) and not isinstance(value, bool):
                    return value
    return None


def unloadable(module: nn.Module) -> str:
    names = ", ".join(name for name, _ in module.named_parameters()) or "none"
    return (
        f"candidate must take the weights W_q, W_k, W_v and W_o, but these aren't to be found "
        f"among the parameters of this {type(module).__name__} ({names}): pass load=..., a "
        "function of (your module, a MultiHeadAttention) that copies the second one's weights into "
        "the first"
    )


def _construct(candidate: Callable[..., nn.Module], sizes: Sizes) -> nn.Module | None:
    numbers: dict[str, Any] = {
        "d_model": sizes.d_model, "num_heads": sizes.num_heads, "dropout": sizes.dropout,
        "num_kv_heads": sizes.num_kv_heads, "d_k": sizes.d_model // sizes.num_heads,
        "length": _LONGEST,
    }  # fmt: skip
    name = getattr(candidate, "__name__", type(candidate).__name__)
    parameters = parameters_of(candidate)
    roles = {p.name: known_as(p.name, SIZES) for p in parameters}
    anything = takes_anything(candidate)
    if "num_kv_heads" not in roles.values() and sizes.num_kv_heads != sizes.num_heads:
        if not anything:
            return None
    if "config" in roles.values() and "d_model" not in roles.values():
        numbers["config"] = Config(numbers)
    positional: list[Any] = []
    options: dict[str, Any] = {}
    needed = [p.name for p in parameters if p.default is p.empty]
    for size in ("d_model", "num_heads"):  # the one name that is foreign beside a known one
        foreign = [name for name in needed if roles[name] is None]
        if len(foreign) == 1 and size not in roles.values() and len(needed) == 2:
            roles[foreign[0]] = size
    unknown = [p.name for p in parameters if p.default is p.empty and roles[p.name] not in numbers]
    if unknown and not {"d_model", "num_heads"} & set(roles.values()) and len(parameters) >= 2:
        positional = [sizes.d_model, sizes.num_heads]  # whatever they are called
        parameters = parameters[2:]
        unknown = [one for one in unknown if one in {p.name for p in parameters}]
    if unknown:
        raise CallError(
            f"{name} needs {unknown[0]!r}, of which nothing is known here: hand in a function, "
            f"diagnose(lambda d_model, num_heads: {name}(..., {unknown[0]}=...))"
        )
    for parameter in parameters:
        role = roles[parameter.name]
        if role in numbers:
            if parameter.kind is parameter.POSITIONAL_ONLY:
                positional.append(numbers[role])
            else:
                options[parameter.name] = numbers[role]
    if anything:
        there = set(roles.values())
        options |= {r: numbers[r] for r in ("dropout", "num_kv_heads") if r not in there}
    try:
        module = candidate(*positional, **options)
    except Exception as error:
        if anything and isinstance(error, TypeError) and "unexpected keyword" in str(error):
            if sizes.dropout or sizes.num_kv_heads != sizes.num_heads:
                return None
            options = {n: x for n, x in options.items() if n in roles}
            return candidate(*positional, **options)
        given = ", ".join(
            [*map(repr, positional), *(f"{name}={value!r}" for name, value in options.items())]
        )
        raise CallError(
            f"{name}({given}) raised {type(error).__name__}: {error}. If it wants other arguments, "
            f"hand in a function: diagnose(lambda d_model, num_heads: {name}(...)); if it can't "
            "have these sizes, hand in a built module, which is asked at its own"
        ) from error
    if not isinstance(module, nn.Module):
        raise CallError(
            f"{name} must build a torch.nn.Module, got {type(module).__name__}: "
            "hand in the class, or a function of (d_model, num_heads) that returns the module"
        )
    return module


class Config:
    """Stands for the config object that many constructors take: sizes by all their usual names."""

    def __init__(self, numbers: dict[str, Any]) -> None:
        self._numbers = numbers

    def __getattr__(self, name: str) -> Any:
        role = known_as(name, SIZES) if not name.startswith("__") else None
        if role == "bias":
            return True
        if "drop" in name:
            role = "dropout"
        if role is None or role not in self._numbers:
            raise AttributeError(f"config has no {name!r} here")
        return self._numbers[role]

    def __repr__(self) -> str:
        return "config"


def copy_of(module: nn.Module) -> nn.Module:
    """Copy a module, even one that keeps tensors of its last run, which deepcopy refuses."""
    kept = [x for part in module.modules() for x in vars(part).values() if isinstance(x, Tensor)]
    return copy.deepcopy(module, {id(x): x.detach() for x in kept if not x.is_leaf})


def has_bias(module: nn.Module) -> bool:
    """Tell whether a module adds any bias: a parameter of one dimension."""
    return any(p.dim() == 1 for p in module.parameters())


def set_norms_aside(module: nn.Module) -> list[str]:
    """Replace normalizations inside a module by nothing; return their names."""
    found = [
        name for name, part in module.named_modules()
        if name and "norm" in type(part).__name__.lower() and not list(part.children())
    ]  # fmt: skip
    for name in found:
        module.set_submodule(name, nn.Identity())
    return found


def require_candidate(candidate: object) -> None:
    """Raise unless modules may come of it."""
    if not callable(candidate):
        raise TypeError(
            "candidate must be a module, a class or a function that builds a module, "
            f"got {type(candidate).__name__}"
        )
