"""Finding out in which style a module wants its masks.

A style is taken where the module is right under it. An argument called `mask` keeps what is True:
that it hides instead is a bug, unless the reader says otherwise.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch

from attnlib.museum.doctor.comparing import NEAR, mostly
from attnlib.museum.doctor.forward import Forward
from attnlib.museum.doctor.mask_style import OWN, MaskStyle
from attnlib.museum.doctor.names import ROLES
from attnlib.museum.doctor.patient import Patient
from attnlib.museum.doctor.probes import PROBES
from attnlib.museum.doctor.told import Told

_BY_NAME = {probe.name: probe for probe in PROBES}
_ONE, _SEVERAL, _PADDING = (
    _BY_NAME[name] for name in ("a mask", "any number of samples", "padding")
)
_SAME_NUMBER = _BY_NAME["a mask for each sample"]  # of samples and heads
_AXES = ("[T, T]", "[B, T, T]", "[B, 1, T, T]")
_AXES_OF_SEVERAL = ("[B, T, T]", "[B, 1, T, T]", "[B h, T, T]")
_DTYPES = (torch.bool, torch.int64, torch.float32)
_OURS = ("mask", "src_mask", "allowed")  # names that leave no doubt what True means


def with_mask_style(patient: Patient, told: Told) -> Patient:
    """Return a patient whose mask is handed over as it wants it."""
    best, most = patient, 0
    for style, mask_replaces in _styles(patient, told):
        tried = _with_axes(_with(patient, style, mask_replaces), told)
        found = tried.first.forward.mask
        right = bool(found.one and tried.right(_ONE)) or bool(
            found.several and tried.right(_SEVERAL)
        )
        quality = 2 if right else 1 if found.one or found.several else 0
        if quality > most:  # 0: it raises on whatever it is given, which is to be seen
            best, most = tried, quality
        if right:
            break
    if most < 2 and "key_mask" not in patient.first.forward.roles and not told.mask_shape:
        padding = _as_padding(patient, told)
        if padding.right(_PADDING) or (most == 0 and not padding.raises(_PADDING)):
            best = padding
    if best.first.setting.mask_replaces:
        return best.noting("a mask replaces its triangle")
    return best


def _as_padding(patient: Patient, told: Told) -> Patient:
    """Return a patient whose mask is one of keys, [B, T], of numbers that it takes."""
    forward, other = patient.first.forward, {"mask": "key_mask"}
    forward = replace(
        forward,
        roles={other.get(role, role): name for role, name in forward.roles.items()},
        required=frozenset(other.get(role, role) for role in forward.required),
        key_mask=MaskStyle(told.key_mask or told.mask or "keep"),
    )
    kinds = [
        patient.changed(forward=replace(forward, key_mask=replace(forward.key_mask, dtype=dtype)))
        for dtype in _DTYPES
    ]
    taken = [tried for tried in kinds if not tried.raises(_PADDING)]
    return next((tried for tried in taken if tried.right(_PADDING)), (taken or kinds)[0])


def with_key_mask_style(patient: Patient, told: Told) -> Patient:
    """Return a patient whose padding mask is handed over as it wants it."""
    forward = patient.first.forward
    if forward.roles["key_mask"] in ROLES["mask"]:  # found to be padding, under what was told
        return patient
    of_name = {"key_mask": ["keep"], "key_padding_mask": ["hide", "keep"]}
    meanings = [told.key_mask] if told.key_mask else of_name.get(forward.roles["key_mask"])
    tried = [
        patient.changed(forward=replace(forward, key_mask=replace(forward.key_mask, meaning=one)))
        for one in meanings or ["keep", "hide"]
    ]
    if patient.first.setting.always_causal:  # padding may switch the triangle off
        right = (one for one in tried if _right_without_triangle(one) or one.right(_PADDING))
    else:
        right = (one for one in tried if one.right(_PADDING))
    return next(right, tried[0])


def _right_without_triangle(patient: Patient) -> bool:
    return patient.changed(always_causal=False).right(_PADDING)


def _styles(patient: Patient, told: Told) -> Iterator[tuple[MaskStyle, bool]]:
    """Yield meanings and kinds of numbers, each also with a mask that replaces the triangle."""
    forward = patient.first.forward
    if told.mask:
        meanings = [told.mask]
    elif forward.mask != OWN:  # known from the module's class
        meanings = [forward.mask.meaning]
    else:
        meanings = ["keep"] if _is_ours(forward) else ["keep", "hide", "add"]
    for meaning in meanings:
        for dtype in _DTYPES if meaning != "add" else (torch.float32,):
            for mask_replaces in (False, True) if patient.first.setting.always_causal else (False,):
                yield MaskStyle(meaning, dtype, None, None), mask_replaces


def _is_ours(forward: Forward) -> bool:
    return forward.roles["mask"] in _OURS


def _with_axes(patient: Patient, told: Told) -> Patient:
    """Choose the axes of a mask for all samples, then those of a mask for each."""
    only = told.mask_shape
    for axes in [only] if only else _AXES:
        tried = _with(patient, replace(patient.first.forward.mask, one=axes))
        if tried.right(_ONE) or (not tried.raises(_ONE) and axes == "[T, T]"):
            patient = tried
            break
    if only:
        several = [only] if only != "[T, T]" else []
    elif _is_ours(patient.first.forward):
        several = list(_AXES_OF_SEVERAL)
    else:  # as F.scaled_dot_product_attention has it
        several = ["[B, 1, T, T]", "[B, T, T]", "[B h, T, T]"]
    as_ours = near = None
    for axes in several:
        one = patient.first.forward.mask.one or axes  # for all samples, the same for each
        tried = _with(patient, replace(patient.first.forward.mask, one=one, several=axes))
        if tried.right(_SEVERAL):
            silent = as_ours is not None and as_ours.raises(_SEVERAL)
            forward = replace(tried.first.forward, bare_masks=silent)
            return tried.changed(forward=forward) if silent or as_ours is None else as_ours
        if axes == "[B, T, T]" and not tried.raises(_SAME_NUMBER):
            as_ours = tried  # it gives numbers, which are to be looked at
        if near is None and mostly(tried.answer(_SEVERAL), tried.compared(_SEVERAL)) < NEAR:
            near = tried
    return near or as_ours or patient


def _with(patient: Patient, style: MaskStyle, mask_replaces: bool | None = None) -> Patient:
    if mask_replaces is None:
        mask_replaces = patient.first.setting.mask_replaces
    forward = replace(patient.first.forward, mask=style)
    return patient.changed(forward=forward, mask_replaces=mask_replaces)
