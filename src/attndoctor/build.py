"""Construct modules from a candidate: a class, a function that builds one, or a built module."""

import copy
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter
from torch.nn.utils.parametrize import is_parametrized

from attndoctor.names import ROLES, SIZES, known_as, parameters_of, projection_named, takes_anything
from attndoctor.options import CallError, DiagnoseOptions, error_text, name_list
from attndoctor.reference import Sizes
from attndoctor.support.texts import Texts
from attndoctor.weights import find_weights

TEXT = Texts(__file__)
Candidate = nn.Module | Callable[..., nn.Module]

# No formula of them meets the root of d_k at both widths, and no two axes are equally long.
FIRST = Sizes(d_model=30, num_heads=3, num_kv_heads=3)
SECOND = Sizes(d_model=56, num_heads=4, num_kv_heads=4)
GROUPED = Sizes(d_model=60, num_heads=6, num_kv_heads=3)
ONE_HEAD = Sizes(d_model=22, num_heads=1, num_kv_heads=1)
ODD = Sizes(d_model=33, num_heads=3, num_kv_heads=3)
DROPPED = 0.25  # dropout of the modules that the probes of dropout run
BUILT_LENGTH = 128  # tokens that modules are built for; no probe has as many


# --- calling constructors ------------------------------------------------------------------------


def construct(
    candidate: Callable[..., nn.Module], sizes: Sizes, untold: tuple[str, ...] = ()
) -> nn.Module | None:
    """Return a module, with defaults for `untold`; None if it takes no grouping or dropout."""
    roles = _constructor_roles(candidate)
    known = set(roles.values())
    anything = takes_anything(candidate)
    grouped = sizes.num_kv_heads != sizes.num_heads
    if grouped and not anything and not known & {"num_kv_heads", "config"}:
        return None
    numbers = _numbers(sizes)
    if not grouped:  # left out where None means so
        none = [p.name for p in parameters_of(candidate) if p.default is None]
        roles = {n: r for n, r in roles.items() if not (r == "num_kv_heads" and n in none)}
    named = {n: numbers[role] for n, role in roles.items() if role in numbers.keys() - set(untold)}
    extra = {"dropout", "num_kv_heads"} - known - set(untold) if anything else set()
    try:
        module = candidate(**named, **{role: numbers[role] for role in extra})
    except (Exception, SystemExit) as error:
        if extra and isinstance(error, TypeError) and "unexpected keyword" in str(error):
            special = sizes.dropout or grouped
            return None if special else candidate(**named)  # **kwargs that take neither
        forgotten = "Module.__init__() call" in str(error)
        given = ", ".join(f"{argument}={value!r}" for argument, value in named.items())
        raise CallError(TEXT(
            "no super" if forgotten else "construction failed",
            name=_name(candidate), given=given, error=error_text(error),
        )) from error  # fmt: skip
    if not isinstance(module, nn.Module):
        raise CallError(TEXT("no module built", name=_name(candidate), got=type(module).__name__))
    of_config = not anything and "num_kv_heads" not in known
    return None if grouped and of_config and not numbers["config"].read_groups else module


def _constructor_roles(candidate: Callable) -> dict[str, str | None]:
    """Return the role of each argument of a constructor, by its name or its position."""
    parameters = parameters_of(candidate)
    if {"query", "key", "value"} <= {known_as(parameter.name, ROLES) for parameter in parameters}:
        raise CallError(TEXT("an attention itself", name=_name(candidate)))
    if not inspect.signature(candidate).parameters:
        raise CallError(TEXT("one module only", name=_name(candidate)))
    roles = {parameter.name: known_as(parameter.name, SIZES) for parameter in parameters}
    if "d_model" in roles.values():  # a config beside it would be another thing
        roles = {name: None if role == "config" else role for name, role in roles.items()}
    needed = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    foreign = [name for name in needed if roles[name] is None]
    wanted = [size for size in ("d_model", "num_heads") if size not in roles.values()]
    if len(foreign) == 1 and not set(roles.values()) - {None}:
        raise CallError(TEXT("no sizes", name=_name(candidate), argument=foreign[0]))
    if len(wanted) == len(foreign) == 1 and len(needed) == 2:
        roles[foreign[0]] = wanted[0]
    unlimited = takes_anything(candidate) or {"config", "d_k"} & set(roles.values())
    if "d_model" in roles.values() and "num_heads" not in roles.values() and not unlimited:
        raise CallError(TEXT("no number of heads", name=_name(candidate)))
    unknown = [name for name in needed if roles[name] in (None, "bias")]
    if unknown:
        lines = ", ".join(f"{name}=..." for name in unknown)
        arguments = " and ".join(map(repr, unknown))
        raise CallError(
            TEXT("unknown arguments", name=_name(candidate), arguments=arguments, lines=lines)
        )
    return roles


