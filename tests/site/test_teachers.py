"""What teachers are told is counted on the lessons, and collected from them."""

import json
import re

import pytest
from course.lengths import STATE, VIEW
from course.pages import lesson_checked_on, lesson_of
from tools import ROOT
from tools.lesson_runs import all_lessons, all_with_exercises
from tools.site_builds import read

from attncourse.lessons import lessons

PAGE = "book/teachers.html"


def test_lessons_are_counted_and_a_prediction_becomes_a_question_with_its_answer_folded(small):
    told = read(small / "told.html").article
    [row] = [row for row in told.select("tr") if "L99" in row.text]
    heads = [cell.text.strip() for cell in row.find_parent("table").select("th")]
    assert heads == ["lesson", "read", "solve", "predictions"]
    # 400 words, and a few in exercises and headings, take three minutes, a prediction half of one
    assert [cell.text.strip() for cell in row.select("td")] == ["L99 · A lesson", "3", "15", "1"]
    rows = [[int(td.text) for td in row.select("td")[1:]] for row in told.select("tr")[-2:]]
    (reading, solving, _), (last_reading, last_solving, _) = rows  # of L97 and L99
    assert [found.text for found in told.select("section > p .course-counted")] == [
        "2", "7", str(reading + last_reading), str(solving + last_solving),
    ]  # fmt: skip
    assert "Only in the source" not in told.text
    [fold] = [one for one in told.select("details.course-class") if "L99" in one.summary.text]
    assert "(1 question)" in fold.summary.text and not fold.has_attr("open")
    asked = fold.ol.li
    assert asked.p.code.text == "6 * 7"
    assert [choice.text for choice in asked.select("ol > li")] == ["41", "42", "43"]
    assert asked.select_one("ol em").text == "42"
    assert asked.details.p.text == "B. Count." and not asked.details.has_attr("open")
    assert asked.select_one("a")["href"] == "L99_Class.html#l99-a-lesson"


def test_the_path_of_ninety_minutes_fits_and_six_weeks_hold_all_lessons_once(site):
    """Twice the reading and the two exercises, as the page says."""
    section = read(site / PAGE).select_one("section#ninety-minutes")
    reading = [int(cell.text) for cell in section.select("td .course-counted")]
    exercises = [int(found.text) for found in section.select("section > p > .course-counted")]
    assert len(reading) > 5 and len(exercises) == 2
    assert 70 < 2 * sum(reading) + sum(exercises) <= 88
    section = read(site / PAGE).select_one("section#six-weeks")
    weeks = [found["data-of"] for found in section.select(".course-counted")]
    assert len(weeks) == 12
    assert [solving.replace(":exercises", "") for solving in weeks[1::2]] == weeks[::2]
    *told, onward = " ".join(weeks[::2]).split()
    names = [lesson_of(page) for page in all_lessons()]
    assert told == names[: names.index(onward.removesuffix("..."))]


def fold_of(site, section, title):
    """Return the fold of a lesson in a section of the page."""
    folds = read(site / PAGE).select(f"#{section} > details")
    return next(fold for fold in folds if fold.summary.text.startswith(title))


@pytest.mark.parametrize("lesson", all_lessons())
def test_every_prediction_of_a_lesson_is_a_question(site, lesson):
    page = read(site / f"{lesson}.html")
    state = json.loads(page.select_one(STATE).string)["state"]
    widgets = {model: one["state"] for model, one in state.items()}
    asked = {model: own for model, own in widgets.items() if own.get("_module") == "predict"}
    fold = fold_of(site, "questions-for-the-class", page.select_one("h1").text.split(" · ")[0])
    assert fold.summary.text.endswith(f" ({len(asked)} questions)")
    shown = fold.select("details.course-class > ol > li")
    assert len(shown) == len(asked) > 3
    views = [view for view in page.select(VIEW) if json.loads(view.string)["model_id"] in asked]
    links = [item.select_one(":scope > p > a")["href"].split("#")[1] for item in shown]
    assert links == [view.find_parent("section")["id"] for view in views]
    for one in asked.values():
        for words in (one["question"], one["explanation"]):
            assert re.split("[`*\n]", words.strip())[0] in fold.text


@pytest.mark.parametrize("page", all_with_exercises())
def test_every_exercise_tells_what_goes_wrong(site, page):
    source = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    module = lessons()[lesson_checked_on(source)]
    checks = [name for name in module.__all__ if f"check.{name}(" in source]
    title = re.search("^# (.+)$", source, re.M)[1]
    fold = fold_of(site, "what-goes-wrong", title)
    exercises = fold.find_all("details", recursive=False)
    assert len(exercises) == source.count("{exercise-start}") == len(checks)
    assert len({exercise.ul.text for exercise in exercises}) == len(exercises)
    for exercise in exercises:
        assert exercise.select_one('p a[href*="#ex-l"]')
        mistakes = [found.text.strip() for found in exercise.select("ul > li")]
        # The first sentence of each hint that says something, and no more.
        assert mistakes and all(18 < len(words) < 200 for words in mistakes)
        assert {words[-1] for words in mistakes} <= {*".?!"}
