"""The wheel carries everything: the packages work where this checkout isn't."""

import re
import shutil
import subprocess
import sys

import pytest
from tools import ROOT
from tools.readers_packages import missing_beside

USE_IT = """
import sys
sys.path.insert(0, sys.argv[1])
import attnlib, attncourse.lessons, attnlib.plotting, attncourse.widgets
assert attnlib.__file__.startswith(sys.argv[1]), attnlib.__file__
from attncourse import data
assert data.load("concord")[1].final["relations"]["verb>object"] > 0.9
"""


LARGEST = 3_500_000  # bytes, 2.5 million of them weights: a notebook fetches it first of all


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", folder, ROOT], check=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel):
    """Install the wheel, without what it needs, into a folder of its own."""
    target = wheel.parent / "target"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target]
    subprocess.run([*install, wheel], check=True)
    return target


def test_the_wheel_is_small(wheel):
    assert wheel.stat().st_size < LARGEST


def test_the_wheel_carries_every_file(installed):
    wanted = {
        path.relative_to(ROOT / "src")
        for path in (ROOT / "src").glob("attn*/**/*")
        if path.is_file() and not {"__pycache__", "attnlib.egg-info"} & {*path.parts}
    }
    assert any(path.suffix == ".js" for path in wanted)
    assert any(path.suffix == ".css" for path in wanted)
    assert any(path.name == "py.typed" for path in wanted)  # so that users' checkers read the hints
    assert [path for path in sorted(wanted) if not (installed / path).is_file()] == []


def test_the_wheel_works_without_the_checkout(installed, tmp_path):
    command = [sys.executable, "-c", USE_IT, installed]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


ALONE = """
import sys
sys.path.insert(0, sys.argv[1])

from importlib.machinery import PathFinder
found = PathFinder.find_spec

def find_spec(name, path=None, target=None):
    return None if name.split(".")[0] in sys.argv[2:] else found(name, path, target)

PathFinder.find_spec = find_spec
"""


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
    command = [sys.executable, "-c", ask, tmp_path, *sorted(set(missing) - {"attnlib"})]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
