"""HeadLab in a real browser, without a kernel: it trains, is asked, muted, and torch's equal."""

import re
from itertools import pairwise

import pytest
import torch
from playwright.sync_api import expect
from tools import head_labs as labs
from tools.weight_pictures import short
from tools.widget_pages import page_source, press, target_sizes

from attncourse.tasks import concord
from attncourse.widgets import HeadLab
from attnlib import palette


def example(text):
    """A lab for the tests of what every widget does; no text in it is an author's."""
    return labs.quick(steps=10, held_out=10)


def largest(text):
    return labs.quick(16, steps=10, held_out=10, sentence=labs.LONGEST)


HEADER, TEXT = 64, 722  # pixels: a page's own bar, and a text column with the page's margins

PLACES: set[str] = set()
KEY = (".attn-track input", "ArrowRight")
SENTENCE = HeadLab().sentence
TYPED = '[aria-label="A sentence of the language"]'
FOCUSED = "document.activeElement.getAttribute('aria-label')"


COLOR = "(node) => getComputedStyle(node).backgroundColor"
# Which word has arcs, and to how many that it must find.
ARCS_OF = """() => [...document.querySelectorAll(".attn-cards .attn-query select")].map(
  ({value}) => value).concat(document.querySelectorAll(".attn-arc-before").length)"""
# A title has all its room, and none in the corner where a page puts icons.
BESIDE_ICONS = """(title) => {
  const text = document.createRange();
  text.selectNodeContents(title);
  const {top, right} = title.closest(".attn-widget").getBoundingClientRect();
  const isClear = (line) => line.right < right - 108 || line.top > top + 43;
  return [...text.getClientRects()].every(isClear) && title.scrollHeight <= title.clientHeight;
}"""
# Calls `look` whenever something of a lab has changed.
WATCH = """new MutationObserver(look).observe(document.querySelector(".attn-widget"),
  {subtree: true, childList: true, attributes: true, characterData: true});"""


def test_nothing_trains_before_a_reader_asks_for_it(lab):
    page = lab(labs.quick())
    expect(page.locator(".attn-arc-before")).to_have_count(2)
    assert page.evaluate(ARCS_OF) == ["gave", 2]  # its subject and its object
    page.locator(labs.SLIDER).press("ArrowRight")
    page.get_by_label("head 1 works").uncheck()
    press(page, "Another seed")
    labs.later(page)
    assert page.evaluate("workers") == 0
    assert labs.texts(page, ".attn-seed, .attn-progress-text") == ["seed 1", "Not trained yet."]
    assert labs.answers_on(page)[0] == [["bale", False]]  # the right one is there all the same
    assert concord.read(SENTENCE).answers["A"][0] == concord.readouts["A"].index("bale")


# Where each part of a lab begins whose place nothing may change that comes and goes above it.
TOPS = """() => ["slider", "live", "view", "cards", "grid", "map", "first", "sharing", "kept",
  "repeat"].map((part) => document.querySelector(`.attn-${part}`).getBoundingClientRect().top)
  .concat(document.querySelector(".attn-widget").getBoundingClientRect().height)"""


@pytest.mark.parametrize("width", [360, 690, 1000])
def test_answers_numbers_and_lines_that_come_and_go_move_nothing(lab, width):
    page = lab(labs.quick(1, steps=100), width=width)
    page.evaluate(
        f"() => {{ window.seen = []; const look = () => seen.push(({TOPS})()); {WATCH} }}"
    )
    before = page.evaluate(TOPS)
    labs.train(page)
    labs.tells(page, "No head is muted")
    page.locator(labs.SLIDER).press("ArrowRight")
    labs.tells(page, "Trained with 2 heads")
    tops = page.evaluate("seen")
    assert len(tops) > 10
    assert all(top == pytest.approx(before, abs=0.5) for top in tops)
    if width == 360:  # the name of a pair leaves room for what is told of it
        page.locator(".attn-opener").last.click()
        page.get_by_role("button", name="Repeat it").click()
        room, *names = page.locator(".attn-repeat").evaluate("""(node) => [
          node.querySelector(".attn-scroll").clientWidth,
          ...[...node.querySelectorAll("tbody th")].map((name) => name.offsetWidth)]""")
        assert len(names) == 7 and max(names) < room / 2


