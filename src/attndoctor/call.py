"""Call a forward the way it wants to be called: its arguments, its masks, what it returns."""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from attndoctor.build import copy_of
from attndoctor.names import ROLES, known_as, parameters_of, takes_anything
from attndoctor.options import CallError, Clock, DiagnoseOptions, error_text, note_size
from attndoctor.reference import PROJECTIONS, Pair, Setting
from attndoctor.support.texts import Texts
from attndoctor.weights import WeightMap, collect, own_weights
from attnlib.checks import require_floating, shape_of

TEXT = Texts(__file__)

# --- masks ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MaskStyle:
    """A convention of masks; by default attnlib's own.

    meaning: "keep" (True = may look), "hide" (True = hidden) or "add" (0 or -inf, added to the
    scores). dtype: of a mask that isn't added. one, several: the axes of a mask for all samples
    and of a mask for each; None if it takes none.
    """

    meaning: str = "keep"
    dtype: torch.dtype = torch.bool
    one: str | None = "[T, T]"
    several: str | None = "[B, T, T]"

    def fit(self, mask: Tensor, like: Tensor, num_heads: int) -> Tensor:
        """Convert attnlib's mask, of 2 to 4 axes, to this style, for tokens `like` [B, T, d]."""
        axes = self.one if mask.dim() == 2 else self.several
        if mask.dim() == 4:
            if axes == "[B h, T, T]":
                mask = mask.expand(len(like), num_heads, -1, -1).flatten(0, 1)
            return self.write(mask, like)
        if mask.dim() == 2 and axes != "[T, T]":
            mask = mask.expand(len(like), -1, -1)
        if axes == "[B, 1, T, T]":
            mask = mask[:, None]
        if axes == "[B h, T, T]":
            mask = mask.repeat_interleave(num_heads, 0)
        return self.write(mask, like)

    def write(self, mask: Tensor, like: Tensor) -> Tensor:
        """Convert attnlib's mask to this meaning and dtype, on the same axes."""
        if self.meaning == "add":
            return torch.zeros_like(mask, dtype=like.dtype).masked_fill(~mask, -math.inf)
        return (~mask if self.meaning == "hide" else mask).to(self.dtype)

    def __str__(self) -> str:
        axes = " or ".join(dict.fromkeys(axes for axes in (self.one, self.several) if axes))
        if self.meaning == "add":
            return f"{axes} that is added"
        yes = "True" if self.dtype == torch.bool else "1"
        return f"{axes} where {yes} = {'hidden' if self.meaning == 'hide' else 'may look'}"


PADDING, ANY = "[B, T]", "[1, 1, 1, 1]"  # axes of a mask that hides nothing
ATTNLIB_STYLE = MaskStyle()
TORCH_STYLE = MaskStyle("hide", several="[B h, T, T]")  # nn.MultiheadAttention

# --- the signature of a forward ------------------------------------------------------------------

Result = tuple[Tensor, Tensor | None]  # an output, and weights if there are any
ONE_MORE = "weights, one key more"  # where a key of zeros is added
_AXES_OF_WEIGHTS = {  # where returned weights have the axes of [B, h, T_q, T_k]
    "weights [h, B, T, T]": (1, 0, 2, 3),
    "weights [B, T, h, T]": (0, 2, 1, 3),
    "weights [B, T, T, h]": (0, 3, 1, 2),
}
SHOWN = ("weights", "weights [h B, T, T]", "scores before the softmax", *_AXES_OF_WEIGHTS)
_QUERY_KEY_VALUE = ("query", "key", "value")
_TURNING_NOTHING = {"cos": "torch.ones(1, 1)", "sin": "torch.zeros(1, 1)"}
PASTS = ("past", "keeps_past")  # roles for a cache of another kind than attnlib's
_BETWEEN = {"mask": "mask_between", "key_mask": "key_mask_between"}  # roles for two sequences


