"""How a module's forward is called, and how what it returns is read."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attndoctor.mask_style import ANY, OWN, PADDING, TORCH, MaskStyle
from attndoctor.names import ROLES, known_as, parameters_of, takes_anything
from attndoctor.told import CallError, Told, said
from attnlib.checks import require_floating, shape_of

Result = tuple[Tensor, Tensor | None]  # an output, and weights if there are any
ONE_MORE = "weights, one key more"  # where a key of zeros is added
_AXES_OF_WEIGHTS = {  # the axes of [B, h, T_q, T_k] among those that are shown
    "weights [h, B, T, T]": (1, 0, 2, 3),
    "weights [B, T, h, T]": (0, 2, 1, 3),
    "weights [B, T, T, h]": (0, 3, 1, 2),
}
SHOWN = ("weights", "weights [h B, T, T]", "scores before the softmax", *_AXES_OF_WEIGHTS)
_QUERY_KEY_VALUE = ("query", "key", "value")
PASTS = ("past", "keeps_past")  # of a cache that isn't attnlib's
_BETWEEN = {"mask": "mask_between", "key_mask": "key_mask_between"}  # of queries and other keys


@dataclass(frozen=True)
class Forward:
    """Which argument of a forward has which role, and in which style each is wanted.

    roles: the arguments' names, by roles. required: roles that always need a value. unused:
    arguments without a role. arguments: what is handed over besides. key_mask: the style of a
    padding mask [B, T]. open: the styles of masks that must be given, where they hide nothing; as
    where they hide if left out.
    bare_masks: whether masks without an axis for heads give numbers, though wrong ones.
    shown: what it returns beside the output, `ONE_MORE` or one of `SHOWN`.
    also: what else it was seen to take: "head masks", "defaults", "differentiable weights", "long".
    channels_first: whether tokens are [B, d, T], as convolutions have them.
    foreign_cache: whether its cache is of another kind than attnlib's, and isn't handed over.
    handed: gets each tensor that is handed over, as it was before and as it is left.
    """

    roles: Mapping[str, str]
    required: frozenset[str] = frozenset()
    positional: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    mask: MaskStyle = OWN
    key_mask: MaskStyle = OWN
    open: Mapping[str, MaskStyle] = field(default_factory=dict)
    bare_masks: bool = False
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
        """What it can be asked: roles, with "masks" for a mask of each sample's own."""
        found = set(self.roles) - {"query", "average", "no_turn", *PASTS, *_BETWEEN.values()}
        if "key_value" in found or {"key", "value"} <= found:
            found.add("two sequences")
        if "mask" in found and self.mask.several:
            found.add("masks")
        if "mask" in found and self.mask.several == "[B, 1, T, T]":
            found.add("four axes")
        if self.bare_masks:
            found.add("bare masks")
        if "mask" in found and not self.mask.one:
            found.remove("mask")
        return frozenset(found) | self.also

    def call(
        self, module: nn.Module, num_heads: int, query: Tensor, key: Tensor, value: Tensor,
        left_out: tuple[str, ...] = (), **options: Any,
    ) -> Result:  # fmt: skip
        """Ask a module, in attnlib's terms; return its output and weights in these terms."""
        given: dict[str, Any] = {"query": query, "average": False}
        if key is not query or self.required & {"key", "value", "key_value"} or self._asks_for_key:
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
        axes = self._swapped
        if axes:
            for role in ("query", "key", "value", "key_value"):
                if role in given:
                    given[role] = given[role].transpose(*axes)
        asked = self.roles.keys() - set(left_out)
        named = {self.roles[role]: x for role, x in given.items() if role in asked}
        named |= self.arguments
        if self.handed is not None:
            self.handed.extend((x.clone(), x) for x in named.values() if isinstance(x, Tensor))
        first = [named.pop(name) for name in self.positional if name in named]
        result = _called(module, first, named)
        if self.returns is not None:
            result = self._as_told(result, options.get("need_weights", True))
        output, weights = self._read(result, query, key, num_heads)
        return output.transpose(*axes) if axes else output, weights

    @property
    def _swapped(self) -> tuple[int, int] | None:
        """The axes that tokens [B, T, d] have in another order."""
        if self.channels_first:
            return (1, 2)
        return None if self.batch_first else (0, 1)

    @property
    def _asks_for_key(self) -> bool:
        limited = any(self.roles.get(role) in ROLES[apart] for role, apart in _BETWEEN.items())
        return "key" in self.roles or "value" in self.roles or limited

    def _harmless(self, role: str, query: Tensor, key: Tensor, num_heads: int) -> Any:
        """Return what leaves everything as it is, for an argument that must be given."""
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

    def _as_told(self, result: Any, with_weights: bool) -> Any:
        """Return what the reader's function takes out of a result.

        One that was asked for no weights is often shorter: then its first value is the output.
        """
        assert self.returns is not None
        try:
            return self.returns(result)
        except Exception as error:
            if isinstance(result, tuple | list) and result and not with_weights:
                return result[0]
            raise CallError(
                f"returns must take what forward returns, {_came(result)}, but it raised "
                f"{said(error)}"
            ) from error

    def _read(
        self, result: Any, query: Tensor, key: Tensor, num_heads: int
    ) -> tuple[Tensor, Tensor | None]:
        values = (result,) if isinstance(result, Tensor) else result
        if isinstance(values, tuple | list):  # what may stand beside the weights is often None
            beside = (one for one in values[1:] if one is not None and not _is_past(one))
            values = [*values[:1], *beside]
        if not isinstance(values, list) or not 1 <= len(values) <= 2:
            raise CallError(
                f"forward must return the output, or the output and the weights, {_came(result)}: "
                f"say where they are with returns=lambda result: {_where(result)}"
            )
        output, weights = (*values, None)[:2]
        given: Any  # by somebody else's code
        for name, given in (("the output", output), ("the weights", weights)):
            if given is None and name == "the weights":
                continue
            try:
                require_floating(name, given)
            except TypeError as error:
                raise CallError(
                    f"{error} (if forward returns something else in its place, say what is meant: "
                    "returns=lambda result: result[0])"
                ) from None
            if given.is_meta:
                raise CallError(
                    f"{name} must be dense numbers, got {given.layout} on {given.device}"
                )
        if weights is not None and output.dim() == 4 and weights.dim() == 3:
            raise CallError(
                "forward must return the output first and then the weights, got "
                f"{shape_of(output)} and {shape_of(weights)}: say so with "
                "returns=lambda result: (result[1], result[0])"
            )
        B, T_q, T_k = len(query), query.shape[1], key.shape[1]
        if weights is None:
            return output, None
        if shape_of(weights) == [B * num_heads, T_q, T_k] and num_heads > 1:
            weights = weights.unflatten(0, (B, num_heads))
            if self.shown == "weights [h B, T, T]":
                weights = weights.reshape(num_heads, B, T_q, T_k).transpose(0, 1)
        if self.shown in _AXES_OF_WEIGHTS and weights.dim() == 4:
            weights = weights.permute(_AXES_OF_WEIGHTS[self.shown])
        if self.shown == "scores before the softmax":
            weights = weights.softmax(-1)
        if self.shown == ONE_MORE:
            weights = weights[..., :T_k]
        return output, weights