@pytest.mark.parametrize("width", [360, 1000])
def test_a_pressed_tab_stays_and_a_task_opened_again_is_as_it_was_left(lab, width):
    page = lab(labs.quick(), width=width)
    page.evaluate("document.body.style.paddingBlock = '900px'")
    # Nothing of it is made anew, which would take longer than a click may.
    parts = "() => [document.querySelector('.attn-view'), ...document.querySelectorAll('select')]"
    page.evaluate(f"window.parts = ({parts})()")
    tabs = page.locator(".attn-tabs button").all()
    for tab in [*tabs, tabs[0]]:
        tab.scroll_into_view_if_needed()
        before = tab.bounding_box()
        tab.click()
        assert tab.bounding_box() == before
        assert page.evaluate(f"({parts})()[0] === parts[0]") == (tab == tabs[0])
    assert page.evaluate(f"({parts})().every((part, i) => part === parts[i])")


@pytest.mark.parametrize("num_heads", [1, 4])
def test_the_slider_and_the_maps_are_in_one_view(lab, num_heads):
    page = lab(labs.quick(num_heads))
    for width, height, seen in ((TEXT, 900, ".attn-map"), (390, 844, ".attn-grid")):
        page.set_viewport_size({"width": width, "height": height})
        top = page.locator(labs.SLIDER).bounding_box()["y"]
        maps = page.locator(seen).bounding_box()
        assert maps["y"] + maps["height"] - top < height - HEADER


@pytest.mark.parametrize("width", [360, 390, 1000, 1440])
def test_all_of_sixteen_heads_can_be_muted_and_a_phone_folds_what_few_need(show, width):
    page = show(labs.quick(16), width=width)
    is_phone = width < 400
    openers = page.locator(".attn-opener:visible")
    assert openers.count() == (5 if is_phone else 0)
    heads = page.locator(".attn-switches label")
    if is_phone:
        assert page.locator(".attn-widget").bounding_box()["height"] < 2000
        assert page.locator(".attn-map:visible, .attn-switches:visible").count() == 0
        page.locator(".attn-tile").nth(3).click()
        assert page.locator(".attn-map").is_visible()  # of a head that is pressed
        openers.nth(1).press("Enter")
        assert openers.nth(1).get_attribute("aria-expanded") == "true"
    box = page.locator(".attn-switches").bounding_box()
    places = [head.bounding_box() for head in heads.all()]
    assert len({(place["x"], place["y"]) for place in places}) == 16
    assert all(place["x"] + place["width"] <= box["x"] + box["width"] + 1 for place in places)
    assert all(place["y"] + place["height"] <= box["y"] + box["height"] for place in places)


def test_a_training_out_of_sight_is_drawn_once_it_is_seen_or_over(lab):
    """A page has other widgets, and clicks on them would wait for it."""
    page = lab(labs.quick(steps=4000))
    told = page.locator(labs.PROGRESS)
    page.evaluate("""() => {
      document.body.style.paddingBottom = "5000px";
      new IntersectionObserver(([{isIntersecting}]) => (window.isSeen = isIntersecting))
        .observe(document.querySelector(".attn-widget"));
    }""")
    labs.begun(page)
    for is_over in (False, True):
        page.evaluate("scrollTo(0, 5000)")
        page.wait_for_function("window.isSeen === false")
        before = told.inner_text()
        if is_over:
            page.get_by_role("button", name="Stop", exact=True).dispatch_event("click")
        else:
            page.evaluate("window.heard = 0")
            page.evaluate("lastWorker.addEventListener('message', () => (heard += 1))")
            page.wait_for_function("heard > 3")
            labs.later(page)
            assert told.inner_text() == before
            page.evaluate("scrollTo(0, 0)")
        expect(told).not_to_have_text(before)
    expect(told).to_contain_text("Stopped")


# What is to be seen of a model, and moves while it trains: its losses, shares and maps.
MOVES = """() => [document.querySelector(".attn-curve")?.getAttribute("d"),
  [...document.querySelectorAll(".attn-number")].map(({textContent}) => textContent).join(),
  document.querySelector("canvas").toDataURL()]"""


