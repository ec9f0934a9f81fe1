"""A page is executed again when what it uses may have changed, and never shows what is stale."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

from course.execution import LIBRARIES, execute, failures_of, fingerprint
from course.pages import PACKAGES, lesson_checked_on, source_folder
from tools.lesson_runs import all_notebooks, code_of
from tools.packages import names_of_modules
from tools.small_pages import cell, notebook

# Files of the packages, and the lessons whose pages an edit of each should execute again: of a page
# that checks exercises of L04, of L05, and of none.
ALL = ["l04", "l05", ""]
FILES = {
    "attnlib/masks.py": ALL,
    "attncourse/data/weights.safetensors": ALL,
    "attncourse/widgets/flow/widget.py": ALL,
    "attncourse/lessons/l04/__init__.py": ["l04"],
    "attncourse/lessons/l04/figures/flow.py": ["l04"],
    "attncourse/lessons/l05/norms.py": ["l05"],
    "attncourse/widgets/flow/widget.js": [],
    "attncourse/widgets/shared/flow.css": [],
    "attnlib/__pycache__/masks.cpython-311.pyc": [],
}


def test_each_page_is_keyed_by_the_package_and_the_folders_of_its_checks(tmp_path):
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    before = {lesson: fingerprint(lesson, tmp_path) for lesson in ALL}

    def changed() -> list[str]:
        return [lesson for lesson in ALL if fingerprint(lesson, tmp_path) != before[lesson]]

    for name, lessons in FILES.items():
        file = tmp_path / name
        file.write_text(f"{name}, edited", encoding="utf-8")
        assert changed() == lessons
        file.unlink()
        assert changed() == lessons
        file.write_text(name, encoding="utf-8")
        file.with_stem("new").write_text("", encoding="utf-8")
        assert changed() == lessons
        file.with_stem("new").unlink()
        assert changed() == []


def imported(code: str) -> Iterator[str]:
    """Give all that a text imports."""
    code = "\n".join(line for line in code.splitlines() if line[:1] != "%")
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (f"{alias.name}." for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}." for alias in node.names)


def test_nothing_uses_the_folder_of_another_lesson_and_all_libraries_count():
    """For a page isn't executed again when something else has changed."""
    codes = {page: (code_of(page), {lesson_checked_on(code_of(page))}) for page in all_notebooks()}
    files = [file for name in PACKAGES for file in (source_folder() / name).rglob("*.py")]
    codes |= {file: (file.read_text(encoding="utf-8"), {*file.parts}) for file in files}
    modules = set()
    for place, (code, own) in codes.items():
        for name in imported(code):
            used = re.findall(r"^attncourse\..*\.?\b(l\d\d)\.", name)
            assert {*used} <= own, f"{place} uses {used}"
            modules.add(name.split(".")[0].lower())
    counted = {name.replace("-", "_") for name in LIBRARIES} | set(PACKAGES)
    come_with_them = {"cycler", "matplotlib_inline", "traitlets", "triton"}
    in_jupyterlab_alone = {"jupytext", "tqdm"}  # captions, which the site sets itself; progress
    counted |= come_with_them | in_jupyterlab_alone
    assert modules - {name.lower() for name in sys.stdlib_module_names} <= counted


DATA = (".bin", ".csv", ".json", ".npy", ".npz", ".pt", ".pth", ".safetensors")


def test_a_page_reads_no_data_by_their_path():
    """A page is keyed by files of the packages; of others it wouldn't notice a change."""
    for page in all_notebooks():
        code = "\n".join(line for line in code_of(page).splitlines() if line[:1] != "%")
        texts = [n.value for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Constant)]
        paths = [text for text in texts if isinstance(text, str) and text.endswith(DATA)]
        paths = [path for path in paths if path not in DATA]  # a suffix alone is no file's path
        assert not paths, f"{page} names {paths}: attncourse.data should hold and load them"


ODD_FAILURES = {
    "raise ExceptionGroup('several', [ValueError('one')])": "ExceptionGroup",
    "assert False, '\\ud800 alone'": "",
    "%nosuch": "UsageError",
    "raise ValueError('word ' * 20_000)": "ValueError: word word",
    "import os; os._exit(1)": "",
}


def test_a_cell_that_fails_oddly_or_ends_its_kernel_is_told_briefly(tmp_path):
    page = tmp_path / "page.md"
    codes = ["import ipywidgets; ipywidgets.Label()", *ODD_FAILURES, "1"]
    page.write_text(notebook(*map(cell, codes)), encoding="utf-8")
    executed, _ = execute(page, timeout=60)
    assert "widgets" in executed.metadata  # or the page couldn't show the first cell
    failures = failures_of(executed)
    assert len(failures) == len(ODD_FAILURES)
    for failure, begin in zip(failures, ODD_FAILURES.values(), strict=True):
        assert failure.error.startswith(begin)
        assert len(failure.error) <= 300 and len(failure.traceback) <= 10_000
    assert failures[-1].name.startswith("cell 6 (import os")


IMPORT_ALL = """
import importlib, os, sys
import IPython, anywidget, matplotlib, torch

def look_around():
    settings = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()
    return torch.get_rng_state().tolist(), settings, dict(matplotlib.rcParams), dict(os.environ)

before = look_around()
for module in sys.argv[1:]:
    importlib.import_module(module)
    if look_around() != before:
        sys.exit(f"{module} changes settings or random numbers")
"""


def test_importing_a_module_changes_nothing_around_it():
    command = [sys.executable, "-c", IMPORT_ALL, *names_of_modules()]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
