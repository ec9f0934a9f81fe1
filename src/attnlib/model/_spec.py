"""Descriptions of models as plain JSON, written and read.

A description holds every choice and no weight. It is exact: a part with another class, hooks or
parameters than attnlib's own raises an error that names it. Options that came later are written
only where they aren't left at their default, so that descriptions saved earlier stay the same.
"""

from collections.abc import Mapping
from typing import Any

from torch import nn

from attnlib.attention import MultiHeadAttention
from attnlib.blocks import FeedForward, TransformerBlock
from attnlib.checks import checked_list, shape_of
from attnlib.model._readout import TiedReadout
from attnlib.norms import LayerNorm, RMSNorm
from attnlib.positions import BASE, LearnedPositions, RotaryPositions, SinusoidalPositions

NORMS: dict[str, type[nn.Module]] = {"LayerNorm": LayerNorm, "RMSNorm": RMSNorm}

# The names in a description, in order; the optional ones came later.
MODEL = (
    "vocabulary_size", "length", "d_model", "causal", "blocks", "final_norm", "readouts",
    "readout_bias",
)  # fmt: skip
MODEL_OPTIONAL = ("positions", "tied")
BLOCK = (
    "num_heads", "num_kv_heads", "bias", "attention_dropout", "feed_forward", "norm_position",
    "norms", "residual", "dropout",
)  # fmt: skip
BLOCK_OPTIONAL = ("rotary",)
ROTARY = ("base", "interleaved")
FEED_FORWARD, FEED_FORWARD_OPTIONAL = ("d_ff", "bias"), ("activation",)
NORM = {"LayerNorm": ("kind", "eps", "bias"), "RMSNorm": ("kind", "eps")}
NORM_OPTIONAL = {"LayerNorm": (), "RMSNorm": ("gain",)}


def require_plain(name: str, module: object, kind: type[nn.Module]) -> None:
    """Raise TypeError unless a part is of this very class and has no hooks."""
    if type(module) is not kind:
        wanted, found = (f"{one.__module__}.{one.__qualname__}" for one in (kind, type(module)))
        raise TypeError(f"{name} must be a plain {wanted} to be described, got {found}")
    assert isinstance(module, nn.Module)
    if module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module):
        raise TypeError(
            f"{name} must compute as {kind.__name__} does to be described, got one with hooks"
        )


def model_spec(model: Any) -> dict[str, Any]:
    """Return the description of a `TransformerModel`."""
    norm, readouts = None, {}
    if not isinstance(model.final_norm, nn.Identity):
        norm = norm_spec("final_norm", model.final_norm)
    for name, readout in model.readouts.items():
        require_plain(f"readouts.{name}", readout, TiedReadout if model.tied else nn.Linear)
        readouts[name] = readout.out_features
    spec = {
        "vocabulary_size": model.vocabulary_size,
        "length": model.length,
        "d_model": model.d_model,
        "causal": model.causal,
        "blocks": [block_spec(f"blocks.{i}", block) for i, block in enumerate(model.blocks)],
        "final_norm": norm,
        "readouts": readouts,
        "readout_bias": any(readout.bias is not None for readout in model.readouts.values()),
    }
    if (positions := positions_spec(model.position_embedding)) != "learned":
        spec["positions"] = positions
    if model.tied:
        spec["tied"] = True
    return spec


