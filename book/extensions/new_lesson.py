"""Write the bones of a new lesson, and register it.

    python book/extensions/new_lesson.py 12 "Sparse Attention"

A page with an exercise, the exercise's check and its test, and the lines in `_toc.yml` and in the
tables of lessons. What is there already is never written over.
"""

import re
import sys
from pathlib import Path
from string import Template

ROOT = Path(__file__).parents[2]
PAGE = Path(__file__).with_name("lesson_bones.md")

CHECK = '''"""A sum. Replace it by this lesson's first exercise."""

from attncourse.checking import CheckResult, Numbers, check_numbers, exercise


@exercise(page=Numbers(right=4, labels=["the sum"]))
def add(answer: object) -> CheckResult:
    """Check the sum of 2 and 2."""
    praise, otherwise = "Two and two are four.", ["Count on your fingers."]
    return check_numbers(answer, add, praise=praise, otherwise=otherwise)
'''
MISTAKES = """# add

    22
You put the digits side by side. Add the numbers.

    0
You subtracted. Add the numbers.

    5
One too many. Count again.
"""
FOLDER = '''"""Checks of {lesson}, {title}."""

from attncourse.checking.lesson import publish

__all__, __getattr__ = publish(__name__)
'''
TEST = '''"""What the checks of lesson {lesson} do beyond what every check does."""

from attncourse.lessons import {folder}


def test_the_sum_may_be_a_float():
    assert {folder}.add(4.0)
'''


def files_of(number: int, title: str) -> dict[Path, str]:
    """Return what is written: path -> text."""
    lesson, folder = f"L{number:02}", f"l{number:02}"
    page = f"{lesson}_{'_'.join(re.findall(r'[A-Za-z0-9]+', title))}"
    words = {"lesson": lesson, "folder": folder, "title": title, "page": page}
    source = Path("src/attncourse/lessons") / folder
    return {
        Path(f"book/{page}.md"): Template(PAGE.read_text(encoding="utf-8")).substitute(words),
        source / "__init__.py": FOLDER.format(**words),
        source / "sums.py": CHECK,
        source / "sums.md": MISTAKES,
        Path(f"tests/attncourse/lessons/test_exercises_{folder}.py"): TEST.format(**words),
    }


def rows_of(page: str, lesson: str, title: str) -> dict[Path, str]:
    """Return the lines by which it is found: path -> the line below that of the last lesson."""
    return {
        Path("_toc.yml"): f"      - file: book/{page}\n",
        Path("README.md"): f"| [{lesson} {title}](book/{page}.md) | ... |\n",
        Path("book/index.md"): f"| **[{lesson} {title}]({page}.md)** | ... | 5 + 1 |\n",
    }


def below_the_last_lesson(text: str, row: str) -> str:
    """Return a text with a row below the last one that names a lesson as a list or table does."""
    rows = [*re.finditer(r"^(?:\| .*|      - file: book/)\bL\d\d_\w+(?:\.md\).*)?\n", text, re.M)]
    end = rows[-1].end()
    return text[:end] + row + text[end:]


def write_lesson(root: Path, number: int, title: str) -> list[Path]:
    """Write the lesson into a checkout; return the files that were written or changed.

    Raises:
        FileExistsError: there is a lesson with this number, or a file of one.
        ValueError: another number, or a title that no table can show.
    """
    if not 1 <= number <= 99:
        raise ValueError(f"number must be from 1 to 99, got {number}")
    if not re.search("[A-Za-z]", title) or re.search(r'[\n\r|"\\\[\]`$]', title):
        raise ValueError(f'title must be one line of words without | " \\ [ ] ` $, got {title!r}')
    files = files_of(number, title)
    there = [*root.glob(f"book/L{number:02}_*.md"), *(root / path for path in files)]
    if found := next((path for path in there if path.exists()), None):
        raise FileExistsError(f"number: there is {found.relative_to(root)}")
    page = next(iter(files)).stem
    for path, row in rows_of(page, f"L{number:02}", title).items():
        files[path] = below_the_last_lesson((root / path).read_text(encoding="utf-8"), row)
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return [*files]


if __name__ == "__main__":
    if len(sys.argv) != 3 or not (sys.argv[1].isascii() and sys.argv[1].isdecimal()):
        sys.exit('usage: python book/extensions/new_lesson.py NUMBER "Its Title"')
    try:
        print(*write_lesson(ROOT, int(sys.argv[1]), sys.argv[2]), sep="\n")
    except (FileExistsError, ValueError) as error:
        sys.exit(str(error))
