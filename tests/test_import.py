"""`import attnlib` stays quick, and so does loading a trained model."""

import subprocess
import sys

CODE = """
import sys, attnlib, attncourse.atlas
heavy = {"matplotlib", "anywidget", "IPython", "safetensors", "transformers"} & set(sys.modules)
from attncourse import data
data.load("concord")
heavy |= {"torch._dynamo"} & set(sys.modules)  # a second for nothing
sys.exit(", ".join(heavy) or 0)
"""


def test_importing_and_loading_stay_light():
    result = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
