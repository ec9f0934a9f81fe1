"""The inputs on which `diagnose` compares an attention with attnlib's.

Wherever one of them could hide a bug, B, T, h and d_k all differ; where a bug needs sizes that
agree, they do.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnlib._checks import require_floating
from attnlib._settings import usual_settings
from attnlib.attention import MultiHeadAttention
from attnlib.cache import KVCache
from attnlib.masks import padding_mask

Result = tuple[Tensor, Tensor | None]  # an output, and weights if there are any
Results = list[Result]
Answer = Results | Exception
Ask = Callable[..., Result]
Load = Callable[[nn.Module, MultiHeadAttention], Any]

REPEATS = 64  # runs with dropout; in at least one of them each weight stays


@dataclass(frozen=True, eq=False)
class Probe:
    """A question to an attention module.

    name: in a few words. says: the same in a sentence's middle ("with ...").
    sizes: arguments of the constructor. needs: arguments of `forward` beyond tokens.
    """

    name: str
    says: str
    ask: Callable[[nn.Module, Ask], Results]
    sizes: dict[str, Any]
    needs: tuple[str, ...] = ()
    tolerance: float = 1e-4


def _tokens(B: int, T: int, d: int = 12) -> Tensor:
    return 2 * torch.randn(B, T, d)


def _mask(*shape: int) -> Tensor:
    """A random mask in which every query may look somewhere, and not everywhere."""
    order = torch.rand(shape).argsort(-1)
    return order < torch.randint(1, shape[-1], (*shape[:-1], 1))


def _self_attention(module: nn.Module, ask: Ask) -> Results:
    return [ask(_tokens(2, 5))]


def _two_sequences(module: nn.Module, ask: Ask) -> Results:
    key = _tokens(2, 7)
    return [ask(_tokens(2, 5), key, key)]


def _one_mask(module: nn.Module, ask: Ask) -> Results:
    return [ask(_tokens(2, 5), mask=_mask(5, 5))]


def _mask_a_sample(module: nn.Module, ask: Ask) -> Results:
    """As many samples as heads, then another number."""
    return [ask(_tokens(B, 5), mask=_mask(B, 5, 5)) for B in (3, 2)]


def _mask_a_sample_silent(module: nn.Module, ask: Ask) -> Results:
    """As many samples as heads, where a mask on the wrong axis raises no error."""
    return [ask(_tokens(3, 5), mask=_mask(3, 5, 5))]


def _padding(module: nn.Module, ask: Ask) -> Results:
    return [ask(_tokens(2, 5), key_mask=padding_mask(torch.tensor([3, 5]), 5))]


def _causal(module: nn.Module, ask: Ask) -> Results:
    return [ask(_tokens(2, 5), causal=True)]


def _mask_hiding_a_row() -> Tensor:
    mask = _mask(5, 5)
    mask[1] = False
    return mask


def _fully_masked_row(module: nn.Module, ask: Ask) -> Results:
    return [ask(_tokens(2, 5), mask=_mask_hiding_a_row())]


def _fully_masked_gradient(module: nn.Module, ask: Ask) -> Results:
    x = _tokens(2, 5).requires_grad_()
    output, _ = ask(x, mask=_mask_hiding_a_row())
    return [(torch.autograd.grad(output.square().sum(), x)[0], None)]


def _half(module: nn.Module, ask: Ask) -> Results:
    module.half()
    return [ask(_tokens(2, 5).half(), mask=_mask(5, 5))]


def _cached(module: nn.Module, ask: Ask) -> Results:
    cache = KVCache()
    return [ask(chunk, causal=True, cache=cache) for chunk in _tokens(2, 6).split([3, 2, 1], 1)]


def _dropout(module: nn.Module, ask: Ask) -> Results:
    """Evaluation, where nothing is dropped; then whether outputs vary, and each weight's largest.

    Dropout at 0.25 would make the weights that stay 4/3 times as large.
    """
    x = _tokens(2, 5)
    evaluated = ask(x)
    module.train()
    outputs, shown = zip(*(ask(x) for _ in range(REPEATS)), strict=True)
    varies = (torch.stack(outputs).var(0).amax() > 0).float()
    largest = None if shown[0] is None else torch.stack(shown).amax(0)
    return [evaluated, (varies, largest)]


_SIZES = {"d_model": 12, "num_heads": 3}
PROBES = (
    Probe("self-attention", "on one sequence", _self_attention, _SIZES),
    Probe("two sequences", "on two sequences of different lengths", _two_sequences, _SIZES,
          ("key",)),
    Probe("a mask", "with a mask [T, T]", _one_mask, _SIZES, ("mask",)),
    Probe("a mask for each sample", "with masks [B, T, T] where B is the number of heads",
          _mask_a_sample_silent, _SIZES, ("mask",)),
    Probe("any number of samples", "with masks [B, T, T]", _mask_a_sample, _SIZES, ("mask",)),
    Probe("padding", "with padding", _padding, _SIZES, ("key_mask",)),
    Probe("causal", "with causal=True", _causal, _SIZES, ("causal",)),
    Probe("a row that may look nowhere", "with a query that may look nowhere", _fully_masked_row,
          _SIZES, ("mask",)),
    Probe("gradients of such a row", "in the gradient, with a query that may look nowhere",
          _fully_masked_gradient, _SIZES, ("mask",)),
    Probe("half precision", "with a mask, in half precision", _half, _SIZES, ("mask",), 2e-2),
    Probe("a cache", "token by token with a cache", _cached, _SIZES, ("causal", "cache")),
    Probe("grouped heads", "with 6 query heads on 3 key heads", _self_attention,
          {"d_model": 12, "num_heads": 6, "num_kv_heads": 3}),
    Probe("training with dropout", "with dropout, in evaluation and in training", _dropout,
          _SIZES | {"dropout": 0.25}),
)  # fmt: skip


def takes(function: Callable, name: str) -> bool:
    """Tell whether a function can be called with an argument of this name."""
    parameters = inspect.signature(function).parameters
    return name in parameters or any(
        p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()
    )


def copy_state(module: nn.Module, reference: MultiHeadAttention) -> None:
    """Give a module the reference's weights, where both name their parameters alike."""
    module.load_state_dict(reference.state_dict())


