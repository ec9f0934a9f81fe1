"""Giving a candidate's modules the weights of attnlib's."""

import copy
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from attndoctor import build as building
from attndoctor import places as where
from attndoctor.asking import Asked
from attndoctor.build import FIRST, GROUPED, ODD, ONE_HEAD, SECOND, Candidate
from attndoctor.forward import read_forward
from attndoctor.patient import Patient
from attndoctor.reference import PROJECTIONS, Setting, Sizes, reference
from attndoctor.told import CallError, Load, Told, said, some
from attnlib.attention import MultiHeadAttention


def in_each_layout(candidate: Candidate, told: Told, turned: bool | None) -> Iterator[Patient]:
    """Yield patients whose weights stand in each layout that they may have.

    How bare parameters are used is tried, unless `turned` says it.
    """
    if isinstance(candidate, nn.Module):
        own = building.own_sizes(candidate, told)
        sizes = {"first": own}
    else:
        sizes = {"first": FIRST, "second": SECOND, "grouped": GROUPED}
        sizes |= {"one head": ONE_HEAD, "odd": ODD}
    sizes["dropping"] = replace(sizes["first"], dropout=building.DROPPED)
    modules: dict[str, nn.Module] = {}
    for name, size in tuple(sizes.items()):
        try:
            module = building.build(candidate, size)
        except CallError:
            if name == "first":
                raise
            continue
        if module is not None:
            modules[name] = module
            if told.load is None:  # a class may have one key head, or wider heads, by itself
                sizes[name] = building.as_built(module, size) or size
    wrapped = isinstance(candidate, nn.Module) and building.unwrapped(candidate) is not candidate
    norms, *_ = [building.set_norms_aside(module) for module in modules.values()]
    own_numbers = modules["first"].named_parameters() if isinstance(candidate, nn.Module) else ()
    unwell = {name for name, numbers in own_numbers if not numbers.isfinite().all()}
    frozen = {name for name, p in modules["first"].named_parameters() if not p.requires_grad}
    layouts = [where.Layout(told.qkv or "blocks", turned=turned is not False)]
    for layout in layouts:  # which grow by what the first one leaves open
        modules = {
            name: building.copy_of(module) for name, module in modules.items()
        }  # each layout has weights of its own
        taken = [f"what stands in a {type(candidate).__name__}"] if wrapped else []
        if norms:
            taken.append(f"its normalization ({', '.join(norms)}) set aside")
        asked = {}
        for name, module in modules.items():
            one = _loaded(module, sizes[name], told, layout)
            if one is not None:
                asked[name] = replace(one, residual=False)
            elif name == "first":
                raise CallError(building.unloadable(module, sizes[name]))
        first = asked["first"]
        own = first.setting.sizes
        if own.head_dim:
            taken.append(f"its {own.num_heads} heads {own.d_k} wide, with d_model={own.d_model}")
        missing = [W for W in PROJECTIONS if W not in first.setting.biases]
        if missing:
            without = "biases" if len(missing) == 4 else f"a bias in {', '.join(missing)}"
            taken.append(f"without {without}")
        filled = dict.fromkeys(place.theirs for place in first.places or ())
        odd = [name for name in filled if name in unwell]
        if odd:
            taken.append(f"its {some(odd)}, not all of them numbers, filled anew")
        still = [name for name in filled if name in frozen]
        if still:
            taken.append(f"its frozen weights ({some(still)}) free to learn")
        biases = [place.theirs for place in first.places or () if place.ours.endswith("bias")]
        if told.bias is False and biases:
            taken.append(f"its biases ({some(biases)}) filled with 0, for bias=False was told")
        if told.scale is not None:
            taken.append("with the scale that was told")
        if not told.out_projection:
            W_o = [place.theirs for place in first.places or () if place.ours == "W_o.weight"]
            taken.append("without a projection out of the heads")
            if W_o:
                taken.append(
                    f"its {some(W_o)} filled with the identity, for out_projection=False says "
                    "that it has none"
                )
        places = first.places if told.load is None and first.places else []
        if told.qkv and not where.packed(places):
            raise CallError(
                f"qkv={told.qkv!r} is for queries, keys and values made by one projection, but "
                f"this {type(first.module).__name__} has none: leave it out"
            )
        if len(layouts) == 1:
            layouts += where.layouts(places, told.qkv, turned)[1:]
        rare = bool(layout.spread) or layout.packing == where.NUMBERS
        yield Patient(asked, (*taken, *_stored(places, layout)), rare=rare)


def _stored(places: where.Places, layout: where.Layout) -> Iterator[str]:
    """Say how weights are stored, where that was tried."""
    order = where.packed(places)
    if layout.spread:
        yield f"the numbers of a head spread, (d h), in {' and '.join(layout.spread)}"
    if order:
        which = "queries, keys and values" if len(order) == 3 else "keys and values"
        usual = order in ("qkv", "kv")
        in_order = "" if usual else f", in the order {', '.join(order)}"
        yield f"{which} made by one projection ({layout.packing}{in_order})"
    if where.guessed(places):
        yield f"its bare parameters used as {'x @ W' if layout.turned else 'x @ W.T'}"


