"""Random valid calls of a multi-head attention, compared with plain loops."""

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from attnlib import KVCache, MultiHeadAttention
from tools import oracle
from tools.modules import F64

Call = Callable[[Callable[..., nn.Module], random.Random], str]


def first_difference(
    candidate: Callable[..., nn.Module], calls: tuple[Call, ...], times: int
) -> str:
    """Return what a candidate does otherwise than plain loops (or raises), or nothing.

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


def one_call(candidate: Callable[..., nn.Module], chance: random.Random) -> str:
    """Self- or cross-attention with any masks, with or without weights, and its gradients."""
    call = _Random(candidate, chance)
    masks = call.some_masks(own=False)
    need_weights = chance.random() < 0.7
    with torch.set_grad_enabled(chance.random() < 0.5):
        output, weights = call.module(*call.tokens, **masks, need_weights=need_weights)
    if need_weights and weights is None:
        return "no weights came"
    return call.compare(output, weights if need_weights else None, masks)


def own_options(candidate: Callable[..., nn.Module], chance: random.Random) -> str:
    """The same with what only attnlib's attention takes: score_bias and head_mask."""
    call = _Random(candidate, chance, own=True)
    options = call.some_masks(own=True)
    if chance.random() < 0.5:
        shape = (call.h,) if chance.random() < 0.5 else (call.B, call.h)
        options["head_mask"] = torch.randn(shape, dtype=F64)
    call.module.requires_grad_(chance.random() < 0.5)
    with torch.set_grad_enabled(chance.random() < 0.5):
        output, weights = call.module(*call.tokens, **options, need_weights=True)
    return call.compare(output, weights, options) if weights is not None else "no weights came"


def unasked_weights(candidate: Callable[..., nn.Module], chance: random.Random) -> str:
    """Attnlib's attention returns no weights that nobody asked for; others may."""
    call = _Random(candidate, chance)
    unasked: dict[str, Any] = {} if chance.random() < 0.5 else {"need_weights": False}
    with torch.set_grad_enabled(chance.random() < 0.5):
        _, weights = call.module(*call.tokens, **unasked)
    return "" if weights is None else "weights come unasked"


def other_dtypes(candidate: Callable[..., nn.Module], chance: random.Random) -> str:
    """Attnlib's attention takes a score_bias and a head_mask of more digits than its own."""
    call = _Random(candidate, chance)
    call.module.float()
    options = {
        "score_bias": torch.randn(call.T_q, call.T_k, dtype=F64),
        "head_mask": torch.rand(call.h, dtype=F64),
    }
    output, _ = call.module(*(x.float() for x in call.tokens), **options)
    right, _ = call.expected(options)
    return "" if torch.allclose(output, right.float(), atol=1e-3, rtol=1e-3) else "output differs"


def fresh(candidate: Callable[..., nn.Module], chance: random.Random) -> str:
    """Attnlib's attention begins with biases of 0 and matrices of one spread."""
    module: Any = candidate(60, 3)
    for W in (module.W_q, module.W_k, module.W_v, module.W_o):
        if W.bias.any():
            return "a bias isn't 0"
        if not 0.95 < W.weight.std() * 60**0.5 < 1.05:
            return f"a matrix has the standard deviation {W.weight.std():.2g}"
    return ""


def token_by_token(candidate: Callable[..., nn.Module], chance: random.Random) -> str:
    """Chunks with a cache, causal or not, against the whole at once."""
    call = _Random(candidate, chance, with_key=False)
    (x,) = call.tokens[:1]
    cache, outputs, rows, start = KVCache(), [], [], 0
    while start < call.T_q:
        stop = start + chance.randint(1, call.T_q - start)
        output, weights = call.module(x[:, start:stop], causal=True, cache=cache, need_weights=True)
        if weights.shape[-1] != stop:
            return f"weights of {weights.shape[-1]} keys instead of {stop}"
        outputs.append(output)
        rows.append(nn.functional.pad(weights, (0, call.T_q - stop)))
        start = stop
    return call.compare(torch.cat(outputs, 1), torch.cat(rows, 2), {"causal": True})


def own_gradients(candidate: Callable[..., nn.Module], chance: random.Random) -> str:
    """The same with score_bias, kdim and vdim."""
    return gradients(candidate, chance, own=True)


