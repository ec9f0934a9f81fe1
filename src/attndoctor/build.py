"""Getting modules out of a candidate: a class, a function that builds one, or a built module."""

import copy
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter
from torch.nn.utils.parametrize import is_parametrized

from attndoctor.constructing import construct
from attndoctor.names import SIZES, known_as, parameters_of, projection_named
from attndoctor.places import find_places
from attndoctor.reference import Sizes
from attndoctor.told import CallError, Told, said, some

Candidate = nn.Module | Callable[..., nn.Module]

# No formula of them meets the root of d_k at both widths, and no two axes are equally long.
FIRST = Sizes(d_model=30, num_heads=3, num_kv_heads=3)
SECOND = Sizes(d_model=56, num_heads=4, num_kv_heads=4)
GROUPED = Sizes(d_model=60, num_heads=6, num_kv_heads=3)
ONE_HEAD = Sizes(d_model=22, num_heads=1, num_kv_heads=1)
ODD = Sizes(d_model=33, num_heads=3, num_kv_heads=3)
DROPPED = 0.25  # dropout, where it is asked for


def build(candidate: Candidate, sizes: Sizes) -> nn.Module | None:
    """Return a module of these sizes, or None if there is none with this dropout or grouping.

    Raises:
        CallError: it can't be built.
    """
    if isinstance(candidate, nn.Module):
        _require_numbers(candidate)
        own = with_plain_weights(copy_of(unwrapped(candidate)).float())
        return own if set_dropout(own, sizes.dropout) or not sizes.dropout else None
    module = construct(candidate, sizes)
    if module is None:
        return None
    module = unwrapped(module)
    _require_numbers(module)
    module = with_plain_weights(copy_of(module).float())  # a config may be the reader's own
    if not sizes.dropout:
        set_dropout(module, 0.0)  # some have a dropout that isn't 0 unless told so
        return module
    named = {known_as(parameter.name, SIZES) for parameter in parameters_of(candidate)}
    if "dropout" in named:
        return module
    drops = any(share for *_, share in _dropouts(module))  # some have one that can't be told
    return module if drops and set_dropout(module, sizes.dropout) else None


def unwrapped(module: nn.Module) -> nn.Module:
    """Return what stands in a module of torch.compile or nn.DataParallel, whose forward hides it.

    Raises:
        CallError: it is scripted, and its forward tells too little of its arguments.
    """
    if isinstance(module, torch.jit.ScriptModule):
        raise CallError(
            "candidate must be a module whose forward says what it takes, but this one is "
            "scripted: hand in the module that torch.jit got"
        )
    parallel = isinstance(module, nn.DataParallel | nn.parallel.DistributedDataParallel)
    inside = module.module if parallel else getattr(module, "_orig_mod", None)
    return unwrapped(inside) if isinstance(inside, nn.Module) else module


def refused_default(candidate: Candidate) -> str | None:
    """Say what a constructor raises over its own default of dropout, if it does.

    A diagnosis tells the dropout itself, and would never meet it.
    """
    if isinstance(candidate, nn.Module):
        return None
    told = [p for p in parameters_of(candidate) if known_as(p.name, SIZES) == "dropout"]
    if all(p.default is not p.empty for p in told):
        try:
            construct(candidate, FIRST, untold=("dropout",))
        except CallError as error:
            return said(error.__cause__) if isinstance(error.__cause__, Exception) else None
    return None


def set_dropout(module: nn.Module, dropout: float) -> bool:
    """Set all dropout inside a module and its config; return whether there is any."""
    found = _dropouts(module)
    for holder, name, _ in found:
        holder[name] = dropout
    return bool(found)


def _dropouts(module: nn.Module) -> list[tuple[dict[str, Any], str, float]]:
    """Return where a module, a part or a config of it keeps a share to drop, and which."""
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
    """Tell whether it is a dict or an object with attributes of its own; a class is shared."""
    return isinstance(config, dict) or (
        hasattr(config, "__dict__") and not isinstance(config, type)
    )


def _require_numbers(module: nn.Module) -> None:
    """Raise CallError unless a module's parameters hold numbers."""
    lazy = [name for name, p in module.named_parameters() if isinstance(p, UninitializedParameter)]
    if lazy:
        raise CallError(
            f"candidate must have numbers to be asked, but {some(lazy)} of this "
            f"{type(module).__name__} get their shapes at the first call: use nn.Linear in place "
            "of nn.LazyLinear, or hand in a module that was called once"
        )
    if any(numbers.is_meta for numbers in module.parameters()):
        raise CallError("candidate must have numbers to be asked, but it is on the device meta")


def own_sizes(module: nn.Module, told: Told) -> Sizes:
    """Find out the sizes of a built module.

    Raises:
        CallError: the number of heads or the width isn't to be found.
    """
    module = unwrapped(module)
    _require_numbers(module)
    module = with_plain_weights(copy_of(module))
    heads = told.num_heads or _attribute(module, "num_heads")
    if heads is None or heads < 1:
        which = "isn't to be found" if heads is None else f"is {heads}"
        raise CallError(
            f"num_heads of this {type(module).__name__} {which}: say it with num_heads=..."
        )
    for numbers in module.parameters():
        widths = sorted(set(numbers.shape)) if numbers.dim() > 1 else []  # a packed one's out last
        for width in widths:
            if width % heads == 0:
                sizes = as_built(module, Sizes(int(width), heads, heads))
                if sizes:
                    return sizes
    if told.load is None:
        raise CallError(unloadable(module))
    d_model = _attribute(module, "d_model") or _width_in(module)
    if d_model is None:
        raise CallError(
            f"d_model of this {type(module).__name__} isn't to be found: "
            "give it an attribute of this name"
        )
    return Sizes(d_model, heads, _attribute(module, "num_kv_heads") or heads)


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
            if sizes.num_heads % kv_heads == 0 and find_places(module, own):
                return own
    return None


