"""The GPU's kernel of heatmaps: in Triton's interpreter where Triton is, on a GPU where one is.

Triton isn't among the requirements. `pip install triton` makes the first test run on Linux.
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
from attnlib import _heatmap_triton as kernel, heatmap

torch.manual_seed(0)
for dtype, causal, masked, largest in [
    (torch.float32, False, False, False), (torch.float32, True, True, False),
    (torch.float16, True, False, True), (torch.float32, False, True, True),
]:
    T_k = 150 if causal else 190
    q = 5 * torch.randn(2, 150, 4, 10, dtype=dtype).transpose(1, 2)  # cells and blocks are ragged
    k = 5 * torch.randn(2, 2, T_k, 10, dtype=dtype)
    key_mask = None
    if masked:
        key_mask = torch.ones(2, T_k, dtype=torch.bool)
        key_mask[0, :99], key_mask[1] = False, not largest
    options = 140, 70, causal, key_mask, 0.3, largest
    found, seeing = kernel.pooled(q, k, *options)
    expected, as_many = heatmap._pooled(q.double(), k.double(), *options)
    torch.testing.assert_close(found, expected.float(), atol=1e-5, rtol=1e-5)
    assert largest or torch.equal(seeing, as_many.float())
"""


@pytest.mark.skipif(not find_spec("triton"), reason="Triton isn't installed: pip install triton")
def test_the_kernel_in_the_interpreter():
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    command = [sys.executable, "-c", INTERPRETED]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(
    not (torch.cuda.is_available() and find_spec("triton")), reason="needs a CUDA GPU and Triton"
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("reduce", ["mass", "max"])
@pytest.mark.parametrize("causal", [True, False])
def test_the_kernel_on_a_gpu(dtype, reduce, causal):
    q, k = (torch.randn(1, 2, 2111, 64, device="cuda", dtype=dtype) for _ in range(2))
    options = {"grid": 20, "reduce": reduce, "causal": causal}
    found = heatmap.attention_heatmap(q, k, **options)
    expected = heatmap.attention_heatmap(q.double(), k.double(), **options)
    torch.testing.assert_close(found, expected.float(), atol=1e-5, rtol=1e-4)
