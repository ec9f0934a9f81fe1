"""The wheel carries everything: attnlib works where this checkout isn't."""

import subprocess
import sys

import pytest
from tools import ROOT

USE_IT = """
import sys
sys.path.insert(0, sys.argv[1])
import attnlib, attnlib.exercises, attnlib.plotting, attnlib.widgets
assert attnlib.__file__.startswith(sys.argv[1]), attnlib.__file__
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Build the wheel and install it, without what it needs, into a folder of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    install += ["--no-build-isolation", "--target", folder / "target", ROOT]
    subprocess.run(install, check=True)
    return folder / "target"


def test_the_wheel_carries_every_file(installed):
    wanted = {
        path.relative_to(ROOT / "src")
        for path in (ROOT / "src" / "attnlib").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert any(path.suffix == ".js" for path in wanted)
    assert any(path.suffix == ".css" for path in wanted)
    assert any(path.name == "py.typed" for path in wanted)  # so that users' checkers read the hints
    assert [path for path in sorted(wanted) if not (installed / path).is_file()] == []


def test_the_wheel_works_without_the_checkout(installed, tmp_path):
    command = [sys.executable, "-c", USE_IT, installed]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
