"""Random valid calls of a multi-head attention, beside attnlib's own with the same numbers."""

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from attnlib import KVCache, MultiHeadAttention

Candidate = Callable[..., nn.Module]
Call = Callable[[Candidate, random.Random], str]
F64 = torch.float64


def first_difference(candidate: Candidate, calls: tuple[Call, ...], times: int) -> str:
    """Return what a candidate does otherwise than attnlib's (or raises), or nothing.

    The candidate takes the arguments of MultiHeadAttention and has its parameters.
    """
    for seed in range(times):
        for call in calls:
            torch.manual_seed(seed)
            try:
                said = call(candidate, random.Random(seed))
            except Exception as error:
                said = f"raises {type(error).__name__}: {error}"
            if said:
                return f"{call.__name__}, seed {seed}: {said}"
    return ""


def one_call(candidate: Candidate, chance: random.Random) -> str:
    """Self- or cross-attention with any masks, with or without weights, and its gradients."""
    pair = _Pair(candidate, chance)
    options = pair.masks() | {"need_weights": chance.random() < 0.7}
    with torch.set_grad_enabled(chance.random() < 0.7):
        return _first_other(*(_answers(module, pair.tokens, options) for module in pair.modules))


def own_options(candidate: Candidate, chance: random.Random) -> str:
    """The same with what only attnlib's attention takes."""
    pair = _Pair(candidate, chance, own=True)
    options = pair.masks(own=True) | {"need_weights": chance.random() < 0.7}
    if chance.random() < 0.5:
        options["head_mask"] = torch.randn(chance.choice([(pair.h,), (pair.B, pair.h)]), dtype=F64)
    if "score_bias" in options:
        options["score_bias"].requires_grad_(chance.random() < 0.5)
    learns = chance.random() < 0.5
    for module in pair.modules:
        module.requires_grad_(learns)
    with torch.set_grad_enabled(chance.random() < 0.7):
        return _first_other(*(_answers(module, pair.tokens, options) for module in pair.modules))


def unasked_weights(candidate: Candidate, chance: random.Random) -> str:
    """Attnlib's attention returns no weights that nobody asked for; others may."""
    pair = _Pair(candidate, chance)
    unasked: dict[str, Any] = {} if chance.random() < 0.5 else {"need_weights": False}
    with torch.set_grad_enabled(chance.random() < 0.5):
        _, weights = pair.modules[0](*pair.tokens, **unasked)
    return "" if weights is None else "weights come unasked"


def other_dtypes(candidate: Candidate, chance: random.Random) -> str:
    """Attnlib's attention takes a score_bias and a head_mask of more digits than its own."""
    pair = _Pair(candidate, chance)
    options = {
        "score_bias": torch.randn(pair.T_q, pair.T_k, dtype=F64),
        "head_mask": torch.rand(pair.h, dtype=F64),
    }
    right, _ = pair.modules[1](*pair.tokens, **options)
    output, _ = pair.modules[0].float()(*(x.float() for x in pair.tokens), **options)
    return "" if torch.allclose(output, right.float(), atol=1e-3, rtol=1e-3) else "output differs"


def fresh(candidate: Candidate, chance: random.Random) -> str:
    """Attnlib's attention begins with biases of 0 and matrices of one spread."""
    module: Any = candidate(60, 3)
    for W in (module.W_q, module.W_k, module.W_v, module.W_o):
        if W.bias.any():
            return "a bias isn't 0"
        if not 0.95 < W.weight.std() * 60**0.5 < 1.05:
            return f"a matrix has the standard deviation {W.weight.std():.2g}"
    return ""


def token_by_token(candidate: Candidate, chance: random.Random) -> str:
    """Chunks with a cache against the whole at once."""
    pair = _Pair(candidate, chance, with_key=False)
    ours, right = pair.modules
    x, cache, outputs, rows, start = pair.tokens[0], KVCache(), [], [], 0
    while start < pair.T_q:
        stop = start + chance.randint(1, pair.T_q - start)
        output, weights = ours(x[:, start:stop], causal=True, cache=cache, need_weights=True)
        if weights.shape[-1] != stop:
            return f"weights of {weights.shape[-1]} keys instead of {stop}"
        outputs.append(output)
        rows.append(nn.functional.pad(weights, (0, pair.T_q - stop)))
        start = stop
    whole = right(x, causal=True, need_weights=True)
    return _first_other((torch.cat(outputs, 1), torch.cat(rows, 2)), whole)


def second_gradients(candidate: Candidate, chance: random.Random) -> str:
    """Gradients of gradients, also where some matrices are frozen."""
    pair = _Pair(candidate, chance)
    options = pair.masks(own=True) | {"need_weights": True}
    trained = chance.sample(("W_q", "W_k", "W_v", "W_o"), k=chance.randint(0, 4))
    for module in pair.modules:
        module.requires_grad_(False)
        for name in trained:
            module.get_submodule(name).requires_grad_()
    with sdpa_kernel(SDPBackend.MATH):  # the other kernels have none
        found = (_answers(module, pair.tokens, options, twice=True) for module in pair.modules)
        return _first_other(*found)


def forward_mode(candidate: Candidate, chance: random.Random) -> str:
    """Derivatives along a direction of some tokens, and whether or not parameters are trained."""
    pair = _Pair(candidate, chance)
    options = pair.masks(own=True) | {"need_weights": True}
    tokens = pair.tokens
    moving = sorted(chance.sample(range(len(tokens)), k=chance.randint(1, len(tokens))))
    start = tuple(tokens[i] for i in moving)
    directions, trained = tuple(map(torch.randn_like, start)), chance.random() < 0.5

    def changes(module: nn.Module) -> Any:
        def answer(*moved: Tensor) -> Any:
            given = dict(enumerate(tokens)) | dict(zip(moving, moved, strict=True))
            return module(*given.values(), **options)

        with sdpa_kernel(SDPBackend.MATH):
            return torch.func.jvp(answer, start, directions)[1]

    return _first_other(*(changes(module.requires_grad_(trained)) for module in pair.modules))


