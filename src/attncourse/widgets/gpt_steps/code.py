"""The plain Python that GptSteps walks through: one block of a GPT, on lists of numbers.

It is written in the manner of Karpathy's microgpt, and runs: what its names stand for are the
model's own matrices, as lists of lists, and a name's token ids.
"""

from collections.abc import Mapping
from typing import Any

# What each line of the loop does, in their order.
LINES = (
    "cache", "token", "embed", "norm_1", "q", "k", "v", "append_k", "append_v", "joined",
    "head", "own", "q_h", "k_h", "v_h", "scores", "weights", "mix",
    "output", "residual_1", "norm_2", "hidden", "residual_2", "logits", "chances",
)  # fmt: skip

ACTIVATIONS = {
    "relu": ("relu", ["return [max(0.0, number) for number in x]"]),
    "gelu": ("gelu", ["return [n * (1 + erf(n / 2**0.5)) / 2 for n in x]"]),
    "gelu_tanh": (
        "gelu",
        [
            "inner = [(2 / pi) ** 0.5 * (n + 0.044715 * n**3) for n in x]",
            "return [n * (1 + tanh(i)) / 2 for n, i in zip(x, inner)]",
        ],
    ),
}


def lines_of(spec: Mapping[str, Any]) -> list[str]:
    """Return the loop's lines for a model, one for each of LINES."""
    (block,) = spec["blocks"]
    h = block["num_heads"]
    width = spec["d_model"] // h
    network = block["feed_forward"]
    activation, _ = ACTIVATIONS[network.get("activation", "gelu")]

    def linear(x: str, name: str, bias: bool) -> str:
        return f"linear({x}, W_{name}, b_{name})" if bias else f"linear({x}, W_{name})"

    def projected(name: str) -> str:
        return linear("a", name, block["bias"])

    def normed(number: int) -> str:
        norm = spec["final_norm"]
        parts = [f", {part}_{number}" for part in _parts_of_norm(norm)]
        return f"{norm['kind'].lower()}(x{''.join(parts)})"

    lines = [
        "keys, values = [], []",
        "for pos, token in enumerate(name):",
        "    x = add(tokens[token], places[pos])",
        f"    a = {normed(1)}",
        f"    q = {projected('q')}",
        f"    k = {projected('k')}",
        f"    v = {projected('v')}",
        "    keys.append(k)",
        "    values.append(v)",
        "    joined = []",
        f"    for head in range({h}):",
        f"        own = slice({width} * head, {width} * head + {width})",
        "        q_h = q[own]",
        "        k_h = [key[own] for key in keys]",
        "        v_h = [value[own] for value in values]",
        f"        scores = [dot(q_h, key) / {width}**0.5 for key in k_h]",
        "        weights = softmax(scores)",
        "        joined += [dot(weights, c) for c in zip(*v_h)]",
        f"    o = {linear('joined', 'o', block['bias'])}",
        "    x = add(x, o)",
        f"    m = {normed(2)}",
        f"    hidden = {activation}({linear('m', '1', network['bias'])})",
        f"    x = add(x, {linear('hidden', '2', network['bias'])})",
        f"    logits = {linear(normed(3), 'next', spec['readout_bias'])}",
        "    chances = softmax(logits)",
    ]
    assert len(lines) == len(LINES)
    return lines


def helpers_of(spec: Mapping[str, Any]) -> str:
    """Return the functions that the loop calls, for a model."""
    (block,) = spec["blocks"]
    network = block["feed_forward"]
    activation, body = ACTIVATIONS[network.get("activation", "gelu")]
    functions = {
        "add(a, b)": ["return [s + t for s, t in zip(a, b)]"],
        "dot(a, b)": ["return sum(s * t for s, t in zip(a, b))"],
        "linear(x, W)": ["return [dot(x, row) for row in W]"],
        "softmax(scores)": [
            "largest = max(scores)",
            "powers = [exp(score - largest) for score in scores]",
            "total = sum(powers)",
            "return [power / total for power in powers]",
        ],
        **_norm(spec["final_norm"]),
        f"{activation}(x)": body,
    }
    if block["bias"] or network["bias"] or spec["readout_bias"]:
        functions.pop("linear(x, W)")
        functions["linear(x, W, b=None)"] = [
            "y = [dot(x, row) for row in W]",
            "return y if b is None else add(y, b)",
        ]
    written = [
        "\n".join([f"def {name}:", *(f"    {line}" for line in lines)])
        for name, lines in functions.items()
    ]
    text = "\n\n".join(written)
    used = [
        name for name in ("erf", "exp", "pi", "tanh") if f"{name}(" in text or f"/ {name}" in text
    ]
    return f"from math import {', '.join(used)}\n\n{text}"


def _parts_of_norm(norm: Mapping[str, Any]) -> list[str]:
    """Return what a norm has learned: gain, bias."""
    if norm["kind"] == "LayerNorm":
        return ["gain", "bias"] if norm["bias"] else ["gain"]
    return ["gain"] if norm.get("gain", True) else []


def _norm(norm: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return a norm's function: what it is called with, and its lines."""
    parts = _parts_of_norm(norm)
    lines, result = [], "[n / size for n in x]"
    if norm["kind"] == "LayerNorm":
        lines += ["mean = sum(x) / len(x)", "x = [n - mean for n in x]"]
    lines.append(f"size = (dot(x, x) / len(x) + {norm['eps']}) ** 0.5")
    if "gain" in parts:
        result = "[g * n / size for g, n in zip(gain, x)]"
    if "bias" in parts:
        result = f"add({result}, bias)"
    called = ", ".join(["x", *parts])
    return {f"{norm['kind'].lower()}({called})": [*lines, f"return {result}"]}
