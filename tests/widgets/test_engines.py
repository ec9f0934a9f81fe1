"""Every widget lives in Firefox and WebKit, too."""

import pytest
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
