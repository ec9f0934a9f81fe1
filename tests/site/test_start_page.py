"""The start page opens with a model to train, and says of the lessons' minutes what they have."""

import json
import re

import pytest
from course.page_lengths import length_of
from tools.browsing import open_page
from tools.lesson_runs import all_on_the_path
from tools.site_builds import read

NEAR = 5  # minutes: how much a reading time may be rounded


@pytest.mark.parametrize("lesson", all_on_the_path())
def test_minutes_in_the_table_of_lessons_are_those_of_its_page(site, lesson):
    row = read(site / "book/index.html").select_one(
        f'tr:has(a[href="{lesson.split("/")[-1]}.html"])'
    )
    reading, exercises = map(int, re.findall(r"\d+", row.select("td")[-1].text))
    page = read(site / f"{lesson}.html")
    efforts = page.select(".exercise .effort")
    counted = sum(int(re.search(r"(\d+) minute", effort.text)[1]) for effort in efforts)
    minutes = length_of(str(page)).minutes
    assert exercises == counted, f"book/index.md: the exercises of {lesson} take {counted} minutes"
    assert abs(reading - minutes) <= NEAR, f"book/index.md: {lesson} takes {minutes} to read"


def test_the_sidebar_says_the_minutes_of_the_table_of_lessons(site):
    index = read(site / "book/index.html")
    rows = [row.select("td")[-1].text for row in index.select("article table tbody tr")]
    lines = index.select(".bd-sidebar-primary nav .course-minutes")
    assert [line.text for line in lines] == [
        f"{re.search('[0-9]+', row)[0]} minutes" for row in rows
    ]


def test_every_sidebar_says_the_minutes_that_a_page_gives_itself(small):
    for name, address in (("index", "L78_Said.html"), ("L78_Said", "#")):
        [line] = read(small / f"{name}.html").select(".bd-sidebar-primary nav .course-minutes")
        assert line.text == "12 minutes"
        assert line.find_previous("a")["href"] == address


def test_a_model_to_train_stands_before_all_but_a_sentence_or_two(site):
    page = read(site / "book/index.html")
    view = page.select_one('script[type$="widget-view+json"]')
    state = page.select_one('script[type$="widget-state+json"]')
    first = json.loads(state.string)["state"][json.loads(view.string)["model_id"]]["state"]
    assert (first["_module"], first["small"], first["trained"]) == ("head_lab", True, False)
    before = [text for text in view.find_all_previous("p") if text.find_parent("article")]
    assert sum(len(text.text.split()) for text in before) < 60


def test_the_lab_leads_on_to_an_anchor_that_is_there_and_its_fold_holds_what_is_seldom_wanted(
    browser, site_address, site
):
    with open_page(browser, f"{site_address}book/index.html", width=390) as (page, problems):
        link = page.locator(".attn-why a")
        assert link.is_hidden()  # until two answers are right
        name, anchor = link.get_attribute("href").removeprefix(site_address).split("#")
        assert read(site / name).find(id=anchor)
        send = page.get_by_role("button", name="Link to this state", include_hidden=True).first
        assert send.is_hidden()
        page.locator(".attn-more summary").press("Enter")
        assert send.is_visible() and page.get_by_role("button", name="Another seed").is_visible()
        assert problems == []


def test_below_the_title_stand_the_hours_that_the_table_of_lessons_adds_up_to(site):
    page = read(site / "book/index.html")
    rows = [row.select("td")[-1].text.split("+") for row in page.select("article tbody tr")]
    minutes = [sum(map(int, numbers)) for numbers in zip(*rows, strict=True)]
    first = page.select_one("article h1").find_next("p").text
    assert [int(hours) for hours in re.findall(r"\d+", first.split("\n")[0])] == [
        round(some / 60) for some in minutes
    ]


def test_on_a_phone_the_path_names_every_lesson_and_needs_no_sideways_scroll(browser, site_address):
    with open_page(browser, f"{site_address}book/index.html", width=360) as (page, _):
        path = page.locator("article table:has-text('L01')")
        named = path.locator("tbody td:first-child a").evaluate_all(
            "all => all.map((a) => a.pathname)"
        )
        expected = [f"{page[5:]}.html" for page in all_on_the_path()]
        assert [name.split("/")[-1] for name in named] == expected
        assert path.evaluate("table => table.getBoundingClientRect().right") < 360
