"""The command that writes the bones of a new lesson, and registers it."""

import ast
import shutil

import pytest
from new_lesson import write_lesson
from tools import ROOT

TABLES = ("_toc.yml", "README.md", "book/index.md")


@pytest.fixture
def checkout(tmp_path):
    """Return a folder with what names the lessons."""
    (tmp_path / "book").mkdir()
    for name in TABLES:
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_a_lesson_is_written_and_registered_and_nothing_is_written_over(checkout):
    files = {str(path) for path in write_lesson(checkout, 12, "Sparse Attention")}
    assert {"book/L12_Sparse_Attention.md", "src/attncourse/lessons/l12/sums.md"} < files
    for name in TABLES:
        lines = (checkout / name).read_text(encoding="utf-8").splitlines()
        (at,) = (i for i, line in enumerate(lines) if "L12_Sparse_Attention" in line)
        assert "L11_" in lines[at - 1]
    for path in checkout.rglob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"))
    assert "$" not in (checkout / "book/L12_Sparse_Attention.md").read_text(encoding="utf-8")
    with pytest.raises(FileExistsError, match="L12_Sparse_Attention"):
        write_lesson(checkout, 12, "Something Else")
    next(checkout.glob("book/L12_*")).unlink()
    with pytest.raises(FileExistsError, match="lessons/l12"):
        write_lesson(checkout, 12, "Sparse Attention")


@pytest.mark.parametrize(
    ("number", "title", "named"),
    [(13, "...", "title"), (13, "A | B", "title"), (13, 'A """', "title"), (123, "Many", "number")],
)
def test_what_no_table_can_show_is_refused(checkout, number, title, named):
    with pytest.raises(ValueError, match=f"^{named} must"):
        write_lesson(checkout, number, title)
