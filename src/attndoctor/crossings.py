"""Limits (a mask, padding, causal) crossed with the situations in which one may be forgotten.

Of padded queries nothing is compared: what they see is garbage by anyone's convention, and a
question of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from attndoctor.asking import Asked, Pair
from attndoctor.draw import Draw
from attndoctor.forward import Result

SAYS = {
    "mask": "a mask", "masks": "a mask for each sample", "key_mask": "padding",
    "causal": "causal=True",
}  # fmt: skip
Group = tuple[str, ...]  # limits that are handed over together


@dataclass(frozen=True)
class Situation:
    """Where limits are asked.

    says: the same in words. padding: the keys of each sample, x for a token and - for padding.
    queries: how many another sequence has; None where tokens look at themselves. turned: whether
    masks aren't contiguous in memory.
    """

    says: str
    padding: str
    queries: int | None = None
    turned: bool = False

    @property
    def real(self) -> Tensor:
        """Which keys are tokens: [B, T_k]."""
        samples = self.padding.split()
        return torch.tensor([[token == "x" for token in sample] for sample in samples])


def alone(there: Group) -> list[Group]:
    """Each limit alone."""
    return [(limit,) for limit in there]


def alone_and_together(there: Group) -> list[Group]:
    """Each limit alone, then all of them."""
    return alone(there) + ([there] if len(there) > 1 else [])


def together(there: Group) -> list[Group]:
    """Each two limits, then all three."""
    return [group for n in (2, 3) for group in combinations(there, n)]


def all_together(there: Group) -> list[Group]:
    """All limits at once."""
    return [there]


def padding_alone(there: Group) -> list[Group]:
    """Padding without another limit."""
    return [(limit,) for limit in there if limit == "key_mask"]


def padding_and_others(there: Group) -> list[Group]:
    """Padding alone, beside each other limit, and beside all."""
    return [group for n in (1, 2, 3) for group in combinations(there, n) if "key_mask" in group]


def masks_alone(there: Group) -> list[Group]:
    """A mask for each sample, without padding, behind which padded queries may look nowhere."""
    return [(limit,) for limit in there if limit == "masks"]


def masks_and_others(there: Group) -> list[Group]:
    """A mask for each sample alone, beside each other limit, and beside all."""
    return [group for n in (1, 2, 3) for group in combinations(there, n) if "masks" in group]


@dataclass(frozen=True)
class Crossing:
    """A question: all groups of limits that are taken, in each of some situations.

    gradients: whether those of the outputs are compared, and not the outputs. of_padding: whether
    what padded queries see is compared, and nothing else. masks: the mask's name, "mask" for one or
    "masks" for one of each sample. forgets: limits that aren't handed over, to see what is answered
    without.
    """

    situations: tuple[Situation, ...]
    groups: Callable[[Group], list[Group]]
    gradients: bool = False
    of_padding: bool = False
    masks: str = "mask"
    forgets: frozenset[str] = field(default=frozenset())

    def cells(self, takes: frozenset[str]) -> list[tuple[Situation, Group]]:
        """Return what whoever takes this is asked, in turn."""
        return [
            (situation, group)
            for situation in self.situations
            if situation.queries is None or "two sequences" in takes
            for group in self.groups(self._there(situation, takes))
        ]

    def __call__(self, ask: Asked, draw: Draw) -> list[Pair]:
        """Ask all cells."""
        answers: list[Pair] = []
        for situation, group in self.cells(ask.takes):
            answers += self._cell(ask, draw, situation, group)
        return answers

    def _cell(self, ask: Asked, draw: Draw, situation: Situation, group: Group) -> list[Pair]:
        real, tokens = situation.real, draw.tokens
        B, T = real.shape
        query = tokens(B, situation.queries or T).requires_grad_(self.gradients)
        key = None if situation.queries is None else tokens(B, T)
        limits = limits_in(situation, draw)
        handed = {argument_of(name): limits[name] for name in group if name not in self.forgets}
        output, weights = ask(query, key, key, **handed)
        if key is None and "key_mask" in group:
            output, weights = rows_of(~real if self.of_padding else real, (output, weights))
        return ask.gradients(output, query) if self.gradients else [(output, weights)]

    def _there(self, situation: Situation, takes: frozenset[str]) -> Group:
        """Return the limits that can be asked in a situation: causal with one sequence alone."""
        left_out = {"mask", "masks"} - {self.masks}
        if situation.queries is not None:
            left_out |= {"causal"} if "padding of keys" in takes else {"causal", "key_mask"}
            left_out |= set() if "masks of keys" in takes else {"mask", "masks"}
        return tuple(limit for limit in SAYS if limit in takes - left_out)


def argument_of(limit: str) -> str:
    """Return under which name a limit is handed over."""
    return "mask" if limit == "masks" else limit


def limits_in(situation: Situation, draw: Draw) -> dict[str, Any]:
    """Return all limits, none of them idle, with which every real query may look at a real key."""
    real = situation.real
    B, T_k = real.shape
    T_q = situation.queries or T_k
    masks = {"mask": draw.mask(T_q, T_k), "masks": draw.mask(B, T_q, T_k)}
    for name, mask in masks.items():
        if situation.queries is None:
            masks[name] = mask = mask | torch.eye(T_k, dtype=torch.bool)
            mask[..., -1, 0] = False
        else:
            tokens = real.all(0).nonzero()  # in all samples
            mask[..., tokens[0]], mask[..., -1, tokens[-1]] = True, False
        if situation.turned:
            masks[name] = mask.mT.contiguous().mT
    return {**masks, "key_mask": real, "causal": True}


def rows_of(queries: Tensor, answer: Result) -> Result:
    """Return an answer in which only the rows of some queries, [B, T_q], count."""
    output, weights = answer
    B, T = queries.shape
    if output.shape[:2] == (B, T):
        output = output.masked_fill(~queries[..., None], 0.0)
    if weights is not None and weights.dim() == 4 and weights.shape[2] == T:
        weights = weights.masked_fill(~queries[:, None, :, None], 0.0)
    return output, weights


ON_THE_RIGHT = Situation("", "xxxx--- xxxxxxx")
# As many samples and tokens as on the right: what is kept of one padding is wrong for the other.
NOWHERE = Situation("where nothing is padded", "xxxxxxx xxxxxxx")
ANYWHERE = Situation("anywhere, and not in the first sample", "xxxxxxx --xxxxx x-xx--x xxxx---")
ONE_SAMPLE = Situation("on one sample", "xxxxx--")
MANY_SAMPLES = Situation("on 13 samples", "-xx xxx xx- x-x " * 3 + "xxx")
ONE_QUERY = Situation("on one query of another sequence", "xxxxx-- -xxxxxx", queries=1)
AS_MANY_TOKENS = Situation(
    "not contiguous, on as many samples as tokens", "xxxx xxx- -xxx x--x", turned=True
)
MORE_KEYS = Situation("with more keys than queries", "xxxxx--- xxxxxxxx", queries=5)
MORE_QUERIES = Situation("with more queries than keys", "xx--xx xxxxx-", queries=7)
