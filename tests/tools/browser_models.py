"""Models in the browser: a page with the engine alone, and what one says to it from Python."""

import torch

from attnlib.model import TransformerModel
from attnlib.widgets import _browser_code

NORMS = {
    "LayerNorm": {"kind": "LayerNorm", "eps": 1e-5, "bias": True},
    "RMSNorm": {"kind": "RMSNorm", "eps": 1e-6},
}


def page_source() -> str:
    """A page that loads the engine and shows nothing."""
    scripts = (_browser_code.shared_script(), _browser_code.own_script("engine/trainer.js"))
    tags = "".join(f"<script>{script}</script>" for script in scripts)
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Engine</title>{tags}'


def block_spec(num_heads=2, d_ff=None, norm_position="pre", **changes):
    """A block as `TransformerModel.spec()` describes it, with other values where they are given."""
    norms = 0 if norm_position is None else 1 + (d_ff is not None)
    return {
        "num_heads": num_heads,
        "num_kv_heads": num_heads,
        "bias": False,
        "attention_dropout": 0.0,
        "feed_forward": None if d_ff is None else {"d_ff": d_ff, "bias": True},
        "norm_position": norm_position,
        "norms": [NORMS["LayerNorm"]] * norms,
        "residual": True,
        "dropout": 0.0,
    } | changes


def model_spec(blocks=(), **changes):
    """A model as it describes itself."""
    return {
        "vocabulary_size": 11,
        "length": 7,
        "d_model": 8,
        "causal": False,
        "blocks": list(blocks),
        "final_norm": NORMS["LayerNorm"],
        "readouts": {"A": 5, "B": 3},
        "readout_bias": False,
    } | changes


def build(spec, spread=0.4) -> TransformerModel:
    """The model in float64, with parameters that hide nothing and are float32 numbers, too.

    They lie around those that a new model has, so far that none is 0 or 1.
    """
    model = TransformerModel.of_spec(spec, dtype=torch.float64)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=spread).copy_(parameter.float())
    return model


def flat(tensors) -> dict[str, list[float]]:
    """Named tensors as named lists of numbers, row by row."""
    return {name: tensor.flatten().tolist() for name, tensor in tensors.items()}
