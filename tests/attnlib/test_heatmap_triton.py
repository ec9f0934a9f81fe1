"""The GPU's kernel of heatmaps: interpreted and compiled where Triton is, run where a GPU is.

Triton comes with PyTorch's GPU build. Beside the CPU build, `pip install triton` makes the first
two tests run on Linux; `.ci/run` does.
"""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch

from attnlib import heatmap

INTERPRETED = """
import torch
from attnlib import heatmap
from attnlib.heatmap import _triton as kernel

torch.manual_seed(0)
for dtype, causal, masked in [
    (torch.float32, False, False), (torch.float32, True, True), (torch.float16, True, False),
]:
    T_k = 150 if causal else 190
    q = 5 * torch.randn(2, 150, 4, 10, dtype=dtype).transpose(1, 2)  # cells and blocks are ragged
    k = 5 * torch.randn(2, 2, T_k, 10, dtype=dtype)
    key_mask = None
    if masked:
        key_mask = torch.ones(2, T_k, dtype=torch.bool)
        key_mask[0, :99], key_mask[1] = False, True
    options = 140, 70, causal, key_mask, 0.3
    found, attending = kernel.pooled(q, k, *options)
    expected, as_many = heatmap._pooled(q.double(), k.double(), *options)
    torch.testing.assert_close(found, expected.float(), atol=1e-5, rtol=1e-5)
    assert torch.equal(attending, as_many.float())

for wrong in (torch.nan, torch.inf, -torch.inf):
    q, k = torch.randn(2, 1, 1, 150, 10)
    k[0, 0, 99, 0] = wrong
    found, _ = kernel.pooled(q, k, 140, 70, False, None, 0.3)
    assert found.isnan().any()
"""


needs_triton = pytest.mark.skipif(
    not find_spec("triton"), reason="Triton isn't installed: pip install triton"
)


@needs_triton
def test_the_kernel_in_the_interpreter():
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    command = [sys.executable, "-c", INTERPRETED]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.thorough
@needs_triton
@pytest.mark.parametrize(
    ("dtype", "d_k", "flag", "architecture"),
    [
        ("fp32", 64, True, 80), ("fp16", 128, False, 80), ("bf16", 128, True, 80),
        ("fp32", 64, False, 90), ("fp16", 128, True, 90), ("bf16", 128, False, 90),
    ],
)  # fmt: skip
def test_the_kernel_compiles_for_a_gpu(dtype, d_k, flag, architecture, tmp_path, monkeypatch):
    """For A100 and H200, which give a block so many bytes of shared memory.

    The interpreter can't multiply bfloat16, so only this sees it here.
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    from attnlib.heatmap._triton import _sweep

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # as ever; unset, Triton 3.9 warns
    constants = {"d_k": d_k, "BLOCK_D": d_k, "BLOCK": 128, "BLOCK_CELLS": 16}
    constants |= {"causal": flag, "masked": flag, "q_feature": 1, "k_feature": 1}
    pointers = {"q": dtype, "k": dtype, "allowed": "u8"}
    pointers |= dict.fromkeys(["scratch", "pieces", "attending"], "fp32")
    signature = dict.fromkeys(_sweep.arg_names, "i32") | {"scale": "fp32"}
    signature |= {name: "*" + pointed for name, pointed in pointers.items()}
    signature |= dict.fromkeys(constants, "constexpr")
    source = ASTSource(_sweep, signature, constants)
    target = GPUTarget("cuda", architecture, 32)
    compiled = compile(source, target=target, options={"num_warps": 8})
    assert compiled.metadata.shared <= {80: 163 * 1024, 90: 227 * 1024}[architecture]
    on_tensor_cores = "mma" in compiled.asm["ptx"]
    assert on_tensor_cores == (dtype != "fp32")  # float32 stays exact


class Elsewhere(torch.Tensor):
    """A tensor that says it is on a GPU."""

    is_cuda = True


@needs_triton
def test_plain_torch_takes_what_the_kernel_does_not(monkeypatch):
    from attnlib.heatmap import _triton as kernel

    asked = []

    def too_large(*arguments):
        asked.append(arguments)
        raise kernel.OutOfResources(131072, 65536, "shared memory")

    monkeypatch.setattr(kernel, "pooled", too_large)
    for d_k, grid, takes in ((64, 3, 1), (65, 3, 0), (64, 30, 0)):
        asked.clear()
        some = torch.randn(1, 1, 300, d_k)
        found = heatmap.attention_heatmap(some.as_subclass(Elsewhere), some, grid=grid)
        torch.testing.assert_close(
            found.as_subclass(torch.Tensor), heatmap.attention_heatmap(some, some, grid=grid)
        )
        assert len(asked) == takes


@pytest.mark.skipif(
    not (torch.cuda.is_available() and find_spec("triton")), reason="needs a CUDA GPU and Triton"
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [True, False])
def test_the_kernel_on_a_gpu(dtype, causal):
    q, k = (torch.randn(1, 2, 2111, 64, device="cuda", dtype=dtype) for _ in range(2))
    options = {"grid": 20, "causal": causal}
    found = heatmap.attention_heatmap(q, k, **options)
    expected = heatmap.attention_heatmap(q.double(), k.double(), **options)
    torch.testing.assert_close(found, expected.float(), atol=1e-5, rtol=1e-4)
