"""Type hints: mypy finds nothing to object to in the packages, and users get the types promised."""

import re
import subprocess
import sys

import pytest
from tools import ROOT

USER = """
import torch
import attnlib

x = torch.randn(2, 3, 8)
attention, block = attnlib.MultiHeadAttention(8, 2), attnlib.TransformerBlock(8, 2)
reveal_type(attention(x))
reveal_type(block(x))
reveal_type(attention.contributions(x))
reveal_type(attnlib.LayerNorm(8)(x))
reveal_type(attnlib.RMSNorm(8)(x))
reveal_type(attnlib.FeedForward(8)(x))
reveal_type(attnlib.scaled_dot_product_attention(x, x, x))
attention.forward(x, mask=3)
"""
OUTPUT_AND_WEIGHTS = "tuple[Tensor, Tensor | None]"
REVEALED = [OUTPUT_AND_WEIGHTS, OUTPUT_AND_WEIGHTS, *["Tensor"] * 4, "tuple[Tensor, Tensor]"]


@pytest.fixture(scope="module")
def complaints(tmp_path_factory) -> tuple[str, str]:
    """Return what mypy says about the packages, and about a user's file, from one run."""
    user = tmp_path_factory.mktemp("types") / "user.py"
    user.write_text(USER, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", *(ROOT / "src").glob("attn*/"), user]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.stderr == ""
    lines = re.sub(r"torch\.(\w+\.)*", "", result.stdout).splitlines()
    of_user = [line for line in lines if "user.py" in line]
    return "\n".join(line for line in lines if line not in of_user), "\n".join(of_user)


def test_mypy_accepts_the_package(complaints):
    assert re.fullmatch(r"Found 1 error in 1 file .*", complaints[0]), complaints[0]


def test_users_get_types(complaints):
    assert re.findall(r'Revealed type is "(.*)"', complaints[1]) == REVEALED


def test_a_users_mistake_is_noticed(complaints):
    assert 'Argument "mask" to "forward"' in complaints[1]