@dataclass(frozen=True)
class CallSignature:
    """The arguments of a forward by their roles, and the style in which each is wanted.

    roles: {role: name}. required: roles that need a value. unused: arguments without a role.
    arguments: further values that the caller of `diagnose` gave. open: styles in which required
    masks hide nothing. masks_without_heads: a mask [B, T, T] gives numbers, though it is taken as
    another. shown: what is returned beside the output, `ONE_MORE` or one of `SHOWN`. also: what
    else a try has shown it to take. channels_first: tokens are [B, d, T]. foreign_cache: its cache
    isn't attnlib's, and is left out. handed: collects each tensor passed, before and after.
    """

    roles: Mapping[str, str]
    required: frozenset[str] = frozenset()
    positional: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    mask: MaskStyle = ATTNLIB_STYLE
    key_mask: MaskStyle = ATTNLIB_STYLE
    open: Mapping[str, MaskStyle] = field(default_factory=dict)
    masks_without_heads: bool = False
    shown: str = "weights"
    also: frozenset[str] = frozenset()
    batch_first: bool = True
    arguments: Mapping[str, Any] = field(default_factory=dict)
    returns: Callable[[Any], Any] | None = None
    channels_first: bool = False
    foreign_cache: bool = False
    handed: list[tuple[Tensor, Tensor]] | None = None

    @property
    def takes(self) -> frozenset[str]:
        """What probes may use: roles, and "masks" for a mask of each sample's own."""
        found = set(self.roles) - {"query", "average", "no_turn", *PASTS, *_BETWEEN.values()}
        if "key_value" in found or {"key", "value"} <= found:
            found.add("two sequences")
        if "mask" in found and self.mask.several:
            found.add("masks")
        if "mask" in found and self.mask.several == "[B, 1, T, T]":
            found.add("four axes")
        if self.masks_without_heads:
            found.add("masks without heads")
        if "mask" in found and not self.mask.one:
            found.remove("mask")
        return frozenset(found) | self.also

    def call(
        self, module: nn.Module, num_heads: int, query: Tensor, key: Tensor, value: Tensor,
        left_out: tuple[str, ...] = (), **options: Any,
    ) -> Result:  # fmt: skip
        """Call a module with attnlib's arguments; return its output and weights as attnlib does."""
        given = self._by_role(num_heads, query, key, value, options)
        offered = self.roles.keys() - set(left_out)
        named = {self.roles[role]: x for role, x in given.items() if role in offered}
        named |= self.arguments
        if self.handed is not None:
            self.handed.extend((x.clone(), x) for x in named.values() if isinstance(x, Tensor))
        first = [named.pop(name) for name in self.positional if name in named]
        result = _called(module, first, named)
        if self.returns is not None:
            result = self._selected(result, options.get("need_weights", True))
        output, weights = _output_and_weights(result, query)
        if weights is not None:
            weights = self._plain_weights(weights, query, key, num_heads)
        axes = self._swapped
        return output.transpose(*axes) if axes else output, weights

    def _by_role(
        self, num_heads: int, query: Tensor, key: Tensor, value: Tensor, options: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the values to pass, by roles, in the styles that are wanted."""
        given: dict[str, Any] = {"query": query, "average": False}
        if key is not query or self.required & {"key", "value", "key_value"} or self._needs_key:
            given |= {"key": key, "value": value, "key_value": key}
        for role in self.required - given.keys() - options.keys():
            given[role] = self._harmless(role, query, key, num_heads)
        for role, option in options.items():
            if role == "mask":
                option = self.mask.fit(option, query, num_heads)
            elif role == "key_mask":
                option = self.key_mask.write(option, query)
            apart = _BETWEEN.get(role) in self.roles and key is not query
            given[_BETWEEN[role] if apart else role] = option
        if self._swapped:
            for role in {"query", "key", "value", "key_value"} & given.keys():
                given[role] = given[role].transpose(*self._swapped)
        return given

    @property
    def _swapped(self) -> tuple[int, int] | None:
        """The axes of tokens [B, T, d] to swap."""
        if self.channels_first:
            return (1, 2)
        return None if self.batch_first else (0, 1)

    @property
    def _needs_key(self) -> bool:
        limited = any(self.roles.get(role) in ROLES[apart] for role, apart in _BETWEEN.items())
        return "key" in self.roles or "value" in self.roles or limited

    def _harmless(self, role: str, query: Tensor, key: Tensor, num_heads: int) -> Any:
        """Return a value that changes nothing, for a required argument."""
        B, T_q, T_k = len(query), query.shape[1], key.shape[1]
        if role == "no_turn":  # cosines and sines of position 0, as transformers hands them over
            return query.new_ones(1, 1, 1), query.new_zeros(1, 1, 1)
        role = next((plain for plain, apart in _BETWEEN.items() if apart == role), role)
        if role == "mask":
            style = self.open.get(role, self.mask)
            if style.one == PADDING:
                return style.write(torch.ones(B, T_k, dtype=torch.bool), query)
            if style.one == ANY:
                return style.write(torch.ones(1, 1, 1, 1, dtype=torch.bool), query)
            return style.fit(torch.ones(T_q, T_k, dtype=torch.bool), query, num_heads)
        if role == "key_mask":
            style = self.open.get(role, self.key_mask)
            return style.write(torch.ones(B, T_k, dtype=torch.bool), query)
        return None if role == "past" else False

    def _selected(self, result: Any, with_weights: bool) -> Any:
        """Apply `returns` to a result; a shorter one, without weights, has its output first."""
        assert self.returns is not None
        try:
            return self.returns(result)
        except Exception as error:
            if isinstance(result, tuple | list) and result and not with_weights:
                return result[0]
            said = TEXT("returns", came=_came(result), error=error_text(error))
            raise CallError(said) from error

    def _plain_weights(self, weights: Tensor, query: Tensor, key: Tensor, h: int) -> Tensor:
        """Bring what is returned beside the output to weights [B, h, T_q, T_k]."""
        B, T_q, T_k = len(query), query.shape[1], key.shape[1]
        if weights.shape == (B * h, T_q, T_k) and h > 1:
            weights = weights.unflatten(0, (B, h))
            if self.shown == "weights [h B, T, T]":
                weights = weights.reshape(h, B, T_q, T_k).transpose(0, 1)
        if self.shown in _AXES_OF_WEIGHTS and weights.dim() == 4:
            weights = weights.permute(_AXES_OF_WEIGHTS[self.shown])
        if self.shown == "scores before the softmax":
            weights = weights.softmax(-1)
        if self.shown == ONE_MORE:
            weights = weights[..., :T_k]
        return weights


def _called(module: nn.Module, first: list[Any], named: dict[str, Any]) -> Any:
    """Call a module, which must neither end the program nor change torch's default dtype."""
    dtype = torch.get_default_dtype()
    try:
        result = module(*first, **named)
        left = torch.get_default_dtype()
    except SystemExit as error:
        raise RuntimeError(f"it ends the program by sys.exit({error.code!r})") from error
    finally:
        torch.set_default_dtype(dtype)
    if left != dtype:
        raise RuntimeError(f"it sets torch's default dtype to {left}, for whatever comes after it")
    return result


def _output_and_weights(result: Any, query: Tensor) -> Result:
    """Return the output and the weights in a result."""
    values = (result,) if isinstance(result, Tensor) else result
    if isinstance(values, tuple | list):  # what may stand beside the weights is often None
        beside = (one for one in values[1:] if one is not None and not _is_past(one))
        values = [*values[:1], *beside]
    if not isinstance(values, list) or not 1 <= len(values) <= 2:
        raise CallError(TEXT("result", came=_came(result), where=_where(result, query)))
    output, weights = (*values, None)[:2]
    given: Any  # by somebody else's code
    for name, given in (("the output", output), ("the weights", weights)):
        if given is None and name == "the weights":
            continue
        try:
            require_floating(name, given)
        except TypeError as error:
            raise CallError(TEXT("something else", error=error)) from None
        if given.is_meta:
            raise CallError(TEXT("no dense numbers", name=name, given=given))
    if weights is not None and output.dim() == 4 and weights.dim() == 3:
        raise CallError(TEXT("other order", output=shape_of(output), weights=shape_of(weights)))
    return output, weights


def _is_past(one: Any) -> bool:
    """Return whether it is keys and values [B, h, T, d_k] for the next call, or both stacked."""
    pair = isinstance(one, tuple) and len(one) == 2 and all(isinstance(x, Tensor) for x in one)
    stacked = isinstance(one, Tensor) and one.dim() == 5 and len(one) == 2  # as GPT-2 first had it
    return stacked or (pair and one[0].shape == one[1].shape and one[0].dim() == 4)


def _came(result: Any) -> str:
    if isinstance(result, tuple | list):
        return f"got {len(result)} values ({', '.join(type(one).__name__ for one in result)})"
    return f"got {type(result).__name__}"


def _where(result: Any, query: Tensor) -> str:
    """Return where in a result the output and the weights for these tokens seem to be."""
    if isinstance(result, Mapping):
        return f"result[{next(iter(result), '...')!r}]"
    values = result if isinstance(result, tuple | list) else ()
    axes = [one.dim() if isinstance(one, Tensor) else 0 for one in values]
    if 3 not in axes:
        return "(result[...], result[...])"
    output, shown = axes.index(3), [i for i, n in enumerate(axes) if n == 4]
    weights = next((i for i in shown if _may_be_weights(result[i], query)), None)
    return f"result[{output}]" if weights is None else f"(result[{output}], result[{weights}])"


def _may_be_weights(shown: Tensor, query: Tensor) -> bool:
    """Return whether it has the batch of these tokens, and rows that sum to 1."""
    sums = shown.sum(-1, dtype=torch.float64)
    return len(shown) == len(query) and torch.allclose(sums, torch.ones_like(sums), atol=1e-3)


# --- reading a signature -------------------------------------------------------------------------


def read_signature(module: nn.Module, options: DiagnoseOptions) -> CallSignature:
    """Find out from a module's forward how to call it, or raise CallError."""
    arguments = dict(options.arguments or {})
    there = [p.name for p in parameters_of(module.forward)]
    unknown = [name for name in arguments if name not in there]
    if unknown and not takes_anything(module.forward):
        kind, known = type(module).__name__, ", ".join(there)
        raise CallError(TEXT("unknown arguments", kind=kind, there=known, unknown=unknown[0]))
    if isinstance(module, nn.MultiheadAttention):
        return _signature_of_torch(module, arguments, options)
    parameters = [p for p in parameters_of(module.forward) if p.name not in arguments]
    needed = [p.name for p in parameters if p.default is p.empty]
    roles = _argument_roles(parameters, needed)
    kept = any(role in roles for role in PASTS)
    for role in PASTS:
        if roles.get(role) not in needed:
            roles.pop(role, None)
    roles = _with_masks_of_two(roles)
    _require_tokens(roles, module, needed)
    positional = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_ONLY)
    if "query" not in roles:
        roles["query"], positional = "*args", ("*args",)
    required = {role for role, name in roles.items() if name in needed} | {"no_turn"} & roles.keys()
    in_order = ["*args", *(p.name for p in parameters)]
    return CallSignature(
        dict(sorted(roles.items(), key=lambda item: in_order.index(item[1]))),
        frozenset(required) - {"query"}, positional,
        tuple(p.name for p in parameters if p.name not in roles.values()),
        batch_first=bool(getattr(module, "batch_first", True)),
        arguments=arguments, returns=options.returns,
        foreign_cache=kept and "cache" not in roles,
    )  # fmt: skip