def _is_past(one: Any) -> bool:
    """Tell whether it is keys and values [B, h, T, d_k] to be handed over with the next tokens.

    In a tuple, or stacked as GPT-2 first had them.
    """
    pair = isinstance(one, tuple) and len(one) == 2 and all(isinstance(x, Tensor) for x in one)
    stacked = isinstance(one, Tensor) and one.dim() == 5 and len(one) == 2
    return stacked or (pair and one[0].shape == one[1].shape and one[0].dim() == 4)


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


def _came(result: Any) -> str:
    if isinstance(result, tuple | list):
        return f"got {len(result)} values ({', '.join(type(one).__name__ for one in result)})"
    return f"got {type(result).__name__}"


def _where(result: Any) -> str:
    """Say where in a result the output and the weights seem to be."""
    if isinstance(result, Mapping):
        return f"result[{next(iter(result), '...')!r}]"
    if not isinstance(result, tuple | list):
        return "(result[...], result[...])"
    axes = [one.dim() if isinstance(one, Tensor) else 0 for one in result]
    output, weights = (axes.index(n) if n in axes else None for n in (3, 4))
    if output is None:
        return "(result[...], result[...])"
    return f"result[{output}]" if weights is None else f"(result[{output}], result[{weights}])"


def read_forward(module: nn.Module, told: Told) -> Forward:
    """Find out from its signature how a module is called.

    Raises:
        CallError: it takes no tokens, or needs something that nothing is known of.
    """
    arguments = dict(told.arguments or {})
    there = [p.name for p in parameters_of(module.forward)]
    unknown = [name for name in arguments if name not in there]
    if unknown and not takes_anything(module.forward):
        raise CallError(
            f"arguments must name what forward of {type(module).__name__} takes "
            f"({', '.join(there)}), got {unknown[0]!r}"
        )
    if isinstance(module, nn.MultiheadAttention):
        roles = {role: role for role in (*_QUERY_KEY_VALUE, "need_weights")}
        roles |= {"mask": "attn_mask", "key_mask": "key_padding_mask"}
        roles["average"] = "average_attn_weights"
        return Forward(
            roles, frozenset(_QUERY_KEY_VALUE), mask=TORCH, key_mask=TORCH,
            batch_first=module.batch_first, arguments=arguments, returns=told.returns,
            shown=ONE_MORE if module.add_zero_attn or module.bias_k is not None else SHOWN[0],
        )  # fmt: skip
    parameters = [p for p in parameters_of(module.forward) if p.name not in arguments]
    unnamed = [p for p in parameters if known_as(p.name, ROLES) is None]
    needed = [p for p in parameters if p.default is p.empty]
    roles = {}
    others = any(word in p.name for p in needed[:3] for word in ("len", "mask", "size"))
    if len(needed) >= 3 and unnamed[:3] == needed[:3] == parameters[:3] and not others:  # (a, b, c)
        roles = {r: p.name for r, p in zip(_QUERY_KEY_VALUE, needed[:3], strict=True)}
    for parameter in parameters:
        role = known_as(parameter.name, ROLES)
        if role and role not in roles:
            roles[role] = parameter.name
    if roles.get("key_value") == "src" and "query" not in roles:  # there are no others
        roles["query"] = roles.pop("key_value")
    if "mask" in roles and "key_mask" not in roles and "mask_between" not in roles:
        if roles.get("key_mask_between") == "encoder_attention_mask":  # of the same kind
            roles["mask_between"] = roles.pop("key_mask_between")
    turned = next((p for p in parameters if p.name == roles.get("no_turn")), None)
    is_needed = turned in needed or "tuple" in str(turned and turned.annotation).lower()
    if turned and not is_needed:  # it is no pair of cosines and sines
        del roles["no_turn"]
    kept = {role for role in PASTS if role in roles}
    for role in kept:
        if roles[role] not in {p.name for p in needed}:
            del roles[role]
    if "query" not in roles and unnamed:
        roles["query"] = unnamed[0].name
    if "c" in {p.name for p in needed} and not {"key", "value", "key_value"} & roles.keys():
        roles["key_value"] = "c"  # of Glow-TTS; left out it may be anything
    if "key" in roles and "value" not in roles:  # values are made of the same tokens
        roles = {{"key": "key_value"}.get(role, role): name for role, name in roles.items()}
    if not {"key", "key_value"} & roles.keys():
        roles = {role: name for role, name in roles.items() if role not in _BETWEEN.values()}
    elif not _BETWEEN.keys() & roles.keys():  # it has masks for two sequences only
        whole = {apart: role for role, apart in _BETWEEN.items()}
        roles = {whole.get(role, role): name for role, name in roles.items()}
    hidden = any(
        p.kind is p.VAR_POSITIONAL for p in inspect.signature(module.forward).parameters.values()
    )
    if "query" not in roles and not hidden:
        raise CallError(
            f"forward of {type(module).__name__} must take tokens, got no argument for them: "
            "hand in a module whose forward takes x [B, T, d]"
        )
    foreign = [p.name for p in needed if p.name not in roles.values()]
    if foreign:
        lines = ", ".join(f"{name!r}: ..." for name in foreign)
        raise CallError(
            f"forward of {type(module).__name__} needs {' and '.join(map(repr, foreign))}, of "
            f"which nothing is known here: hand it over with arguments={{{lines}}}"
        )
    positional = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_ONLY)
    if "query" not in roles:
        roles["query"], positional = "*args", ("*args",)
    required = frozenset(role for role, name in roles.items() if name in {p.name for p in needed})
    required |= {"no_turn"} & roles.keys()
    in_order = ["*args", *(p.name for p in parameters)]
    roles = dict(sorted(roles.items(), key=lambda item: in_order.index(item[1])))
    batch_first = getattr(module, "batch_first", True)
    return Forward(
        roles, required - {"query"}, positional,
        tuple(p.name for p in parameters if p.name not in roles.values()),
        batch_first=bool(batch_first),
        arguments=arguments, returns=told.returns,
        foreign_cache=bool(kept) and "cache" not in roles,
    )  # fmt: skip
