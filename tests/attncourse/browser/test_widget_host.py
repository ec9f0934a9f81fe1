"""The host that runs widgets on a published page: other people's, and those that fail.

That views of one model stay in sync, and leave others be, test_every_widget.py asks.
"""

import json

import pytest
from tools.browsing import open_page
from tools.widget_pages import HOST, style

pytestmark = pytest.mark.everyday  # what every widget stands on

COUNTER = """
export default {
  initialize({ model }) { model.started = (model.started ?? 0) + 1; },
  render({ model, el }) {
    const bytes = model.get("data");
    const number = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4)[0];
    const button = document.createElement("button");
    const show = () => { button.textContent = `${model.get("n")} ${number} ${model.started}`; };
    button.addEventListener("click", () => {
      model.set("n", model.get("n") + 1);
      model.save_changes();
    });
    model.on("change:n", show);
    show();
    el.append(button);
  },
};
"""


def counter(code: str = COUNTER) -> dict:
    data = {"encoding": "base64", "path": ["data"], "data": "AADAPw=="}  # float32 1.5
    css = "button { color: rgb(1, 2, 3); }"
    return {"state": {"_esm": code, "_css": css, "n": 1}, "buffers": [data]}


def page_of(models: dict | str, views: list[str]):
    """A page as myst-nb makes it: the state in one script, a script where each widget stands."""
    state = models if isinstance(models, str) else json.dumps({"state": models})
    places = "".join(
        f'<script type="application/vnd.jupyter.widget-view+json">{{"model_id": "{view}"}}</script>'
        for view in views
    )
    return (
        '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><body>'
        f'<script type="application/vnd.jupyter.widget-state+json">{state}</script>'
        f'<script>{HOST.read_text(encoding="utf-8")}</script>{places}<p id="rest">The rest.</p>'
    )


@pytest.fixture
def show(browser, tmp_path):
    """Return a function that opens a page from its folder."""

    def open_it(html):
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        return open_page(browser, path.as_uri())

    return open_it


BROKEN = {
    "Unexpected end of input": counter("export default {"),
    "its state is not on this page": {"state": {}},
}


def test_widgets_that_fail_say_so_each_and_the_others_run(show):
    with show(page_of(BROKEN | {"a": counter()}, [*BROKEN, "a", "a"])) as (page, problems):
        buttons = page.locator("button")
        assert buttons.all_inner_texts() == ["1 1.5 1"] * 2
        buttons.first.click()
        assert buttons.all_inner_texts() == ["2 1.5 1"] * 2  # two views of one model
        assert style(buttons.first, "color") == "rgb(1, 2, 3)"
        alerts = page.get_by_role("alert").all_inner_texts()
        for reason, alert in zip(BROKEN, alerts, strict=True):
            assert "could not be started: " in alert and reason in alert
        assert page.locator("#rest").is_visible()
        assert [one[:13] for one in problems] == ["console error"] * len(BROKEN)  # once each


def test_a_damaged_state_is_told(show):
    with show(page_of('{"state": {', ["a"])) as (page, _):
        assert page.get_by_role("alert").is_visible() and page.locator("#rest").is_visible()


def test_a_widget_is_drawn_before_what_stands_below_it_is_read(show):
    code = 'window.attnModules = {"dot/widget.js": {default: {render({el}) { el.append("dot"); }}}}'
    below = 'window.above = document.querySelector(".course-widget")?.textContent'
    html = page_of({"a": {"state": {"_module": "dot"}}}, ["a"])
    html = html.replace("<body>", f"<body><script>{code}</script>")
    html = html.replace('<p id="rest">', f"<script>{below}</script>")
    with show(html) as (page, problems):
        assert page.evaluate("window.above") == "dot"
        assert problems == []
