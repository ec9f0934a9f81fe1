"""What is asked of dropout."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attndoctor.asking import Asked, Pair
from attndoctor.crossings import argument_of
from attndoctor.draw import Draw
from attndoctor.questions import Results

COPIES = 16  # of the same sample, with dropout; in at least one of them each weight stays
MANY = 256  # copies over which dropout is averaged
# Standard errors. With dropout in the right place one number in 10^8 is so far off; before the
# softmax the farthest is off by 8 at least, at all widths that were tried.
FAR_OFF = 6
FORGOTTEN = {  # while something is dropped, by the limit
    "triangle": "tokens see what comes after them.",
    "mask": "a mask is forgotten: tokens see what it forbids.",
    "masks": "a mask [B, T, T] is forgotten: tokens see what it forbids.",
    "key_mask": "padding is forgotten: tokens see it.",
    "causal": "causal=True is forgotten: tokens see what comes after them.",
}


def dropout(ask: Asked, draw: Draw) -> Results:
    """Whether answers vary in evaluation, the answer if they don't, whether they do in training.

    In training from sample to sample or from call to call, and from call to call.
    """
    x = draw.tokens(1, 7)
    evaluated, again = ask(x), ask(x)
    varies = not torch.equal(evaluated[0], again[0])
    ask.module.train()
    (dropped, _), (anew, _) = (ask(x.repeat(COPIES, 1, 1)) for _ in range(2))
    ask.module.eval()
    moves = not torch.equal(dropped, anew)
    drops = moves or _varies_among_samples(dropped)
    answer: Pair = (torch.zeros(1), None) if varies else evaluated
    flags = [(torch.tensor(float(flag)), None) for flag in (varies, drops, moves)]
    return [flags[0], answer, *flags[1:]]


def dropout_of_each(ask: Asked, draw: Draw) -> Results:
    """Whether the samples of a batch lose different looks in training, if they lose any."""
    x = draw.tokens(1, 7)
    (evaluated, _) = ask(x)
    ask.module.train()
    (dropped, _) = ask(x.repeat(COPIES, 1, 1))
    ask.module.eval()
    drops = not torch.allclose(dropped[:1], evaluated, atol=1e-4)
    same = drops and not _varies_among_samples(dropped)
    return [(torch.tensor(float(same)), None)]


def _varies_among_samples(dropped: Tensor) -> bool:
    return bool(dropped.var(0).amax() > 1e-8)


def limits_in_training(ask: Asked, draw: Draw) -> Results:
    """Whether the last token moves others' outputs, though each limit in turn forbids it to them.

    In training, where the same is dropped both times: torch is given the same seed, and a module
    with random numbers of its own, which no seed sets, is asked as it was first. Each answer stands
    at its place in `FORGOTTEN`, whatever is taken.
    """
    B, T = 2, 7
    x = draw.tokens(B, T)
    other = torch.cat([x[:, :-1], x[:, -1:] + 1], 1)
    mask = torch.ones(T, T, dtype=torch.bool)
    mask[:-1, -1] = False
    each = {"mask": mask, "masks": mask.repeat(B, 1, 1), "key_mask": mask[0].repeat(B, 1)}
    limits: dict[str, dict[str, Any]] = {"triangle": {}} if ask.setting.always_causal else {}
    limits |= {name: {argument_of(name): limit} for name, limit in each.items()}
    limits |= {"causal": {"causal": True}}

    def outputs(tokens: Tensor, limit: dict[str, Any], anew: bool) -> Tensor:
        torch.default_generator.manual_seed(1)
        asked = ask.anew() if anew else ask
        asked.module.train()
        return asked(tokens, **limit)[0][:, :-1]

    def moves(limit: dict[str, Any]) -> bool:
        for anew in (False, True):
            before, after = (outputs(tokens, limit, anew) for tokens in (x, other))
            if torch.allclose(before, after, atol=1e-4):
                return False
            if torch.equal(before, outputs(x, limit, anew)):
                return True
        return False  # the same is never dropped twice, and nothing can be told

    there = {name: moves(limits[name]) for name in limits if name in ask.takes | {"triangle"}}
    ask.module.eval()
    return [(torch.tensor(float(there.get(name, False))), None) for name in FORGOTTEN]


def dropout_on_average(ask: Asked, draw: Draw) -> Results:
    """Whether the mean of many answers in training is the answer in evaluation.

    It is where dropout comes after the softmax, for from there on everything is linear.
    """
    x = draw.tokens(1, 3)
    (evaluated, _), (again, _) = ask(x), ask(x)
    if not torch.equal(evaluated, again):  # which another probe tells
        return [(torch.zeros(()), None)]
    ask.module.train()
    dropped, _ = ask(x.repeat(MANY, 1, 1))
    if not _varies_among_samples(dropped):  # all samples of a batch may lose the same
        dropped = torch.cat([ask(x)[0] for _ in range(MANY)])
    ask.module.eval()
    error = dropped.std(0) / MANY**0.5 + 1e-4
    off = ((dropped.mean(0) - evaluated[0]).abs() / error).amax()
    return [((off > FAR_OFF).float(), None)]


def weights_in_training(ask: Asked, draw: Draw) -> Results:
    """Each weight's largest: dropout at 0.25 makes those that stay 4/3 times as large."""
    x = draw.tokens(1, 7)
    ask.module.train()
    _, weights = ask(x.repeat(COPIES, 1, 1))
    ask.module.eval()
    return [(None, None if weights is None else weights.amax(0))]


def share_dropped(ask: Asked, draw: Draw) -> Results:
    """The share that is dropped wherever torch is told one, if it isn't the one that was set.

    And whether what a dropout left goes through another one.
    """
    wanted = ask.setting.sizes.dropout
    ask.module.train()
    with _Shares() as seen:
        ask(draw.tokens(2, 7))
    ask.module.eval()
    others = [share for share in seen.shares if share]
    share = wanted if not others or wanted in others else others[0]
    return [(torch.tensor(share), None), (torch.tensor(float(seen.twice)), None)]


class _Shares(TorchFunctionMode):
    """Notes what each dropout of torch inside is told to drop, and whether one has the next."""

    def __init__(self) -> None:
        super().__init__()
        self.shares: list[float] = []
        self.twice = False
        self._left: list[Tensor] = []

    def __torch_function__(
        self, function: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        told = kwargs or {}
        result = function(*args, **told)
        if function in (F.dropout, torch.dropout):
            share = told.get("p", args[1] if len(args) > 1 else 0.5)
            self.shares.append(share)
            given = args[0] if args else told["input"]
            self.twice |= share > 0 and any(torch.equal(given, left) for left in self._left)
            if not torch.equal(given, result):  # as where it is told that nobody trains
                self._left.append(result)
        elif function is F.scaled_dot_product_attention:
            self.shares.append(told.get("dropout_p", args[4] if len(args) > 4 else 0.0))
        return result