def _numbers(sizes: Sizes) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        "d_model": sizes.d_model, "num_heads": sizes.num_heads, "dropout": sizes.dropout,
        "num_kv_heads": sizes.num_kv_heads, "d_k": sizes.d_k,
        "length": BUILT_LENGTH, "layer": 0, "device": "cpu",
    }  # fmt: skip
    return numbers | {"config": Config(numbers)}


def _name(candidate: Callable) -> str:
    return getattr(candidate, "__name__", type(candidate).__name__)


class UnknownSizeError(AttributeError, CallError):
    """A config has no such size; an AttributeError, so that getattr with a default goes on."""


class Config:
    """A config object, as many constructors take one: sizes by all their usual names."""

    def __init__(self, numbers: dict[str, Any]) -> None:
        self._numbers = numbers
        self.read_groups = False

    def __getattr__(self, name: str) -> Any:
        if name == "_attn_implementation":  # of transformers
            return "eager"
        role = known_as(name, SIZES) if not name.startswith("__") else None
        if role == "num_kv_heads":
            self.read_groups = True
        if role == "bias":
            return True
        if "drop" in name:
            role = "dropout"
        if role is None or role not in self._numbers:
            raise UnknownSizeError(TEXT("config", name=name))
        return self._numbers[role]

    def __repr__(self) -> str:
        return "config"


# --- modules to run ------------------------------------------------------------------------------


def require_candidate(candidate: object, num_heads: int | None) -> None:
    """Raise unless a candidate is a module, or may build modules with any number of heads."""
    if not callable(candidate):
        raise TypeError(
            "candidate must be a module, a class or a function that builds a module, "
            f"got {type(candidate).__name__}"
        )
    if not isinstance(candidate, nn.Module):
        try:
            inspect.signature(candidate)
        except ValueError:
            raise CallError(TEXT("built into C", name=_name(candidate))) from None
    if isinstance(candidate, nn.ModuleDict | nn.ModuleList):
        raise CallError(TEXT("several modules", kind=type(candidate).__name__))
    if num_heads is not None and not isinstance(candidate, nn.Module):
        raise ValueError(
            "num_heads must be left out where candidate builds modules, which are built with "
            f"several, got {num_heads}: hand in a built module to ask it with this many"
        )


def module_of(candidate: Candidate, sizes: Sizes) -> nn.Module | None:
    """Return a module of these sizes; None if there is none with this dropout or grouping."""
    if isinstance(candidate, nn.Module):
        own = _prepared(candidate)
        return own if set_dropout(own, sizes.dropout) or not sizes.dropout else None
    module = construct(candidate, sizes)
    if module is None:
        return None
    module = _prepared(module)
    if not sizes.dropout:
        set_dropout(module, 0.0)  # the default of some isn't 0
        return module
    if "dropout" in {known_as(parameter.name, SIZES) for parameter in parameters_of(candidate)}:
        return module
    drops = any(share for *_, share in _dropouts(module))  # some take no argument for it
    return module if drops and set_dropout(module, sizes.dropout) else None


def _prepared(module: nn.Module) -> nn.Module:
    """Return a copy in float32, in which no weight is computed from others."""
    module = unwrapped(module)
    _require_numbers(module)
    return with_plain_weights(copy_of(module).float())


def unwrapped(module: nn.Module) -> nn.Module:
    """Return the module inside one of torch.compile or nn.DataParallel."""
    if isinstance(module, torch.jit.ScriptModule):
        raise CallError(TEXT("scripted"))
    parallel = isinstance(module, nn.DataParallel | nn.parallel.DistributedDataParallel)
    inside = module.module if parallel else getattr(module, "_orig_mod", None)
    return unwrapped(inside) if isinstance(inside, nn.Module) else module


