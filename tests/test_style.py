"""One code style: ruff, and biome for browser code, find nothing to object to or to format."""

import subprocess
import sys

import pytest
from tools import ROOT
from tools.installed import go_without

RUFF, BIOME = [sys.executable, "-m", "ruff"], [ROOT / "node_modules/.bin/biome"]


@pytest.mark.parametrize("command", [
    [*RUFF, "check"], [*RUFF, "format", "--check"], [*BIOME, "check", "--error-on-warnings"],
], ids=("ruff check", "ruff format", "biome"))  # fmt: skip
def test_linters_are_content(command):
    if command[:1] == BIOME and not BIOME[0].exists():
        go_without("no linter of browser code found: `npm install --no-package-lock` brings it")
    result = subprocess.run([*command, ROOT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
