"""What every widget does: it stays text, says what is damaged, fits a phone, and leaves others be.

Widgets are found in attncourse.widgets; what the tests need to know of one stands in its own test
file (see tools/every_widget.py).
"""

import re

import anywidget
import pytest
from course.widgets import fallback
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
    assert {path.name for path in scripts} == {"widget.js"}
    hidden = sorted({path.parent.name for path in scripts} - set(NAMES))
    assert not hidden, f"attncourse.widgets.__all__ doesn't name the class of {hidden}"
    assert [*filter(None, map(what_is_missing, NAMES))] == []


USE = """async () => {
  const folds = document.querySelectorAll("details:not(:has(.attn-table))");
  for (const fold of folds) fold.open = true;
  const controls = ".attn-widget :is(input, button, [tabindex='0'])";
  for (const control of document.querySelectorAll(controls)) {
    if (!control.checkVisibility() || control.disabled) continue;
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
def test_texts_are_text_and_never_markup(show, name):
    its = about(name)
    page = show(its.example(ATTACK))
    page.evaluate(NOTE_PLACES, ATTACK)
    unfold_all(page)
    use(page)
    assert set(page.evaluate("[...window.places]")) == its.PLACES
    assert page.locator("img").count() == 0
    assert page.title() == ""


@every_widget
def test_its_words_say_what_a_reader_changes_and_what_it_shows_without_script(name):
    """A class says in its words which traits those are."""
    widget = about(name).example("a")
    words = next(kind.__doc__ for kind in type(widget).__mro__ if kind.__doc__)
    changed = words.partition("Traits that a reader changes:")[2].partition("\n\n")[0]
    own = [trait for trait in widget.keys if trait not in anywidget.AnyWidget().keys]
    free = {trait for trait in own if not widget.traits()[trait].read_only and trait[0] != "_"}
    assert free == {*re.findall(r"^ {8}(\w+) \(", changed, re.MULTILINE)}
    assert len(own) > len(free) > 0
    assert re.fullmatch(rf"{type(widget).__name__}\(.{{,70}}\)", repr(widget))
    without_script = fallback(widget.get_state())
    assert (
        "The answer" in without_script
        or len(without_script.partition("it needs JavaScript. ")[2]) > 40
    )


@every_widget
def test_a_damaged_state_says_so_and_the_page_lives_on(show, name):
    its = about(name)
    damaged = [its.example("a") for _ in its.DAMAGES]
    page = show(*damaged, its.example("b"), damage=[*its.DAMAGES.values()])
    page.locator(".attn-widget").wait_for()  # the last one
    told = page.get_by_role("alert")
    expect(told).to_have_count(len(damaged))
    for message, text in zip(its.DAMAGES, told.all_inner_texts(), strict=True):
        assert message in text
    use(page)


# Whether keys reach all that scrolls sideways: the box itself, or what is in it.
IS_REACHED = """() => [...document.querySelectorAll(".attn-scroll")].every((box) =>
  box.scrollWidth <= box.clientWidth || box.tabIndex === 0 ||
  box.querySelector("input, button, [tabindex='0']"))"""
# How large letters of drawings are, in pixels.
LETTERS = """texts => texts
  .filter((text) => text.checkVisibility() && text.textContent)
  .map((text) => parseFloat(getComputedStyle(text).fontSize) *
    text.ownerSVGElement.getScreenCTM().a)"""


@every_widget
@pytest.mark.parametrize("width", [360, 1000])
def test_nothing_runs_over_the_edge_and_all_is_large_enough(show, name, width):
    page = show(about(name).largest(LONG), width=width)
    sizes = target_sizes(page)
    use(page)
    sizes += target_sizes(page)
    assert len(sizes) > 2
    assert min(sizes) >= 24
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.wait_for_function(IS_REACHED)
    assert min(page.locator(".attn-widget svg text").evaluate_all(LETTERS), default=9) >= 9


# How long anything moves, of all elements and of what stands before and after them.
DURATIONS = """nodes => nodes.flatMap((node) =>
  [null, "::before", "::after"].flatMap((part) => {
    const styles = getComputedStyle(node, part);
    const {transitionDuration, animationName, animationDuration} = styles;
    return [transitionDuration, animationName === "none" ? "0s" : animationDuration];
  })).join().split(/, ?/)"""
KEPT_ON_PAPER = "nodes => nodes.map((node) => getComputedStyle(node).printColorAdjust)"
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
MARKS = ".attn-swatch, .attn-scale, .attn-tile, .attn-share, .attn-weight"
ADJUSTED = """nodes => nodes.filter((node) => getComputedStyle(node).forcedColorAdjust !== "none")
  .map((node) => node.outerHTML)"""
LOST = """nodes => nodes.filter(({style}) => style.backgroundColor).filter((node) =>
  getComputedStyle(node).backgroundColor !== node.style.backgroundColor).length"""
FIELDS = "fields => fields.map((field) => parseFloat(getComputedStyle(field).fontSize))"


@every_widget
def test_fields_are_large_colors_are_kept_and_nothing_moves_where_that_is_unwanted(show, name):
    page = show(about(name).example("text"))  # on a screen that is touched
    unfold_all(page)
    fields = page.locator("input[type=text], select").evaluate_all(FIELDS)
    assert min(fields, default=16) >= 16  # smaller ones a telephone magnifies
    parts = page.locator(".attn-widget *")
    assert set(parts.evaluate_all(KEPT_ON_PAPER)) == {"exact"}
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    assert parts.evaluate_all(LOST) == 0  # colors that say something
    assert page.locator(MARKS).evaluate_all(ADJUSTED) == []
    assert page.evaluate(FRAMES) == []  # what is chosen is framed otherwise
    assert set(parts.evaluate_all(DURATIONS)) == {"0s"}
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
  const end = attnModules["NAME/widget.js"].default.render({model, el});
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
    asked(page, widget, DRAW_NOTING.replace("NAME", name))
    use(page)
    assert page.evaluate("changed.size > 0 && unsaved.size === 0")
    assert page.evaluate("listenersAtTheEnd()") == 0  # of a view that was taken away
    assert page.locator("[id]").count() == 0  # which two of a kind would share


# Every computed style of every element and of what stands before and after it, as texts: those that
# differ, and which of them each has, for most look like others. What only screen readers find has a
# place on the page, which isn't its look.
LOOK = """(root) => {
  const nodes = [root, ...root.querySelectorAll("*:not(.attn-unseen)")];
  const names = Array.from(getComputedStyle(root)).sort();
  const textOf = (node, pseudo) => {
    const styles = getComputedStyle(node, pseudo);
    if (pseudo && styles.content === "none") return "";
    const values = names.map((name) => `${name}: ${styles.getPropertyValue(name)}`);
    const classes = node.getAttribute("class") ?? "";
    return `<${node.localName} class="${classes}" ${pseudo ?? ""}> ${values.join("; ")}`;
  };
  const places = new Map(); // text -> its place among those that differ
  const looks = nodes.flatMap((node) => [null, "::before", "::after"].map((pseudo) => {
    const text = textOf(node, pseudo);
    if (!places.has(text)) places.set(text, places.size);
    return places.get(text);
  }));
  return [[...places.keys()], looks];
}"""

PLAIN = """() => document.body.insertAdjacentHTML("beforeend", `<div id="plain">
  <p>p <code>c</code></p><details open><summary>s</summary><table>
  <caption>c</caption><tr><th>h</th><td>d</td></tr></table></details>
  <label><input type="radio"><input type="range"></label><button>b</button>
  <svg><text>t</text><rect/><path/></svg><fieldset><legend>l</legend></fieldset></div>`)"""


def look(element) -> list[str]:
    """Return the look of all in an element."""
    texts, looks = element.evaluate(LOOK)
    texts = [text.replace(", ", ",") for text in texts]  # a property of our own keeps its spaces
    return [texts[place] for place in looks]


def looks(page) -> list[list[str]]:
    """Return the look of each widget on a page, its numbers unfolded."""
    page.emulate_media(reduced_motion="reduce")  # what pulses looks otherwise at each moment
    unfold_all(page)
    page.evaluate("document.activeElement.blur()")
    widgets = page.locator(".attn-widget").all()
    shown_at_rest(page, widgets)
    return [look(widget) for widget in widgets]


def differences(found: list[str], expected: list[str]) -> list[str]:
    """Return for each element that looks otherwise the styles in which it does."""
    assert len(found) == len(expected)
    return [
        f"{one.split('>')[0]}> {sorted(set(one.split('; ')) ^ set(other.split('; ')))}"
        for one, other in zip(found, expected, strict=True)
        if one != other
    ]


ONE_SHEET = """(sheet) => {
  document.querySelectorAll("style").forEach((other) => other.remove());
  document.head.append(document.createElement("style"));
  document.querySelector("style").textContent = sheet;
}"""


def test_no_widget_changes_another_or_the_page_and_a_notebook_shows_it_as_a_page_does(show):
    """A notebook has a widget's style in one sheet of its own, a page those of all its widgets."""
    examples = [about(name).example("word") for name in COMPLETE]
    page = show(*examples)
    among_others = looks(page)
    page.evaluate(PLAIN)
    beside = look(page.locator("#plain"))
    page.evaluate(ONE_SHEET, "")
    assert differences(beside, look(page.locator("#plain"))) == []
    for name, widget, on_page in zip(COMPLETE, examples, among_others, strict=True):
        assert len(on_page) > 20, f"{name} drew nothing"
        page = show(widget)
        page.evaluate(ONE_SHEET, widget._css)
        [in_notebook] = looks(page)
        assert differences(in_notebook, on_page) == [], name
