"""A page is executed again when a file that it uses changes, and only then."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from code_names import read_code
from execution_cache import LIBRARIES, code_of, fingerprint, package_folder, read_notebook
from tools import ROOT
from tools.lesson_runs import all_notebooks, watched_pages
from used_files import UsedFiles, files_below

import attnlib
from attnlib import (
    atlas,
    data,
    heatmap,
    interop,
    model,
    museum,
    patterns,
    plotting,
    relations,
    training,
    widgets,
)

HOUSE = {
    "__init__.py": '"""All."""\nfrom attnlib.blocks import Block\nfrom attnlib.masks import mask\n',
    "masks.py": "def mask(): ...",
    "blocks.py": "from attnlib.palette import INK\nclass Block: ...",
    "palette.py": "INK = 'black'",
    "plotting/__init__.py": "from attnlib.plotting.flow import plot_flow as flow\n"
    "from attnlib.plotting.heads import plot_heads\n__all__ = ['flow', 'plot_heads']",
    "plotting/heads.py": "from attnlib import palette\ndef plot_heads(): palette.INK",
    "plotting/flow.py": "def plot_flow():\n    from attnlib import mask\n    mask()",
    "exercises/__init__.py": "from importlib import import_module\nALL = import_module('l01')",
    "exercises/l01.py": "from attnlib import plotting\ndef draw(): plotting.plot_heads()",
    "exercises/l02/__init__.py": "from attnlib.exercises._lesson import publish\npublish(__name__)",
    "exercises/l02/sums.py": "from attnlib import mask\ndef add(): mask()",
    "exercises/_lesson.py": "import pkgutil\ndef publish(lesson): pkgutil.iter_modules()",
    "data/__init__.py": "from pathlib import Path\nFOLDER = Path(__file__).parent\n"
    "def load(): return FOLDER.joinpath('first.safetensors')",
    "data/first.safetensors": "1.0",
    "widgets/__init__.py": "from attnlib.widgets.map import Map",
    "widgets/map.py": "from attnlib.masks import mask\nclass Map: ...",
    "widgets/map.js": "draw()",
    "widgets/map.css": "p {}",
}
HEADS = {"plotting/heads.py", "palette.py"}
FLOW = {"plotting/flow.py", "masks.py"}
PLOTTING = {"plotting/__init__.py", *HEADS, *FLOW}
L02 = {"exercises/l02/__init__.py", "exercises/l02/sums.py", "exercises/_lesson.py", "masks.py"}
DATA = {"data/__init__.py", "data/first.safetensors"}
EVERYTHING = {name for name in HOUSE if not name.endswith((".js", ".css"))}
USES = {
    "import torch\ntorch.ones(3)": set(),
    "import attnlib": set(),
    "from attnlib import mask\nmask()": {"masks.py"},
    "import attnlib\nattnlib.mask()": {"masks.py"},
    "import attnlib.masks as m\nm.mask()": {"masks.py"},
    "from attnlib import masks\nmasks.mask()": {"masks.py"},
    "from attnlib import Block\nBlock.forward()": {"blocks.py"},
    "from attnlib import blocks\nblocks.INK": {"blocks.py", "palette.py"},
    "from attnlib import plotting\nplotting.plot_heads()": HEADS,
    "from attnlib.plotting import plot_heads as draw\ndraw()": HEADS,
    "import attnlib\nattnlib.plotting.heads.plot_heads()": HEADS,
    "def f():\n    from attnlib.plotting import flow\n    flow()": FLOW,
    "from attnlib.exercises import l01 as check\ncheck.draw()": {"exercises/l01.py", *HEADS},
    "from attnlib.exercises import l02 as check\ncheck.add()": L02,
    "from attnlib.data import load\nload()": DATA,
    "from attnlib.widgets import Map\nMap()": {"widgets/map.py"},
    # Used as a whole:
    "from attnlib import plotting\nvars(plotting)": PLOTTING,
    "from attnlib import plotting\nplotting.no_such_name": PLOTTING,
    "from attnlib import plotting as p\nq = p\nq.flow()": PLOTTING,
    # Whatever can't be told:
    "import attnlib\ngetattr(attnlib, 'mask')()": EVERYTHING,
    "from attnlib.exercises import ALL\nALL": EVERYTHING,
    "from attnlib import *\nmask()": EVERYTHING,
    "from importlib import import_module as get\nget('attnlib.masks')": EVERYTHING,
    "import sys\nsys.modules['attnlib'].mask()": EVERYTHING,
    "__import__('attnlib').mask()": EVERYTHING,
    "exec('import attnlib')": EVERYTHING,
    "%run masks.py": EVERYTHING,
    "import attnlib\nattnlib.__path__": EVERYTHING,
    "open('../src/attnlib/data/first.safetensors')": EVERYTHING,
}


@pytest.fixture
def house(tmp_path):
    """Write a small package."""
    for name, text in HOUSE.items():
        path = tmp_path / "attnlib" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "attnlib"


def names_of(paths: set[Path], package: Path) -> set[str]:
    return {path.relative_to(package).as_posix() for path in paths}


@pytest.mark.parametrize("code", USES)
def test_code_uses_the_files_behind_its_names(house, code):
    assert names_of(UsedFiles(code, house).files, house) == USES[code]


@pytest.mark.parametrize("code", list(USES)[::5])
def test_a_file_counts_when_it_is_used_whatever_its_kind(house, code):
    before = fingerprint(code, house)
    for name, text in HOUSE.items():
        (house / name).write_text(f"{text}\n", encoding="utf-8")
        assert (fingerprint(code, house) != before) == (name in USES[code]), name
        (house / name).unlink()
        if not name.endswith("__init__.py"):
            assert (fingerprint(code, house) != before) == (name in USES[code]), name
        (house / name).write_text(text, encoding="utf-8")
    assert fingerprint(code, house) == before


def test_a_new_file_counts_where_files_are_read(house):
    load, draw = "from attnlib.data import load\nload()", "from attnlib import mask\nmask()"
    before = fingerprint(load, house), fingerprint(draw, house)
    (house / "data" / "second.safetensors").write_text("2.0", encoding="utf-8")
    assert fingerprint(load, house) != before[0]
    assert fingerprint(draw, house) == before[1]


def test_another_origin_of_a_name_counts_and_another_name_beside_it_does_not(house):
    code = "from attnlib import plotting\nplotting.plot_heads()"
    before, exports = fingerprint(code, house), house / "plotting" / "__init__.py"
    exports.write_text(f"from attnlib.masks import mask\n{HOUSE['plotting/__init__.py']}")
    assert fingerprint(code, house) == before
    (house / "plotting" / "heads.py").write_text(f"{HOUSE['plotting/heads.py']}\ndef two(): ...")
    before = fingerprint(code, house)
    exports.write_text("from attnlib.plotting.heads import two as plot_heads")
    assert fingerprint(code, house) != before


def test_saved_weights_count_where_they_are_loaded_and_not_where_models_are_trained():
    package = package_folder()
    saved = {path for path in (package / "data").iterdir() if path.suffix in DATA}
    loads = UsedFiles("from attnlib import data\ndata.load('concord')", package).files
    trains = UsedFiles("from attnlib.training import RECIPES, train\ntrain(RECIPES)", package).files
    assert saved and saved <= loads < files_below(package)
    assert trains.isdisjoint(saved) and package / "training" / "loop.py" in trains


MODULES = (attnlib, atlas, data, heatmap, interop, model, museum, patterns, plotting, relations)
PUBLIC = [
    (module.__name__, name)
    for module in (*MODULES, training, widgets)
    for name in module.__all__
    if inspect.isclass(getattr(module, name)) or inspect.isfunction(getattr(module, name))
]


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_each_public_name_stands_for_the_file_that_defines_it(module, name):
    package = package_folder()
    public = inspect.unwrap(getattr(importlib.import_module(module), name))
    code = f"import {module}\n{module}.{name}()"
    used = UsedFiles(code, package).files
    assert Path(inspect.getsourcefile(public)) in used
    assert used < files_below(package)


@pytest.mark.parametrize("page", all_notebooks())
def test_a_page_does_not_use_the_whole_package(page):
    """It would be executed again after every edit: it must import what it uses by name."""
    used = UsedFiles(code_of(read_notebook(ROOT / f"{page}.md")), package_folder()).files
    assert len(used) < len(files_below(package_folder())), (
        f"{page}, or what it imports, finds modules or files in a way that can't be followed, so "
        "every edit would execute it again: see used_files.py. Saved weights are loaded by a "
        "function of attnlib, which finds them beside itself."
    )


DATA = (".bin", ".csv", ".json", ".npy", ".npz", ".pt", ".pth", ".safetensors")


@pytest.mark.parametrize("page", all_notebooks())
def test_a_page_reads_no_data_by_their_path(page):
    """A page is keyed by files of attnlib; of others it wouldn't notice a change."""
    code = "\n".join(
        line for line in code_of(read_notebook(ROOT / f"{page}.md")).splitlines() if line[:1] != "%"
    )
    texts = [n.value for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Constant)]
    paths = [text for text in texts if isinstance(text, str) and text.endswith(DATA)]
    paths = [path for path in paths if path not in DATA]  # a suffix alone is no file's path
    assert not paths, f"{page} names {paths}: attnlib should hold the data and load them"


