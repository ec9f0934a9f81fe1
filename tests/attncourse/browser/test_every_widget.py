"""What every widget does: it stays text, says what is damaged, fits a phone, and leaves others be.

Widgets are found in attncourse.widgets; what the tests need to know of one stands in its own test
file (see tools/every_widget.py).
"""

import re

import anywidget
import pytest
from playwright.sync_api import expect
from tools.every_widget import COMPLETE, NAMES, about, what_is_missing
from tools.widget_pages import asked, target_sizes

from attncourse.widgets._browser_code import FOLDER

every_widget = pytest.mark.parametrize("name", COMPLETE)

ATTACK = "<img src=x onerror=\"document.title='run'\">"
LONG = "Donaudampfschifffahrtsgesellschaftskapitän" * 3


def test_each_widget_is_exported_and_has_its_test_file():
    """A widget's script has the default export that its class runs; parts of one have none."""
    scripts = [path for path in FOLDER.rglob("*.js") if "\nexport default " in path.read_text()]
    hidden = sorted({path.parent.name for path in scripts} - set(NAMES))
    assert not hidden, f"attncourse.widgets.__all__ doesn't name the class of {hidden}"
    assert [*filter(None, map(what_is_missing, NAMES))] == []


# Of many controls that look alike, as a matrix has them, the first ones do.
USE = """async () => {
  const folds = document.querySelectorAll("details:not(:has(.attn-table))");
  for (const fold of folds) fold.open = true;
  const controls = ".attn-widget :is(input, button, [tabindex='0'])";
  const used = {};
  for (const control of document.querySelectorAll(controls)) {
    if (!control.checkVisibility() || control.disabled) continue;
    const widget = control.closest(".attn-widget").className;
    const kind = `${widget} ${control.localName} ${control.type} ${control.className}`;
    used[kind] = (used[kind] ?? 0) + 1;
    if (used[kind] > 16) continue;
    control.focus();
    await null; // an observer of the page sees each step
    control.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown", bubbles: true}));
    control.click();
    await null;
    control.dispatchEvent(new InputEvent("input", {bubbles: true}));
  }
}"""


def unfold_all(page):
    """Open every fold of a page; the tables in them are filled then."""
    page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    tables = "[...document.querySelectorAll('details:has(.attn-table)')]"
    page.wait_for_function(f"{tables}.every((fold) => fold.querySelector('tbody tr'))")


def use(page):
    """Use everything there is, then unfold the numbers."""
    page.evaluate(USE)
    unfold_all(page)


# Notes where a text is seen or spoken from now on: "tr > th", "div.attn-rows > span title" for an
# attribute, with "…" where it stands among other words.
NOTE_PLACES = """(text) => {
  const places = (window.places = new Set());
  const tag = ({localName, classList}) => [localName, ...classList].slice(0, 2).join(".");
  const note = (place, found) => {
    if (found.includes(text)) places.add(found.trim() === text ? place : `${place} …`);
  };
  const look = () => {
    for (const node of document.querySelectorAll(".attn-widget *")) {
      if (!node.checkVisibility()) continue;
      const place = `${tag(node.parentNode)} > ${tag(node)}`;
      for (const child of node.childNodes)
        if (child.nodeType === Node.TEXT_NODE) note(place, child.data);
      for (const {name, value} of node.attributes) note(`${place} ${name}`, value);
    }
  };
  const everything = {subtree: true, childList: true, characterData: true, attributes: true};
  new MutationObserver(look).observe(document.body, everything);
  look();
}"""


@pytest.mark.everyday
@every_widget
def test_a_damaged_state_says_so_the_page_lives_on_and_texts_are_never_markup(show, name):
    its = about(name)
    examples = [its.example(ATTACK) for _ in range(len(its.DAMAGES) + 1)]
    page = show(*examples, damages=its.DAMAGES.values())
    page.locator(".attn-widget").wait_for()  # the last one, which isn't damaged
    told = page.get_by_role("alert")
    expect(told).to_have_count(len(its.DAMAGES))
    for message, text in zip(its.DAMAGES, told.all_inner_texts(), strict=True):
        assert message in text
    page.evaluate(NOTE_PLACES, ATTACK)
    unfold_all(page)
    use(page)
    assert set(page.evaluate("[...window.places]")) == its.PLACES
    assert page.locator("img").count() == 0
    assert page.title() == ""


