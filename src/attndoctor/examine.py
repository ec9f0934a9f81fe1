"""Finding out what kind of module a candidate is, before it is diagnosed.

Nothing that is found out here excuses a bug: a convention is taken only where the module is right
under it, and the diagnosis says what was taken.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import get_args

import torch
from torch import Tensor, nn

from attndoctor.asking import NO_GRADIENTS, PATHS, Asked
from attndoctor.build import Candidate, copy_of, refused_default
from attndoctor.constructing import construct
from attndoctor.draw import Draw
from attndoctor.find_masks import with_key_mask_style, with_mask_style, with_open_masks
from attndoctor.forward import ONE_MORE, SHOWN, Forward, Result
from attndoctor.loading import in_each_layout
from attndoctor.mask_style import OWN
from attndoctor.names import (
    CAUSAL_FLAGS,
    OF_EITHER_KIND,
    ROLES,
    SIZES,
    known_as,
    parameters_of,
    words_of,
)
from attndoctor.patient import Patient
from attndoctor.places import find_places
from attndoctor.probes import PROBES, Probe, takes_all
from attndoctor.questions import LONGEST
from attndoctor.reference import Sizes
from attndoctor.told import CallError, Told
from attnlib.cache import KVCache

_PLAIN = PROBES[0]
_TWO = next(probe for probe in PROBES if probe.name == "two sequences")
EQUAL = Probe(
    "equal tokens", "", lambda ask, draw: [(ask(draw.tokens(2, 1).repeat(1, 7, 1))[0], None)]
)
OF_EIGHTS = Probe(
    "lengths of eights",
    "",
    lambda ask, draw: [ask(draw.tokens(2, T)) for T in (8, 16)],
)
_MOST_TOKENS = 4096  # of all samples together, in a question about a certain size
_WIDTHS = (64, 32, 16)  # of heads, for which kernels are written
USUAL = 9  # tokens at most, by all probes but the one for long sequences
_RARE = {"head masks", "defaults"}  # right code of others may raise an error for them
_POSITIONAL = {  # words of names
    "rot", "rotary", "rotate", "rotation", "rotemb", "rope", "freq", "freqs", "frequencies",
    "position", "positions", "positional", "pos", "posemb", "alibi", "relative", "rel", "relpos",
}  # fmt: skip


def examine(candidate: Candidate, told: Told, turned: bool | None = None) -> Patient:
    """Build, load and try a candidate, and say what it was taken for.

    Args:
        candidate, told: as `diagnose` gets them.
        turned: whether square parameters without a layer are used as x @ W; tried if left out.

    Raises:
        CallError: it can't be built, loaded or called.
    """
    in_layouts = in_each_layout(candidate, told, turned)
    patient = _settle((replace(one, formula=told.formula) for one in in_layouts), told)
    patient = _with_queries_of_the_second(patient)
    forward = patient.first.forward
    _require_mask(forward, told)
    if "mask" in forward.roles:
        patient = with_mask_style(patient, told)
    _require_padding(patient, told)
    if "key_mask" in forward.roles:
        patient = with_key_mask_style(patient, told)
    patient = _without_keys_that_it_refuses(_without_a_foreign_cache(patient))
    patient = _with_what_it_also_takes(patient, told)
    in_training = next(path for path in PATHS if path.training)
    by_chance = patient.varies(in_training) and not patient.counts_calls(in_training)
    patient = replace(patient, random_in_training=by_chance)
    refusal = refused_default(candidate)
    if refusal:
        patient = patient.noting(f"told its dropout, for the default raises {refusal}")
    return replace(patient, taken=(_called(patient.first.forward), *patient.taken))


def _require_mask(forward: Forward, told: Told) -> None:
    """Raise if something is told of a mask that isn't there."""
    for option in ("mask", "mask_shape", "key_mask"):
        roles = ("key_mask", "mask") if option == "key_mask" else ("mask",)
        if getattr(told, option) is not None and not set(roles) & forward.roles.keys():
            arguments = ", ".join(forward.roles.values())
            raise CallError(
                f"{option} says how a mask is handed over, got {getattr(told, option)!r}, but "
                f"forward({arguments}) has no argument called {' or '.join(ROLES[roles[0]][:3])}: "
                "leave it out, or hand in a module that takes one"
            )