def dropped(candidate: Candidate, chance: random.Random) -> str:
    """In training the output is right on average, and varies; the weights stay as they are."""
    if chance.random() < 0.9:  # it takes long
        return ""
    pair = _Pair(candidate, chance, dropout=0.5)
    ours, right = pair.modules
    options = pair.masks() | {"need_weights": True}
    with torch.no_grad():
        exact, maps = right.eval()(*pair.tokens, **options)
        answers = [ours.train()(*pair.tokens, **options) for _ in range(400)]
    outputs = torch.stack([output for output, _ in answers])
    mean, spread = outputs.mean(0), outputs.std(0)
    if spread.max() == 0 and exact.var(0).max() > 0:
        return "nothing is dropped"
    if ((mean - exact).abs() > 6 * spread / 20 + 1e-9).any():
        return "the mean output is another"
    return _first_other((answers[0][1],), (maps,))


USUAL = (one_call, token_by_token, dropped)
OWN = (own_options, unasked_weights, other_dtypes, fresh)
DEEPER = (second_gradients, forward_mode)


def _answers(module: Any, tokens: Any, options: dict[str, Any], *, twice: bool = False) -> tuple:
    """Return output, weights (if asked for), and gradients or gradients of gradients, if any."""
    learns = torch.is_grad_enabled()
    tokens = [x.clone().requires_grad_(learns) for x in tokens]
    output, weights = module(*tokens, **options)
    found = (output, weights) if options["need_weights"] else (output,)
    if not learns:
        return found
    loss = output.pow(3).sum()
    if options["need_weights"]:
        loss = loss + (weights * torch.arange(weights.numel()).view_as(weights)).sum()
    wanted = [*tokens, *(x for x in module.parameters() if x.requires_grad)]
    wanted += [x for x in options.values() if isinstance(x, Tensor) and x.requires_grad]
    if twice:
        slopes = torch.autograd.grad(loss, tokens, create_graph=True)
        loss = torch.stack([slope.square().sum() for slope in slopes]).sum()
    return *found, *torch.autograd.grad(loss, wanted, allow_unused=True)


def _first_other(ours: tuple, theirs: tuple) -> str:
    for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if (one is None) != (other is None):
            return f"number {place} is missing"
        if one is None:
            continue
        if one.shape != other.shape:
            return f"number {place} is {list(one.shape)} instead of {list(other.shape)}"
        if not torch.allclose(one, other, atol=1e-8 * max(1.0, other.abs().max().item())):
            return f"number {place} differs by {(one - other).abs().max():.2g}"
    return ""


class _Pair:
    """A candidate's module and attnlib's, of random sizes, and tokens for them."""

    def __init__(
        self, candidate: Candidate, chance: random.Random, *,
        own: bool = False, with_key: bool = True, dropout: float = 0.0,
    ) -> None:  # fmt: skip
        self.chance = chance
        h_kv, group, d_k = chance.randint(1, 3), chance.randint(1, 2), chance.randint(1, 5)
        self.B, self.h = chance.randint(1, 3), h_kv * group
        self.T_q, self.T_k = chance.randint(1, 5), chance.randint(1, 6)
        d = kdim = vdim = self.h * d_k
        sizes: dict[str, Any] = {"d_model": d, "num_heads": self.h, "dtype": F64}
        if group > 1:
            sizes["num_kv_heads"] = h_kv
        if dropout:
            sizes["dropout"] = dropout
        if own and chance.random() < 0.3:
            kdim, vdim = d + 1, d + 2
            sizes |= {"kdim": kdim, "vdim": vdim}
        self.modules: Any = candidate(**sizes), MultiHeadAttention(**sizes)
        for parameter in self.modules[0].parameters():
            nn.init.normal_(parameter)
        self.modules[1].load_state_dict(self.modules[0].state_dict())
        query = torch.randn(self.B, self.T_q, d, dtype=F64)
        key, value = (torch.randn(self.B, self.T_k, width, dtype=F64) for width in (kdim, vdim))
        how = chance.randint(1 if kdim == d else 3, 3) if with_key else 1
        self.tokens = (query, key, value)[:how]
        if how == 1:
            self.T_k = self.T_q

    def masks(self, *, own: bool = False) -> dict[str, Any]:
        """Return some of mask, key_mask, causal and score_bias."""
        B, h, T_q, T_k, chance = self.B, self.h, self.T_q, self.T_k, self.chance
        if T_q == T_k and chance.random() < 0.2:  # for which kernels need no mask
            return {"causal": True}
        masks: dict[str, Any] = {}
        shapes = [(T_q, T_k), (B, T_q, T_k), (B, h, T_q, T_k), (B, 1, T_q, T_k), (1, h, T_q, T_k)]
        if chance.random() < 0.5:
            masks["mask"] = torch.rand(chance.choice(shapes)) < 0.7
        if chance.random() < 0.4:
            masks["key_mask"] = torch.rand(B, T_k) < 0.7
        if T_q == T_k and chance.random() < 0.5:
            masks["causal"] = True
        if own and chance.random() < 0.5:
            bias = torch.randn(chance.choice([(T_q, T_k), (B, h, T_q, T_k), (1, h, T_q, T_k)]))
            masks["score_bias"] = bias.double().masked_fill(torch.rand_like(bias) < 0.2, -torch.inf)
        return masks
