"""Torch's settings while code runs that other people wrote, or that is small."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch


@contextmanager
def usual_settings() -> Iterator[None]:
    """Run under torch's default settings, and undo what the code inside changes."""
    dtype = torch.get_default_dtype()
    elsewhere = torch.get_default_device().type != "cpu"  # entering it costs time at every call
    torch.set_default_dtype(torch.float32)
    try:
        with (
            torch.device("cpu") if elsewhere else nullcontext(),
            torch.inference_mode(False), torch.enable_grad(), torch.autocast("cpu", enabled=False),
        ):  # fmt: skip
            yield
    finally:
        torch.set_default_dtype(dtype)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one processor core: where tensors are small, threads only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
