"""Find out by trying what kind of module a candidate is, and in which style it wants its masks.

This excuses no bug: a convention is taken only where the module is right under it, and the
diagnosis says what was taken. An argument called `mask` keeps what is True: to hide it instead is
a bug, unless an option says otherwise.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product, takewhile
from typing import get_args

import torch
from torch import Tensor, nn

from attndoctor import call
from attndoctor.build import Candidate, refused_default
from attndoctor.call import Adapter, CallSignature, MaskStyle, RandomInputs
from attndoctor.module_under_test import ModuleUnderTest, in_each_layout
from attndoctor.names import CAUSAL_FLAGS, OF_EITHER_KIND, ROLES, known_as, parameters_of, words_of
from attndoctor.options import CallError, DiagnoseOptions
from attndoctor.probes import PROBES, SELF_ATTENTION, Probe, takes_all
from attndoctor.questions import LONGEST
from attndoctor.reference import is_near
from attndoctor.support.texts import Texts
from attnlib.cache import KVCache

TEXT = Texts(__file__)
_BY_NAME = {probe.name: probe for probe in PROBES}

_TWO, _ONE, _SEVERAL, _PADDING, _CACHE = (
    _BY_NAME[name]
    for name in ("two sequences", "a mask", "any number of samples", "padding", "a cache")
)
_SAME_NUMBER = _BY_NAME["a mask for each sample"]  # of samples and heads
EQUAL = Probe(
    "equal tokens", lambda run, inputs: [(run(inputs.tokens(2, 1).repeat(1, 7, 1))[0], None)]
)
LAYOUTS_SHARE = 0.3  # of the time, in which layouts are tried
_RARE = {"head masks", "defaults"}  # right code of others may raise an error for them
_AXES = ("[T, T]", "[B, T, T]", "[B, 1, T, T]")
_AXES_OF_SEVERAL = ("[B, T, T]", "[B, 1, T, T]", "[B h, T, T]")
_DTYPES = (torch.bool, torch.int64, torch.float32)
_DTYPES_OF = {"keep": _DTYPES, "hide": _DTYPES, "add": (torch.float32,)}  # of masks
_KEEP_NAMES = ("mask", "src_mask", "tgt_mask", "trg_mask", "allowed")  # of masks that keep


def examine(candidate: Candidate, options: DiagnoseOptions) -> ModuleUnderTest:
    """Build, load and try a candidate, and say what it was taken for; or raise CallError."""
    tested = _with_queries_of_the_second(_choose_layout(in_each_layout(candidate, options)))
    options.clock.doing = "finding out how it is called"
    signature = tested.first.signature
    _require_mask(signature, options)
    if "mask" in signature.roles:
        tested = _with_mask_style(tested)
    _require_padding(tested)
    if "key_mask" in signature.roles:
        tested = _with_key_mask_style(tested)
    tested = _with_what_it_also_takes(_without_refused_keys(_without_foreign_cache(tested)))
    in_training = next(mode for mode in call.CALL_MODES if mode.training)
    by_chance = tested.varies(in_training) and not tested.counts_calls(in_training)
    tested = replace(tested, random_in_training=by_chance)
    refusal = refused_default(candidate)
    if refusal:
        tested = tested.with_note(f"given its dropout, as the default raises {refusal}")
    return replace(tested, taken=(_called(tested.first.signature), *tested.taken))


def _require_mask(signature: CallSignature, options: DiagnoseOptions) -> None:
    """Raise CallError if an option is about a mask that the module doesn't take."""
    for option in ("mask", "mask_shape", "key_mask"):
        roles = ("key_mask", "mask") if option == "key_mask" else ("mask",)
        if getattr(options, option) is not None and not set(roles) & signature.roles.keys():
            arguments = ", ".join(signature.roles.values())
            names, told = " or ".join(ROLES[roles[0]][:3]), getattr(options, option)
            raise CallError(
                TEXT("no mask", option=option, told=told, arguments=arguments, names=names)
            )


def _require_padding(tested: ModuleUnderTest) -> None:
    """Raise CallError if an option is about padding, and the mask was found to be none."""
    signature, told = tested.first.signature, tested.options.key_mask
    if told is not None and "key_mask" not in signature.roles:
        name, style = signature.roles["mask"], signature.mask
        raise CallError(TEXT("no padding", told=told, name=name, style=style))


