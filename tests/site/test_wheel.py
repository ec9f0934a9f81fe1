"""The wheel carries everything: the packages work where this checkout isn't."""

import re
import shutil
import subprocess
import sys

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


def run(code, folder, *arguments):
    """Run code where the checkout isn't."""
    command = [sys.executable, "-c", code, *arguments]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_wheel_carries_every_file_and_works_without_the_checkout_and_attnlib_alone(tmp_path):
    pip, alone = [sys.executable, "-m", "pip"], ["--quiet", "--no-deps"]
    build = [*pip, "wheel", *alone, "--no-build-isolation", "--wheel-dir", tmp_path, ROOT]
    subprocess.run(build, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < LARGEST
    installed = tmp_path / "target"
    subprocess.run([*pip, "install", *alone, "--target", installed, wheel], check=True)
    wanted = {
        path.relative_to(ROOT / "src")
        for path in (ROOT / "src").glob("attn*/**/*")
        if path.is_file() and not {"__pycache__", "attnlib.egg-info"} & {*path.parts}
    }
    assert {".js", ".css"} < {path.suffix for path in wanted}
    assert any(path.name == "py.typed" for path in wanted)  # so that users' checkers read the hints
    assert [path for path in sorted(wanted) if not (installed / path).is_file()] == []
    run(USE_IT, tmp_path, installed)

    # attnlib needs torch, numpy and matplotlib, and runs the README's first example.
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