@every_widget
def test_its_docstring_names_what_a_reader_changes(name):
    widget = about(name).example("a")
    words = next(kind.__doc__ for kind in type(widget).__mro__ if kind.__doc__)
    changed = words.partition("Traits that a reader changes:")[2].partition("\n\n")[0]
    own = [trait for trait in widget.keys if trait not in anywidget.AnyWidget().keys]
    free = {trait for trait in own if not widget.traits()[trait].read_only and trait[0] != "_"}
    assert free == {*re.findall(r"^ {8}(\w+) \(", changed, re.MULTILINE)}
    assert len(own) > len(free) > 0
    assert re.fullmatch(rf"{type(widget).__name__}\(.{{,70}}\)", repr(widget))


# Whether keys reach all that scrolls sideways: the box itself, or what is in it.
IS_REACHED = """() => [...document.querySelectorAll(".attn-scroll")].every((box) =>
  box.scrollWidth <= box.clientWidth || box.tabIndex === 0 ||
  box.querySelector("input, button, [tabindex='0']"))"""
# How large letters of drawings are, in pixels.
LETTERS = """texts => texts
  .filter((text) => text.checkVisibility() && text.textContent)
  .map((text) => parseFloat(getComputedStyle(text).fontSize) *
    text.ownerSVGElement.getScreenCTM().a)"""
# How long anything moves, of all elements and of what stands before and after them.
DURATIONS = """root => [...root.querySelectorAll("*")].flatMap((node) =>
  [null, "::before", "::after"].flatMap((part) => {
    const styles = getComputedStyle(node, part);
    const {transitionDuration, animationName, animationDuration} = styles;
    return [transitionDuration, animationName === "none" ? "0s" : animationDuration];
  })).join().split(/, ?/)"""
KEPT_ON_PAPER = """root => [...root.querySelectorAll("*")].map((node) =>
  getComputedStyle(node).printColorAdjust)"""
FRAMES = """() => [...document.querySelectorAll("[aria-pressed=true], [aria-checked=true]")]
  .flatMap((chosen) => {
    const frame = (node) => {
      const {outlineStyle, borderStyle, borderWidth} = getComputedStyle(node);
      return `${outlineStyle} ${borderStyle} ${borderWidth}`; // whatever their colors
    };
    const others = [...chosen.parentNode.children].filter((node) =>
      [node.ariaPressed, node.ariaChecked].includes("false"));
    return others.filter((other) => frame(other) === frame(chosen)).map((node) => node.outerHTML);
  })"""
MARKS = """.attn-swatch, .attn-scale, .attn-tile, .attn-share, .attn-weight, .attn-is, .attn-signed,
  span.attn-spine, span.attn-right"""
ADJUSTED = """nodes => nodes.filter((node) => getComputedStyle(node).forcedColorAdjust !== "none")
  .map((node) => node.outerHTML)"""
LOST = """root => [...root.querySelectorAll("*")].filter(({style}) => style.backgroundColor)
  .filter((node) => getComputedStyle(node).backgroundColor !== node.style.backgroundColor).length"""
FIELDS = "fields => fields.map((field) => parseFloat(getComputedStyle(field).fontSize))"


@every_widget
def test_it_fits_a_phone_keeps_its_colors_and_nothing_moves_where_that_is_unwanted(show, name):
    page = show(about(name).largest(LONG), width=360)  # on a screen that is touched
    sizes = target_sizes(page)
    use(page)
    for width in (360, 1000):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(IS_REACHED)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert min(page.locator(".attn-widget svg text").evaluate_all(LETTERS), default=9) >= 9
        sizes += target_sizes(page)
    assert len(sizes) > 3
    assert min(sizes) >= 24
    fields = page.locator("input[type=text], select").evaluate_all(FIELDS)
    assert min(fields, default=16) >= 16  # smaller ones a telephone magnifies
    page.evaluate("document.activeElement.blur()")
    widget = page.locator(".attn-widget")
    assert set(widget.evaluate(KEPT_ON_PAPER)) == {"exact"}
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    assert widget.evaluate(LOST) == 0  # colors that say something
    assert page.locator(MARKS).evaluate_all(ADJUSTED) == []
    assert page.evaluate(FRAMES) == []  # what is chosen is framed otherwise
    assert set(widget.evaluate(DURATIONS)) == {"0s"}
    page.emulate_media(forced_colors="none")