def _called(signature: CallSignature) -> str:
    """Return how a module is called."""
    roles, key_mask = signature.roles, signature.roles.get("key_mask", "")
    arguments = ", ".join(name for role, name in roles.items() if role != "average")
    padding = replace(signature.key_mask, one="[B, T]", several=None)
    hides = padding.meaning == "hide" or key_mask not in ROLES["key_mask"]
    as_torch = key_mask.endswith("padding_mask") and padding.meaning == "keep"
    words = {
        f"forward({arguments})": True,
        f"its {roles.get('mask')} {signature.mask}": (
            "mask" in roles and signature.mask != call.ATTNLIB_STYLE
        ),
        f"its {key_mask} {padding}": bool(key_mask) and hides,
        f"its {key_mask} {padding}, unlike torch's own key_padding_mask": as_torch and not hides,
        f"its {roles.get('no_turn')} turning nothing (cos = 1, sin = 0)": "no_turn" in roles,
        "its weights without those of the key that it adds": signature.shown == call.ONE_MORE,
        "tokens first, [T, B, d]": not signature.batch_first,
        "channels first, [B, d, T]": signature.channels_first,
    }
    return ", ".join(each for each, here in words.items() if here)


# --- layout, causality, residual -----------------------------------------------------------------


def _choose_layout(in_layouts: Iterator[ModuleUnderTest]) -> ModuleUnderTest:
    """Return the first layout that is right as it is, or always causal, or with a residual."""
    found: list[ModuleUnderTest] = []
    for tested in in_layouts:
        if found:
            tested = tested.changed(signature=found[0].first.signature)
        else:
            tested = _with_open_masks(_with_channels_first(_turning_nothing(tested)))
        always = tested.options.causal == "always"
        found.append(always_causal(tested) if always else tested)
        if found[-1].right(SELF_ATTENTION):
            return found[-1]
        if tested.options.clock.spent(LAYOUTS_SHARE):
            break
    causal: list[ModuleUnderTest] = []
    if may_be_causal(found[0]) and _looks_one_way(found[0].first):
        causal = found = [always_causal(tested) for tested in found]
    usual = [tested for tested in found if not tested.rare]
    residual: list[ModuleUnderTest] = []
    if any("normalization" in words for words in found[0].taken):  # a whole sub-layer
        residual = [p.changed(residual=True).with_note("its residual taken off") for p in usual]
    shown: list[ModuleUnderTest] = []
    for tested in _while_there_is_time([*usual, *residual]):
        shown += _shown_otherwise(tested)
    for tested in _while_there_is_time([*causal, *residual, *shown]):
        if tested.right(SELF_ATTENTION):
            return tested
    return (shown or found)[0]


def _while_there_is_time(trials: list[ModuleUnderTest]) -> Iterator[ModuleUnderTest]:
    """Yield trials until a share of the time is over, so that the probes still run."""
    return takewhile(lambda tested: not tested.options.clock.spent(LAYOUTS_SHARE), trials)


def always_causal(tested: ModuleUnderTest) -> ModuleUnderTest:
    """Take a module for one that is always causal."""
    return tested.changed(always_causal=True).with_note("always causal")


def may_be_causal(tested: ModuleUnderTest) -> bool:
    """Return whether options and arguments leave open that it is always causal."""
    adapter = tested.first
    settled = adapter.setting.always_causal or tested.options.causal is not None
    return not settled and "causal" not in adapter.signature.roles


def seems_causal(tested: ModuleUnderTest) -> str | None:
    """Return what in a module, or in its constructor, suggests a triangle, if anything does."""
    for part in tested.first.module.modules():
        there = {**vars(part), **dict(part.named_buffers(recurse=False))}
        for name, value in there.items():
            if isinstance(value, Tensor) and _is_triangle(value):
                return f"it has a triangle ({name!r})"
            if value is True and name in CAUSAL_FLAGS:
                return f"its {name!r} is True"
    built = isinstance(tested.candidate, nn.Module)
    parameters = [] if built else parameters_of(tested.candidate)
    flags = [p.name for p in parameters if p.default is True and p.name in CAUSAL_FLAGS]
    return f"it is built with {flags[0]}=True" if flags else None


def _is_triangle(numbers: Tensor) -> bool:
    """Return whether it is a causal mask, of ones and zeros or of -inf, by any convention."""
    if numbers.dim() < 2 or numbers.shape[-1] != numbers.shape[-2] or numbers.shape[-1] < 2:
        return False
    matrix = numbers.detach().flatten(0, -3)[0] if numbers.dim() > 2 else numbers.detach()
    marked = matrix.isinf() if matrix.isinf().any() else matrix != 0
    above = torch.ones_like(marked).triu(1)
    return torch.equal(marked, above) or torch.equal(marked, ~above)


