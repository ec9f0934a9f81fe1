"""Refusing models whose attention has parts that ours lacks: they would load, and compute wrong."""

import re
import warnings

from attnlib.interop._layouts import BERT, NANOGPT, Layout
from attnlib.interop._sources import Tensors

# Parts of names that show positions inside the attention, or layers before it.
_SIGNS = re.compile(
    r"rotary|inv_freq|(?<![a-z])rope(?![a-z])|alibi|rel_pos|relative|rel_embeddings"
    r"|distance_embedding|embed_positions|char_encoder"
)
# Models with exactly the layout's names, but another attention.
_LOOKALIKES = {
    "yoso": "weighs by hashing instead of softmax",
    "mra": "looks at blocks of several sizes instead of at all tokens",
    "gpt_bigcode": "keeps queries, keys and values head by head",
}
# Options of GPT-2 that change the scores, with their values for a division by sqrt(d_k).
_PLAIN_SCALE = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False}


def require_no_other_parts(tensors: Tensors, prefix: str, layout: Layout, layer: int) -> None:
    """Raise ValueError if names show that the layer's attention has parts that ours lacks."""
    model = prefix.removesuffix(layout.prefix.format(layer))
    _require_family(tensors, model, layout)
    if "model_type" not in tensors.config:
        _warn_of_lookalikes(tensors, model, prefix, layout)
    others = [name for name in tensors.names if _is_other(name, model, prefix, layout)]
    if others:
        some = others[:4] + ["..."] * (len(others) > 4)
        raise ValueError(
            f"source must hold {layout.library}'s attention with absolute positions and no other "
            f"part, got also {some}: MultiHeadAttention has no such parts and would compute "
            "something else"
        )
    words, positions = (
        f"{model}embeddings.{kind}_embeddings.weight" for kind in ("word", "position")
    )
    if words in tensors.names and positions not in tensors.names:
        raise ValueError(
            f"source must hold {layout.library}'s attention with absolute positions, got {words!r} "
            f"without {positions!r}: the model has positions elsewhere (ESM turns queries and "
            "keys), which MultiHeadAttention doesn't do"
        )


def _require_family(tensors: Tensors, model: str, layout: Layout) -> None:
    """Raise ValueError if a prefix or the config.json shows another attention."""
    families = {str(tensors.config.get("model_type")), *model.split(".")}
    for family in _LOOKALIKES.keys() & families:
        raise ValueError(
            f"source must hold {layout.library}'s attention, got {family}'s, whose tensors are "
            f"called the same: it {_LOOKALIKES[family]}"
        )
    for option, plain in _PLAIN_SCALE.items():
        if (found := tensors.config.get(option, plain)) != plain:
            raise ValueError(
                "source must hold attention with the scale 1 / sqrt(d_k), but the config.json "
                f"beside it says {option}={found}, which MultiHeadAttention doesn't do"
            )


def _warn_of_lookalikes(tensors: Tensors, model: str, prefix: str, layout: Layout) -> None:
    """Warn if the tensors may be another family's as well, which no name and no shape shows."""
    others = {
        BERT: ["yoso", "mra"] if not model else [],
        NANOGPT: ["gpt_bigcode"] if prefix + "c_attn.bias" in tensors.names else [],
    }.get(layout, [])
    if others:
        warnings.warn(
            f"source looks the same if it is of {' or '.join(others)}, which computes something "
            'else: pass family=model.config.model_type, or what it is ("bert", "nanogpt")',
            stacklevel=6,
        )


def _is_other(name: str, model: str, prefix: str, layout: Layout) -> bool:
    """Return whether a tensor belongs to a part of the attention that the layout doesn't know."""
    if name.startswith(prefix):
        return not re.fullmatch(layout.known, name[len(prefix) :])
    if not (sign := _SIGNS.search(name)):
        return False
    holder = name[: name.rfind(".", 0, sign.start()) + 1]  # the module that has this part
    return name.startswith(model) or prefix.startswith(holder)
