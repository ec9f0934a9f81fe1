"""Pages with widgets as the site publishes them: saved state, no kernel, our own host."""

import base64
import json
import re
from functools import cache

from course.widgets import static_files, take_code_away
from ipywidgets.embed import dependency_state

from tools import ROOT

# Where a map of tokens has their names: a part of such a widget's PLACES (see every_widget.py).
TOKEN_MAP_PLACES = {
    *(
        f"div.{labels} > {label}"
        for labels in ("attn-rows", "attn-columns")
        for label in ("span", "span title", "span.attn-at", "span.attn-at title")
    ),
    "output.attn-live > bdi.attn-query",
    "output.attn-live > bdi.attn-key",
    "tr > th",
}

HOST = ROOT / "book" / "assets" / "widget-host.js"


@cache
def sheets_and_scripts(names: frozenset[str]) -> tuple[str, str]:
    """Return what a site has for widgets of these names; to gather it takes as long as a test."""
    files = static_files(names)
    sheets = "".join(text for name, text in files.items() if name.endswith(".css"))
    scripts = "".join(
        f"<script>{text}</script>" for name, text in files.items() if name.endswith(".js")
    )
    return sheets, scripts


def page_source(*widgets, damages=()):
    """A page as the site has it: scripts and sheets, one state, a mark where a widget stands.

    The states of the first widgets may be damaged, as `DAMAGES` of every_widget.py says.
    """
    state = dependency_state(widgets, drop_defaults=False)
    sheets, scripts = sheets_and_scripts(frozenset(take_code_away(state)))
    for widget, its_damage in zip(widgets, damages, strict=False):
        entry = state[widget.model_id]
        _damage(its_damage, entry["state"], entry.setdefault("buffers", []))
    views = "".join(
        '<script type="application/vnd.jupyter.widget-view+json">'
        f"{json.dumps({'model_id': widget.model_id})}</script>"
        for widget in widgets
    )
    saved = json.dumps({"state": state}).replace("<", "\\u003c")
    return (
        '<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">'
        f'<style>{sheets}</style><body style="margin: 1rem">{scripts}'
        f'<script type="application/vnd.jupyter.widget-state+json">{saved}</script>'
        f"{views}<script>{HOST.read_text(encoding='utf-8')}</script></body></html>"
    )


def _damage(damage, state, buffers):
    if callable(damage):
        return damage(state, buffers)
    places = {tuple(buffer["path"]): buffer for buffer in buffers}
    for name, value in damage.items():
        if isinstance(value, bytes):
            places[(name,)]["data"] = base64.b64encode(value).decode()
        else:
            state[name] = value


ASK = """({plain, coded, more}) => {
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
  const views = Object.entries(coded).map(([name, text]) => [name, new DataView(bytes(text))]);
  const inLists = (value) => {
    if (ArrayBuffer.isView(value)) return Array.from(value);
    if (Array.isArray(value)) return value.map(inLists);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, inLists(one)]));
  };
  return inLists((FUNCTION)(new Map([...Object.entries(plain), ...views]), ...more));
}"""


def asked(page, widget, function: str, *more):
    """Return what a function of a page's code makes of a widget's model, and of what else it gets.

    The page has the code of such a widget, but need not show this one. Arrays become lists.
    """
    state = {name: value for name, value in widget.get_state().items() if name[0] != "_"}
    coded = {
        name: base64.b64encode(value).decode()
        for name, value in state.items()
        if isinstance(value, bytes | memoryview)
    }
    plain = {name: value for name, value in state.items() if name not in coded}
    ask = ASK.replace("FUNCTION", function)
    return page.evaluate(ask, {"plain": plain, "coded": coded, "more": more})


TARGETS = ".attn-widget :is(button, summary, label, input:not(label input), .attn-track input)"
SIZES = """nodes => nodes.filter((node) => node.checkVisibility()).map((node) => {
  const {width, height} = node.getBoundingClientRect();
  return Math.min(width, height);
})"""


def target_sizes(page) -> list[float]:
    """Return how large each thing is that a finger is to hit, in pixels, the smaller side."""
    return page.locator(TARGETS).evaluate_all(SIZES)


def said(page) -> str:
    """Return what a widget says of its state."""
    return page.locator("output.attn-live").inner_text()


def numbers_in(text: str) -> list[float]:
    """Return the numbers of a text as prose has them: 1,024, −0.5, 3e−7, −∞, NaN."""
    size = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+|∞|NaN)"
    found = re.findall(rf"[-\u2212]?{size}(?:e[-\u2212]?\d+)?", text)
    signs = str.maketrans({"\u2212": "-", ",": "", "∞": "inf"})
    return [float(number.translate(signs)) for number in found]


def box(page, selector: str) -> dict[str, float]:
    """Return where the first element of a selector stands: its edges, width and height."""
    return page.locator(selector).first.evaluate("""node => {
        const {left, right, top, bottom, width, height} = node.getBoundingClientRect();
        return {left, right, top, bottom, width, height};
    }""")


def style(element, name: str) -> str:
    """Return a computed style of an element, by its name in JavaScript."""
    return element.evaluate("(node, name) => getComputedStyle(node)[name]", name)


def press(page, *names: str):
    """Press the buttons of these names."""
    for name in names:
        page.get_by_role("button", name=name, exact=True).click()


def unfold(page, widget: str = ".attn-widget"):
    """Open a widget's fold with the numbers; the table is filled once the fold is open."""
    page.locator(f"{widget} summary").first.click()
    page.locator(f"{widget} details tbody tr").first.wait_for()


def touch(page, *moments):
    """Have fingers at some points of the window, moment after moment, then lift them."""
    session = page.context.new_cdp_session(page)
    down = 0
    for points in moments:
        kind = "touchStart" if len(points) > down else "touchMove"
        down = len(points)
        fingers = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def swipe(page, start, end):
    """Drag a finger from one point of the window to another, in steps."""
    way = [[a + (b - a) * step / 10 for a, b in zip(start, end, strict=True)] for step in range(11)]
    touch(page, *([point] for point in way))
