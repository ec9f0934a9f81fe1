"""What teachers are told is counted on the lessons, and collected from them."""

import json
import re

import pytest
from course.lengths import STATE
from course.pages import lesson_checked_on, lesson_of
from course.teachers import SENTENCE
from tools import ROOT
from tools.lesson_runs import all_lessons, all_notebooks, code_of
from tools.site_builds import read

from attncourse.lessons import lessons

PAGE = "book/teachers.html"


@pytest.fixture
def told(small):
    """Return the page of the small site that tells of its lessons."""
    return read(small / "told.html").article


def test_what_is_counted_is_filled_in(told):
    [row] = [row for row in told.select("tr") if "L99" in row.text]
    # 400 words, and a few in exercises and headings, take three minutes, a prediction half of one
    assert [cell.text.strip() for cell in row.select("td")] == ["L99 · A lesson", "3", "15", "1"]
    rows = [[int(td.text) for td in row.select("td")[1:]] for row in told.select("tr")[-2:]]
    (reading, solving, _), (last_reading, last_solving, _) = rows  # of L97 and L99
    assert [found.text for found in told.select("section > p .course-counted")] == [
        "2", "7", str(reading + last_reading), str(solving + last_solving),
    ]  # fmt: skip
    assert "Only in the source" not in told.text


def test_a_prediction_becomes_a_question_with_its_answer_folded(told):
    [fold] = [one for one in told.select("details.course-class") if "L99" in one.summary.text]
    assert fold.summary.text == "L99 · A lesson (1 question)" and not fold.has_attr("open")
    asked = fold.ol.li
    assert asked.p.code.text == "1 < 2"
    assert [choice.text for choice in asked.select("ol > li")] == ["Yes", "No"]
    assert asked.select_one("ol em").text == "No"
    assert asked.details.p.text == "A. Count." and not asked.details.has_attr("open")
    assert asked.select_one("a")["href"] == "L99_Class.html#l99-a-lesson"


def test_what_cant_be_counted_is_said(warnings):
    for said in (
        "no lesson L70", "L78 has nothing called nowhere", "L78 has nothing called ex-l78-none",
        "wanted L03, L03#section",
    ):  # fmt: skip
        assert said in warnings


def test_the_path_of_ninety_minutes_fits(site):
    """Twice the reading and the two exercises, as the page says."""
    section = read(site / PAGE).select_one("section#ninety-minutes")
    reading = [int(cell.text) for cell in section.select("td .course-counted")]
    exercises = [int(found.text) for found in section.select("section > p > .course-counted")]
    assert len(reading) > 5 and len(exercises) == 2
    assert 70 < 2 * sum(reading) + sum(exercises) <= 88


def test_six_weeks_hold_all_lessons_once(site):
    section = read(site / PAGE).select_one("section#six-weeks")
    weeks = [found["data-of"] for found in section.select(".course-counted")]
    assert len(weeks) == 12
    assert [solving.replace(":exercises", "") for solving in weeks[1::2]] == weeks[::2]
    *told, onward = " ".join(weeks[::2]).split()
    names = [lesson_of(page) for page in all_lessons()]
    assert told == names[: names.index(onward.removesuffix("..."))]


@pytest.mark.parametrize("lesson", all_lessons())
def test_every_prediction_of_a_lesson_is_a_question(site, lesson):
    page = read(site / f"{lesson}.html")
    saved = json.loads(page.select_one(STATE).string)["state"].values()
    asked = [one["state"] for one in saved if one["state"].get("_module") == "predict"]
    fold = next(
        fold
        for fold in read(site / PAGE).select("#questions-for-the-class > details")
        if fold.summary.text.startswith(page.select_one("h1").text.split(" · ")[0])
    )
    assert fold.summary.text.endswith(f" ({len(asked)} questions)")
    shown = fold.select("details.course-class > ol > li")
    assert len(shown) == len(asked) > 3
    text = fold.text
    for one in asked:
        assert re.split("[`*]", one["question"].strip())[0].split("\n")[0] in text
        assert re.split("[`*\n]", one["explanation"].strip())[0] in text


CHECKING = [page for page in all_notebooks() if lesson_checked_on(code_of(page))]


@pytest.mark.parametrize("page", CHECKING)
def test_every_exercise_tells_what_goes_wrong(site, page):
    source = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    module = lessons()[lesson_checked_on(source)]
    checks = [name for name in module.__all__ if f"check.{name}(" in source]
    title = re.search("^# (.+)$", source, re.M)[1]
    fold = next(
        fold
        for fold in read(site / PAGE).select("#what-goes-wrong > details")
        if fold.summary.text == title
    )
    exercises = fold.find_all("details", recursive=False)
    assert len(exercises) == source.count("{exercise-start}") == len(checks)
    for exercise in exercises:
        assert exercise.select_one('p a[href*="#ex-l"]')
        assert exercise.select("ul > li")


def test_a_hint_is_cut_behind_its_first_sentence():
    for hint in ("You divided by `x.y`: no. Try 2.5.", "Not all. Count those of b. Try."):
        assert SENTENCE.match(hint)[0] == hint.removesuffix(" Try.").removesuffix(" Try 2.5.")