def _looks_one_way(adapter: Adapter) -> bool:
    """Return whether a token moves outputs on one side of it only, up to one token beyond."""
    T = 6
    x = RandomInputs(adapter).tokens(1, T)
    try:
        with torch.no_grad():
            before, _ = adapter(x)
            moved = torch.zeros(T, T, dtype=torch.bool)
            for j in (0, T - 1, *range(1, T - 1)):  # the ends first, for most look both ways
                if moved[0, -1] and moved[-1, 0]:
                    return False
                other = x.clone()
                other[0, j] += 1
                after, _ = adapter(other)
                moved[:, j] = (after - before)[0].abs().amax(-1) > 1e-6
    except Exception:
        return False
    others = ~torch.eye(T, dtype=torch.bool)  # its own query always moves an output
    shapes = [others.tril(), others.tril(1), others.triu()]
    return any(torch.equal(moved & others, shape) for shape in shapes)


def _shown_otherwise(tested: ModuleUnderTest) -> Iterator[ModuleUnderTest]:
    """Yield a module as one that returns its weights otherwise, if they are right so."""
    one_size = replace(tested, adapters={"first": tested.first})
    if not one_size.right_weights(SELF_ATTENTION):
        for shown in call.SHOWN[1:]:
            tried = tested.called(shown=shown)
            if tried.right_weights(SELF_ATTENTION):
                yield tried.with_note(f"returning {shown} beside its output")


# --- arguments -----------------------------------------------------------------------------------


def _turning_nothing(tested: ModuleUnderTest) -> ModuleUnderTest:
    """Pass cosines and sines to a module that has a default for them, and fails without."""
    signature = tested.first.signature
    name = next((name for name in signature.unused if known_as(name, ROLES) == "no_turn"), None)
    error = tested.answer(SELF_ATTENTION) if name else None
    if name is None or not isinstance(error, TypeError) or "NoneType" not in str(error):
        return tested
    return tested.called(
        roles={**signature.roles, "no_turn": name},
        required=signature.required | {"no_turn"},
        unused=tuple(other for other in signature.unused if other != name),
    )


def _with_channels_first(tested: ModuleUnderTest) -> ModuleUnderTest:
    """Pass tokens [B, d, T] to a module with convolutions that takes no others."""
    if not any(isinstance(part, nn.Conv1d) for part in tested.first.module.modules()):
        return tested
    tried = tested.called(channels_first=True)
    helps = tested.raises(SELF_ATTENTION) and tried.gives_outputs(SELF_ATTENTION)
    return tried if helps else tested


def _with_queries_of_the_second(tested: ModuleUnderTest) -> ModuleUnderTest:
    """Make queries of y, and keys of x, if a module is right only so: names leave it open."""
    roles = tested.first.signature.roles
    if (roles.get("query"), roles.get("key_value")) != ("x", "y"):
        return tested
    tried = tested.called(roles={**roles, "query": "y", "key_value": "x"})
    if tested.right(_TWO) or not tried.right(_TWO):
        return tested
    return tried.with_note("its queries made of y, its keys and values of x")


def _without_foreign_cache(tested: ModuleUnderTest) -> ModuleUnderTest:
    """Leave the cache out if a module takes another kind than attnlib's, by its annotation too."""
    signature, parameters = tested.first.signature, parameters_of(tested.first.module.forward)
    annotation = next(
        (p.annotation for p in parameters if p.name == signature.roles.get("cache")), None
    )
    if KVCache in (annotation, *get_args(annotation)):
        return tested
    error = tested.answer(_CACHE) if {"causal", "cache"} <= signature.takes else None
    if isinstance(error, Exception) and KVCache.__name__ in str(error):
        left = {role: name for role, name in signature.roles.items() if role != "cache"}
        return tested.called(roles=left, foreign_cache=True)
    return tested


def _without_refused_keys(tested: ModuleUnderTest) -> ModuleUnderTest:
    """Leave a second sequence out if a module, of a class for either, was built for one."""
    signature = tested.first.signature
    name = signature.roles.get("key_value")
    if name not in OF_EITHER_KIND or "key_value" in signature.required:
        return tested
    parts = tested.first.module.modules()
    built_for_one = any(getattr(part, "is_cross_attention", None) is False for part in parts)
    refusals = (ValueError, AttributeError, NotImplementedError)
    if not built_for_one and not isinstance(tested.answer(_TWO), refusals):
        return tested
    of_two = ("key_value", "mask_between", "key_mask_between")
    left = {role: name for role, name in signature.roles.items() if role not in of_two}
    unused = (n for role, n in signature.roles.items() if role not in left)
    return tested.called(roles=left, unused=(*signature.unused, *unused))


