"""Usual mistakes that are read from the text beside a module."""

import traceback
from pathlib import Path

import pytest
import torch

from attncourse.checking.mistakes import Mistake, read_mistakes

TEXT = """\
# double(x, times=2)

    x * x
    torch.pow(x,
        times)
You squared it.
Add it to itself.

    def half(x):
        for _ in range(1):
            x = x / 2
        return x
You halved it.

# numbers

    first = [TWO, 1]
The first is wrong.

    whole([1, TWO]), [1, 1]
They are swapped.
"""


@pytest.fixture
def read(tmp_path):
    """Return a function that reads the mistakes in a section of a text."""

    def read(section, text):
        (tmp_path / "numbers.md").write_text(text, encoding="utf-8")
        return read_mistakes(section, {"__file__": str(tmp_path / "numbers.py"), "TWO": 2})

    return read


def test_functions_are_expressions_of_the_arguments_or_written_whole_and_others_values(read):
    square, power, half = read("double", TEXT)
    assert [mistake.answer(6) for mistake in (square, half)] == [36, 3]
    assert power.answer(torch.tensor(6)) == 36
    assert square.hint == power.hint == "You squared it. Add it to itself."
    assert (half.hint, half.name) == ("You halved it.", "half")
    assert read("numbers", TEXT) == (
        Mistake([2, 1], "The first is wrong.", name="first"),
        Mistake([1, 2], "They are swapped.", whole=True),
        Mistake([1, 1], "They are swapped."),
    )


def test_a_function_that_raises_shows_its_line(read):
    for mistake, line in zip(read("double", TEXT), (3, 4, 11), strict=True):
        with pytest.raises(TypeError) as raised:
            mistake.answer("text")
        shown = traceback.extract_tb(raised.tb)[1]
        assert (Path(shown.filename).name, shown.lineno) == ("numbers.md", line)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a section '# numbers', got none"),
        ("    1\nNo.\n", "line 1: .* a heading .*, got '    1'"),
        ("# numbers\n    1\nNo.", "line 1: .* a blank line below, got # numbers\n    1"),
        ("# numbers\n\n# numbers\n", "line 3: .* one section of each name"),
        ("# numbers\n\n    1\nNo.\n    2\nNo.\n", "line 5: .* a blank line .*, got     2"),
        ("# numbers\n\n  1\nNo.\n", "line 3: .* indented by four .*'  1'"),
        ("# numbers\n\n    1 +\nNo.\n", "line 3: .* a value, got '1 .', .* Syntax"),
        ("# numbers(x)\n\n    x +\nNo.\n", "line 3: .* an expression of x, got 'x .'"),
    ],
)
def test_a_text_in_another_form_is_refused(read, text, words):
    with pytest.raises(ValueError, match=rf"(?s)numbers\.md.*{words}"):
        read("numbers", text)


def test_a_text_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"numbers\.md: wanted a text"):
        read_mistakes("numbers", {"__file__": str(tmp_path / "numbers.py")})