def refused_default(candidate: Candidate) -> str | None:
    """Return the error that a constructor raises over its own default of dropout, if it does."""
    if isinstance(candidate, nn.Module):
        return None
    shares = [p for p in parameters_of(candidate) if known_as(p.name, SIZES) == "dropout"]
    if all(p.default is not p.empty for p in shares):
        try:
            construct(candidate, FIRST, untold=("dropout",))
        except CallError as error:
            return error_text(error.__cause__) if isinstance(error.__cause__, Exception) else None
    return None


def set_dropout(module: nn.Module, dropout: float) -> bool:
    """Set all dropout inside a module and its config; return whether there is any."""
    found = _dropouts(module)
    for holder, name, _ in found:
        holder[name] = dropout
    return bool(found)


def _dropouts(module: nn.Module) -> list[tuple[dict[str, Any], str, float]]:
    """Return each attribute of a module, its parts and configs that is a share to drop."""
    holders = [vars(part) for part in module.modules()]
    for attributes in list(holders):
        configs = (x for name, x in attributes.items() if known_as(name, SIZES) == "config")
        holders += [x if isinstance(x, dict) else vars(x) for x in configs if _is_filled(x)]
    return [
        (holder, name, value)
        for holder in holders
        for name, value in holder.items()
        if isinstance(value, float) and ("drop" in str(name) or name == "p")
    ]


def _is_filled(config: object) -> bool:
    """Return whether it is a dict or an object with attributes of its own; a class is shared."""
    return isinstance(config, dict) or (
        hasattr(config, "__dict__") and not isinstance(config, type)
    )


def _require_numbers(module: nn.Module) -> None:
    """Raise CallError unless a module's parameters hold numbers."""
    lazy = [name for name, p in module.named_parameters() if isinstance(p, UninitializedParameter)]
    if lazy:
        raise CallError(TEXT("lazy", names=name_list(lazy), kind=type(module).__name__))
    if any(numbers.is_meta for numbers in module.parameters()):
        raise CallError("candidate must have numbers to be tested, but it is on the device meta")


def copy_of(module: nn.Module) -> nn.Module:
    """Copy a module, even one that keeps tensors of its last run, which deepcopy refuses."""
    kept = [x for part in module.modules() for x in vars(part).values() if isinstance(x, Tensor)]
    return copy.deepcopy(module, {id(x): x.detach() for x in kept if not x.is_leaf})


def with_plain_weights(module: nn.Module) -> nn.Module:
    """Replace weights that are computed from others, as by weight_norm, by plain parameters."""
    for part in list(module.modules()):
        if is_parametrized(part):  # its class is shared with the module that it is a copy of
            named = dict.fromkeys(part.get_submodule("parametrizations")._modules)
            values = {name: getattr(part, name).detach().clone() for name in named}
            del part.parametrizations
            part.__class__ = type(part).__bases__[0]
            for name, numbers in values.items():
                part.register_parameter(name, nn.Parameter(numbers))
    return module


def set_norms_aside(module: nn.Module) -> list[str]:
    """Replace the normalizations inside a module by identities; return their names."""
    found = [
        name for name, part in module.named_modules()
        if name and "norm" in type(part).__name__.lower() and not list(part.children())
    ]  # fmt: skip
    for name in found:
        module.set_submodule(name, nn.Identity())
    return found


# --- sizes of built modules ----------------------------------------------------------------------


def own_sizes(module: nn.Module, options: DiagnoseOptions) -> Sizes:
    """Find out the sizes of a built module, or raise CallError."""
    module = unwrapped(module)
    _require_numbers(module)
    module = with_plain_weights(copy_of(module))
    heads = options.num_heads or _heads(module)
    if heads is None or heads < 1:
        which = "can't be found" if heads is None else f"is {heads}"
        raise CallError(TEXT("heads of a module", kind=type(module).__name__, which=which))
    widths = _widths(module)
    if options.num_heads and widths and all(width % heads for width in widths):
        raise CallError(TEXT("heads of no width", heads=heads, widths=", ".join(map(str, widths))))
    for width in widths:
        sizes = as_built(module, Sizes(width, heads, heads)) if width % heads == 0 else None
        if sizes:
            return sizes
    if options.load is None:
        raise CallError(unloadable(module))
    d_model = _attribute(module, "d_model")
    if d_model is None:
        raise CallError(TEXT("width of a module", kind=type(module).__name__))
    return Sizes(d_model, heads, _attribute(module, "num_kv_heads") or heads)