def _with_what_it_also_takes(tested: ModuleUnderTest) -> ModuleUnderTest:
    """Add what right code of others often doesn't take, if a module does."""
    also = {"differentiable weights"} if _has_differentiable_weights(tested.first) else set()
    if not tested.options.gradients:
        also.add(call.NO_GRADIENTS)
    if not short_context(tested.first.module, LONGEST):
        also.add("long")
    words = [set(words_of(name)) for name in tested.first.signature.unused]
    if not any("mask" in each and "head" not in each for each in words):
        also.add("padding of keys")  # or another argument is for theirs
    if not _cuts_masks(tested.first):
        also.add("masks of keys")
    for probe in PROBES:
        for what in _RARE & set(probe.needs):
            tried = tested.called(also=frozenset({what}))
            if takes_all(probe, tried.first.takes) and tried.gives_outputs(probe):
                also.add(what)
    return tested.called(also=frozenset(also))


def _cuts_masks(adapter: Adapter) -> bool:
    """Return whether it cuts a longer mask to its own tokens, which must then be one sequence."""
    T = 7
    if not {"mask", "two sequences"} <= adapter.takes:
        return False
    inputs = RandomInputs(adapter)
    x, mask = inputs.tokens(2, T), inputs.mask(T + 3, T + 3) | torch.eye(T + 3, dtype=torch.bool)
    with suppress(Exception), adapter.on() as in_mode:
        (whole, _), (cut, _) = in_mode(x, mask=mask), in_mode(x, mask=mask[:T, :T].clone())
        return torch.equal(whole, cut)
    return False


def _has_differentiable_weights(adapter: Adapter) -> bool:
    """Return whether gradients flow through the weights that it returns."""
    with suppress(Exception):
        _, weights = adapter(RandomInputs(adapter).tokens(2, 7))
        return weights is not None and weights.requires_grad
    return False


def short_context(module: nn.Module, tokens: int) -> int | None:
    """Return for how many tokens a module keeps a triangle, if that is fewer than these."""
    shapes = [buffer.shape for buffer in module.buffers() if buffer.dim() > 1]
    shortest = min((shape[-1] for shape in shapes if shape[-1] == shape[-2]), default=tokens)
    return shortest if shortest < tokens else None


# --- masks ---------------------------------------------------------------------------------------


def _with_open_masks(tested: ModuleUnderTest) -> ModuleUnderTest:
    """Pass masks that hide nothing, whatever True means, to a module that requires masks.

    A mask that hides all would leave nothing to compare.
    """
    signature = tested.first.signature
    needed = [role for role in ("mask", "key_mask") if role in signature.required]
    if not needed or tested.right(SELF_ATTENTION):
        return tested
    found = tested
    for styles in product(*(_open_styles(role, tested.options) for role in needed)):
        tried = tested.called(open=dict(zip(needed, styles, strict=True)))
        if not _tells_tokens_apart(tried.first):
            continue
        if tried.right(SELF_ATTENTION):
            return tried
        found = tried if found is tested else found
    return found


def _open_styles(role: str, options: DiagnoseOptions) -> list[MaskStyle]:
    """Return the styles in which a mask that hides nothing may be written."""
    known = getattr(options, role) or (options.mask if role == "key_mask" else None)
    axes = (*_AXES, "[B h, T, T]", call.PADDING, call.ANY) if role == "mask" else (call.PADDING,)
    return [
        MaskStyle(meaning, dtype, one)
        for one in axes
        for meaning in ([known] if known else ["keep", "hide", "add"])
        for dtype in _DTYPES_OF[meaning]
    ]


def _tells_tokens_apart(adapter: Adapter) -> bool:
    """Return whether outputs are finite and differ, as they don't where all is hidden."""
    with suppress(Exception), adapter.on() as in_mode:
        output, _ = in_mode(RandomInputs(adapter).tokens(2, 7))
        return bool(output.isfinite().all()) and not torch.allclose(output, output[:, :1])
    return False


