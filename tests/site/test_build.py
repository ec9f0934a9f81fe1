"""The build: what it runs, what it refuses, what it writes."""

import re

import pytest
from tools import ROOT
from tools.lesson_runs import all_notebooks
from tools.small_pages import EFFORT_MISTAKES, FORMULA_MISTAKES


def test_the_site_is_built_from_the_lessons_as_they_were_executed(site_build):
    assert "Executing" not in site_build.stdout
    assert site_build.stdout.count("Using cached notebook") == len(all_notebooks())


@pytest.mark.parametrize("page", all_notebooks())
def test_each_page_can_be_downloaded_as_a_notebook_and_as_text(site, page):
    source = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    assert (site / "_sources" / f"{page}.md").read_text(encoding="utf-8") == source
    html = (site / f"{page}.html").read_text(encoding="utf-8")
    for suffix in (".ipynb", ".md"):
        assert f'href="../_sources/{page}{suffix}"' in html
        assert (site / "_sources" / f"{page}{suffix}").is_file()


# With -W every warning is fatal, so each mistake must be one: what is told of it, and where.
TOLD = {
    r"index\.md:\d+: .*WARNING: .*": (
        "fig-nowhere", "L00_Nowhere.md", "nobody1900", "no-such-heading",
        "stderr was found in the cell outputs", "<sidebar>",
    ),
    r"covers\.md:10: WARNING: .*": ("answers no prediction",),
    r"covers\.md:21: WARNING: .*": ("a widget is never covered",),
    r"L79_Half\.md: WARNING: ": ("myths:",),
    "": (
        "undefined label: 'l78-cell-1'", "undefined label: 'l78-myth-1'", "not-l78",
        "no lesson L70", "L78 has nothing called nowhere", "L78 has nothing called ex-l78-none",
        "wanted L03, L03#section",
    ),
}  # fmt: skip


def test_each_mistake_of_a_page_is_a_warning(warnings):
    for place, mistakes in TOLD.items():
        for mistake in mistakes:
            assert re.search(place + re.escape(mistake), warnings), mistake
    for number, text in enumerate(EFFORT_MISTAKES):
        assert f"effort.md:{3 + 2 * number}: WARNING: {{effort}}`{text}`: wanted" in warnings
    for number, (tex, words) in enumerate(FORMULA_MISTAKES.items()):
        place = re.escape(f"formulas.md:{3 + 2 * number}: WARNING: formula {tex}: ")
        assert re.search(place + f".*{re.escape(words)}", warnings), tex
