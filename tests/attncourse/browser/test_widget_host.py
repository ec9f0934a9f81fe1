"""The host that runs widgets on a published page, without a kernel."""

import contextlib
import json

import pytest
from tools import ROOT
from tools.browsing import open_page, serve

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
FAILING = "export default { render() { throw new Error('no such head'); } };"
DATA = [{"encoding": "base64", "path": ["data"], "data": "AADAPw=="}]  # float32 1.5


def counter(n: int, code: str = COUNTER) -> dict:
    css = "button { color: rgb(1, 2, 3); }"
    return {"state": {"_esm": code, "_css": css, "n": n}, "buffers": DATA}


def write_page(folder, models: dict | str, views: list[str]):
    """Write a page as myst-nb does: the state in one script, a script where each widget stands."""
    state = models if isinstance(models, str) else json.dumps({"state": models})
    places = "".join(
        f'<script type="application/vnd.jupyter.widget-view+json">{{"model_id": "{view}"}}</script>'
        for view in views
    )
    host = (ROOT / "book/assets/widget-host.js").read_text(encoding="utf-8")
    (folder / "widget-host.js").write_text(host, encoding="utf-8")
    page = folder / "page.html"
    page.write_text(
        '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><body>'
        f'<script type="application/vnd.jupyter.widget-state+json">{state}</script>'
        f'<script src="widget-host.js"></script>{places}<p id="rest">The rest.</p>',
        encoding="utf-8",
    )
    return page


@pytest.fixture
def show(browser, tmp_path):
    """Return a function that opens a page with widgets from its folder."""
    return lambda *page: open_page(browser, write_page(tmp_path, *page).as_uri())


@pytest.mark.parametrize("way", ["http", "file"])
def test_views_of_one_model_stay_in_sync_and_other_widgets_are_left_alone(browser, tmp_path, way):
    path = write_page(tmp_path, {"a": counter(1), "b": counter(5)}, ["a", "a", "b"])
    with contextlib.ExitStack() as stack:
        address = path.as_uri()
        if way == "http":
            address = stack.enter_context(serve(tmp_path)) + path.name
        page, problems = stack.enter_context(open_page(browser, address))
        buttons = page.locator("button")
        assert buttons.all_inner_texts() == ["1 1.5 1", "1 1.5 1", "5 1.5 1"]
        buttons.nth(1).click()
        assert buttons.all_inner_texts() == ["2 1.5 1", "2 1.5 1", "5 1.5 1"]
        assert buttons.first.evaluate("b => getComputedStyle(b).color") == "rgb(1, 2, 3)"
        assert problems == []


BROKEN = {
    "no such head": counter(1, FAILING),
    "Unexpected end of input": counter(1, "export default {"),
    "its state is not on this page": {"state": {}},
    "atob": counter(1) | {"buffers": [DATA[0] | {"data": "%%%"}]},
}


def test_widgets_that_fail_say_so_each_and_the_others_run(show):
    with show(BROKEN | {"a": counter(1)}, [*BROKEN, "a"]) as (page, problems):
        page.locator("button").click()
        assert page.locator("button").inner_text() == "2 1.5 1"
        alerts = page.get_by_role("alert").all_inner_texts()
        for reason, alert in zip(BROKEN, alerts, strict=True):
            assert alert.startswith("This interactive figure could not be started: ")
            assert reason in alert
        assert page.locator("#rest").is_visible()
        assert len(problems) == len(BROKEN)  # said once each, to the widget's author
        assert all(problem.startswith("console error") for problem in problems)


def test_a_damaged_state_is_told_in_each_place(show):
    with show('{"state": {', ["a", "b"]) as (page, _):
        assert page.get_by_role("alert").count() == 2
        assert page.locator("#rest").is_visible()


def test_a_widget_is_drawn_before_what_stands_below_it_is_read(tmp_path, browser):
    page = write_page(tmp_path, {"a": {"state": {"_module": "dot"}}}, ["a"])
    code = 'window.attnModules = {"dot/widget.js": {default: {render({el}) { el.append("dot"); }}}}'
    below = 'window.above = document.querySelector(".course-widget")?.textContent'
    html = page.read_text(encoding="utf-8").replace("<body>", f"<body><script>{code}</script>")
    page.write_text(html.replace('<p id="rest">', f"<script>{below}</script>"), encoding="utf-8")
    with open_page(browser, page.as_uri()) as (opened, problems):
        assert opened.evaluate("window.above") == "dot"
        assert problems == []