def _with_mask_style(tested: ModuleUnderTest) -> ModuleUnderTest:
    """Find the style of a module's mask."""
    best, most = tested, 0
    for style, mask_replaces in _styles(tested):
        tried = _with_axes(tested.changed(mask_replaces=mask_replaces).called(mask=style))
        found = tried.first.signature.mask
        right = (found.one and tried.right(_ONE)) or (found.several and tried.right(_SEVERAL))
        quality = 2 if right else 1 if found.one or found.several else 0
        if quality > most:  # 0: it raises an error in every style, which is to be seen
            best, most = tried, quality
        if right:
            break
    roles, options = tested.first.signature.roles, tested.options
    if most < 2 and "key_mask" not in roles and not options.mask_shape:
        padding = _as_padding(tested)
        silent = most == 0 and not padding.raises(_PADDING)
        if padding.right(_PADDING) or silent or options.key_mask:
            best = padding
    if best.first.setting.mask_replaces:
        return best.with_note("a mask replaces its triangle")
    return best


def _styles(tested: ModuleUnderTest) -> Iterator[tuple[MaskStyle, bool]]:
    """Yield meanings and dtypes, each also with a mask that replaces the triangle."""
    signature, causal = tested.first.signature, tested.first.setting.always_causal
    if tested.options.mask:
        meanings = [tested.options.mask]
    elif signature.mask != call.ATTNLIB_STYLE:  # known from the module's class
        meanings = [signature.mask.meaning]
    else:
        meanings = ["keep"] if signature.roles["mask"] in _KEEP_NAMES else ["keep", "hide", "add"]
    for meaning in meanings:
        for dtype in _DTYPES_OF[meaning]:
            for mask_replaces in (False, True) if causal else (False,):
                yield MaskStyle(meaning, dtype, None, None), mask_replaces


def _with_axes(tested: ModuleUnderTest) -> ModuleUnderTest:
    """Choose the axes of a mask for all samples, then those of a mask for each."""
    only = tested.options.mask_shape
    for axes in [only] if only else _AXES:
        tried = tested.called(mask=replace(tested.first.signature.mask, one=axes))
        if tried.right(_ONE) or (not tried.raises(_ONE) and axes == "[T, T]"):
            tested = tried
            break
    if only:
        several = [only] if only != "[T, T]" else []
    elif tested.first.signature.roles["mask"] in _KEEP_NAMES:
        several = list(_AXES_OF_SEVERAL)
    else:  # as F.scaled_dot_product_attention has it
        several = ["[B, 1, T, T]", "[B, T, T]", "[B h, T, T]"]
    as_ours = near = None
    for axes in several:
        one = tested.first.signature.mask.one or axes  # for all samples, the same for each
        mask = replace(tested.first.signature.mask, one=one, several=axes)
        tried = tested.called(mask=mask)
        if tried.right(_SEVERAL):
            silent = as_ours is not None and as_ours.raises(_SEVERAL)
            if as_ours is not None and not silent:
                return as_ours
            return tried.called(masks_without_heads=silent)
        if axes == "[B, T, T]" and not tried.raises(_SAME_NUMBER):
            as_ours = tried  # it gives numbers, which are to be looked at
        if not near and is_near(tried.answer(_SEVERAL), tried.compared(_SEVERAL)):
            near = tried
    return near or as_ours or tested


def _as_padding(tested: ModuleUnderTest) -> ModuleUnderTest:
    """Take a mask for one of keys, [B, T], of a dtype that it takes."""
    signature = tested.first.signature
    other = {"mask": "key_mask", "mask_between": "key_mask_between"}
    as_padding = tested.called(
        roles=call.renamed(signature.roles, other),
        required=frozenset(other.get(role, role) for role in signature.required),
    )
    meaning = tested.options.key_mask or tested.options.mask or "keep"
    kinds = [as_padding.called(key_mask=MaskStyle(meaning, dtype)) for dtype in _DTYPES]
    taken = [tried for tried in kinds if not tried.raises(_PADDING)]
    return next((tried for tried in taken if tried.right(_PADDING)), (taken or kinds)[0])


def _with_key_mask_style(tested: ModuleUnderTest) -> ModuleUnderTest:
    """Find the meaning of a module's padding mask."""
    signature = tested.first.signature
    name = signature.roles["key_mask"]
    of_name = ["keep"] if name == "key_mask" else ["keep", "hide"]
    if name.endswith("key_padding_mask"):  # torch's
        of_name = ["hide", "keep"]
    meanings = [tested.options.key_mask] if tested.options.key_mask else of_name
    tried = [tested.called(key_mask=replace(signature.key_mask, meaning=m)) for m in meanings]

    def right(one: ModuleUnderTest) -> bool:
        causal = tested.first.setting.always_causal  # padding may switch the triangle off
        return (causal and one.changed(always_causal=False).right(_PADDING)) or one.right(_PADDING)

    return next((one for one in tried if right(one)), tried[0])
