"""The start page opens with a model to train, and says of the lessons' minutes what they have."""

import json
import re

from tools.browsing import open_page
from tools.lesson_runs import all_on_the_path
from tools.site_builds import read


def test_it_opens_with_a_model_to_train_and_its_sidebar_and_hours_are_those_of_its_table(site):
    index = read(site / "book/index.html")
    texts = [row.select("td")[-1].text for row in index.select("article table tbody tr")]
    minutes = [[*map(int, re.findall(r"\d+", text))] for text in texts]
    lines = index.select(".bd-sidebar-primary nav .course-minutes")
    assert [line.text for line in lines] == [f"{reading} minutes" for reading, _ in minutes]
    first = index.select_one("article h1").find_next("p").text.split("\n")[0]
    hours = [round(sum(some) / 60) for some in zip(*minutes, strict=True)]
    assert [*map(int, re.findall(r"\d+", first))] == hours
    view = index.select_one('script[type$="widget-view+json"]')
    state = json.loads(index.select_one('script[type$="widget-state+json"]').string)["state"]
    lab = state[json.loads(view.string)["model_id"]]["state"]
    assert (lab["_module"], lab["small"], lab["trained"]) == ("head_lab", True, False)
    before = [text for text in view.find_all_previous("p") if text.find_parent("article")]
    assert sum(len(text.text.split()) for text in before) < 60


def test_every_sidebar_says_the_minutes_that_a_page_gives_itself(small):
    for name, address in (("index", "L78_Said.html"), ("L78_Said", "#")):
        [line] = read(small / f"{name}.html").select(".bd-sidebar-primary nav .course-minutes")
        assert line.text == "12 minutes"
        assert line.find_previous("a")["href"] == address


def test_on_a_phone_the_path_fits_and_the_lab_leads_on_and_folds_what_is_seldom_wanted(
    browser, site_address, site
):
    with open_page(browser, f"{site_address}book/index.html", width=360) as (page, problems):
        path = page.locator("article table:has-text('L01')")
        links = path.locator("tbody td:first-child a")
        named = links.evaluate_all("all => all.map((a) => a.pathname.split('/').pop())")
        assert named == [f"{page[5:]}.html" for page in all_on_the_path()]
        assert path.evaluate("table => table.getBoundingClientRect().right") < 360
        link = page.locator(".attn-why a")
        assert link.is_hidden()  # until two answers are right
        name, anchor = link.get_attribute("href").removeprefix(site_address).split("#")
        assert read(site / name).find(id=anchor)
        send = page.get_by_role("button", name="Link to this state", include_hidden=True).first
        assert send.is_hidden()
        page.locator(".attn-more summary").press("Enter")
        assert send.is_visible() and page.get_by_role("button", name="Another seed").is_visible()
        assert problems == []
