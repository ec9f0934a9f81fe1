"""One code style: ruff finds nothing to object to and nothing to format."""

import subprocess
import sys

import pytest
from tools import ROOT


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=" ".join)
def test_ruff_is_content(command):
    command = [sys.executable, "-m", "ruff", *command, ROOT]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
