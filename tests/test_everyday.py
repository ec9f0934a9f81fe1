"""Of `pytest` alone nobody must believe that it asked everything."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

HERE = Path(__file__).parent
TESTS = """
import pytest

@pytest.fixture
def playwright():
    pass

@pytest.fixture
def page(playwright):
    pass

def test_small(): pass

@pytest.mark.thorough
def test_long(): pass

def test_in_a_browser(page): pass

@pytest.mark.everyday
def test_in_a_browser_each_day(page): pass

@pytest.mark.everyday("L04")
@pytest.mark.parametrize("lesson", ["L03", "L04"])
def test_of_lessons(page, lesson): pass
"""
EVERYDAY, ALL = 3, 6


@pytest.fixture
def run(pytester):
    """Run pytest on some tests with the course's own hooks: how many passed, and the result."""
    pytester.makeconftest((HERE / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyprojecttoml(
        f"""
        [tool.pytest.ini_options]
        testpaths = ["tests"]
        pythonpath = ["{HERE}"]
        markers = ["thorough", "everyday(case)"]
        """
    )
    (pytester.mkdir("tests") / "test_some.py").write_text(TESTS, encoding="utf-8")

    def run(*args):
        result = pytester.runpytest_subprocess("--strict-markers", *args)
        return result.parseoutcomes()["passed"], result

    return run


@pytest.mark.parametrize(
    "option",
    [
        "-n2",
        *(
            pytest.param(o, marks=pytest.mark.thorough)
            for o in ("--lf", "--ff", "-pno:cacheprovider")
        ),
    ],
)
def test_alone_it_leaves_out_what_takes_long_and_says_so(run, option):
    passed, result = run(option)
    assert passed == EVERYDAY
    result.stdout.fnmatch_lines(
        ["*NOT EVERYTHING WAS ASKED*", f"{ALL - EVERYDAY} tests were left out*--thorough*"]
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("chosen", "number"),
    [
        (["--thorough", "-n2"], ALL), (["tests/test_some.py"], ALL), (["-ktest"], ALL),
        (["-mthorough"], ALL - EVERYDAY), (["-mnot thorough"], EVERYDAY),
    ],
)  # fmt: skip
def test_who_chooses_gets_all_that_was_chosen(run, chosen, number):
    passed, result = run(*chosen)
    assert passed == number
    result.stdout.no_fnmatch_line("*NOT EVERYTHING*")
