"""Every widget lives in Firefox and WebKit, too, and models train there."""

import pytest
from tools import browser_models
from tools.browsing import serve
from tools.engines import FOCUS, wait_for
from tools.every_widget import COMPLETE, about
from tools.widget_pages import page_source

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


TRAIN = """(message) => {
  [window.losses, window.isDone] = [[], false];
  attnModules["engine/trainer.js"].startTraining(message, {
    losses: (told) => losses.push(...told.losses),
    done: () => { window.isDone = true; },
    error: (reason) => { throw new Error(reason); },
  });
}"""


def test_a_model_trains_in_a_page_that_is_opened_from_a_folder(engine, model_page, tmp_path):
    path = tmp_path / "page.html"
    page = browser_models.page_source().replace("<script", f"{NOTE_PROBLEMS}<script", 1)
    path.write_text(page, encoding="utf-8")
    message = browser_models.start_message()
    engine.open(path.as_uri())
    engine.evaluate(TRAIN, message)
    wait_for(engine, "() => window.isDone || window.problems.length > 0")
    assert engine.evaluate("() => window.problems") == []
    model_page.evaluate(TRAIN, message)
    model_page.wait_for_function("window.isDone")
    losses = model_page.evaluate("losses")
    assert len(losses) == 20 and losses[-1] < losses[0]
    assert engine.evaluate("() => window.losses") == pytest.approx(losses, abs=1e-6)