def _signature_of_torch(
    module: nn.MultiheadAttention, arguments: dict[str, Any], options: DiagnoseOptions
) -> CallSignature:
    roles = {role: role for role in (*_QUERY_KEY_VALUE, "need_weights")}
    roles |= {"mask": "attn_mask", "key_mask": "key_padding_mask"}
    roles["average"] = "average_attn_weights"
    return CallSignature(
        roles, frozenset(_QUERY_KEY_VALUE), mask=TORCH_STYLE, key_mask=TORCH_STYLE,
        batch_first=module.batch_first, arguments=arguments, returns=options.returns,
        shown=ONE_MORE if module.add_zero_attn or module.bias_k is not None else SHOWN[0],
    )  # fmt: skip


def _argument_roles(parameters: list[inspect.Parameter], needed: list[str]) -> dict[str, str]:
    """Return {role: name} of a forward's arguments, by their names."""
    names = [p.name for p in parameters]
    unnamed = [name for name in names if known_as(name, ROLES) is None]
    roles: dict[str, str] = {}
    for name in names:
        role = known_as(name, ROLES)
        if role and role not in roles:
            roles[role] = name
    if roles.get("key_value") == "src" and "query" not in roles:  # there are no others
        roles["query"] = roles.pop("key_value")
    if "query" not in roles and unnamed:
        roles["query"] = unnamed[0]
    turns = next((p for p in parameters if p.name == roles.get("no_turn")), None)
    if turns and turns.name not in needed and "tuple" not in str(turns.annotation).lower():
        del roles["no_turn"]  # it is no pair of cosines and sines
    if "c" in needed and not {"key", "value", "key_value"} & roles.keys():
        roles["key_value"] = "c"  # of Glow-TTS; left out it may be anything
    return roles if "value" in roles else renamed(roles, {"key": "key_value"})