# What the Tab key reaches, in order: of radio buttons with one name only one.
STOPS = """(root) => {
  const radios = new Set();
  const stops = [...root.querySelectorAll("*")].filter((node) => {
    if (node.tabIndex < 0 || node.disabled || !node.checkVisibility()) return false;
    if (node.type !== "radio") return true;
    return !radios.has(node.name) && radios.add(node.name);
  });
  return stops.map((node) => node.type ?? node.localName);
}"""
FOCUSED = """() => {
  const node = document.activeElement;
  const styles = getComputedStyle(node);
  return {
    stop: node.type ?? node.localName,
    inside: document.querySelector(".attn-widget").contains(node),
    isSeen: node.matches(":focus-visible") && styles.outlineStyle !== "none",
    keepsKeys: node.hasAttribute("data-lm-suppress-shortcuts"),
  };
}"""

# What a widget shows, with what its controls hold.
SHOWN = """(root) => [root.innerHTML, ...[...root.querySelectorAll("input")].map(
  ({checked, value}) => `${checked} ${value}`)]"""

# A turn after which all that was put off has been done: until a frame, for less than 20 ms
# (NameLab's draws), until the browser is idle. Timers and idle work keep the order they came in.
TURN = """() => new Promise((rest) => requestAnimationFrame(() => setTimeout(
  () => requestIdleCallback(() => rest(), {timeout: 5000}), 20)))"""


def shown_at_rest(page, widgets):
    """What widgets show once none is busy, nor changes it from turn to turn any more."""
    before = None
    for _ in range(200):
        now = [widget.evaluate(SHOWN) for widget in widgets]
        is_busy = any('aria-busy="true"' in html for html, *_ in now)
        if now == before and not is_busy:
            return now
        page.evaluate(TURN)
        before = now
    pytest.fail("a widget that nobody touches never rests")


# Takes over a widget's code as a notebook does, where it is one module.
IMPORT = """async (code) => {
  const url = URL.createObjectURL(new Blob([code], {type: "text/javascript"}));
  window.ofNotebook = (await import(url)).default;
}"""
# Draws a widget on a model that notes what a reader changes and whether it is told to a kernel.
DRAW_NOTING = """(state) => {
  const listeners = new Map();
  const model = {
    get: (name) => state.get(name),
    set(name, value) {
      state.set(name, value);
      changed.add(name);
      unsaved.add(name);
      for (const listener of listeners.get(`change:${name}`) ?? []) listener();
    },
    save_changes: () => unsaved.clear(),
    on: (event, listener) => listeners.set(event, [...(listeners.get(event) ?? []), listener]),
    off(event, listener) {
      listeners.set(event, listeners.get(event).filter((other) => other !== listener));
    },
  };
  [window.changed, window.unsaved] = [new Set(), new Set()];
  const el = document.body.appendChild(document.createElement("div"));
  const end = window.ofNotebook.render({model, el});
  window.listenersAtTheEnd = () => end() ?? [...listeners.values()].flat().length;
}"""


