"""What a model is, as plain JSON: its blocks and norms, there and back.

A description holds every choice and no weight. It is exact or refused: whatever has another class,
hooks or parameters than attnlib's own parts is named in an error.
"""

from collections.abc import Mapping
from typing import Any

from torch import nn

from attnlib._checks import checked_list, shape_of
from attnlib.attention import MultiHeadAttention
from attnlib.blocks import FeedForward, TransformerBlock
from attnlib.norms import LayerNorm, RMSNorm

NORMS = {"LayerNorm": LayerNorm, "RMSNorm": RMSNorm}

# The names in a description, in their order.
MODEL = (
    "vocabulary_size", "length", "d_model", "causal", "blocks", "final_norm", "readouts",
    "readout_bias",
)  # fmt: skip
BLOCK = (
    "num_heads", "num_kv_heads", "bias", "attention_dropout", "feed_forward", "norm_position",
    "norms", "residual", "dropout",
)  # fmt: skip
FEED_FORWARD = ("d_ff", "bias")
NORM = {"LayerNorm": ("kind", "eps", "bias"), "RMSNorm": ("kind", "eps")}


def require_plain(name: str, module: object, kind: type[nn.Module]) -> None:
    """Raise TypeError unless a part is of this very class, and computes as the class does."""
    if type(module) is not kind:
        wanted, found = (f"{one.__module__}.{one.__qualname__}" for one in (kind, type(module)))
        raise TypeError(f"{name} must be a plain {wanted} to be described, got {found}")
    assert isinstance(module, nn.Module)
    if module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module):
        raise TypeError(
            f"{name} must compute as {kind.__name__} does to be described, got one with hooks"
        )


def norm_spec(name: str, norm: object) -> dict[str, Any]:
    """Describe a norm."""
    kind = type(norm).__name__
    require_plain(name, norm, NORMS.get(kind, LayerNorm))
    if isinstance(norm, LayerNorm):
        return {"kind": kind, "eps": norm.eps, "bias": norm.bias is not None}
    assert isinstance(norm, RMSNorm)
    return {"kind": kind, "eps": norm.eps}


def norm_of(name: str, spec: Any, d: int, options: Mapping[str, Any]) -> nn.Module:
    """Build the norm that `norm_spec` described."""
    kind = spec.get("kind") if isinstance(spec, Mapping) else spec
    if not isinstance(kind, str) or kind not in NORMS:
        raise ValueError(f"{name} must have a kind, one of {', '.join(NORMS)}, got {kind!r}")
    require_names(name, spec, NORM[kind])
    own = {option: value for option, value in spec.items() if option != "kind"}
    return NORMS[kind](d, **own, **options)


def block_spec(name: str, block: object) -> dict[str, Any]:
    """Describe a block."""
    require_plain(name, block, TransformerBlock)
    assert isinstance(block, TransformerBlock)
    attention, feed_forward = block.attention, block.feed_forward
    require_plain(f"{name}.attention", attention, MultiHeadAttention)
    for matrix in ("W_q", "W_k", "W_v", "W_o"):
        require_plain(f"{name}.attention.{matrix}", getattr(attention, matrix), nn.Linear)
    network = None
    if feed_forward is not None:
        require_plain(f"{name}.feed_forward", feed_forward, FeedForward)
        for matrix in ("W_1", "W_2"):
            require_plain(f"{name}.feed_forward.{matrix}", getattr(feed_forward, matrix), nn.Linear)
        network = {"d_ff": feed_forward.d_ff, "bias": feed_forward.W_1.bias is not None}
    norms = {"norm_1": block.norm_1, "norm_2": block.norm_2}
    return {
        "num_heads": attention.num_heads,
        "num_kv_heads": attention.num_kv_heads,
        "bias": attention.W_q.bias is not None,
        "attention_dropout": attention.dropout,
        "feed_forward": network,
        "norm_position": block.norm_position,
        "norms": [norm_spec(f"{name}.{n}", norm) for n, norm in norms.items() if norm is not None],
        "residual": block.residual,
        "dropout": block.dropout,
    }


def block_of(name: str, spec: Any, d: int, options: Mapping[str, Any]) -> TransformerBlock:
    """Build the block that `block_spec` described."""
    require_names(name, spec, BLOCK)
    network = spec["feed_forward"]
    if network is not None:
        require_names(f"{name}.feed_forward", network, FEED_FORWARD)
    norms = checked_list(f"{name}.norms", spec["norms"])
    return TransformerBlock.of_parts(
        MultiHeadAttention(
            d, spec["num_heads"], num_kv_heads=spec["num_kv_heads"], bias=spec["bias"],
            dropout=spec["attention_dropout"], **options,
        ),
        None if network is None else FeedForward(d, **network, **options),
        [norm_of(f"{name}.norms[{i}]", norm, d, options) for i, norm in enumerate(norms)],
        norm_position=spec["norm_position"],
        residual=spec["residual"],
        dropout=spec["dropout"],
    )  # fmt: skip


def require_names(name: str, spec: object, names: tuple[str, ...]) -> None:
    """Raise unless a description has these names and no other."""
    if not isinstance(spec, Mapping):
        raise TypeError(f"{name} must be a description with names, got {type(spec).__name__}")
    missing = [one for one in names if one not in spec]
    unknown = [str(one) for one in spec if one not in names]
    if missing or unknown:
        raise ValueError(
            f"{name} must have the names {', '.join(names)}, "
            f"got none of {', '.join(missing) or '(nothing missing)'}; "
            f"unknown: {', '.join(unknown) or 'none'}"
        )


def require_same_parameters(model: nn.Module, described: nn.Module) -> None:
    """Raise unless a model has the parameters that its description would build, each its own."""
    wanted = {name: shape_of(x) for name, x in described.named_parameters()}
    found = {name: shape_of(x) for name, x in model.named_parameters(remove_duplicate=False)}
    for name in [*wanted, *found]:
        if wanted.get(name) != found.get(name):
            raise TypeError(
                f"{name} must be as its part was made to be described, {wanted.get(name, 'none')}, "
                f"got {found.get(name, 'none')}"
            )
    if len({id(x) for x in model.parameters()}) != len(found):
        raise ValueError("parameters must each stand in one place to be described: some are shared")
