"""Finding out in which style a module wants its masks.

A style is taken where the module is right under it. An argument called `mask` keeps what is True:
that it hides instead is a bug, unless the reader says otherwise.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product

import torch

from attndoctor.asking import PATHS, Asked
from attndoctor.comparing import NEAR, mostly
from attndoctor.draw import Draw
from attndoctor.forward import Forward
from attndoctor.mask_style import ANY, OWN, PADDING, MaskStyle
from attndoctor.names import ROLES
from attndoctor.patient import Patient
from attndoctor.probes import PROBES
from attndoctor.told import Told

_BY_NAME = {probe.name: probe for probe in PROBES}
_PLAIN = PROBES[0]
_ONE, _SEVERAL, _PADDING = (
    _BY_NAME[name] for name in ("a mask", "any number of samples", "padding")
)
_SAME_NUMBER = _BY_NAME["a mask for each sample"]  # of samples and heads
_AXES = ("[T, T]", "[B, T, T]", "[B, 1, T, T]")
_AXES_OF_SEVERAL = ("[B, T, T]", "[B, 1, T, T]", "[B h, T, T]")
_DTYPES = (torch.bool, torch.int64, torch.float32)
_OURS = (
    "mask",
    "src_mask",
    "tgt_mask",
    "trg_mask",
    "allowed",
)  # names that leave no doubt what True means


def with_open_masks(patient: Patient, told: Told) -> Patient:
    """Return a patient that is handed masks that hide nothing where it must get some.

    What it means by True isn't known yet, and a mask that hides everything leaves nothing to ask.
    A meaning is taken only for these masks: what others mean is found out by asking with them.
    """
    forward = patient.first.forward
    needed = [role for role in ("mask", "key_mask") if role in forward.required]
    if not needed or patient.right(_PLAIN):
        return patient
    found = patient
    for styles in product(*(_open_styles(role, forward, told) for role in needed)):
        opened = replace(forward, open=dict(zip(needed, styles, strict=True)))
        tried = patient.changed(forward=opened)
        if not _tells_tokens_apart(tried.first):
            continue
        if tried.right(_PLAIN):
            return tried
        found = tried if found is patient else found
    return found


def _open_styles(role: str, forward: Forward, told: Told) -> list[MaskStyle]:
    """Return the styles in which a mask may be written that hides nothing."""
    meaning = getattr(told, role) or (told.mask if role == "key_mask" else None)
    if meaning is None and getattr(forward, role) != OWN:  # known from the module's class
        meaning = getattr(forward, role).meaning
    meanings = [meaning] if meaning else ["keep", "hide", "add"]
    axes = (*_AXES, "[B h, T, T]", PADDING, ANY) if role == "mask" else (PADDING,)
    return [
        MaskStyle(meaning, dtype, one)
        for one in axes
        for meaning in meanings
        for dtype in (_DTYPES if meaning != "add" else (torch.float32,))
    ]


def _tells_tokens_apart(asked: Asked) -> bool:
    """Tell whether its outputs are numbers that differ, as they don't where all is hidden."""
    with suppress(Exception), asked.on(PATHS[0]) as on_path:
        output, _ = on_path(Draw(asked).tokens(2, 7))
        return bool(output.isfinite().all()) and not torch.allclose(output, output[:, :1])
    return False


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
        silent = most == 0 and not padding.raises(_PADDING)
        if padding.right(_PADDING) or silent or told.key_mask:
            best = padding
    if best.first.setting.mask_replaces:
        return best.noting("a mask replaces its triangle")
    return best


def _as_padding(patient: Patient, told: Told) -> Patient:
    """Return a patient whose mask is one of keys, [B, T], of numbers that it takes."""
    forward = patient.first.forward
    other = {"mask": "key_mask", "mask_between": "key_mask_between"}
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
    name = forward.roles["key_mask"]
    of_name = ["keep"] if name == "key_mask" else ["keep", "hide"]
    if name.endswith("key_padding_mask"):  # torch's
        of_name = ["hide", "keep"]
    tried = [
        patient.changed(forward=replace(forward, key_mask=replace(forward.key_mask, meaning=one)))
        for one in ([told.key_mask] if told.key_mask else of_name)
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
