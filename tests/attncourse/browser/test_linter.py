"""Browser code and style, read by a linter: each name is declared, and there is one format."""

import subprocess

from tools import ROOT
from tools.installed import go_without

BIOME = ROOT / "node_modules" / ".bin" / "biome"


def test_the_linter_finds_nothing():
    if not BIOME.exists():
        go_without("no linter of browser code found: `npm install --no-package-lock` brings it")
    command = [BIOME, "check", "--error-on-warnings", "--colors=off"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