def gradients(
    candidate: Callable[..., nn.Module], chance: random.Random, *, own: bool = False
) -> str:
    """Gradients of tokens and parameters, of output and weights, against attnlib's own."""
    call = _Random(candidate, chance, own=own)
    options = call.some_masks(own=own) | {"need_weights": chance.random() < 0.7}
    if "score_bias" in options and chance.random() < 0.5:
        options["score_bias"].requires_grad_()
    right = MultiHeadAttention(**call.sizes)
    right.load_state_dict(call.module.state_dict())
    found = []
    for module in (call.module, right):
        tokens = [x.clone().requires_grad_() for x in call.tokens]
        output, weights = module(*tokens, **options)
        loss = output.pow(3).sum()
        if options["need_weights"]:
            loss = loss + (weights * torch.arange(weights.numel()).view_as(weights)).sum()
        wanted = [*tokens, *module.parameters()]
        wanted += [x for x in options.values() if isinstance(x, Tensor) and x.requires_grad]
        found.append(torch.autograd.grad(loss, wanted, allow_unused=True))
    return _first_other("a gradient", *found)


def second_gradients(candidate: Callable[..., nn.Module], chance: random.Random) -> str:
    """Gradients of gradients, also where some matrices are frozen."""
    call, right, options = _beside_the_right(candidate, chance)
    trained = chance.sample(("W_q", "W_k", "W_v", "W_o"), k=chance.randint(0, 4))
    found = []
    for module in (call.module, right):
        module.requires_grad_(False)
        for name in trained:
            module.get_submodule(name).requires_grad_()
        tokens = [x.clone().requires_grad_() for x in call.tokens]
        with sdpa_kernel(SDPBackend.MATH):  # the other kernels have none
            output, weights = module(*tokens, **options)
            loss = (
                output.pow(3).sum()
                + (weights * torch.arange(weights.numel()).view_as(weights)).sum()
            )
            slopes = torch.autograd.grad(loss, tokens, create_graph=True)
            again = sum(slope.square().sum() for slope in slopes)
            wanted = [*tokens, *(x for x in module.parameters() if x.requires_grad)]
            found.append(torch.autograd.grad(again, wanted, allow_unused=True))
    return _first_other("a second gradient", *found)


def forward_mode(candidate: Callable[..., nn.Module], chance: random.Random) -> str:
    """Derivatives along a direction of some tokens, and whether or not parameters are trained."""
    call, right, options = _beside_the_right(candidate, chance)
    moving = sorted(chance.sample(range(len(call.tokens)), k=chance.randint(1, len(call.tokens))))
    directions = tuple(torch.randn_like(call.tokens[i]) for i in moving)
    trained = chance.random() < 0.5
    found = []
    for module in (call.module, right):
        module.requires_grad_(trained)

        def answer(*moved: Tensor, module: nn.Module = module) -> Any:
            tokens = dict(enumerate(call.tokens)) | dict(zip(moving, moved, strict=True))
            return module(*tokens.values(), **options)

        with sdpa_kernel(SDPBackend.MATH):
            start = tuple(call.tokens[i] for i in moving)
            _, changes = torch.func.jvp(answer, start, directions)
        found.append(changes)
    return _first_other("a derivative", *found)


def _beside_the_right(
    candidate: Callable[..., nn.Module], chance: random.Random
) -> tuple["_Random", MultiHeadAttention, dict[str, Any]]:
    """Return a module, attnlib's with its numbers, and options for both."""
    call = _Random(candidate, chance)
    right = MultiHeadAttention(**call.sizes)
    right.load_state_dict(call.module.state_dict())
    masks = call.some_masks(own=True)
    if call.T_q == call.T_k and chance.random() < 0.3:  # for which kernels need no mask
        masks = {"causal": True}
    return call, right, masks | {"need_weights": True}


def _first_other(what: str, ours: tuple, theirs: tuple) -> str:
    for one, other in zip(ours, theirs, strict=True):
        if (one is None) != (other is None):
            return f"{what} is missing"
        if one is None:
            continue
        scale = max(1.0, other.abs().max().item())
        if not torch.allclose(one, other, atol=1e-8 * scale):
            return f"{what} differs by {(one - other).abs().max():.2g}"
    return ""