def run(probe: Probe, candidate: Callable[..., nn.Module], load: Load) -> Answer:
    """Put a probe to a candidate that has the reference's weights.

    Returns what came, which is nothing if the candidate doesn't take what the probe is about, or
    the error that was raised.
    """
    if not all(takes(candidate, name) for name in probe.sizes if name not in _SIZES):
        return []
    usual = {"num_kv_heads": probe.sizes["num_heads"], "dropout": 0.0}
    options = {name: size for name, size in usual.items() if takes(candidate, name)}
    options |= {name: size for name, size in probe.sizes.items() if name in usual}
    with usual_settings(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        reference = MultiHeadAttention(**probe.sizes)
        for projection in (reference.W_q, reference.W_k, reference.W_v, reference.W_o):
            nn.init.normal_(projection.bias)  # so that a forgotten bias shows
        module = candidate(probe.sizes["d_model"], probe.sizes["num_heads"], **options)
        if not all(takes(module.forward, name) for name in probe.needs):
            return []
        try:
            load(module, reference)
        except (RuntimeError, AttributeError) as error:
            raise ValueError(
                "candidate must take the weights W_q, W_k, W_v and W_o of MultiHeadAttention, but "
                f"loading them failed ({error}): if your parameters have other names, pass "
                "load=..., a function of (your module, the reference) that copies them"
            ) from error
        module.eval()
        torch.manual_seed(1)
        try:
            return probe.ask(module, lambda *x, **options: _call(module, *x, **options))
        except Exception as error:  # whatever a broken attention raises is a symptom
            return error


def _call(module: nn.Module, query: Tensor, *key_value: Tensor, **options: Any) -> Result:
    """Call a module that may want key and value, or not know them."""
    if takes(module.forward, "need_weights"):
        options["need_weights"] = True
    if not key_value and takes(module.forward, "key"):
        key_value = (query, query)
    result: Any = module(query, *key_value, **options)
    output, weights = (result, None) if isinstance(result, Tensor) else result
    given: Any  # by somebody else's code
    for name, given in (("the output", output), ("the weights", weights)):
        if given is None and name == "the weights":
            continue
        require_floating(name, given)
        if given.is_meta or given.layout != torch.strided:
            raise TypeError(f"{name} must be dense numbers, got {given.layout} on {given.device}")
    return output, weights
