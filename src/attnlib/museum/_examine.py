"""Finding out what kind of module a candidate is, before it is diagnosed.

Nothing that is found out here excuses a bug: a convention is taken only where the module is right
under it, and the diagnosis says what was taken.
"""

from contextlib import suppress
from itertools import product

import torch
from torch import nn

from attnlib.museum._asking import PATHS, Asked
from attnlib.museum._build import Candidate
from attnlib.museum._find_masks import with_key_mask_style, with_mask_style
from attnlib.museum._forward import Forward
from attnlib.museum._loading import in_each_layout
from attnlib.museum._mask_style import OWN
from attnlib.museum._patient import Patient
from attnlib.museum._probes import PROBES, Draw
from attnlib.museum._told import CallError, Told

_PLAIN = PROBES[0]
_POSITIONAL = ("rot", "rope", "freqs", "position", "pos_", "alibi", "relative", "rel_", "inv_freq")


def examine(candidate: Candidate, told: Told) -> Patient:
    """Build, load and try a candidate, and say what it was taken for.

    Raises:
        CallError: it can't be built, loaded or called.
    """
    patients = in_each_layout(candidate, told)
    patient = _settle(list(patients), told)
    forward = patient.first.forward
    if "mask" in forward.roles:
        patient = with_mask_style(patient, told)
    if "key_mask" in forward.roles:
        patient = with_key_mask_style(patient)
    _look_at_training(patient)
    patient.taken.insert(0, _called(patient.first.forward))
    return patient


def _settle(patients: list[Patient], told: Told) -> Patient:
    """Return the first patient that is right as it is, or always causal, or with a residual."""
    plain = [p.changed(always_causal=told.causal == "always") for p in patients]
    for patient in plain:
        if patient.right(_PLAIN):
            return patient
    may_be_causal = told.causal is None and "causal" not in plain[0].first.forward.roles
    if may_be_causal and _looks_left(plain[0].first):
        plain = [p.changed(always_causal=True) for p in plain]
        for patient in plain:
            patient.taken.append("always causal")
    elif told.causal == "always":
        for patient in plain:
            patient.taken.append("always causal")
    normalized = any("normalization" in words for words in plain[0].taken)
    for residual, patient in product((False, True) if normalized else (False,), plain):
        tried = patient.changed(residual=residual)
        if tried.right(_PLAIN):
            if residual:
                tried.taken.append("its residual taken off")
            return tried
    return plain[0]


def _looks_left(asked: Asked) -> bool:
    """Tell whether tokens move outputs on one side of them only, and not just their own."""
    T = 6
    x = Draw(asked).tokens(1, T)
    try:
        with torch.no_grad():
            before, _ = asked(x)
            moved = torch.zeros(T, T, dtype=torch.bool)
            for j in range(T):
                other = x.clone()
                other[0, j] += 1
                after, _ = asked(other)
                moved[:, j] = (after - before)[0].abs().amax(-1) > 1e-6
    except CallError:
        raise
    except Exception:
        return False
    ones = torch.ones(T, T, dtype=torch.bool)
    shapes = [ones.tril(), ones.tril(-1), ones.tril(1), ones.triu()]
    # Where the diagonal is hidden, row 0 looks nowhere, and what it does then is its own affair.
    return any(torch.equal(moved[1:], shape[1:]) for shape in shapes)


def _look_at_training(patient: Patient) -> None:
    """Find out whether it is random in training though its dropout is 0."""
    path = next(path for path in PATHS if path.training)
    x = Draw(patient.first).tokens(2, 7)
    with suppress(Exception), patient.first.on(path) as asked:
        (one, _), (other, _) = asked(x), asked(x)
        patient.random_in_training = not torch.equal(one, other)


def _called(forward: Forward) -> str:
    names = ["mask", "key_mask"]
    arguments = ", ".join(name for role, name in forward.roles.items() if role != "average")
    words = [f"forward({arguments})"]
    for role in names:
        style = getattr(forward, role)
        if role in forward.roles and (role == "mask" and style != OWN):
            words.append(f"its {forward.roles[role]} {style}")
        elif role == "key_mask" and role in forward.roles and style.meaning == "hide":
            words.append(f"its {forward.roles[role]} [B, T] where True = hidden")
    if not forward.batch_first:
        words.append("tokens first, [T, B, d]")
    return ", ".join(words)


def hints_at_positions(module: nn.Module) -> str | None:
    """Return the name of a part that looks as if it turned queries and keys by position."""
    names = [name for name, _ in [*module.named_modules(), *module.named_buffers()]]
    names += [*vars(module)]
    found = (name for name in names if any(hint in name.lower() for hint in _POSITIONAL))
    return next(found, None)