def model_options(spec: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that build the model which `model_spec` described."""
    require_names("spec", spec, MODEL, MODEL_OPTIONAL)
    d, norm = spec["d_model"], spec["final_norm"]
    blocks = checked_list("blocks", spec["blocks"])
    given = {name: value for name, value in spec.items() if name != "d_model"}
    made = {
        "blocks": [block_of(f"blocks.{i}", one, d, options) for i, one in enumerate(blocks)],
        "final_norm": nn.Identity() if norm is None else norm_of("final_norm", norm, d, options),
    }
    return given | made | dict(options)


def norm_spec(name: str, norm: object) -> dict[str, Any]:
    """Return the description of a norm."""
    kind = type(norm).__name__
    require_plain(name, norm, NORMS.get(kind, LayerNorm))
    if isinstance(norm, LayerNorm):
        return {"kind": kind, "eps": norm.eps, "bias": norm.bias is not None}
    assert isinstance(norm, RMSNorm)
    spec = {"kind": kind, "eps": norm.eps}
    return spec if norm.gain is not None else spec | {"gain": False}


def norm_of(name: str, spec: Any, d: int, options: Mapping[str, Any]) -> nn.Module:
    """Build the norm that `norm_spec` described."""
    kind = spec.get("kind") if isinstance(spec, Mapping) else spec
    if not isinstance(kind, str) or kind not in NORMS:
        raise ValueError(f"{name} must have a kind, one of {', '.join(NORMS)}, got {kind!r}")
    require_names(name, spec, NORM[kind], NORM_OPTIONAL[kind])
    own = {option: value for option, value in spec.items() if option != "kind"}
    return NORMS[kind](d, **own, **options)


def positions_spec(positions: object) -> str | None:
    """Return the description of what is added to the embeddings."""
    if positions is None:
        return None
    name = "position_embedding"
    if not isinstance(positions, SinusoidalPositions):
        require_plain(name, positions, LearnedPositions)
        return "learned"
    require_plain(name, positions, SinusoidalPositions)
    if positions.base != BASE:
        raise TypeError(f"{name} must have base={BASE:g} to be described, got {positions.base:g}")
    return "sinusoidal"


def block_spec(name: str, block: object) -> dict[str, Any]:
    """Return the description of a block."""
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
        if feed_forward.activation != "gelu":
            network["activation"] = feed_forward.activation
    later = {}
    if attention.rotary is not None:
        require_plain(f"{name}.attention.rotary", attention.rotary, RotaryPositions)
        later["rotary"] = {one: getattr(attention.rotary, one) for one in ROTARY}
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
        **later,
    }


def block_of(name: str, spec: Any, d: int, options: Mapping[str, Any]) -> TransformerBlock:
    """Build the block that `block_spec` described."""
    require_names(name, spec, BLOCK, BLOCK_OPTIONAL)
    network, rotary = spec["feed_forward"], spec.get("rotary")
    if network is not None:
        require_names(f"{name}.feed_forward", network, FEED_FORWARD, FEED_FORWARD_OPTIONAL)
    if rotary is not None:
        require_names(f"{name}.rotary", rotary, ROTARY)
    norms = checked_list(f"{name}.norms", spec["norms"])
    return TransformerBlock.of_parts(
        MultiHeadAttention(
            d, spec["num_heads"], num_kv_heads=spec["num_kv_heads"], bias=spec["bias"],
            dropout=spec["attention_dropout"],
            rotary=None if rotary is None else RotaryPositions(**rotary), **options,
        ),
        None if network is None else FeedForward(d, **network, **options),
        [norm_of(f"{name}.norms[{i}]", norm, d, options) for i, norm in enumerate(norms)],
        norm_position=spec["norm_position"],
        residual=spec["residual"],
        dropout=spec["dropout"],
    )  # fmt: skip


def require_names(
    name: str, spec: object, names: tuple[str, ...], optional: tuple[str, ...] = ()
) -> None:
    """Raise unless a description has all `names`, and no others but those in `optional`."""
    if not isinstance(spec, Mapping):
        raise TypeError(f"{name} must be a description with names, got {type(spec).__name__}")
    missing = [one for one in names if one not in spec]
    unknown = [str(one) for one in spec if one not in (*names, *optional)]
    if missing or unknown:
        raise ValueError(
            f"{name} must have the names {', '.join(names)}, "
            f"got none of {', '.join(missing) or '(nothing missing)'}; "
            f"unknown: {', '.join(unknown) or 'none'}"
        )


def require_same_parameters(model: nn.Module, described: nn.Module) -> None:
    """Raise unless a model has the parameters of the model that its description builds."""
    wanted = {name: shape_of(x) for name, x in described.named_parameters()}
    found = {name: shape_of(x) for name, x in model.named_parameters(remove_duplicate=False)}
    for name in [*wanted, *found]:
        if wanted.get(name) != found.get(name):
            raise TypeError(
                f"{name} has another shape than its part was built with: "
                f"{wanted.get(name, 'none')}, got {found.get(name, 'none')}"
            )
    if len({id(x) for x in model.parameters()}) != len(found):
        raise ValueError("parameters must not be shared in a model that is to be described")
