"""How a module's forward is called, and how what it returns is read."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attnlib._checks import require_floating, shape_of
from attnlib.museum.doctor.mask_style import OWN, TORCH, MaskStyle
from attnlib.museum.doctor.names import ROLES, known_as, parameters_of, takes_anything
from attnlib.museum.doctor.told import CallError, Told, said

Result = tuple[Tensor, Tensor | None]  # an output, and weights if there are any
SHOWN = ("weights", "weights [h B, T, T]", "scores before the softmax")
_QUERY_KEY_VALUE = ("query", "key", "value")


@dataclass(frozen=True)
class Forward:
    """Which argument of a forward has which role, and in which style each is wanted.

    roles: the arguments' names, by roles. required: roles that always need a value. unused:
    arguments without a role. arguments: what is handed over besides. key_mask: the style of a
    padding mask [B, T].
    bare_masks: whether masks without an axis for heads give numbers, though wrong ones.
    shown: what it returns beside the output, one of `SHOWN`.
    also: what else it was seen to take: "head masks", "defaults", "differentiable weights", "long".
    handed: gets each tensor that is handed over, as it was before and as it is left.
    """

    roles: Mapping[str, str]
    required: frozenset[str] = frozenset()
    positional: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    mask: MaskStyle = OWN
    key_mask: MaskStyle = OWN
    bare_masks: bool = False
    shown: str = "weights"
    also: frozenset[str] = frozenset()
    batch_first: bool = True
    arguments: Mapping[str, Any] = field(default_factory=dict)
    returns: Callable[[Any], Any] | None = None
    handed: list[tuple[Tensor, Tensor]] | None = None

    @property
    def takes(self) -> frozenset[str]:
        """What it can be asked: roles, with "masks" for a mask of each sample's own."""
        found = set(self.roles) - {"query", "average", "no_turn"}
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
            options[role] = _harmless(role, query, key)
        for role, option in options.items():
            if role == "mask":
                option = self.mask.fit(option, query, num_heads)
            elif role == "key_mask":
                option = self.key_mask.write(option, query)
            given[role] = option
        if not self.batch_first:
            for role in ("query", "key", "value", "key_value"):
                if role in given:
                    given[role] = given[role].transpose(0, 1)
        asked = self.roles.keys() - set(left_out)
        named = {self.roles[role]: x for role, x in given.items() if role in asked}
        named |= self.arguments
        if self.handed is not None:
            self.handed.extend((x.clone(), x) for x in named.values() if isinstance(x, Tensor))
        first = [named.pop(name) for name in self.positional if name in named]
        output, weights = self._read(module(*first, **named), query, key, num_heads)
        return output if self.batch_first else output.transpose(0, 1), weights

    @property
    def _asks_for_key(self) -> bool:
        return "key" in self.roles or "value" in self.roles

    def _read(
        self, result: Any, query: Tensor, key: Tensor, num_heads: int
    ) -> tuple[Tensor, Tensor | None]:
        if self.returns is not None:
            try:
                result = self.returns(result)
            except Exception as error:
                raise CallError(
                    f"returns must take what forward returns, {_came(result)}, but it raised "
                    f"{said(error)}"
                ) from error
        if isinstance(result, Tensor):
            result = (result,)
        if not isinstance(result, tuple | list) or not 1 <= len(result) <= 2:
            raise CallError(
                f"forward must return the output, or the output and the weights, {_came(result)}: "
                "say where they are with returns=lambda result: (result[...], result[...])"
            )
        output, weights = (*result, None)[:2]
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
        if self.shown == "scores before the softmax":
            weights = weights.softmax(-1)
        return output, weights


def _harmless(role: str, query: Tensor, key: Tensor) -> Any:
    """Return what leaves everything as it is, for an argument that must be given."""
    B, T_q, T_k = len(query), query.shape[1], key.shape[1]
    if role == "no_turn":  # cosines and sines of position 0, as transformers hands them over
        return query.new_ones(1, 1, 1), query.new_zeros(1, 1, 1)
    if role == "mask":
        return torch.ones(T_q, T_k, dtype=torch.bool)
    return torch.ones(B, T_k, dtype=torch.bool) if role == "key_mask" else False


def _came(result: Any) -> str:
    if isinstance(result, tuple | list):
        return f"got {len(result)} values ({', '.join(type(one).__name__ for one in result)})"
    return f"got {type(result).__name__}"


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
    turned = next((p for p in parameters if p.name == roles.get("no_turn")), None)
    is_needed = turned in needed or "tuple" in str(turned and turned.annotation).lower()
    if turned and not is_needed:  # it is no pair of cosines and sines
        del roles["no_turn"]
    if "query" not in roles and unnamed:
        roles["query"] = unnamed[0].name
    if "key" in roles and "value" not in roles:  # values are made of the same tokens
        roles = {{"key": "key_value"}.get(role, role): name for role, name in roles.items()}
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
    batch_first = getattr(module, "batch_first", True)
    return Forward(
        roles, required - {"query"}, positional,
        tuple(p.name for p in parameters if p.name not in roles.values()),
        batch_first=bool(batch_first),
        arguments=arguments, returns=told.returns,
    )  # fmt: skip
