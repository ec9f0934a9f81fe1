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
    ("name", "code", "found"),
    [
        ("a.js", "export const a = element;\n", "element variable is undeclared"),
        ("a.js", 'import { b } from "./b.js";\n\nexport const a = 1;\n', "import is unused"),
        ("a.js", "export {};\n\nfunction a() {}\n", "function a is unused"),
        ("a.js", "export const a=1;\n", "Formatter would have printed"),
        ("a.css", ".a {\n  colr: red;\n}\n", "Unknown property"),
        ("a.css", ".a { color: red }\n", "Formatter would have printed"),
    ],
)
def test_each_fault_is_found(check, tmp_path, folder, name, code, found):
    shutil.copy(ROOT / "biome.json", tmp_path)
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / name).write_text(code, encoding="utf-8")
    result = check(tmp_path)
    assert result.returncode != 0
    assert found in result.stdout + result.stderr