def _require_padding(patient: Patient, told: Told) -> None:
    """Raise if something is told of a mask of padding, and its mask is none."""
    forward = patient.first.forward
    if told.key_mask is not None and "key_mask" not in forward.roles:
        raise CallError(
            f"key_mask says what a mask of padding, [B, T], means, got {told.key_mask!r}, but "
            f"{forward.roles['mask']} was found to be {forward.mask}: leave it out, or say mask=..."
        )


def always_causal(patient: Patient) -> Patient:
    """Return the patient, asked as one that is always causal."""
    return patient.changed(always_causal=True).noting("always causal")


def seems_causal(patient: Patient, candidate: Candidate) -> str | None:
    """Say what of a module, or of its constructor, speaks of a triangle, if anything does."""
    for part in patient.first.module.modules():
        there = {**vars(part), **dict(part.named_buffers(recurse=False))}
        for name, value in there.items():
            if isinstance(value, Tensor) and _is_triangle(value):
                return f"it has a triangle ({name!r})"
            if value is True and name in CAUSAL_FLAGS:
                return f"its {name!r} is True"
    parameters = [] if isinstance(candidate, nn.Module) else parameters_of(candidate)
    flags = [p.name for p in parameters if p.default is True and p.name in CAUSAL_FLAGS]
    return f"it is built with {flags[0]}=True" if flags else None


def _is_triangle(numbers: Tensor) -> bool:
    """Tell whether a tensor is a causal mask, of ones and zeros or of -inf, by any convention."""
    if numbers.dim() < 2 or numbers.shape[-1] != numbers.shape[-2] or numbers.shape[-1] < 2:
        return False
    matrix = numbers.detach().flatten(0, -3)[0] if numbers.dim() > 2 else numbers.detach()
    marked = matrix.isinf() if matrix.isinf().any() else matrix != 0
    above = torch.ones_like(marked).triu(1)
    return torch.equal(marked, above) or torch.equal(marked, ~above)


def may_be_causal(patient: Patient, told: Told) -> bool:
    """Tell whether nothing speaks against its being always causal."""
    asked = patient.first
    settled = asked.setting.always_causal or told.causal is not None
    return not settled and "causal" not in asked.forward.roles


def _settle(in_layouts: Iterator[Patient], told: Told) -> Patient:
    """Return the first patient that is right as it is, or always causal, or with a residual."""
    patients: list[Patient] = []
    for patient in in_layouts:
        if patients:
            patient = patient.changed(forward=patients[0].first.forward)
        else:
            patient = with_open_masks(_with_channels_first(_turning_nothing(patient)), told)
        patients.append(always_causal(patient) if told.causal == "always" else patient)
        if patients[-1].right(_PLAIN):
            return patients[-1]
    tried: list[Patient] = []
    if may_be_causal(patients[0], told) and _looks_one_way(patients[0].first):
        tried = patients = [always_causal(patient) for patient in patients]
    usual = [patient for patient in patients if not patient.rare]
    residual: list[Patient] = []
    if any("normalization" in words for words in patients[0].taken):  # a whole sub-layer
        residual = [p.changed(residual=True).noting("its residual taken off") for p in usual]
    others = [other for patient in (*usual, *residual) for other in _shown_otherwise(patient)]
    right = (patient for patient in (*tried, *residual, *others) if patient.right(_PLAIN))
    return next(right, (others or patients)[0])


def _turning_nothing(patient: Patient) -> Patient:
    """Return a patient that gets cosines and sines that it can't do without, though it may seem."""
    forward = patient.first.forward
    name = next((name for name in forward.unused if known_as(name, ROLES) == "no_turn"), None)
    error = patient.answer(_PLAIN) if name else None
    if name is None or not isinstance(error, TypeError) or "NoneType" not in str(error):
        return patient
    forward = replace(
        forward,
        roles={**forward.roles, "no_turn": name},
        required=forward.required | {"no_turn"},
        unused=tuple(other for other in forward.unused if other != name),
    )
    return patient.changed(forward=forward)


