"""What is about the machine and not about an attention: its errors, and its numbers."""

import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

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


class Precisions(TorchFunctionMode):
    """Notes in which dtypes with fewer digits than float32 anything inside is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.low: set[torch.dtype] = set()

    def __torch_function__(
        self, function: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.dtype in (torch.float16, torch.bfloat16):
            self.low.add(result.dtype)
        return result
