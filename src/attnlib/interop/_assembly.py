"""Building our module from weights of another library."""

from collections.abc import Mapping

import torch
from torch import Tensor

from attnlib.attention import MultiHeadAttention
from attnlib.checks import shape_of


def assemble(
    weights: Mapping[str, Tensor | None],
    num_heads: int,
    *,
    num_kv_heads: int | None = None,
    dropout: float = 0.0,
) -> MultiHeadAttention:
    """Return a module with copies of these weights, in their dtype and on their device.

    They have our module's names, `W_q.weight` to `W_o.bias`, and matrices are [d_out, d_in]. If
    some biases are missing or None, they become 0.
    """
    given = {name: w for name, w in weights.items() if w is not None}
    require_numbers(given)
    module = MultiHeadAttention(
        len(given["W_q.weight"]),
        num_heads,
        num_kv_heads=num_kv_heads,
        kdim=given["W_k.weight"].shape[1],
        vdim=given["W_v.weight"].shape[1],
        bias=any(name.endswith(".bias") for name in given),
        dropout=dropout,
        device="meta",  # shapes alone: no numbers are drawn
    )
    copies = {}
    for name, parameter in module.named_parameters():
        if name not in given:
            copies[name] = given["W_q.weight"].new_zeros(parameter.shape)
        elif given[name].shape == parameter.shape:
            copies[name] = given[name].clone(memory_format=torch.contiguous_format)
        else:
            raise ValueError(
                f"the weights of a layer must fit each other: {name} must have shape "
                f"{shape_of(parameter)}, got {shape_of(given[name])}"
            )
    module.load_state_dict(copies, assign=True)
    return module


def require_numbers(weights: Mapping[str, Tensor]) -> None:
    """Raise unless all are finite floating point numbers of one dtype and device."""
    kinds = sorted({f"{w.dtype} on {w.device}" for w in weights.values()})
    if not all(w.is_floating_point() and w.itemsize > 1 for w in weights.values()):
        raise TypeError(
            f"the weights of a layer must hold floating point numbers, got {kinds}: "
            "quantized weights must be turned back into numbers first"
        )
    if len(kinds) > 1:
        raise TypeError(f"the weights of a layer must share dtype and device, got {kinds}")
    for name, w in weights.items():
        if not w.is_meta and not (finite := w.isfinite()).all():
            raise ValueError(
                f"the weights of a layer must be finite, got NaN or infinity in "
                f"{(~finite).sum()} of the {w.numel()} numbers that become {name}: the training "
                "diverged, or the source is damaged"
            )