def _width_in(module: nn.Module) -> int | None:
    """Return how many numbers all its matrices take, if that is one number."""
    widths = {parameter.shape[1] for parameter in module.parameters() if parameter.dim() == 2}
    return widths.pop() if len(widths) == 1 else None


def _attribute(module: nn.Module, size: str) -> int | None:
    """Find a size among the attributes of a module, its parts and its config."""
    for part in module.modules():
        for holder in (part, getattr(part, "config", None)):
            for name in SIZES[size]:
                value = getattr(holder, name, None)
                if isinstance(value, int) and not isinstance(value, bool):
                    return value
    return None


def unloadable(module: nn.Module, sizes: Sizes | None = None) -> str:
    """Say what to do about weights that aren't to be found."""
    never = _never_comparable(module)
    if never:
        return f"candidate must have the shapes of MultiHeadAttention, but {never}"
    shapes = [f"{name} {list(numbers.shape)}" for name, numbers in module.named_parameters()]
    asked = f", at d_model={sizes.d_model} and num_heads={sizes.num_heads}," if sizes else ""
    square = f" [{sizes.d_model}, {sizes.d_model}]" if sizes else ""
    return (
        f"candidate must take the weights W_q, W_k, W_v and W_o{square}, but these{asked} aren't "
        f"to be found among the parameters of this {type(module).__name__} "
        f"({some(shapes) or 'none'}): pass load=..., a function of (your module, a "
        "MultiHeadAttention) that copies the second one's weights into the first; if keys and "
        "values are made of tokens of another width, build it with one width for all"
    )


def _never_comparable(module: nn.Module) -> str | None:
    """Say what no function that loads can change about a module's shapes, if its names tell."""
    if isinstance(module, nn.MultiheadAttention) and module.in_proj_weight is None:
        return (
            f"its keys are made of tokens {module.kdim} wide and its values of {module.vdim}, with "
            f"queries of {module.embed_dim}: build it with one width for all"
        )
    queries, keys, values = (_layer(module, W) for W in ("W_q", "W_k", "W_v"))
    heads = _attribute(module, "num_heads")
    if queries is None or not heads:
        return None
    d_model = queries.shape[1]
    if d_model % heads:
        return (
            f"its {heads} heads don't divide {d_model}, the width of its tokens: such sizes can't "
            f"be asked. Build one whose d_model is a multiple of {heads}"
        )
    if keys is not None and values is not None and len(keys) != len(values):
        return (
            f"its keys have {len(keys)} numbers and its values {len(values)}: such sizes can't be "
            "asked. Build one where both have as many"
        )
    layers, roles = _linears(module)
    narrow = [name for name, W in layers.items() if W.shape[1] < d_model and roles[name] != "W_o"]
    if narrow:
        return (
            f"{some(narrow)} doesn't take its tokens [.., {d_model}]: keys and values that are "
            "made in two steps (latent attention) can't be asked"
        )
    return None


def _linears(module: nn.Module) -> tuple[dict[str, Tensor], dict[str, str | None]]:
    """Return the weights of a module's linear layers, and which projections their names say."""
    layers = {n: part.weight for n, part in module.named_modules() if isinstance(part, nn.Linear)}
    return layers, {name: projection_named(name.split(".")[-1]) for name in layers}


def _layer(module: nn.Module, projection: str) -> Tensor | None:
    """Return the weight of the linear layer that a projection is, by its name."""
    layers, roles = _linears(module)
    return next((layers[name] for name, role in roles.items() if role == projection), None)


def copy_of(module: nn.Module) -> nn.Module:
    """Copy a module, even one that keeps tensors of its last run, which deepcopy refuses."""
    kept = [x for part in module.modules() for x in vars(part).values() if isinstance(x, Tensor)]
    return copy.deepcopy(module, {id(x): x.detach() for x in kept if not x.is_leaf})


def has_bias(module: nn.Module) -> bool:
    """Tell whether a module adds any bias: a parameter of one dimension."""
    return any(p.dim() == 1 for p in module.parameters())


def with_plain_weights(module: nn.Module) -> nn.Module:
    """Put numbers in place of weights that are computed from others, as by weight_norm."""
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
    """Replace normalizations inside a module by nothing; return their names."""
    found = [
        name for name, part in module.named_modules()
        if name and "norm" in type(part).__name__.lower() and not list(part.children())
    ]  # fmt: skip
    for name in found:
        module.set_submodule(name, nn.Identity())
    return found


def require_candidate(candidate: object, num_heads: int | None) -> None:
    """Raise unless modules may come of it, with their own numbers of heads."""
    if not callable(candidate):
        raise TypeError(
            "candidate must be a module, a class or a function that builds a module, "
            f"got {type(candidate).__name__}"
        )
    if not isinstance(candidate, nn.Module | type):
        try:
            inspect.signature(candidate)
        except ValueError:
            name = getattr(candidate, "__name__", type(candidate).__name__)
            raise CallError(
                f"candidate must be a module or build one, but {name} is built into C, and nothing "
                "is known of its arguments: hand in the module that calls it"
            ) from None
    if isinstance(candidate, nn.ModuleDict | nn.ModuleList):
        raise CallError(
            f"candidate must be a module that can be called, got a {type(candidate).__name__}: "
            "hand in one of the modules in it"
        )
    if num_heads is not None and not isinstance(candidate, nn.Module):
        raise ValueError(
            "num_heads must be left out where candidate builds modules, which are built with "
            f"several, got {num_heads}: hand in a built module to ask it with this many"
        )
