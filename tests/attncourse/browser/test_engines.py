"""Every widget lives in Firefox and WebKit, too, and models train there."""

import pytest
from tools import browser_models
from tools.browsing import serve
from tools.engines import FOCUS, wait_for
from tools.every_widget import COMPLETE, about
from tools.same_bits import START, TRAININGS, message_of
from tools.widget_pages import page_source

from attncourse.training import train

NOTE_PROBLEMS = """<script>
  window.problems = [];
  addEventListener("error", ({ message }) => problems.push(message));
  addEventListener("unhandledrejection", ({ reason }) => problems.push(String(reason)));
</script>"""
SHOWN = """() => [...document.querySelectorAll(".attn-widget")].map((root) => [
  root.innerHTML,
  ...[...root.querySelectorAll("input")].map(({checked, value}) => `${checked} ${value}`),
].join())"""


@pytest.mark.parametrize("name", COMPLETE)
def test_each_widget_is_drawn_and_answers_a_key(engine, name, tmp_path):
    its = about(name)
    widget = its.example("a")
    page = page_source(widget, widget).replace("<body", f"{NOTE_PROBLEMS}<body", 1)
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    with serve(tmp_path) as address:
        engine.open(f"{address}page.html")
        wait_for(engine, "() => document.querySelectorAll('.attn-widget').length === 2")
        _, before = engine.evaluate(SHOWN)
        selector, key = its.KEY
        assert engine.evaluate(FOCUS, selector)
        engine.press(key)
        wait_for(engine, f"(before) => ({SHOWN})()[1] !== before", before)  # in the other view
        assert engine.evaluate("() => window.problems") == []


@pytest.mark.parametrize("name", ["concord", "names, 4 heads", "two layers, causal"])
def test_it_trains_torchs_models_in_a_page_that_is_opened_from_a_folder(engine, name, tmp_path):
    recipe, seed = TRAININGS[name]
    path = tmp_path / "page.html"
    page = browser_models.page_source().replace("<script", f"{NOTE_PROBLEMS}<script", 1)
    path.write_text(page, encoding="utf-8")
    engine.open(path.as_uri())
    engine.evaluate(START, message_of(recipe, seed))
    wanted = train(recipe, seed=seed, progress=False)  # meanwhile
    wait_for(engine, "() => window.ended || window.problems.length > 0", seconds=120)
    assert engine.evaluate("() => window.problems") == []
    assert engine.evaluate("() => window.losses") == pytest.approx(wanted.losses, abs=1e-12)
    assert engine.evaluate("() => window.ended") == wanted.digest