def _heads(module: nn.Module) -> int | None:
    """Return the number of heads; a module's own width of a head goes before a config's number."""
    heads = _attribute(module, "num_heads", configs=False)
    if heads is not None:
        return heads
    heads, d_k = _attribute(module, "num_heads"), _attribute(module, "d_k", configs=False)
    queries = _layer(module, "W_q")
    if heads and d_k and queries is not None and heads * d_k != len(queries):
        fitting = len(queries) // d_k if len(queries) % d_k == 0 else 0
        return fitting if fitting > 1 else heads
    return heads


def _widths(module: nn.Module) -> list[int]:
    """Return the widths that its tokens may have: an attribute says, or W_o's, or any matrix's."""
    output = _layer(module, "W_o")
    widths = [_attribute(module, "d_model") or 0, 0 if output is None else len(output)]
    for numbers in module.parameters():
        widths += sorted(numbers.shape) if numbers.dim() > 1 else []  # a packed one's out last
    return [width for width in dict.fromkeys(widths) if width > 0]


def as_built(module: nn.Module, sizes: Sizes) -> Sizes | None:
    """Return the sizes with a module's own key heads and width of a head; None if none fit."""
    queries, output = (_layer(module, W) for W in ("W_q", "W_o"))
    widths = [
        _attribute(module, "d_k"),
        None if queries is None else len(queries) // sizes.num_heads,
        None if output is None else output.shape[1] // sizes.num_heads,
    ]
    others = [width for width in widths if width and width != sizes.d_k]
    for head_dim in dict.fromkeys([sizes.head_dim, *others]):
        for kv_heads in range(sizes.num_kv_heads, 0, -1):
            own = replace(sizes, num_kv_heads=kv_heads, head_dim=head_dim)
            if sizes.num_heads % kv_heads == 0 and find_weights(module, own):
                return own
    return None


def _attribute(module: nn.Module, size: str, *, configs: bool = True) -> int | None:
    """Find a size among the attributes of a module and its parts, and of their configs."""
    for part in module.modules():
        for holder in (part, getattr(part, "config", None) if configs else None):
            for name in SIZES[size]:
                value = getattr(holder, name, None)
                if isinstance(value, int) and not isinstance(value, bool):
                    return value
    return None


def unloadable(module: nn.Module, sizes: Sizes | None = None) -> str:
    """Return what to do when the projections aren't found."""
    never = _never_comparable(module)
    if never:
        return TEXT("other shapes", never=never)
    shapes = [f"{name} {list(numbers.shape)}" for name, numbers in module.named_parameters()]
    at = f", at d_model={sizes.d_model} and num_heads={sizes.num_heads}," if sizes else ""
    square = f" [{sizes.d_model}, {sizes.d_model}]" if sizes else ""
    return TEXT(
        "not found",
        square=square,
        at=at,
        kind=type(module).__name__,
        shapes=name_list(shapes) or "none",
    )


def _never_comparable(module: nn.Module) -> str | None:
    """Return which of a module's shapes no `load` can change, as far as names show it."""
    if isinstance(module, nn.MultiheadAttention) and module.in_proj_weight is None:
        return TEXT("several widths", module=module)
    queries, keys, values = (_layer(module, W) for W in ("W_q", "W_k", "W_v"))
    heads = _attribute(module, "num_heads")
    if queries is None or not heads:
        return None
    d_model = queries.shape[1]
    if d_model % heads:
        return TEXT("undivided", heads=heads, d_model=d_model)
    if keys is not None and values is not None and len(keys) != len(values):
        return TEXT("wide values", keys=len(keys), values=len(values))
    layers, roles = _linears(module)
    narrow = [name for name, W in layers.items() if W.shape[1] < d_model and roles[name] != "W_o"]
    return TEXT("two steps", names=name_list(narrow), d_model=d_model) if narrow else None


def _linears(module: nn.Module) -> tuple[dict[str, Tensor], dict[str, str | None]]:
    """Return the weights of a module's linear layers, and the projections in their names."""
    layers = {n: part.weight for n, part in module.named_modules() if isinstance(part, nn.Linear)}
    return layers, {name: projection_named(name.split(".")[-1]) for name in layers}


def _layer(module: nn.Module, projection: str) -> Tensor | None:
    """Return the weight of the linear layer that is named for this projection."""
    layers, roles = _linears(module)
    return next((layers[name] for name, role in roles.items() if role == projection), None)