def _loaded(module: nn.Module, sizes: Sizes, told: Told, layout: where.Layout) -> Asked | None:
    """Give a module the reference's weights; None if that can't be done at these sizes."""
    forward = read_forward(module, told)
    if told.batch_first is not None:
        forward = replace(forward, batch_first=told.batch_first)
    if told.load is not None:
        biases = _biases_copied(module, reference(Setting(sizes)), told.load)
        places = None
    else:
        places = _own_or_found(module, sizes, layout)
        if places is None:
            return None
        there = {place.ours for place in places}
        biases = frozenset(
            W for W in PROJECTIONS if f"{W}.bias" in there or f"{W}.weight" not in there
        )
    if told.bias is not None:
        biases = frozenset(PROJECTIONS if told.bias else ())
    setting = Setting(sizes, biases, told.causal == "always", False, told.out_projection)
    right = copy.deepcopy(reference(setting))  # a load of the reader's may do anything to it
    stretched = told.stretched(sizes.d_k)
    with torch.no_grad():
        for numbers in right.W_q.parameters():
            numbers.div_(stretched)
    try:
        if told.load is not None:
            untouched = _load(module, right, told.load)
        elif places is not None:
            where.fill(module, places, right)
            for place in places:
                module.get_parameter(place.theirs).requires_grad_()
            theirs = {place.theirs for place in places}
            untouched = [name for name, _ in module.named_parameters() if name not in theirs]
    except CallError:
        raise
    except Exception as error:
        if sizes.num_kv_heads != sizes.num_heads:
            return None
        if told.load is not None:
            raise CallError(
                "load must copy the weights of the second module, a MultiHeadAttention, into the "
                f"first, a {type(module).__name__}, but it raised {said(error)}"
            ) from error
        raise CallError(
            "candidate must take the weights W_q, W_k, W_v and W_o of MultiHeadAttention, but "
            f"loading them failed ({said(error)}): if your parameters have other names, pass "
            "load=..., a function of (your module, the reference) that copies them"
        ) from error
    module.eval()
    return Asked(
        module, setting, forward, forward.takes, places, tuple(untouched), stretched=stretched,
        fresh=building.copy_of(module),
    )  # fmt: skip


def _biases_copied(module: nn.Module, right: MultiHeadAttention, load: Load) -> frozenset[str]:
    """Return the projections whose bias a reader's function copies: those that move something."""

    def loaded(changed: str = "") -> dict[str, Tensor]:
        one, other = building.copy_of(module), copy.deepcopy(right)
        if changed:
            with torch.no_grad():
                other.get_parameter(f"{changed}.bias").add_(1)
        load(one, other)
        return {name: x.detach().clone() for name, x in one.state_dict().items()}

    if not building.has_bias(module):
        return frozenset()
    try:
        usual = loaded()
        return frozenset(
            W for W in PROJECTIONS
            if any(not torch.equal(x, usual[name]) for name, x in loaded(W).items())
        )  # fmt: skip
    except Exception:  # which is told where it is called in earnest
        return frozenset(PROJECTIONS)


def _load(module: nn.Module, right: MultiHeadAttention, load: Load) -> list[str]:
    """Let the reader's function copy weights; return the names of what it left as it was.

    Raises:
        CallError: it left everything.
    """
    there = module.state_dict(keep_vars=True)
    before = {name: (x, x._version, x.clone()) for name, x in there.items()}
    load(module, right)
    untouched = [
        name for name, x in module.state_dict(keep_vars=True).items()
        if name in before and x is before[name][0] and x._version == before[name][1]
        and torch.equal(x, before[name][2])
    ]  # fmt: skip
    if before and len(untouched) == len(before):
        raise CallError(
            "load must copy the weights of the second module into the first, but it changed none "
            f"of {some(untouched)}: copy in place, as by "
            "yours.weight.data.copy_(reference.W_q.weight)"
        )
    parameters = dict(module.named_parameters())
    return [name for name in untouched if name in parameters]


def _own_or_found(module: nn.Module, sizes: Sizes, layout: where.Layout) -> where.Places | None:
    own = [] if layout.spread else where.own_places(module)
    shapes = {name: p.shape for name, p in reference(Setting(sizes)).named_parameters()}
    there = dict(module.named_parameters())
    fits = all(there[place.theirs].shape == shapes[place.ours] for place in own)
    found = {place.ours.removesuffix(".weight") for place in own}
    layers = (module.get_submodule(W) for W in PROJECTIONS if W in found)
    usual = all(where.turned_inside(layer) is False for layer in layers)
    if fits and usual and {"W_q", "W_k", "W_v"} <= found:
        return own
    return where.find_places(module, sizes, layout)
