"""attnlib <- attndoctor <- attncourse: no arrow points back, types included; imports are light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from course.pages import PACKAGES
from tools import ROOT


def imports_of(file: Path) -> set[str]:
    """Return the packages that a file imports, wherever it does, under TYPE_CHECKING, too."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}: imports are absolute"
            names.add(node.module)
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_those_before_it(package):
    after = {*PACKAGES[PACKAGES.index(package) + 1 :]}
    files = sorted((ROOT / "src" / package).rglob("*.py"))
    assert files
    found = {str(file): imports_of(file) & after for file in files}
    assert {file: names for file, names in found.items() if names} == {}


WITHOUT = """
import sys
from importlib import import_module, util
library, *modules = sys.argv[1:]
there = util.find_spec
util.find_spec = lambda name, *rest: None if name == library else there(name, *rest)
sys.modules[library] = None
for module in modules:
    try:
        import_module(module)
    except ImportError as error:
        print(error)
"""
FIGURES = ["attncourse.head_shards"] + [
    f"attncourse.lessons.{folder.parent.name}.figures"
    for folder in sorted(ROOT.glob("src/attncourse/lessons/*/figures"))
]


@pytest.mark.parametrize(
    ("modules", "library", "extra"),
    [
        (["attnlib.plotting", *FIGURES], "matplotlib", "plotting"),
        (["attncourse.widgets"], "anywidget", "widgets"),
    ],
)
def test_what_needs_an_extra_says_which(modules, library, extra):
    command = [sys.executable, "-c", WITHOUT, library, *modules]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    said = result.stdout.splitlines()
    assert len(said) == len(modules)
    assert [line for line in said if f"pip install 'attnlib[{extra}]'" not in line] == []


QUICK = """
import sys, attnlib, attncourse.atlas
heavy = {"matplotlib", "anywidget", "IPython", "safetensors", "transformers"} & set(sys.modules)
from attncourse import data
data.load("concord")
heavy |= {"torch._dynamo"} & set(sys.modules)  # a second for nothing
sys.exit(", ".join(heavy) or 0)
"""


def test_importing_and_loading_stay_light():
    result = subprocess.run([sys.executable, "-c", QUICK], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
