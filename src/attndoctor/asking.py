"""Asking a module: in attnlib's terms, on each of the paths that it may have."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from attndoctor.build import copy_of
from attndoctor.forward import Forward, Result
from attndoctor.mask_style import MaskStyle
from attndoctor.places import Places, collect, own_places
from attndoctor.reference import Setting
from attndoctor.refusing import note_size
from attndoctor.told import CallError

OWN_ROLES = ("query", "key", "value", "mask", "key_mask", "causal", "cache", "need_weights")
OWN_FORWARD = Forward({role: role for role in OWN_ROLES})
FOUR_AXES = replace(OWN_FORWARD, mask=MaskStyle(several="[B, 1, T, T]"))


NO_GRADIENTS = "no gradients"  # is taken by what is for inference alone

Pair = tuple[Tensor | None, Tensor | None]  # what is compared; None where nothing is known


class NoGradientError(RuntimeError):
    """What was answered has no gradient."""


@dataclass(frozen=True)
class Path:
    """One of the ways through a module, which must all give the same."""

    says: str
    training: bool
    weights: bool
    gradients: bool


def _path(training: bool, weights: bool, gradients: bool) -> Path:
    there = {
        "in train()": training,
        "without asking for weights": not weights,
        "under torch.no_grad()": not gradients,
    }
    says = ", ".join(words for words, here in there.items() if here)
    return Path(says, training, weights, gradients)


_BOTH = (True, False)
# Training without gradients is asked where there is dropout, by a probe that chooses its mode.
PATHS = (
    *(_path(False, weights, gradients) for weights, gradients in product(_BOTH, _BOTH)),
    *(_path(True, weights, True) for weights in _BOTH),
)


@dataclass(frozen=True)
class Asked:
    """A module that can be asked, and how.

    setting: what it has in common with those it is compared with. takes: what it can be asked;
    others are asked no more than that. places: where its weights are, if that is known. untouched:
    its parameters into which none of the weights were copied. residual:
    whether its output has its input added. of_attnlib: whether it must be told to be causal
    where the candidate is so by itself. stretched: by how much its own scale is larger than
    1 / sqrt(d_k), for which its W_q is made smaller. fresh: a copy that wasn't asked anything.
    """

    module: nn.Module
    setting: Setting
    forward: Forward
    takes: frozenset[str]
    places: Places | None = None
    untouched: tuple[str, ...] = ()
    path: Path = PATHS[0]
    residual: bool = False
    of_attnlib: bool = False
    stretched: float = 1.0
    fresh: nn.Module | None = None

    def __call__(
        self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None, **options: Any
    ) -> Result:
        """Ask a question as `MultiHeadAttention` is asked; return the output and the weights."""
        if "need_weights" in self.takes:
            options["need_weights"] = self.path.weights
        if "causal" in self.takes:
            options.setdefault("causal", False)
        replaced = self.setting.mask_replaces and "mask" in options
        if self.of_attnlib and self.setting.always_causal and not replaced:
            options["causal"] = True
        key = query if key is None else key
        value = key if value is None else value
        try:
            output, weights = self.forward.call(
                self.module, self.setting.sizes.num_heads, query, key, value, **options
            )
        except CallError:
            raise
        except Exception as error:
            note_size(error, *query.shape[:2])
            raise
        if self.residual:
            output = output - query
        return output, weights

    def changes(self, *tokens: Tensor, **limits: Any) -> bool:
        """Tell whether it changes in place what it is handed."""
        handed: list[tuple[Tensor, Tensor]] = []
        with suppress(Exception):  # which other probes tell
            replace(self, forward=replace(self.forward, handed=handed))(*tokens, **limits)
        return any(not torch.equal(before, after) for before, after in handed)

    def with_bare_masks(self) -> "Asked":
        """Hand over masks for each sample as [B, T, T]."""
        mask = replace(self.forward.mask, several="[B, T, T]")
        return replace(self, forward=replace(self.forward, mask=mask))

    def with_masks_of(self, dtype: torch.dtype) -> "Asked":
        """Hand over masks of other numbers."""
        forward = self.forward
        mask, key_mask = (replace(one, dtype=dtype) for one in (forward.mask, forward.key_mask))
        return replace(self, forward=replace(forward, mask=mask, key_mask=key_mask))

    @contextmanager
    def on(self, path: Path) -> Iterator["Asked"]:
        """Ask on another path."""
        self.module.train(path.training)
        try:
            with torch.set_grad_enabled(path.gradients):
                yield replace(self, path=path)
        finally:
            self.module.eval()

    def anew(self) -> "Asked":
        """Ask a module that wasn't asked anything before."""
        return replace(self, module=copy_of(self.fresh or self.module).eval())

    def half(self) -> "Asked":
        """Return a copy of it in half precision."""
        return replace(self, module=copy_of(self.module).half())

    def gradients(self, found: Tensor, x: Tensor) -> list[Pair]:
        """Return the gradients of the squares found, by x and by each weight that is known.

        Raises:
            NoGradientError: none flows.
        """
        if NO_GRADIENTS in self.takes:
            return []
        if not found.requires_grad:
            raise NoGradientError(
                "no gradient flows through it: its forward runs under torch.no_grad() or "
                "inference_mode, or its answer is detached"
            )
        there = self.module.named_parameters() if self.places else ()
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
        mine = collect(self.module, self.places, numbers) if self.places else {}
        if self.stretched != 1:
            mine |= {name: mine[name] / self.stretched for name in mine if name.startswith("W_q")}
        names = [f"{W}.{kind}" for W in ("W_q", "W_k", "W_v", "W_o") for kind in ("weight", "bias")]
        return [(by_x, None), *((mine.get(name), None) for name in names)]


def ask_of_attnlib(module: nn.Module, setting: Setting, takes: frozenset[str]) -> Asked:
    """Return attnlib's module, or an exhibit, to be asked what a candidate takes."""
    forward = FOUR_AXES if "four axes" in takes else OWN_FORWARD
    takes |= {"need_weights"}
    return Asked(module, setting, forward, takes, own_places(module), of_attnlib=True)