def _with_channels_first(patient: Patient) -> Patient:
    """Return a patient that gets tokens [B, d, T] if it has convolutions and takes no others."""
    if not any(isinstance(part, nn.Conv1d) for part in patient.first.module.modules()):
        return patient
    tried = patient.changed(forward=replace(patient.first.forward, channels_first=True))
    return tried if patient.raises(_PLAIN) and tried.gives_outputs(_PLAIN) else patient


def _shown_otherwise(patient: Patient) -> Iterator[Patient]:
    """Yield a patient as one that shows its weights otherwise, if they are right so."""
    one_size = replace(patient, asked={"first": patient.first})
    if not one_size.right_weights(_PLAIN):
        for shown in SHOWN[1:]:
            tried = patient.changed(forward=replace(patient.first.forward, shown=shown))
            if tried.right_weights(_PLAIN):
                yield tried.noting(f"returning {shown} beside its output")


def _looks_one_way(asked: Asked) -> bool:
    """Tell whether a token moves outputs on one side of it only, up to one token beyond."""
    T = 6
    x = Draw(asked).tokens(1, T)
    try:
        with torch.no_grad():
            before, _ = asked(x)
            moved = torch.zeros(T, T, dtype=torch.bool)
            for j in (0, T - 1, *range(1, T - 1)):  # the ends first, for most look both ways
                if moved[0, -1] and moved[-1, 0]:
                    return False
                other = x.clone()
                other[0, j] += 1
                after, _ = asked(other)
                moved[:, j] = (after - before)[0].abs().amax(-1) > 1e-6
    except CallError:
        raise
    except Exception:
        return False
    others = ~torch.eye(T, dtype=torch.bool)  # its own query always moves an output
    shapes = [others.tril(), others.tril(1), others.triu()]
    return any(torch.equal(moved & others, shape) for shape in shapes)


def _without_a_foreign_cache(patient: Patient) -> Patient:
    """Return a patient that isn't asked with a cache of attnlib's if it takes another kind.

    A forward whose annotation names attnlib's takes attnlib's, whatever error it raises.
    """
    forward = patient.first.forward
    if _is_annotated(patient.first.module, forward.roles.get("cache"), KVCache):
        return patient
    by_name = {probe.name: probe for probe in PROBES}
    error = patient.answer(by_name["a cache"]) if {"causal", "cache"} <= forward.takes else None
    if isinstance(error, Exception) and KVCache.__name__ in str(error):
        left = {role: name for role, name in forward.roles.items() if role != "cache"}
        forward = replace(forward, roles=left, foreign_cache=True)
        patient = patient.changed(forward=forward)
    return patient


def _with_queries_of_the_second(patient: Patient) -> Patient:
    """Return a patient whose keys are made of x and its queries of y, if it is right only so.

    Nobody is promised which of them is which.
    """
    forward = patient.first.forward
    if (forward.roles.get("query"), forward.roles.get("key_value")) != ("x", "y"):
        return patient
    turned = {**forward.roles, "query": "y", "key_value": "x"}
    tried = patient.changed(forward=replace(forward, roles=turned))
    if patient.right(_TWO) or not tried.right(_TWO):
        return patient
    return tried.noting("its queries made of y, its keys and values of x")


def _is_annotated(module: nn.Module, name: str | None, wanted: type) -> bool:
    """Tell whether a class is what forward's argument of this name is annotated with."""
    annotations = (p.annotation for p in parameters_of(module.forward) if p.name == name)
    return any(wanted in (annotation, *get_args(annotation)) for annotation in annotations)


