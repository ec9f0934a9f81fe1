"""A widget's code as a notebook runs it: what a cell sets wrongly is refused in words."""

import pytest
from tools.every_widget import COMPLETE, about

# A model as a notebook has it, its bytes as DataViews.
SHOW = """async ([code, state, bytes]) => {
  for (const [name, numbers] of Object.entries(bytes))
    state[name] = new DataView(Uint8Array.from(numbers).buffer);
  const listeners = {};
  window.model = {
    get: (name) => state[name],
    set(name, value) {
      state[name] = value;
      for (const hear of [...(listeners[`change:${name}`] ?? [])]) hear();
    },
    save_changes() {},
    on: (event, hear) => (listeners[event] ??= new Set()).add(hear),
    off: (event, hear) => listeners[event]?.delete(hear),
  };
  window.heard = () => Object.values(listeners).reduce((sum, {size}) => sum + size, 0);
  const url = URL.createObjectURL(new Blob([code], {type: "text/javascript"}));
  const widget = (await import(url)).default;
  window.end = widget.render({model, el: document.body});
}"""


@pytest.fixture
def notebook(browser):
    """Return a function that shows a widget as a notebook does; errors fail the test."""
    page, errors = browser.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))

    def show(widget, **damage):
        page.goto("about:blank")
        state = {**widget.get_state(), **damage}
        code = state.pop("_esm")
        bytes_of = {name: [*value] for name, value in state.items() if isinstance(value, bytes)}
        page.evaluate(SHOW, [code, {**state, **dict.fromkeys(bytes_of)}, bytes_of])
        return page

    yield show
    page.close()
    assert errors == []


@pytest.mark.parametrize("name", COMPLETE)
def test_each_widget_is_shown_without_a_word_and_stops_listening_at_its_end(notebook, name):
    page = notebook(about(name).example("a"))
    assert page.locator(".attn-widget").count() == 1
    assert page.locator("body > p").inner_text() == ""
    page.evaluate("window.end?.()")
    assert page.evaluate("window.heard()") == 0


def test_what_a_cell_sets_wrongly_is_refused_until_it_is_right(notebook):
    page = notebook(about("head_mute").example("a"))
    alert = page.locator("body > [role=alert]")
    page.evaluate("model.set('token', 99)")
    assert "token should be one of 0 to" in alert.inner_text()
    page.evaluate("model.set('token', 1)")
    assert alert.is_hidden()


def test_what_is_wrong_at_the_start_is_refused(notebook):
    page = notebook(about("head_mute").example("a"), muted=[99])
    assert "muted should be a list of heads from 0" in page.locator("[role=alert]").inner_text()
    assert page.locator(".attn-widget").count() == 0