def dropped(candidate: Callable[..., nn.Module], chance: random.Random) -> str:
    """In training the output is right on average, and varies; the weights stay as they are."""
    if chance.random() < 0.9:  # it takes long
        return ""
    call = _Random(candidate, chance, dropout=0.5)
    masks = call.some_masks(own=False)
    call.module.train()
    with torch.no_grad():
        pairs = [call.module(*call.tokens, **masks, need_weights=True) for _ in range(400)]
    outputs = torch.stack([output for output, _ in pairs])
    weights = pairs[0][1]
    mean, spread = outputs.mean(0), outputs.std(0)
    right = call.expected(masks)[0]
    if spread.max() == 0 and right.var(0).max() > 0:
        return "nothing is dropped"
    if ((mean - right).abs() > 6 * spread / 20 + 1e-9).any():
        return "the mean output is another"
    return call.compare(None, weights, masks)


USUAL = (one_call, token_by_token, gradients, dropped)
OWN = (own_options, own_gradients, unasked_weights, other_dtypes, fresh)
DEEPER = (second_gradients, forward_mode)


class _Random:
    """A module of random sizes, and tokens for it."""

    def __init__(
        self, candidate: Callable[..., nn.Module], chance: random.Random, *,
        own: bool = False, with_key: bool = True, dropout: float = 0.0,
    ) -> None:  # fmt: skip
        self.chance = chance
        h_kv, group, d_k = chance.randint(1, 3), chance.randint(1, 2), chance.randint(1, 5)
        self.B, self.h = chance.randint(1, 3), h_kv * group
        self.T_q, self.T_k = chance.randint(1, 5), chance.randint(1, 6)
        d = self.h * d_k
        self.sizes: dict[str, Any] = {"d_model": d, "num_heads": self.h, "dtype": F64}
        if group > 1:
            self.sizes["num_kv_heads"] = h_kv
        if dropout:
            self.sizes["dropout"] = dropout
        kdim = vdim = d
        if own and with_key and chance.random() < 0.3:
            kdim, vdim = d + 1, d + 2
            self.sizes |= {"kdim": kdim, "vdim": vdim}
        self.module: Any = candidate(**self.sizes)
        for parameter in self.module.parameters():
            nn.init.normal_(parameter)
        query = torch.randn(self.B, self.T_q, d, dtype=F64)
        key, value = (torch.randn(self.B, self.T_k, width, dtype=F64) for width in (kdim, vdim))
        how = chance.randint(1 if kdim == d else 3, 3) if with_key else 1
        self.tokens = (query, key, value)[:how]
        if how == 1:
            self.T_k = self.T_q

    def some_masks(self, *, own: bool) -> dict[str, Any]:
        """Return some of mask, key_mask, causal and score_bias."""
        B, h, T_q, T_k, chance = self.B, self.h, self.T_q, self.T_k, self.chance
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

    def expected(self, options: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Return output and weights by plain loops."""
        B, h, T_q, T_k = self.B, self.h, self.T_q, self.T_k
        allowed = torch.ones(B, h, T_q, T_k, dtype=torch.bool)
        if "mask" in options:
            mask = options["mask"]
            allowed &= mask[:, None] if mask.dim() == 3 else mask
        if "key_mask" in options:
            allowed &= options["key_mask"][:, None, None]
        if options.get("causal"):
            allowed &= torch.tensor([[j <= i for j in range(T_k)] for i in range(T_q)])
        bias = torch.zeros(B, h, T_q, T_k, dtype=F64)
        if "score_bias" in options:
            bias = bias + options["score_bias"].detach()
            allowed &= ~bias.isneginf()
        factors = options.get("head_mask", torch.ones(h, dtype=F64)).expand(B, h)
        key = self.tokens[1] if len(self.tokens) > 1 else self.tokens[0]
        triple = (self.tokens[0], key, self.tokens[2] if len(self.tokens) > 2 else key)
        samples = [
            oracle.multi_head_attention(
                *(x[b].tolist() for x in triple),
                self.module,
                allowed[b].tolist(),
                bias[b].masked_fill(~allowed[b], 0.0).tolist(),
                factors[b].tolist(),
            )
            for b in range(B)
        ]
        output, weights = (
            torch.tensor(list(part), dtype=F64) for part in zip(*samples, strict=True)
        )
        return output, weights

    def compare(
        self, output: Tensor | None, weights: Tensor | None, options: dict[str, Any]
    ) -> str:
        """Say how output or weights differ from plain loops; nothing if not."""
        right, maps = self.expected(options)
        for name, found, wanted in (("output", output, right), ("weights", weights, maps)):
            if found is None:
                continue
            if found.shape != wanted.shape:
                return f"{name} {list(found.shape)} instead of {list(wanted.shape)}"
            if not torch.allclose(found.detach(), wanted, atol=1e-9):
                return f"{name} differs by {(found - wanted).abs().max():.2g}"
        return ""
