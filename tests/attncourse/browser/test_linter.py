"""Browser code and style, read by a linter: each name is declared, and there is one format."""

import shutil
import subprocess

import pytest
from tools import ROOT
from tools.installed import go_without

BIOME = ROOT / "node_modules" / ".bin" / "biome"


@pytest.fixture
def check():
    """Return a function that runs the linter; without it skip, or fail where CI is set."""
    if not BIOME.exists():
        go_without("no linter of browser code found: `npm install --no-package-lock` brings it")

    def run(folder):
        command = [BIOME, "check", "--error-on-warnings", "--colors=off"]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    return run


def test_the_linter_finds_nothing(check):
    result = check(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("folder", ["src/attncourse/widgets/shared", "book/assets"])
@pytest.mark.parametrize(
    ("name", "code"),
    [("a.js", "export const a = element;\n"), ("a.css", ".a {\n  colr: red;\n}\n")],
)
def test_a_fault_is_found_in_both_folders(check, tmp_path, folder, name, code):
    shutil.copy(ROOT / "biome.json", tmp_path)
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / name).write_text(code, encoding="utf-8")
    assert check(tmp_path).returncode != 0