@pytest.mark.everyday
@every_widget
def test_keys_reach_each_control_and_change_every_view_no_other_widget_and_python(show, name):
    """Another view of the same widget knows only its traits."""
    its = about(name)
    widget = its.example("a")
    page = show(widget, widget, its.example("a"))
    one, *others = page.locator(".attn-widget").all()
    assert one.get_attribute("aria-label") == one.locator(".attn-title").inner_text()
    spoken = page.locator("output").evaluate_all("all => all.map((one) => one.ariaLive)")
    assert {*spoken} <= {"polite"}
    stops = one.evaluate(STOPS)
    assert stops
    for stop in stops:
        page.keyboard.press("Tab")
        # JupyterLab leaves a focused element's keys alone where it finds its mark.
        expected = {"stop": stop, "inside": True, "isSeen": True, "keepsKeys": True}
        assert page.evaluate(FOCUSED) == expected, page.evaluate("document.activeElement.outerHTML")
    page.keyboard.press("Tab")
    assert not page.evaluate(FOCUSED)["inside"]
    before = shown_at_rest(page, others)
    selector, key = its.KEY
    one.locator(selector).first.press(key)
    view, alone = shown_at_rest(page, others)
    assert view != before[0] and alone == before[1]
    page.evaluate(IMPORT, widget._esm)
    asked(page, widget, DRAW_NOTING)
    use(page)
    assert page.evaluate("changed.size > 0 && unsaved.size === 0")
    assert page.evaluate("listenersAtTheEnd()") == 0  # of a view that was taken away
    assert page.locator("[id]").count() == 0  # which two of a kind would share


# The parts of an element that look otherwise if the page has only this sheet, with the styles that
# differ, of those that sheets set. What only screen readers find has a place, which is no look.
OTHERWISE = """(root, sheet) => {
  const others = [...document.querySelectorAll("style")];
  const rulesOf = ({cssRules}) => [...(cssRules ?? [])].flatMap((rule) => [rule, ...rulesOf(rule)]);
  const rules = [...document.styleSheets].flatMap(rulesOf);
  const names = [...new Set(rules.flatMap((rule) => [...(rule.style ?? [])]))];
  const nodes = [root, ...root.querySelectorAll("*:not(.attn-unseen)")];
  const look = () => nodes.flatMap((node) => [null, "::before", "::after"].map((part) => {
    const styles = getComputedStyle(node, part);
    if (part && styles.content === "none") return [];
    // A property of our own keeps the spaces that it was written with.
    return names.map((name) => `${name}: ${styles.getPropertyValue(name).replaceAll(", ", ",")}`);
  }));
  const places = [...document.querySelectorAll(".course-widget")];
  const hidden = places.filter((place) => !place.contains(root)); // to draw them anew takes long
  for (const place of hidden) place.hidden = true;
  const before = look();
  for (const other of others) other.disabled = true;
  const own = document.head.appendChild(document.createElement("style"));
  own.textContent = sheet;
  const now = look();
  own.remove();
  for (const other of others) other.disabled = false; // no script sees the page without them
  for (const place of hidden) place.hidden = false;
  return now.flatMap((styles, i) => {
    if (String(styles) === String(before[i])) return [];
    const changed = styles.filter((style, at) => style !== before[i][at]);
    return [`${nodes[Math.floor(i / 3)].outerHTML.slice(0, 200)}: ${changed.join("; ")}`];
  });
}"""

PLAIN = """() => document.body.insertAdjacentHTML("beforeend", `<div id="plain">
  <p>p <code>c</code></p><details open><summary>s</summary><table>
  <caption>c</caption><tr><th>h</th><td>d</td></tr></table></details>
  <label><input type="radio"><input type="range"></label><button>b</button>
  <svg><text>t</text><rect/><path/></svg><fieldset><legend>l</legend></fieldset></div>`)"""


def test_no_widget_changes_another_or_the_page_and_a_notebook_shows_it_as_a_page_does(show):
    """A notebook has a widget's style in one sheet of its own, a page those of all its widgets."""
    examples = [about(name).example("word") for name in COMPLETE]
    page = show(*examples)
    page.evaluate(PLAIN)
    page.emulate_media(reduced_motion="reduce")  # what pulses looks otherwise at each moment
    unfold_all(page)
    widgets = page.locator(".attn-widget").all()
    shown_at_rest(page, widgets)
    assert page.locator("#plain").evaluate(OTHERWISE, "") == []
    for name, example, widget in zip(COMPLETE, examples, widgets, strict=True):
        assert widget.evaluate(OTHERWISE, example._css) == [], name
