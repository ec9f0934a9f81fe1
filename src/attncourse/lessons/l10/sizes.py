"""How many bytes the keys and values of real models take."""

from collections.abc import Callable, Mapping

from attncourse.checking import CheckResult, check_function, exercise

# layers, heads, KV heads and width of a head; or the width of the code that is kept, with rotary
# numbers beside it. Sources: GPT-2's code, Brown et al. 2020 (table 2.1), Llama 2's settings,
# Chowdhery et al. 2022 (table 1), DeepSeek-V2 (section 3.1.2).
MODELS: dict[str, dict[str, int]] = {
    "GPT-2 small": {"layers": 12, "heads": 12, "kv_heads": 12, "d_k": 64},
    "GPT-3 175B": {"layers": 96, "heads": 96, "kv_heads": 96, "d_k": 128},
    "Llama 2 7B": {"layers": 32, "heads": 32, "kv_heads": 32, "d_k": 128},
    "Llama 2 70B": {"layers": 80, "heads": 64, "kv_heads": 8, "d_k": 128},
    "PaLM 540B": {"layers": 118, "heads": 48, "kv_heads": 1, "d_k": 256},
    "DeepSeek-V2": {"layers": 60, "heads": 128, "d_k": 128, "code": 512, "rotary": 64},
}
BYTES = 2  # per number
Model = Mapping[str, int]


def numbers_per_token(model: Model) -> int:
    """Return how many numbers are kept for each token, in all layers."""
    if "code" in model:
        return _code(model)
    return 2 * model["layers"] * model["kv_heads"] * model["d_k"]


def cache_size(model: Model, tokens: int) -> int:
    """Return the bytes of a cache of so many tokens."""
    return BYTES * tokens * numbers_per_token(model)


def _with(count: Callable[[Model], float], factor: float = BYTES) -> Callable[[Model, int], float]:
    return lambda model, tokens: factor * tokens * count(model)


def _code(model: Model) -> int:
    return model["layers"] * (model["code"] + model["rotary"])


def _unless_code(count: Callable[[Model], float]) -> Callable[[Model, int], float]:
    """Err where keys and values are kept, and count a code rightly."""
    return _with(lambda model: _code(model) if "code" in model else count(model))


def _for_code(count: Callable[[Model], float]) -> Callable[[Model, int], float]:
    """Err where a code is kept, and count keys and values rightly."""
    return _with(lambda model: count(model) if "code" in model else numbers_per_token(model))


@exercise()
def cache_bytes(answer: object) -> CheckResult:
    """Check `cache_bytes(model, tokens)`: what a model keeps, in bytes of two per number.

    A model is a dict with layers, heads, d_k and either kv_heads, or code and rotary.
    """
    others = (
        {"layers": 5, "heads": 6, "kv_heads": 3, "d_k": 10},
        {"layers": 7, "heads": 4, "d_k": 6, "code": 11, "rotary": 3},
    )
    cases = [(dict(model), 1000 + 24 * i) for i, model in enumerate((*MODELS.values(), *others))]
    praise = "Right for all six models, and for two that nobody has built."
    return check_function(
        answer,
        cache_size,
        cases,
        cache_bytes.mistakes,
        output_names=["the number of bytes"],
        praise=praise,
    )
