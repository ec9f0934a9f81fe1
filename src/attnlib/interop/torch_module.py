"""PyTorch's own attention."""

import re

from torch import nn

from attnlib._projection import runs_nothing_but
from attnlib.attention import MultiHeadAttention
from attnlib.interop._assembly import assemble


def from_torch(module: nn.MultiheadAttention) -> MultiHeadAttention:
    """Return a `MultiHeadAttention` that computes what an `nn.MultiheadAttention` computes.

    Weights are copied; dtype, device, dropout and training or evaluation mode stay. Calls change:
    batch always comes first, whatever `batch_first` says there; True in a mask means "may look",
    not "may not"; and the weights aren't averaged over the heads.

    Example:
        >>> import torch
        >>> theirs = nn.MultiheadAttention(12, num_heads=4, batch_first=True)
        >>> ours = from_torch(theirs)
        >>> x = torch.randn(2, 5, 12)
        >>> hidden = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
        >>> expected, _ = theirs(x, x, x, key_padding_mask=hidden)
        >>> output, _ = ours(x, key_mask=~hidden)
        >>> torch.allclose(output, expected, atol=1e-6)
        True

    Two things differ on purpose. A token that may look nowhere gets NaN or an arbitrary number
    there, and weights 0 here. And the weights returned are those before dropout, not after it.

    Args:
        module: packed or separate projections (kdim, vdim), with bias or without.

    Raises:
        TypeError: not an `nn.MultiheadAttention`, or one with hooks; of an
            `nn.TransformerEncoderLayer` pass `layer.self_attn`.
        ValueError: it adds keys of its own (add_bias_kv, add_zero_attn), which ours can't, or a
            weight is NaN or infinite.

    Source: PyTorch, torch/nn/modules/activation.py: `in_proj_weight` stacks the matrices of q, k
    and v in this order.
    """
    _require_theirs(module)
    for option, used in (
        ("add_bias_kv", module.bias_k is not None or module.bias_v is not None),
        ("add_zero_attn", module.add_zero_attn),
    ):
        if used:
            raise ValueError(
                f"module must be one without {option}, got {option}=True: it lets every token look "
                "at one more key that is no token, and MultiHeadAttention has none"
            )
    if module.in_proj_weight is not None:
        q, k, v = module.in_proj_weight.chunk(3)  # [3d, d] -> three times [d, d]
    else:
        q, k, v = module.q_proj_weight, module.k_proj_weight, module.v_proj_weight
    weights = {"W_q.weight": q, "W_k.weight": k, "W_v.weight": v}
    weights |= {"W_o.weight": module.out_proj.weight, "W_o.bias": module.out_proj.bias}
    if module.in_proj_bias is not None:
        names = ("W_q.bias", "W_k.bias", "W_v.bias")
        weights |= zip(names, module.in_proj_bias.chunk(3), strict=True)  # [3d] -> three times [d]
    return assemble(weights, module.num_heads, dropout=module.dropout).train(module.training)


def _require_theirs(module: object) -> None:
    """Raise TypeError unless this is PyTorch's own attention; say what to pass instead."""
    if not isinstance(module, nn.MultiheadAttention):
        parts = module.named_modules() if isinstance(module, nn.Module) else ()
        names = [name for name, part in parts if isinstance(part, nn.MultiheadAttention)]
        hint = ""
        if names:
            some = [re.sub(r"\.(\d+)", r"[\1]", f"layer.{name}") for name in names[:3]]
            hint = f": of this layer pass {' or '.join(some)}"
        elif isinstance(module, nn.Module):
            hint = (
                ": another library's attention comes through from_projections (its four layers), "
                "from_gpt2 or from_bert (the state dict of its model)"
            )
        raise TypeError(
            f"module must be an nn.MultiheadAttention, got {type(module).__name__}{hint}"
        )
    if type(module).forward is not nn.MultiheadAttention.forward:
        raise TypeError(
            "module must be an nn.MultiheadAttention itself, got one whose forward is its own "
            f"({type(module).__module__}.{type(module).__name__}), as those prepared for "
            "quantization have it"
        )
    if not runs_nothing_but(module, nn.MultiheadAttention.forward):
        raise TypeError(
            "module must be an nn.MultiheadAttention that computes with its weights alone, got one "
            "with a hook or a call of its own, which may change what comes out: remove it first "
            "(also what weight_norm or pruning has put on it)"
        )