def renamed(roles: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """Return {role: name} with other names of some roles."""
    return {other.get(role, role): name for role, name in roles.items()}


def _with_masks_of_two(roles: dict[str, str]) -> dict[str, str]:
    """Return roles in which masks of two sequences are apart only if there are others."""
    if "mask" in roles and "key_mask" not in roles and "mask_between" not in roles:
        if roles.get("key_mask_between") == "encoder_attention_mask":  # of the same kind
            roles["mask_between"] = roles.pop("key_mask_between")
    if not {"key", "key_value"} & roles.keys():
        return {role: name for role, name in roles.items() if role not in _BETWEEN.values()}
    if not _BETWEEN.keys() & roles.keys():
        return renamed(roles, {apart: role for role, apart in _BETWEEN.items()})
    return roles


def _require_tokens(roles: dict[str, str], module: nn.Module, needed: list[str]) -> None:
    """Raise CallError if a forward takes no tokens, or needs an argument of unknown meaning."""
    there, kind = inspect.signature(module.forward).parameters.values(), type(module).__name__
    if "query" not in roles and not any(p.kind is p.VAR_POSITIONAL for p in there):
        raise CallError(TEXT("no tokens", kind=kind))
    foreign = [name for name in needed if name not in roles.values()]
    if foreign:
        lines = ", ".join(f"{name!r}: {_TURNING_NOTHING.get(name, '...')}" for name in foreign)
        turning = ", which turns nothing" if _TURNING_NOTHING.keys() & set(foreign) else ""
        names = " and ".join(map(repr, foreign))
        raise CallError(
            TEXT("needed arguments", kind=kind, names=names, lines=lines, turning=turning)
        )


# --- a module with its signature -----------------------------------------------------------------

OWN_ROLES = ("query", "key", "value", "mask", "key_mask", "causal", "cache", "need_weights")
OWN_SIGNATURE = CallSignature({role: role for role in OWN_ROLES})
FOUR_AXES = replace(OWN_SIGNATURE, mask=MaskStyle(several="[B, 1, T, T]"))
NO_GRADIENTS = "no gradients"  # among what a module takes that is for inference alone


class NoGradientError(RuntimeError):
    """An output has no gradient."""


@dataclass(frozen=True)
class CallMode:
    """One of the ways through a module, which must all give the same."""

    training: bool
    weights: bool
    gradients: bool

    @property
    def evaluation(self) -> bool:
        """Whether it isn't training."""
        return not self.training

    @property
    def says(self) -> str:
        """What is unusual about it."""
        there = {
            "in train()": self.training,
            "without asking for weights": not self.weights,
            "under torch.no_grad()": not self.gradients,
        }
        return ", ".join(words for words, here in there.items() if here)


_BOTH = (True, False)
# A probe that chooses its mode runs training without gradients, where there is dropout.
CALL_MODES = (
    *(CallMode(False, weights, gradients) for weights, gradients in product(_BOTH, _BOTH)),
    *(CallMode(True, weights, True) for weights in _BOTH),
)


@dataclass(frozen=True)
class Adapter:
    """A module that is called as `MultiHeadAttention` is.

    setting: what it has in common with the reference. takes: what probes may use. weight_map: where
    its weights are, if that is known. untouched: its parameters that hold no weights of the
    reference. residual: its output has its input added. of_attnlib: it needs causal=True.
    scale_ratio: how many times 1 / sqrt(d_k) its scale is; its W_q is divided by that. fresh: a
    copy that was never called. clock: ticks before each call.
    """

    module: nn.Module
    setting: Setting
    signature: CallSignature
    takes: frozenset[str]
    weight_map: WeightMap | None = None
    untouched: tuple[str, ...] = ()
    mode: CallMode = CALL_MODES[0]
    residual: bool = False
    of_attnlib: bool = False
    scale_ratio: float = 1.0
    fresh: nn.Module | None = None
    clock: Clock | None = None

    def __call__(
        self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None, **options: Any
    ) -> Result:
        """Call the module with `MultiHeadAttention`'s arguments; return output and weights."""
        if self.clock:
            self.clock.tick()
        if "need_weights" in self.takes:
            options["need_weights"] = self.mode.weights
        if "causal" in self.takes:
            options.setdefault("causal", False)
        replaced = self.setting.mask_replaces and "mask" in options
        if self.of_attnlib and self.setting.always_causal and not replaced:
            options["causal"] = True
        key = query if key is None else key
        value = key if value is None else value
        try:
            output, weights = self.signature.call(
                self.module, self.setting.sizes.num_heads, query, key, value, **options
            )
        except CallError:
            raise
        except Exception as error:
            note_size(error, *query.shape[:2])
            raise
        return output - query if self.residual else output, weights

    def changes(self, *tokens: Tensor, **limits: Any) -> bool:
        """Return whether it changes its arguments in place."""
        handed: list[tuple[Tensor, Tensor]] = []
        with suppress(Exception):  # other probes report it
            replace(self, signature=replace(self.signature, handed=handed))(*tokens, **limits)
        return any(not torch.equal(before, after) for before, after in handed)

    @contextmanager
    def on(self, mode: CallMode = CALL_MODES[0]) -> Iterator["Adapter"]:
        """Call the module in another mode."""
        self.module.train(mode.training)
        try:
            with torch.set_grad_enabled(mode.gradients):
                yield replace(self, mode=mode)
        finally:
            self.module.eval()

    def fresh_copy(self) -> "Adapter":
        """Return a copy that was never called."""
        return replace(self, module=copy_of(self.fresh or self.module).eval())

    def gradients(self, found: Tensor, x: Tensor) -> list[Pair]:
        """Return the gradients of the sum of squares of `found`, by x and by each known weight."""
        if NO_GRADIENTS in self.takes:
            return []
        if not found.requires_grad:
            raise NoGradientError(
                "no gradient flows through it: its forward runs under torch.no_grad() or "
                "inference_mode, or its answer is detached"
            )
        there = self.module.named_parameters() if self.weight_map else ()
        parameters = {name: numbers for name, numbers in there if numbers.requires_grad}
        wider = max(1.0, self.setting.sizes.d_model / 256)  # longer sums are rounded more often
        loss = found.square().sum() / wider
        x.grad = None
        self.module.zero_grad()
        loss.backward()  # torch.autograd.grad isn't for checkpoints
        by_x, *slopes = (
            torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
            for leaf in (x, *parameters.values())
        )
        numbers = dict(zip(parameters, slopes, strict=True))
        x.grad = None
        self.module.zero_grad()
        mine = collect(self.module, self.weight_map, numbers) if self.weight_map else {}
        if self.scale_ratio != 1:
            mine |= {n: mine[n] / self.scale_ratio for n in mine if n.startswith("W_q")}
        names = [f"{W}.{kind}" for W in PROJECTIONS for kind in ("weight", "bias")]
        return [(by_x, None), *((mine.get(name), None) for name in names)]


def attnlib_adapter(module: nn.Module, setting: Setting, takes: frozenset[str]) -> Adapter:
    """Return attnlib's module, or an exhibit, called with what a candidate takes."""
    signature = FOUR_AXES if "four axes" in takes else OWN_SIGNATURE
    takes |= {"need_weights"}
    return Adapter(module, setting, signature, takes, own_weights(module), of_attnlib=True)


# --- random inputs -------------------------------------------------------------------------------


class RandomInputs:
    """Random tokens and masks, the same for candidate and reference, with a seed for each probe."""

    def __init__(self, adapter: Adapter, seed: int = 1) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self.d_model = adapter.setting.sizes.d_model
        self._always_causal = adapter.setting.always_causal

    def tokens(self, B: int, T: int) -> Tensor:
        """Return tokens [B, T, d]."""
        return 2 * torch.randn(B, T, self.d_model, generator=self._generator)

    def mask(self, *shape: int) -> Tensor:
        """Return a mask in which every query may look somewhere, and not everywhere."""
        order = torch.rand(shape, generator=self._generator).argsort(-1)
        kept = torch.randint(1, shape[-1], (*shape[:-1], 1), generator=self._generator)
        mask = order < kept
        if self._always_causal:  # beside a triangle, then
            mask = mask.index_fill(-1, torch.tensor([0]), True)
        return mask