def test_versions_of_libraries_count():
    texts = [path.read_text(encoding="utf-8") for path in package_folder().rglob("*.py")]
    texts += [code_of(read_notebook(ROOT / f"{page}.md")) for page in all_notebooks()]
    origins = [o for text in texts for found in read_code(text).imports.values() for o in found]
    imported = {module.split(".")[0] for module, *_ in origins} - sys.stdlib_module_names
    counted = {name.replace("-", "_") for name in LIBRARIES} | {"attnlib"}
    come_with_them = {"cycler", "matplotlib_inline", "traitlets", "triton"}
    in_jupyterlab_alone = {"jupytext", "tqdm"}  # captions, which the site sets itself; progress
    assert {name.lower() for name in imported} <= counted | come_with_them | in_jupyterlab_alone


IMPORT_ALL = """
import importlib, os, sys, types
import IPython, anywidget, matplotlib, torch

def look_around():
    settings = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()
    found = {"random numbers": torch.get_rng_state().tolist(), "settings of torch": settings}
    found |= {"settings of matplotlib": dict(matplotlib.rcParams), "environment": dict(os.environ)}
    for name, module in list(sys.modules.items()):
        if name.startswith("attnlib"):
            values = vars(module).items()
            found[name] = {k: id(v) for k, v in values if not isinstance(v, types.ModuleType)}
    return found

before = look_around()
for module in ["attnlib", *sys.argv[1:]]:
    importlib.import_module(module)
    after = look_around()
    print(*(f"{module} changes {what}" for what in before if before[what] != after[what]))
    before = after
"""


def test_importing_a_module_only_defines_its_names():
    names = [module.name for module in pkgutil.walk_packages(attnlib.__path__, "attnlib.")]
    names.remove("attnlib.heatmap._triton")  # needs Triton
    command = [sys.executable, "-c", IMPORT_ALL, *names]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""


@pytest.mark.parametrize("page", watched_pages())
def test_what_runs_on_a_page_is_among_the_files_that_it_uses(run_notebook, page):
    """And so are the data that it reads. Else it could show what an older package computed."""
    run = run_notebook(page)
    if run.failure:
        pytest.fail("the page doesn't run through", pytrace=False)
    used = {str(path) for path in UsedFiles(code_of(run.notebook), package_folder()).files}
    assert str(package_folder() / "_checks.py") in run.watched.ran  # each page checks something
    assert sorted(run.watched.ran - used) == []
    sources = (".py", ".pyc", ".js", ".css")
    assert sorted(path for path in run.watched.read - used if not path.endswith(sources)) == []
