"""Every lesson can be read in an hour: the budget of words, open code and figures.

What is told of a lesson's minutes, to learners and to teachers, is what its page takes.
"""

import json
import re

import pytest
from bs4 import BeautifulSoup
from course.lengths import Length, length_of
from tools import ROOT
from tools.lesson_runs import all_lessons, all_on_the_path, all_pages
from tools.page_limits import excess
from tools.site_builds import read

NEAR = 5  # minutes: how much a reading time may be rounded on the start page

PREDICTION = {"question": "q1 q2", "choices": ["c1", "c2 c3"], "explanation": "e1", "answers": [0]}
STATE = {"a": {"state": PREDICTION | {"_module": "predict"}}, "b": {"state": {"_module": "other"}}}
VIEW = '<script type="application/vnd.jupyter.widget-view+json">{{"model_id": "{model}"}}</script>'
PAGE = f"""
<nav>not here</nav>
<article>
  <h1>one two<a class="headerlink">#</a></h1>
  <p>three <code>four</code> <span class="math">\\(a + b\\)</span></p>
  <div class="cell">
    <div class="cell_input"><div class="highlight"><pre>open = 1

open = 2  # not words</pre></div></div>
    <div class="cell_output"><div class="highlight"><pre>printed</pre></div></div>
  </div>
  <details><summary>Show</summary><div class="highlight"><pre>folded</pre></div></details>
  <details open><summary>Hide</summary><div class="highlight"><pre>open</pre></div></details>
  <figure><img alt="no words"><img alt="dark"><figcaption>six seven</figcaption></figure>
  <div class="cell_output"><table><tr><td>eight</td></tr></table></div>
  <script>no words</script><noscript>no words</noscript>
  <div class="solution">no words <div class="highlight"><pre>none</pre></div>
    <figure><figcaption>none</figcaption></figure></div>
  {VIEW.format(model="a")}{VIEW.format(model="b")}
  <div class="admonition hint">no words</div><p class="course-how-to-run">no words</p>
</article>
<script type="application/vnd.jupyter.widget-state+json">{json.dumps({"state": STATE})}</script>
"""


@pytest.mark.parametrize("page", all_pages())
def test_a_page_keeps_its_budget_and_tables_tell_its_minutes(site, page):
    length, link = length_of(read(site / f"{page}.html")), f'a[href="{page.split("/")[-1]}.html"]'
    assert excess(page, length) == []
    source = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    exercises = sum(map(int, re.findall(r"\{effort\}`★+ (\d+) minutes?`", source)))
    if page in all_on_the_path():
        row = read(site / "book/index.html").select_one(f"tr:has({link})")
        reading, solving = map(int, re.findall(r"\d+", row.select("td")[-1].text))
        assert solving == exercises, f"book/index.md: exercises of {page} take {exercises} minutes"
        assert abs(reading - length.minutes) <= NEAR, f"book/index.md: {page}: {length.minutes}"
    if page in all_lessons():
        row = read(site / "book/teachers.html").select_one(f"table tr:has({link})")
        counted = [int(cell.text) for cell in row.select("td")[1:]]
        assert counted == [length.minutes, exercises, length.predictions]


def test_what_stands_open_is_counted_and_takes_minutes():
    assert length_of(BeautifulSoup(PAGE, "html.parser")) == Length(
        words=8 + 6, lines=3, figures=1, predictions=1
    )
    assert Length(2000, 120, 10, 10).minutes == 10 + 10 + 5 + 5
