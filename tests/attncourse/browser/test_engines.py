"""Every widget lives in Firefox and WebKit, too; that models train there, see test_same_bits.py."""

from tools.browsing import serve
from tools.engines import FOCUS, wait_for
from tools.every_widget import COMPLETE, about
from tools.widget_pages import page_source

NOTE_PROBLEMS = """<script>
  window.problems = [];
  addEventListener("error", ({ message }) => problems.push(message));
  addEventListener("unhandledrejection", ({ reason }) => problems.push(String(reason)));
</script>"""
# What the other view of a widget shows, with what its controls hold.
SHOWN = """((kind) => {
  const [, root] = document.querySelectorAll(kind);
  const controls = [...root.querySelectorAll("input")];
  return [root.innerHTML, ...controls.map(({checked, value}) => `${checked} ${value}`)].join();
})"""


def test_each_widget_is_drawn_and_answers_a_key(engine, tmp_path):
    widgets = [about(name).example("a") for name in COMPLETE]
    page = page_source(*widgets, *widgets).replace("<body", f"{NOTE_PROBLEMS}<body", 1)
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    with serve(tmp_path) as address:
        engine.open(f"{address}page.html")
        count = "document.querySelectorAll('.attn-widget').length"
        wait_for(engine, f"() => {count} === {2 * len(widgets)}")
        for name in COMPLETE:
            selector, key = about(name).KEY
            kind = f".attn-{name.replace('_', '-')}"
            before = engine.evaluate(SHOWN, kind)
            assert engine.evaluate(FOCUS, f"{kind} {selector}"), name
            engine.press(key)
            changes = f"(before) => {SHOWN}('{kind}') !== before"  # in the other view
            wait_for(engine, changes, before)
        assert engine.evaluate("() => window.problems") == []
