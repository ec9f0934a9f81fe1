"""Finding out what kind of module a candidate is, before it is diagnosed.

Nothing that is found out here excuses a bug: a convention is taken only where the module is right
under it, and the diagnosis says what was taken.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import torch
from torch import Tensor, nn

from attnlib.museum.doctor.asking import PATHS, Asked
from attnlib.museum.doctor.build import Candidate, copy_of, refused_default
from attnlib.museum.doctor.find_masks import with_key_mask_style, with_mask_style
from attnlib.museum.doctor.forward import SHOWN, Forward
from attnlib.museum.doctor.loading import in_each_layout
from attnlib.museum.doctor.mask_style import OWN
from attnlib.museum.doctor.names import ROLES, words_of
from attnlib.museum.doctor.patient import Patient
from attnlib.museum.doctor.places import find_places
from attnlib.museum.doctor.probes import LONGEST, PROBES, Draw, Probe, takes_all
from attnlib.museum.doctor.told import CallError, Told

_PLAIN = PROBES[0]
EQUAL = Probe(
    "equal tokens", "", lambda ask, draw: [(ask(draw.tokens(2, 1).repeat(1, 7, 1))[0], None)]
)
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
    forward = patient.first.forward
    _require_mask(forward, told)
    if "mask" in forward.roles:
        patient = with_mask_style(patient, told)
    if "key_mask" in forward.roles:
        patient = with_key_mask_style(patient, told)
    patient = _with_what_it_also_takes(patient)
    in_training = next(path for path in PATHS if path.training)
    patient = replace(patient, random_in_training=patient.varies(in_training))
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


def always_causal(patient: Patient) -> Patient:
    """Return the patient, asked as one that is always causal."""
    return patient.changed(always_causal=True).noting("always causal")


def may_be_causal(patient: Patient, told: Told) -> bool:
    """Tell whether nothing speaks against its being always causal."""
    asked = patient.first
    settled = asked.setting.always_causal or told.causal is not None
    return not settled and "causal" not in asked.forward.roles


def _settle(in_layouts: Iterator[Patient], told: Told) -> Patient:
    """Return the first patient that is right as it is, or always causal, or with a residual."""
    patients: list[Patient] = []
    for patient in in_layouts:
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


def _with_what_it_also_takes(patient: Patient) -> Patient:
    """Return a patient that is asked what right code of others often doesn't take, if it can be."""
    also = {"differentiable weights"} if _has_differentiable_weights(patient.first) else set()
    if not short_context(patient.first.module, LONGEST):
        also.add("long")
    for probe in PROBES:
        for what in _RARE & set(probe.needs):
            tried = _also_taking(patient, {what})
            if takes_all(probe, tried.first.takes) and tried.gives_outputs(probe):
                also.add(what)
    return _also_taking(patient, also)


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
        if name not in ROLES["key_mask"] or style.meaning == "hide":
            words.append(f"its {name} {style}")
    if "no_turn" in forward.roles:
        words.append(f"its {forward.roles['no_turn']} turning nothing (cos = 1, sin = 0)")
    if not forward.batch_first:
        words.append("tokens first, [T, B, d]")
    return ", ".join(words)


def short_context(module: nn.Module, asked: int) -> int | None:
    """Return for how many tokens a module keeps a triangle, if that is fewer than it is asked."""
    shapes = [buffer.shape for buffer in module.buffers() if buffer.dim() > 1]
    shortest = min((shape[-1] for shape in shapes if shape[-1] == shape[-2]), default=asked)
    return shortest if shortest < asked else None


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
        given, longer, other = (
            after(change) for change in (torch.clone, lambda W: 2 * W, torch.neg)
        )
        near, far = (torch.allclose(given, y, atol=1e-3, rtol=1e-3) for y in (longer, other))
        return near and not far
    return False


def attention_inside(asked: Asked) -> str | None:
    """Return the name of a part of a module that seems to be its attention."""
    parts = list(asked.module.named_modules())[1:]
    return next((name for name, part in parts if find_places(part, asked.setting.sizes)), None)


def hints_at_positions(module: nn.Module) -> str | None:
    """Return the name of a part that looks as if it turned queries and keys by position."""
    names = [name for name, _ in [*module.named_modules(), *module.named_buffers()]]
    plain = (bool, int, float, str, type(None))  # settings, which turn nothing by themselves
    names += [name for name, value in vars(module).items() if not isinstance(value, plain)]
    return next((name for name in names if _POSITIONAL & set(words_of(name))), None)