def test_a_training_moves_is_paused_goes_on_and_ends_where_it_would_have(lab):
    page = lab(labs.quick(steps=100))
    page.evaluate(f"""() => {{
      const look = () => {{
        if (window.isPaused || !document.querySelector(".attn-curve")?.getAttribute("d")) return;
        window.isPaused = true;
        document.querySelector(".attn-main").click();
      }};
      {WATCH}
    }}""")
    begin = page.evaluate(MOVES)
    press(page, "Train")
    expect(page.get_by_role("button", name="Go on")).to_have_count(1)
    labs.answered(page)
    step, paused = page.locator(labs.PROGRESS).inner_text(), page.evaluate(MOVES)
    labs.answered(page)
    labs.later(page)
    assert (page.locator(labs.PROGRESS).inner_text(), page.evaluate(MOVES)) == (step, paused)
    press(page, "Go on")
    labs.trained(page)
    labs.answered(page)
    end = page.evaluate(MOVES)
    assert {len({*seen}) for seen in zip(begin, paused, end, strict=True)} == {3}
    depths = [float(depth) for depth in re.findall(r"[\d.]+[ ,]([\d.]+)", end[0])]
    assert depths[0] < depths[-1]  # the loss falls
    loss = page.locator(".attn-kept td:nth-child(5)")
    before = loss.inner_text()
    press(page, "Train again")
    expect(loss).to_have_count(0)
    labs.trained(page)
    assert loss.all_inner_texts() == [before]


def test_the_slider_trains_other_models_once_where_it_comes_to_rest(lab):
    page = lab(labs.quick(1))
    slider = page.locator(labs.SLIDER)
    labs.train(page)
    slider.press("ArrowRight")
    names = ["1 head, seed 0", "2 heads, seed 0"]
    assert labs.kept(page, 2) == names
    assert page.locator(".attn-curve").count() == page.locator(".attn-tile:visible").count() == 2
    rows = labs.texts(page, ".attn-kept tbody tr")
    slider.press("ArrowLeft")
    labs.trained(page)
    labs.later(page)
    assert page.evaluate("workers") == 2  # the first model is still there
    assert labs.texts(page, ".attn-kept tbody tr") == rows
    assert labs.texts(page, ".attn-kept [aria-pressed=true]") == names[:1]
    page.get_by_role("button", name=names[1]).press("Enter")
    assert page.evaluate("document.activeElement.textContent") == names[1]
    assert slider.get_attribute("aria-valuetext") == "2 heads"
    press(page, "Another seed")
    assert labs.kept(page, 3) == [*names, "2 heads, seed 1"]
    slider.evaluate("""(slider) => [2, 3, 4].forEach((value) => {
      slider.value = value;
      slider.dispatchEvent(new InputEvent("input", {bubbles: true}));
    })""")
    assert labs.kept(page, 4)[3] == "16 heads, seed 1"
    assert page.evaluate("workers") == 4
    labs.answered(page)  # arcs of one head: those of all would hide the sentence
    heads = "arcs => new Set(arcs.map(({style}) => style.getPropertyValue('--attn-head'))).size"
    assert page.locator(".attn-arc:not(.attn-arc-before)").evaluate_all(heads) == 1


@pytest.fixture(scope="module")
def trained_page(browser):
    """A page with a lab whose model of two heads has been trained, to be asked sentences."""
    page, errors = browser.new_page(has_touch=True), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_viewport_size({"width": 1000, "height": 900})
    page.set_content(page_source(labs.quick(steps=60)))
    page.evaluate(labs.LISTEN)
    labs.train(page)
    labs.tells(page, "No head is muted")
    yield page
    page.close()
    assert errors == []


@pytest.fixture
def asked(trained_page):
    """The same, asked about the sentence with which it began."""
    trained_page.locator(TYPED).fill(SENTENCE)
    trained_page.locator(TYPED).press("Enter")
    labs.answered(trained_page)
    return trained_page


