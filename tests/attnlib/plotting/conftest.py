"""What the tests of long maps and of their windows share: a long sequence."""

import pytest
import torch

T = 1000


@pytest.fixture
def q():
    """Return queries (and keys) of three heads and many tokens."""
    return 3 * torch.randn(1, 3, T, 8)


@pytest.fixture
def limits():
    """Return limits under which the first half of the queries may look nowhere."""
    return {"causal": True, "key_mask": torch.arange(T)[None] >= T // 2}
