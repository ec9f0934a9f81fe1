"""The wheel carries everything: the packages work where this checkout isn't."""

import re
import shutil
import subprocess
import sys

import pytest
from tools import ROOT
from tools.readers_packages import missing_beside

LARGEST = 3_500_000  # bytes, 2.5 million of them weights: a notebook fetches it first of all
USE_IT = """
import sys
sys.path.insert(0, sys.argv[1])
import attnlib, attncourse.lessons, attnlib.plotting, attncourse.widgets
assert attnlib.__file__.startswith(sys.argv[1]), attnlib.__file__
from attncourse import data
assert data.load("concord")[1].final["relations"]["verb>object"] > 0.9
"""
ALONE = """
import sys
sys.path.insert(0, sys.argv[1])

from importlib.machinery import PathFinder
found = PathFinder.find_spec

def find_spec(name, path=None, target=None):
    return None if name.split(".")[0] in sys.argv[2:] else found(name, path, target)

PathFinder.find_spec = find_spec
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Build the wheel and install it, without what it needs, into a folder of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    pip, alone = [sys.executable, "-m", "pip"], ["--quiet", "--no-deps"]
    build = [*pip, "wheel", *alone, "--no-build-isolation", "--wheel-dir", folder, ROOT]
    subprocess.run(build, check=True)
    (wheel,) = folder.glob("*.whl")
    assert wheel.stat().st_size < LARGEST
    subprocess.run([*pip, "install", *alone, "--target", folder / "target", wheel], check=True)
    return folder / "target"


def run(code, folder, *arguments):
    """Run code where the checkout isn't."""
    command = [sys.executable, "-c", code, *arguments]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_wheel_carries_every_file_and_works_without_the_checkout(installed, tmp_path):
    wanted = {
        path.relative_to(ROOT / "src")
        for path in (ROOT / "src").glob("attn*/**/*")
        if path.is_file() and not {"__pycache__", "attnlib.egg-info"} & {*path.parts}
    }
    assert {".js", ".css"} < {path.suffix for path in wanted}
    assert any(path.name == "py.typed" for path in wanted)  # so that users' checkers read the hints
    assert [path for path in sorted(wanted) if not (installed / path).is_file()] == []
    run(USE_IT, tmp_path, installed)


def test_attnlib_alone_runs_the_readme_s_first_example(installed, tmp_path):
    """The small package needs torch, numpy and matplotlib, and neither of the other two."""
    shutil.copytree(installed / "attnlib", tmp_path / "attnlib")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.search(r"^```python\n(.*?)^```", readme, re.M | re.S)[1]
    assert "plotting.plot_heads(" in example
    missing = [*missing_beside("torch", "numpy", "matplotlib"), "attndoctor", "attncourse"]
    assert {"IPython", "safetensors", "anywidget"} <= {*missing}
    example += "\nplotting.use_course_style()"
    ask = f"{ALONE}\n{example}\nassert attnlib.__file__.startswith(sys.argv[1])"
    ask = ask.replace("import torch\n", "import attnlib\nimport torch\n", 1)
    run(ask, tmp_path, tmp_path, *sorted(set(missing) - {"attnlib"}))