def _without_keys_that_it_refuses(patient: Patient) -> Patient:
    """Return a patient that isn't asked of two sequences if it was built for one, and says so.

    One class is often built for either, with the same arguments.
    """
    forward = patient.first.forward
    name = forward.roles.get("key_value")
    if name not in OF_EITHER_KIND or "key_value" in forward.required:
        return patient
    parts = patient.first.module.modules()
    built_for_one = any(getattr(part, "is_cross_attention", None) is False for part in parts)
    refusals = (ValueError, AttributeError, NotImplementedError)
    if not built_for_one and not isinstance(patient.answer(_TWO), refusals):
        return patient
    left = {
        role: name for role, name in forward.roles.items()
        if role not in ("key_value", "mask_between", "key_mask_between")
    }  # fmt: skip
    unused = tuple(n for role, n in forward.roles.items() if role not in left)
    return patient.changed(forward=replace(forward, roles=left, unused=(*forward.unused, *unused)))


def _with_what_it_also_takes(patient: Patient, told: Told) -> Patient:
    """Return a patient that is asked what right code of others often doesn't take, if it can be."""
    also = {"differentiable weights"} if _has_differentiable_weights(patient.first) else set()
    if not told.gradients:
        also.add(NO_GRADIENTS)
    if not short_context(patient.first.module, LONGEST):
        also.add("long")
    words = [set(words_of(name)) for name in patient.first.forward.unused]
    if not any("mask" in each and "head" not in each for each in words):
        also.add("padding of keys")  # or another argument is for theirs
    if not _cuts_masks(patient.first):
        also.add("masks of keys")
    for probe in PROBES:
        for what in _RARE & set(probe.needs):
            tried = _also_taking(patient, {what})
            if takes_all(probe, tried.first.takes) and tried.gives_outputs(probe):
                also.add(what)
    return _also_taking(patient, also)


def _cuts_masks(asked: Asked) -> bool:
    """Tell whether it cuts a mask to its own tokens, as one that is made once for the longest.

    Such a mask is for tokens that look at themselves.
    """
    T = 7
    if not {"mask", "two sequences"} <= asked.takes:
        return False
    draw = Draw(asked)
    x, mask = draw.tokens(2, T), draw.mask(T + 3, T + 3) | torch.eye(T + 3, dtype=torch.bool)
    with suppress(Exception), asked.on(PATHS[0]) as on_path:
        (whole, _), (cut, _) = on_path(x, mask=mask), on_path(x, mask=mask[:T, :T].clone())
        return torch.equal(whole, cut)
    return False


def _has_differentiable_weights(asked: Asked) -> bool:
    """Tell whether it returns weights that gradients flow through."""
    with suppress(Exception):
        _, weights = asked(Draw(asked).tokens(2, 7))
        return weights is not None and weights.requires_grad
    return False


def _also_taking(patient: Patient, also: set[str]) -> Patient:
    return patient.changed(forward=replace(patient.first.forward, also=frozenset(also)))


def _called(forward: Forward) -> str:
    arguments = ", ".join(name for role, name in forward.roles.items() if role != "average")
    words = [f"forward({arguments})"]
    if "mask" in forward.roles and forward.mask != OWN:
        words.append(f"its {forward.roles['mask']} {forward.mask}")
    if "key_mask" in forward.roles:
        name = forward.roles["key_mask"]
        style = replace(forward.key_mask, one="[B, T]", several=None)
        as_torch = name.endswith("padding_mask")  # whose True = hidden
        if name not in ROLES["key_mask"] or style.meaning == "hide":
            words.append(f"its {name} {style}")
        elif as_torch and style.meaning == "keep":
            words.append(f"its {name} {style}, unlike torch's own key_padding_mask")
    if "no_turn" in forward.roles:
        words.append(f"its {forward.roles['no_turn']} turning nothing (cos = 1, sin = 0)")
    if forward.shown == ONE_MORE:
        words.append("its weights without those of the key that it adds")
    if not forward.batch_first:
        words.append("tokens first, [T, B, d]")
    if forward.channels_first:
        words.append("channels first, [B, d, T]")
    return ", ".join(words)


def short_context(module: nn.Module, asked: int) -> int | None:
    """Return for how many tokens a module keeps a triangle, if that is fewer than it is asked."""
    shapes = [buffer.shape for buffer in module.buffers() if buffer.dim() > 1]
    shortest = min((shape[-1] for shape in shapes if shape[-1] == shape[-2]), default=asked)
    return shortest if shortest < asked else None


