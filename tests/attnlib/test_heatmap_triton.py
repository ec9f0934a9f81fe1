"""The GPU's kernel of heatmaps: interpreted where Triton is, run where a GPU is.

Triton comes with PyTorch's GPU build. Beside the CPU build, `pip install triton` makes the first
two tests run on Linux; `.ci/run` does.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from unittest import mock

import pytest
import torch

from attnlib import heatmap

INTERPRETED = """
import torch
from attnlib import heatmap
from attnlib.heatmap import _triton as kernel

torch.manual_seed(0)
for dtype, causal, T_k in [(torch.float32, True, 150), (torch.float16, False, 190)]:
    q = 5 * torch.randn(2, 150, 4, 10, dtype=dtype).transpose(1, 2)  # cells and blocks are ragged
    k = 5 * torch.randn(2, 2, T_k, 10, dtype=dtype)
    key_mask = torch.ones(2, T_k, dtype=torch.bool) if causal else None
    if causal:
        key_mask[0, :99] = False
    options = 140, 70, causal, key_mask, 0.3
    found, attending = kernel.pooled(q, k, *options)
    expected, as_many = heatmap._pooled(q.double(), k.double(), *options)
    torch.testing.assert_close(found, expected.float(), atol=1e-5, rtol=1e-5)
    assert torch.equal(attending, as_many.float())
for wrong in (torch.nan, torch.inf, -torch.inf):
    q, k = torch.randn(2, 1, 1, 150, 10)
    k[0, 0, 99, 0] = wrong
    assert kernel.pooled(q, k, 140, 70, False, None, 0.3)[0].isnan().any()
"""

needs_triton = pytest.mark.skipif(not find_spec("triton"), reason="pip install triton")


@needs_triton
def test_the_kernel_in_the_interpreter():
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", INTERPRETED], env=environment, check=True)


class Elsewhere(torch.Tensor):
    """A tensor that says it is on a GPU."""

    is_cuda = True


@needs_triton
def test_plain_torch_takes_what_the_kernel_does_not(monkeypatch):
    from attnlib.heatmap import _triton as kernel

    too_large = mock.Mock(side_effect=kernel.OutOfResources(131072, 65536, "shared memory"))
    monkeypatch.setattr(kernel, "pooled", too_large)
    for d_k, grid, takes in ((64, 3, 1), (65, 3, 0), (64, 30, 0)):
        too_large.reset_mock()
        some = torch.randn(1, 1, 300, d_k)
        found = heatmap.attention_heatmap(some.as_subclass(Elsewhere), some, grid=grid)
        torch.testing.assert_close(
            found.as_subclass(torch.Tensor), heatmap.attention_heatmap(some, some, grid=grid)
        )
        assert too_large.call_count == takes


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
