"""Errors that are about the machine and not about an attention."""

import re

# What code says that wants a package, a device or a dtype that a CPU in float32 hasn't got.
_SAYS = re.compile(
    r"\b(cuda|gpus?|nvidia|rocm|xpu|mps|triton|xformers|flash[-_ ]?attn)\b"
    r"|\b(cpu|cuda)' backend|\bon (the )?cpu\b|no available kernel"
    r"|process group has not been initialized"
    r"|\bonly supports? .*(fp16|bf16|float16|bfloat16|half)"
    r"|not implemented for '(half|bfloat16)'",
    re.IGNORECASE,
)


def is_missing(error: object) -> bool:
    """Tell whether what was answered is that a package, a device or a dtype isn't there."""
    if isinstance(error, ImportError):
        return True
    return isinstance(error, Exception) and bool(_SAYS.search(str(error)))
