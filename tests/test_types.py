"""Type hints: mypy finds nothing to object to in the packages, and users get the types promised."""

import re
import subprocess
import sys

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


def test_the_packages_have_types_and_users_get_them(tmp_path):
    """One run of mypy: it finds the user's mistake in the last line, and nothing else."""
    user = tmp_path / "user.py"
    user.write_text(USER, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", *(ROOT / "src").glob("attn*/"), user]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    said = re.sub(r"torch\.(\w+\.)*", "", result.stdout)
    assert 'Argument "mask" to "forward"' in said and "Found 1 error in 1 file" in said, said
    assert re.findall(r'Revealed type is "(.*)"', said) == REVEALED