@torch.no_grad()
def test_a_map_and_arcs_show_a_heads_weights_and_partners(asked):
    page, sentence = asked, concord.read(SENTENCE)
    assert min(target_sizes(page)) >= 24  # with what comes with a trained model
    assert page.locator(".attn-large .attn-heading").evaluate(BESIDE_ICONS)
    maps = labs.model_of(page, 2)(torch.tensor([sentence.ids]), need_weights=True).weights[0][0]
    page.get_by_label("Word 1", exact=True).focus()
    assert page.evaluate(ARCS_OF) == ["the", 1]
    page.locator(".attn-card").nth(3).tap()
    assert page.evaluate(ARCS_OF) == ["gave", 2]
    arcs = page.locator(".attn-arc:not(.attn-arc-before)")
    arcs.first.wait_for(state="attached")
    shown = arcs.evaluate_all("all => all.map((a) => Number(a.style.getPropertyValue('--weight')))")
    weights = maps[:, sentence.words.index("gave")]
    torch.testing.assert_close(torch.tensor(shown), weights[weights >= 0.01], atol=1e-4, rtol=0)
    page.get_by_label("Word 1", exact=True).focus()
    page.get_by_role("button", name="head 2").tap()
    page.locator(".attn-plot").focus()
    for key in ["Home", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"]:
        page.keyboard.press(key)
    assert page.evaluate(ARCS_OF) == ["gave", 2]
    assert page.locator(".attn-read").inner_text() == (
        f"gave looks at king with {short(maps[1, 3, 2])}. That is its subject."
    )
    path = page.locator(".attn-plot .attn-frame").get_attribute("d")
    pairs = {pair for found in sentence.partners.values() for pair in found.items()}
    assert path.count("M") == len(pairs)
    assert all(f"M{column} {row}h1v1h-1z" in path for row, column in pairs)
    faint = page.locator(".attn-plot .attn-faint").get_attribute("d")
    assert faint.count("M") == len(sentence) - len({row for row, _ in pairs})


def test_a_change_is_drawn_once_with_its_answer_and_the_rest_stays(asked):
    page, field = asked, asked.get_by_label("Word 3", exact=True)
    page.locator(".attn-plot").press("ArrowDown")
    read, first = page.locator(".attn-read"), page.locator(".attn-columns span").nth(2)
    before = read.inner_text()
    page.evaluate("""() => {
      const own = lastWorker.onmessage;
      window.held = null;
      lastWorker.onmessage = (event) => (held ? held.push(() => own(event)) : own(event));
      window.soon = setTimeout;  // an answer that comes is drawn with the change, however slowly
      window.setTimeout = (act, ms, ...rest) => soon(act, ms === 50 ? 60_000 : ms, ...rest);
      const tile = document.querySelector(".attn-tile .attn-picture");
      window.blanks = 0;
      const look = () => (blanks += tile.classList.contains("attn-blank"));
      new MutationObserver(look).observe(tile, {attributes: true});
      window.findParts = () => [...document.querySelectorAll(".attn-map, .attn-card select")];
      window.parts = findParts();
    }""")
    # What may not stand there isn't offered: outside "because" no noun is a thing.
    words = field.locator("option").all_inner_texts()
    assert "queen" in words and "ball" not in words
    field.focus()
    field.select_option("nun")
    expect(first).to_have_text("nun")
    assert page.evaluate("blanks") == 0
    changed = "the big nun gave a very strange sister their nephew ."
    assert page.locator(TYPED).input_value() == changed
    assert labs.answers_on(page) == labs.answers_of(labs.model_of(page, 2), concord.read(changed))
    stay = page.evaluate("findParts().map((part, i) => part === parts[i])")
    assert page.evaluate(FOCUSED) == "Word 3" and stay.count(False) <= 1
    assert read.inner_text() != before
    # Without its answer, if that is late.
    page.evaluate("() => { window.setTimeout = soon; window.held = []; }")
    field.select_option("queen")
    expect(first).to_have_text("queen")
    assert page.evaluate("blanks") > 0 and not labs.answers_on(page)[0][0][1]
    page.evaluate("() => { const all = held; window.held = null; for (const go of all) go(); }")
    tile = page.locator(".attn-tile .attn-picture").first
    expect(tile).not_to_have_class(re.compile("attn-blank"))


def test_what_a_reader_does_before_a_change_is_drawn_is_kept(asked):
    page, field = asked, asked.locator(TYPED)
    before = field.input_value().split()
    page.evaluate("""() => {
      window.choose = (place) => {
        const field = document.querySelector(`[aria-label="Word ${place}"]`);
        field.value = [...field.options].find(({value}) => value !== field.value).value;
        field.dispatchEvent(new Event("change", {bubbles: true}));
      };
      [1, 3].forEach(choose);
      document.querySelector('[aria-label="Word 2"]').focus();
    }""")
    expect(field).not_to_have_value(" ".join(before))
    after = field.input_value().split()
    assert after[0] != before[0] and after[2] != before[2]
    assert page.evaluate(FOCUSED) == "Word 2"
    # Of another length: no field is drawn at a place that isn't there.
    shorter = "a big king gave a sister their nephew ."
    field.evaluate(
        "(field, text) => { choose(10); field.value = text; field.form.requestSubmit(); }", shorter
    )
    cards = page.locator(".attn-card")
    expect(cards).to_have_count(9)
    shown = "(all) => all.map((one) => one.value ?? one.textContent).join(' ')"
    assert cards.locator("select, .attn-word").evaluate_all(shown) == shorter


def test_a_sentence_is_typed_or_drawn_and_what_is_none_is_refused(show):
    page = show(labs.quick())
    note = page.locator(".attn-note", has_text="Concord").inner_text()
    words = {*re.findall(r"-?[a-z]+", note)}  # the parts of words of which it tells
    assert {part for word in concord.readouts["A"] for part in (word[:2], f"-{word[2:]}")} <= words
    assert {"bana", "-ki"} <= words & {*concord.readouts["A"], *concord.readouts["B"]}
    field, cards = page.locator(TYPED), page.locator(".attn-card")
    field.fill("The queen saw a monk")
    field.press("Enter")
    assert cards.count() == 6
    refusal = page.locator(".attn-refusal")
    for text, named in {
        "the queen saw": "'the queen saw'",
        "the the": "'the' as word 2 after 'the'",
        " ": "Type a sentence",
    }.items():
        field.fill(text)
        field.press("Enter")
        expect(refusal).to_contain_text(named)
        assert field.get_attribute("aria-invalid") == "true"
        assert cards.count() == 6  # the sentence before is still there
    field.fill("The queen saw a monk")  # which it is
    field.press("Enter")
    assert refusal.inner_text() == ""
    press(page, "Another sentence")
    assert (refusal.inner_text(), field.get_attribute("aria-invalid")) == ("", "false")
    concord.read(field.input_value())


@pytest.mark.parametrize("width", [390, 1112])
def test_another_sentence_hardly_moves_what_stands_below(show, width):
    page = show(labs.quick(), width=width)
    found = page.evaluate("""() => {
      const button = [...document.querySelectorAll("button")].find(
        ({textContent}) => textContent === "Another sentence");
      return Array.from({length: 30}, () => {
        button.click();
        const widget = document.querySelector(".attn-widget");
        return [widget.getBoundingClientRect().height, widget.textContent];
      });
    }""")
    heights, texts = zip(*found, strict=True)
    assert len(set(texts)) > 20
    assert max(abs(a - b) for a, b in pairwise(heights)) <= 60


@pytest.mark.parametrize("width", [390, 1008, 1112])
def test_more_heads_hardly_move_what_stands_below(show, width):
    page = show(labs.quick(task="induction"), width=width)
    heights = []
    for i in range(5):
        page.locator(labs.SLIDER).fill(str(i))
        heights.append(page.locator(".attn-widget").bounding_box()["height"])
    assert page.locator(".attn-tile").count() == 32
    assert max(abs(a - b) for a, b in pairwise(heights)) <= 60


@pytest.mark.parametrize("small", [False, True])
def test_without_workers_it_says_so_and_the_rest_lives(show, small):
    page = show(labs.quick(small=small))
    page.evaluate("() => { window.Worker = function () { throw new Error('not here'); }; }")
    press(page, "Train")
    labs.tells(page, "not here")
    if small:
        press(page, "4")
        return expect(page.locator(".attn-look .attn-swatch")).to_have_count(4)
    page.get_by_role("button", name="Repeat it").click()
    expect(page.locator(".attn-repeated")).to_contain_text("not here")
    page.get_by_label("Word 3", exact=True).select_option("nun")
    assert "nun" in page.locator(TYPED).input_value()
    page.locator(labs.SLIDER).press("ArrowRight")
    assert page.locator(".attn-tile:visible").count() == 4


def test_views_share_models_of_their_own_and_hear_of_a_worker_that_breaks_down(lab):
    shared = labs.quick(steps=400)
    page = lab(shared, shared, labs.quick())
    one, again, other = page.locator(".attn-widget").all()
    press(one, "Train")
    again.get_by_role("button", name="Pause").wait_for()
    page.evaluate("lastWorker.onerror(Object.assign(new Event('error'), {message: 'no memory'}))")
    for view in (one, again):
        labs.tells(view, "no memory")
    press(again, "Train again")
    labs.trained(one)
    assert page.evaluate("workers") == 1
    assert labs.texts(other, labs.PROGRESS) == ["Not trained yet."]


def test_a_lab_that_nobody_sees_or_that_is_taken_away_or_begun_anew_trains_nothing(lab):
    page = lab(labs.quick(steps=400))
    page.evaluate("""() => new Promise((isSeen) => {
      const state = JSON.parse(document.querySelector("script[type*=state]").textContent).state;
      const {state: own} = Object.values(state).find((entry) => entry.state.recipe);
      const values = new Map(Object.entries(own)); // a copy of the widget
      const model = {get: (name) => values.get(name), on() {}, off() {}};
      const [fold, el] = ["details", "div"].map((name) => document.createElement(name));
      fold.append(el);
      document.body.prepend(fold);
      window.draw = (trained, beside = []) => {
        window.end?.();
        values.set("trained", trained).set("beside", beside);
        window.end = attnModules["head_lab/widget.js"].default.render({model, el});
        return el.querySelector(".attn-progress-text").textContent;
      };
      draw(true, [1, 0]);
      new IntersectionObserver(() => isSeen()).observe(el); // after the lab's own
    })""")
    labs.later(page)
    assert page.evaluate("workers") == 0
    page.evaluate("document.querySelector('body > details').open = true")
    page.wait_for_function("workers === 2")
    page.evaluate("end()")
    page.wait_for_function("workers === 0")
    page.evaluate("draw(true)")
    page.wait_for_function("workers === 1")
    assert page.evaluate("draw(false)") == "Not trained yet."
    assert page.evaluate("workers") == 0


def test_all_models_are_repeated_in_the_background_and_dots_appear(lab):
    page = lab(labs.quick(1, steps=10, held_out=20, counts=[1, 2], seed=7))
    legend = page.locator(".attn-repeat .attn-legend")
    assert legend.is_hidden()  # as long as there are no dots
    page.get_by_role("button", name="Repeat it").click()
    page.locator(".attn-run-dot").first.wait_for()
    press(page, "Stop repeating")
    labs.later(page)  # what was done by then is told
    models = page.locator(".attn-kept tbody tr")
    assert page.evaluate("workers") == models.count() < 10
    labs.repeat(page)
    assert page.get_by_role("button", name="repeat").count() == 0
    rows = models.evaluate_all(labs.CELLS)
    names = [f"{heads}, seed {seed}" for heads in ("1 head", "2 heads") for seed in range(5)]
    assert sorted(name for name, *_ in rows) == names
    # The first ones sleep: one that is chosen is trained again, though nobody pressed Train.
    assert page.evaluate("workers") <= 6
    page.get_by_role("button", name=names[0]).click()
    labs.tells(page, "No head is muted")
    rows = models.evaluate_all(labs.CELLS)
    page.get_by_label("head 1 works").uncheck()
    labs.tells(page, "Muted: head 1")
    labs.later(page)  # nor is it trained once more
    assert models.evaluate_all(labs.CELLS) == rows
    for plot, column in ((0, 1), (1, 2), (3, 3)):  # verb>subject, verb>object, their>thing
        dots = page.locator(".attn-dot-plot").nth(plot).locator(".attn-run-dot")
        drawn = [float(dot.evaluate("dot => dot.style.bottom")[:-1]) / 100 for dot in dots.all()]
        told = {h: [float(row[column]) for row in rows if row[0][0] == h] for h in "12"}
        assert drawn == pytest.approx(told["1"] + told["2"], abs=0.0051)
    ours = HeadLab().ours["2 heads"]
    assert labs.texts(page, ".attn-repeat td") == [  # none has learned
        f"– ({shared} of {models})" for shared, models in ours.values()
    ]
    # What dots and their height mean is said, and what guessing gets.
    assert page.locator(".attn-guess").first.evaluate("line => line.style.bottom") == "25%"
    assert legend.locator(".attn-entry").count() == 3
    ends = "field => getComputedStyle(field, '::before').content.match(/\\d/g)"
    assert page.locator(".attn-dot-field").first.evaluate(ends) == ["1", "0"]
    keys, current = legend.locator(".attn-dot-key"), page.locator(".attn-run-dot.attn-current")
    plain, shown = (keys.nth(i).evaluate(COLOR) for i in (0, 1))
    assert plain != shown == current.first.evaluate(COLOR)
    lines = labs.texts(page, ".attn-sharing p:not(.attn-heading)")
    assert [line.split(":")[0] for line in lines] == ["adjective", "verb", "their"]
    # On a phone names stay in sight while the table scrolls.
    page.set_viewport_size({"width": 360, "height": 900})
    page.locator(".attn-folded:has(.attn-kept) > .attn-opener").click()
    places = page.locator(".attn-kept .attn-scroll").evaluate("""(box) => {
      const {left, top} = box.getBoundingClientRect();
      box.scrollTo(1000, 1000);
      const names = [...box.querySelectorAll("thead th, tbody tr:last-child th")];
      const at = names.map((name) => name.getBoundingClientRect());
      return {scrolled: [box.scrollLeft, box.scrollTop], row: at.at(-1).left - left,
              corner: [at[0].left - left, at[0].top - top], columns: at[1].top - top};
    }""")
    assert min(places["scrolled"]) > 50
    assert places["row"] == places["columns"] == 0 and places["corner"] == [0, 0]


def test_a_shown_model_outlives_the_repetition_of_its_own_task(lab):
    page = lab(labs.quick(1, steps=4000, counts=[1, 2]))
    again = page.get_by_role("button", name="Repeat it")
    labs.begun(page)
    press(page, "Stop")
    told = page.locator(labs.PROGRESS)
    expect(told).to_contain_text("Stopped")
    stopped = told.inner_text()
    again.click()
    press(page, "Two needs: keys")
    assert again.count() == 1 and labs.texts(page, ".attn-repeated") == [""]
    press(page, "Concord")
    page.locator(labs.SLIDER).press("ArrowRight")  # to one that trains in the background
    expect(told).to_contain_text("Training")
    press(page, "Stop repeating")
    labs.later(page)
    expect(told).to_contain_text("Training")
    assert again.count() == page.evaluate("workers") - 1 == 1  # with the one that was stopped
    page.locator(labs.SLIDER).press("ArrowLeft")
    assert told.inner_text() == stopped


def test_what_heads_have_learned_is_counted_and_told(show):
    status, counted, found, told = show(labs.quick()).evaluate("""() => {
      const [{createRepeat}, {specialty}, {saySharing}, {settingOf}] =
        ["repeat", "findings", "words", "tasks"].map((name) => attnModules[`head_lab/${name}.js`]);
      const setting = settingOf({task: "concord", recipe: {}, given: null});
      const fill = (value) => Object.fromEntries(setting.rows.map(({name}) => [name, value]));
      const run = (numHeads, seed, object, right = .9) => ({state: "done", numHeads, seed,
        evaluation: {mass: {...fill([[.9, .1]]), "verb>object": [object]},
                     relations: {...fill(.9), "verb>object": right}}});
      const {node, draw} = createRepeat(setting, [1, 2, 4], 5, {});
      draw([run(2, 0, [.2, .1]), run(2, 1, [.1, .2]), run(2, 2, [.2, .1], .89),
            run(4, 0, [.2, .1]), run(2, 5, [.2, .1])], null, {isRepeating: true, problem: ""});
      const row = [...node.querySelectorAll("tbody tr")].find(
        ({textContent}) => textContent.startsWith("verb → subject, verb → object"));
      const masses = {a: [[0.9, 0.2]], b: [[0.6, 0.1]]};
      const baselines = {a: {offset: 1, share: 0.7}, b: {offset: -1, share: 0.2}};
      const mass = {"verb>subject": [[.9, .1]], "verb>object": [[.2, .1]], "x>y": [[.1, .3]]};
      const pairs = [["verb>subject", "verb>object"], ["verb>subject", "x>y"]];
      const say = (right) => saySharing(
        {mass, relations: {"verb>subject": .9, "verb>object": right, "x>y": 1}}, {pairs});
      return [node.querySelector(".attn-repeated").textContent,
        [...row.querySelectorAll("td")].map(({textContent}) => textContent),
        [0, 1].map((head) => specialty(head, masses, baselines)),
        [.9, .89].flatMap(say).map(({whose, isShared}) => [whose, isShared])];
    }""")
    assert "4 of 15" in status  # one has a seed of its own
    assert counted == ["2 of 3", "1 of 1"]  # of those that have learned both
    assert found == [{"relation": "b", "mass": 0.6, "offset": -1, "share": 0.2}, None]
    assert told == [
        ["head 1 for both", True], ["heads 1 and 2", False],
        ["object not learned", False], ["heads 1 and 2", False],
    ]  # fmt: skip


def test_each_head_has_its_color_and_bars_glide_and_stay_in_forced_colors(show):
    page = show(labs.quick(16))
    swatches = page.locator(".attn-switches .attn-swatch").evaluate_all(f"all => all.map({COLOR})")
    tiles = page.locator(".attn-tile").evaluate_all(
        "all => all.map((tile) => getComputedStyle(tile).borderTopColor)"
    )
    assert swatches == tiles == [labs.in_rgb(palette.head_color(head)) for head in range(16)]
    page.get_by_label("head 1 works").uncheck()
    expect(page.locator(".attn-tile .attn-picture").first).to_have_css("opacity", "0.25")
    bar = page.locator(".attn-right").first
    assert bar.evaluate("bar => getComputedStyle(bar).transitionDuration") == "0.2s"
    before = bar.evaluate(COLOR)
    page.emulate_media(forced_colors="active")
    assert bar.evaluate(COLOR) == before
    page.emulate_media(forced_colors="none")


def of_block(**changes):
    """Damage the only block of the model."""
    return lambda state, _: state["spec"]["blocks"][0].update(changes)


WRONG = {  # a trait -> a value that is refused
    "num_heads": 3, "seed": 1000, "trained": "yes", "digest": "xyz", "digests": {"2 0": 5},
    "induction_digests": [5], "head": 16, "muted": [16], "forbidden": "x>y", "forbidden_in": 16,
    "sentence": 5, "weights": bytes(40), "from_weights": None, "small": 1, "task": 5, "symbols": 5,
    "steps": -1, "mlp": "yes", "beside": [3, 0], "symbol_counts": 5, "step_counts": [0],
    "ours": {"2 heads": {"verb>subject & verb>object": "all"}}, "held_out": 0, "counts": [],
}  # fmt: skip
DAMAGES = {f"{name} should be": {name: value} for name, value in WRONG.items()} | {
    "'zebra' as word 2": {"sentence": "the zebra saw a king"},
    "but is [2,1000]": {"beside": [2, 1000]},
    "steps should be a whole": {"recipes": {}},
    "lr should be": lambda state, _: state["recipe"].update(lr=-1),
    "blocks should be": lambda state, _: state["spec"].update(blocks=None),
    "blocks should be one": lambda s, _: s["spec"].update(blocks=2 * s["spec"]["blocks"]),
    "attention_dropout should be": of_block(attention_dropout=0.5),
    "readouts should be": lambda state, _: state["spec"].update(readouts={"next": 89}),
}
