"""Every lesson can be read in an hour: the budget of words, open code and figures."""

import json

import pytest
from course.page_lengths import Length, length_of, limits_of, main
from tools.lesson_runs import all_pages

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
def test_a_page_keeps_its_budget(site, page):
    length = length_of((site / f"{page}.html").read_text(encoding="utf-8"))
    excess = length.excess(limits_of(page))
    assert not excess, f"{page}: {'; '.join(excess)}"


def test_what_stands_open_is_counted():
    assert length_of(PAGE) == Length(words=8 + 6, lines=3, figures=1, predictions=1)


def test_minutes_are_those_of_words_code_figures_and_predictions():
    assert Length(2000, 120, 10, 10).minutes == 10 + 10 + 5 + 5


def test_what_is_too_much_is_said():
    excess = Length(3910, 200, 13, 0).excess(limits_of("book/L03_The_Attention_Mechanism"))
    assert excess == ["10 words too many (3910 of 3900)", "1 figures too many (13 of 12)"]
    assert Length(900, 0, 0, 0).excess(limits_of("book/index")) == [
        "100 words too many (900 of 800)"
    ]
    assert limits_of("book/museum") == {}


def test_the_lengths_are_printed(tmp_path, capsys):
    (tmp_path / "book").mkdir()
    page = PAGE.replace("three", "word " * 5000)
    (tmp_path / "book" / "L04_Long.html").write_text(page, encoding="utf-8")
    main(tmp_path)
    printed = capsys.readouterr().out
    assert "L04_Long" in printed and "1113 words too many (5013 of 3900)" in printed