def width_taken(candidate: Candidate, told: Told) -> int | None:
    """Return a usual width of heads at which a candidate's modules answer, if there is one."""
    if isinstance(candidate, nn.Module):
        return None
    for d_k in _WIDTHS:
        with suppress(CallError):
            module = construct(candidate, Sizes(2 * d_k, 2, 2))
            if module and examine(module, replace(told, num_heads=2)).gives_outputs(_PLAIN):
                return d_k
    return None


def sizes_taken(patient: Patient, error: Exception) -> str | None:
    """Return on how many samples and tokens a patient is right that takes certain sizes only.

    Its error may tell, and so may an attribute that says how long sequences are.
    """
    told = re.search(r"shape '\[(\d+), (\d+)[,\]]", str(error))
    sizes = [(int(told[1]), int(told[2]))] if told else []
    for part in patient.first.module.modules():
        lengths = (x for name, x in vars(part).items() if known_as(name, SIZES) == "length")
        sizes += [(2, T) for T in lengths if isinstance(T, int)]
    probes = {"8 and 16 tokens": OF_EIGHTS}
    for B, T in dict.fromkeys(sizes):
        if 0 < B * T <= _MOST_TOKENS:
            ask = partial(_of_size, B, T)
            probes[f"{B} samples of {T} tokens"] = Probe("certain sizes", "", ask)
    return next((words for words, probe in probes.items() if patient.right(probe)), None)


def _of_size(B: int, T: int, ask: Asked, draw: Draw) -> list[Result]:
    return [ask(draw.tokens(B, T))]


def depends_on_order(patient: Patient) -> bool:
    """Tell whether what stands between projections and values depends on the tokens' order.

    Equal tokens come out right, whatever their weights are; but the last one's output moves when
    those before it change places.
    """
    if not patient.right(EQUAL):
        return False
    asked = patient.first
    x = Draw(asked).tokens(1, 7)
    other = torch.cat([x[:, :-1].flip(1), x[:, -1:]], 1)
    with suppress(Exception), asked.on(PATHS[0]) as on_path:
        before, after = (on_path(tokens)[0][:, -1] for tokens in (x, other))
        return not torch.allclose(before, after, atol=1e-4)
    return False


def normalizes_inside(asked: Asked) -> bool:
    """Tell whether only the direction of queries matters, and not how long they are."""
    W_q = [place for place in asked.places or [] if place.ours.startswith("W_q")]
    module = copy_of(asked.module)
    x = Draw(asked).tokens(2, 7)

    def after(change: Callable[[Tensor], Tensor]) -> Tensor:
        for place in W_q:
            numbers = place.select(module.get_parameter(place.theirs))
            numbers.copy_(change(numbers))
        return replace(asked, module=module)(x)[0]

    with suppress(Exception), torch.no_grad():
        given, longer = after(torch.clone), after(lambda W: 2 * W)
        near = torch.allclose(given, longer, atol=1e-3, rtol=1e-3)
        return near and not torch.allclose(given, after(torch.neg), atol=1e-3, rtol=1e-3)
    return False


def attention_inside(asked: Asked) -> str | None:
    """Return the name of a part of a module that seems to be its attention."""
    parts = [
        (name, part)
        for name, part in list(asked.module.named_modules())[1:]
        if set(dict(part.named_parameters())) - {"weight", "bias"}  # no single layer
    ]
    return next((name for name, part in parts if find_places(part, asked.setting.sizes)), None)


def hints_at_positions(module: nn.Module) -> str | None:
    """Return the name of a part that looks as if it turned queries and keys by position."""
    names = [name for name, _ in [*module.named_modules(), *module.named_buffers()]]
    plain = (bool, int, float, str, type(None))  # settings, which turn nothing by themselves
    names += [name for name, value in vars(module).items() if not isinstance(value, plain)]
    return next((name for name in names if _POSITIONAL & set(words_of(name))), None)
