"""HeadLab in a real browser, without a kernel: it trains, is asked, muted, and torch's equal."""

import re
from itertools import pairwise

import pytest
import torch
from playwright.sync_api import expect
from tools.head_labs import (
    CELLS,
    HELD_OUT_SEED,
    LISTEN,
    LONGEST,
    answered,
    answers_of,
    answers_on,
    bars,
    begun,
    kept,
    later,
    model_of,
    tells,
    train,
    trained,
)
from tools.weight_pictures import short
from tools.widget_pages import page_source, press, said, target_sizes, unfold

from attncourse.tasks import concord, pack
from attncourse.training import RECIPES, evaluate
from attncourse.widgets import HeadLab
from attnlib import palette, patterns


def quick(num_heads=2, steps=30, held_out=40, seed=0, **options):
    """A lab whose models are trained for a moment only."""
    widget = HeadLab(num_heads, seed=seed, **options)
    widget.set_trait("recipe", RECIPES["concord"].changed(steps=steps, warmup=5).as_json())
    widget.set_trait("held_out", held_out)
    return widget


def example(text):
    """A lab for the tests of what every widget does; no text in it is an author's."""
    return quick(steps=10, held_out=10)


def largest(text):
    return quick(16, steps=10, held_out=10, sentence=LONGEST)


HEADER, TEXT = 64, 722  # pixels: a page's own bar, and a text column with the page's margins

PLACES: set[str] = set()
KEY = (".attn-track input", "ArrowRight")


def slider(page):
    return page.locator(".attn-track input")


def word(page, place):
    return page.get_by_label(f"Word {place}", exact=True)


def typed(page):
    return page.get_by_label("A sentence of the language")


FOCUSED = "document.activeElement.getAttribute('aria-label')"
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
    page = lab(quick())
    expect(page.locator(".attn-arc-before")).to_have_count(2)
    assert page.evaluate(ARCS_OF) == ["gave", 2]  # its subject and its object
    slider(page).press("ArrowRight")
    page.get_by_label("head 1 works").uncheck()
    press(page, "Another seed")
    later(page)
    assert page.evaluate("workers") == 0
    assert page.locator(".attn-progress-text").inner_text() == "Not trained yet."
    assert page.locator(".attn-seed").inner_text() == "seed 1"
    # What is asked, and the right answers, are there all the same.
    right = concord.read(quick().sentence)
    assert answers_on(page)[0] == [["bale", False]]
    assert right.answers["A"][0] == concord.readouts["A"].index("bale")


def test_curve_bars_and_maps_move_while_it_trains(lab):
    page = lab(quick(steps=400))
    page.evaluate(f"""() => {{
      window.seen = {{curve: new Set(), bars: new Set(), map: new Set()}};
      const look = () => {{
        seen.curve.add(document.querySelector(".attn-curve")?.getAttribute("d"));
        seen.bars.add(document.querySelector(".attn-score .attn-number").textContent);
        seen.map.add(document.querySelector("canvas").toDataURL());
      }};
      {WATCH}
    }}""")
    press(page, "Train")
    page.wait_for_function("seen.curve.size > 4 && seen.map.size > 4 && seen.bars.size > 2")
    assert page.get_by_role("button", name="Pause").count() == 1  # it still trains
    assert page.locator("progress").evaluate("bar => bar.value") > 0
    press(page, "Stop")
    expect(page.locator(".attn-progress-text")).to_contain_text("Stopped")
    assert said(page).startswith("Stopped with 2 heads, seed 0: it hasn't learned ")


# Where each part of a lab begins whose place nothing may change that comes and goes above it.
TOPS = """() => ["slider", "live", "view", "cards", "grid", "map", "first", "sharing", "kept",
  "repeat"].map((part) => document.querySelector(`.attn-${part}`).getBoundingClientRect().top)
  .concat(document.querySelector(".attn-widget").getBoundingClientRect().height)"""


@pytest.mark.parametrize("width", [360, 690, 1000])
def test_answers_numbers_and_lines_that_come_and_go_move_nothing(lab, width):
    page = lab(quick(1, steps=100), width=width)
    page.evaluate(
        f"""() => {{
      window.seen = [({TOPS})()];
      const look = () => seen.push(({TOPS})());
      {WATCH}
    }}"""
    )
    train(page)
    tells(page, "No head is muted")
    slider(page).press("ArrowRight")
    tells(page, "Trained with 2 heads")
    tops = page.evaluate("seen")
    assert len(tops) > 10
    for part in zip(*tops, strict=True):
        assert max(part) - min(part) < 0.5
    if width == 360:  # the name of a pair leaves room for what is told of it
        page.locator(".attn-opener").last.click()
        page.get_by_role("button", name="Repeat it").click()
        room, *names = page.locator(".attn-repeat").evaluate("""(node) => [
          node.querySelector(".attn-scroll").clientWidth,
          ...[...node.querySelectorAll("tbody th")].map((name) => name.offsetWidth)]""")
        assert len(names) == 7 and max(names) < room / 2


@pytest.mark.parametrize("width", [360, 1000])
def test_a_pressed_tab_stays_and_a_task_opened_again_is_as_it_was_left(lab, width):
    page = lab(quick(), width=width)
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
    page = lab(quick(num_heads))
    for width, height, seen in ((TEXT, 900, ".attn-map"), (390, 844, ".attn-grid")):
        page.set_viewport_size({"width": width, "height": height})
        top = slider(page).bounding_box()["y"]
        maps = page.locator(seen).bounding_box()
        assert maps["y"] + maps["height"] - top < height - HEADER


@pytest.mark.parametrize("width", [360, 390, 1000, 1440])
def test_all_of_sixteen_heads_can_be_muted_and_a_phone_folds_what_few_need(show, width):
    page = show(quick(16), width=width)
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


def test_a_training_out_of_sight_draws_nothing_before_it_ends(lab):
    """A page has other widgets, and clicks on them would wait for it."""
    page = lab(quick(steps=200))
    page.evaluate("document.body.style.paddingBottom = '5000px'")
    begun(page)
    page.evaluate(
        """() => new Promise((gone) => {
      new IntersectionObserver(([{isIntersecting}]) => {
        if (isIntersecting) return;
        const read = () => document.querySelector(".attn-progress-text").textContent;
        window.told = new Set([read()]);
        const look = () => told.add(read());
        WATCH
        gone();
      }).observe(document.querySelector(".attn-widget"));
      scrollTo(0, 5000);
    })""".replace("WATCH", WATCH)
    )
    trained(page)
    assert said(page).startswith("Trained with 2 heads, seed 0: ")
    before, after = page.evaluate("[...told]")
    assert before.startswith("Training: step ") and after.startswith("Trained: 200 steps")


def test_a_training_that_comes_in_sight_is_drawn(lab):
    page = lab(quick(steps=4000))  # not over before it is out of sight
    press(page, "Train")
    # Out of sight it hears of some steps, then of nothing more.
    page.evaluate("""() => new Promise((heard) => {
      new IntersectionObserver(([{isIntersecting}]) => {
        if (isIntersecting) return;
        const own = lastWorker.onmessage;
        lastWorker.onmessage = (event) => {
          own(event);
          if (event.data.kind !== "losses") return;
          lastWorker.onmessage = null;
          heard();
        };
      }).observe(document.querySelector(".attn-widget"));
      document.body.style.paddingTop = "5000px";
      scrollTo(0, 0);
    })""")
    later(page)
    told = page.locator(".attn-progress-text")
    before = told.inner_text()
    told.scroll_into_view_if_needed()
    expect(told).not_to_have_text(before)


def test_a_training_is_paused_goes_on_and_ends_where_it_would_have(lab):
    page = lab(quick(steps=60))
    page.evaluate(f"""() => {{
      const look = () => document.querySelector("progress").value > 0 && !window.isPaused &&
        (window.isPaused = true) && document.querySelector(".attn-main").click();
      {WATCH}
    }}""")
    press(page, "Train")
    progress = page.locator(".attn-progress-text")
    expect(progress).to_contain_text("Paused: step ")
    answered(page)
    paused = progress.inner_text()
    answered(page)
    later(page)
    assert progress.inner_text() == paused
    press(page, "Go on")
    trained(page)
    loss = page.locator(".attn-kept td:nth-child(5)")
    before = loss.inner_text()
    press(page, "Train again")
    expect(loss).to_have_count(0)
    trained(page)
    assert loss.all_inner_texts() == [before]


def test_the_slider_trains_other_models_once_where_it_comes_to_rest(lab):
    page = lab(quick(1))
    train(page)
    slider(page).press("ArrowRight")
    names = ["1 head, seed 0", "2 heads, seed 0"]
    assert kept(page, 2) == names
    assert page.locator(".attn-curve").count() == 2
    assert page.locator(".attn-tile:visible").count() == 2
    assert page.evaluate("workers") == 2
    rows = page.locator(".attn-kept tbody tr").all_inner_texts()
    slider(page).press("ArrowLeft")
    trained(page)
    later(page)
    assert page.evaluate("workers") == 2  # the first model is still there
    assert page.locator(".attn-kept tbody tr").all_inner_texts() == rows
    assert page.locator(".attn-kept [aria-pressed=true]").inner_text() == names[0]
    page.get_by_role("button", name=names[1]).press("Enter")
    assert page.evaluate("document.activeElement.textContent") == names[1]
    assert slider(page).get_attribute("aria-valuetext") == "2 heads"
    press(page, "Another seed")
    assert kept(page, 3) == [*names, "2 heads, seed 1"]
    slider(page).evaluate("""(slider) => {
      for (const value of [2, 3, 4]) {
        slider.value = value;
        slider.dispatchEvent(new InputEvent("input", {bubbles: true}));
      }
    }""")
    assert kept(page, 4)[3] == "16 heads, seed 1"
    assert page.evaluate("workers") == 4


@torch.no_grad()
def test_what_a_model_answers_and_gets_right_is_torchs_with_all_heads_and_with_some(lab):
    page = lab(quick(4, steps=120, held_out=60, sentence=LONGEST))
    train(page)
    model, sentence = model_of(page, 4), concord.read(LONGEST)
    tells(page, "No head is muted")
    held_out = concord.sentences(60, seed=HELD_OUT_SEED)
    unfold(page)
    cells = {
        name: numbers for name, *numbers in page.locator("details tbody tr").evaluate_all(CELLS)
    }
    batch = pack(held_out)
    weights = model(batch.tokens, key_mask=batch.key_mask, need_weights=True).weights[0]
    for relation in concord.relations:
        name = relation.name.replace(">", " → ")
        _, baseline, _, *masses = cells[name]
        partners = batch.partners[relation.name]
        scores = patterns.relation_mass(weights, partners)
        offset, share = patterns.best_offset(partners)
        assert baseline == f"{short(share, 3)} ({'+' if offset > 0 else '−'}{abs(offset)})"
        assert list(map(float, masses)) == pytest.approx(scores.heads.tolist(), abs=0.001)
        best = page.locator(".attn-score", has_text=name).locator(".attn-best")
        assert best.inner_text() == str(scores.best + 1)
    for muted, who in (
        ([], "No head is muted: of "),
        ([2], "Muted: head 3: of "),
        ([1, 2], "Muted: heads 2 and 3: of "),
        ([0, 1, 2, 3], "Muted: heads 1, 2, 3 and 4: of "),
    ):
        for head in range(4):
            page.get_by_label(f"head {head + 1} works").set_checked(head not in muted)
        tells(page, who)
        expected = answers_of(model, sentence, muted)
        assert answers_on(page) == expected
        wrong = sum(not right for own in expected for _, right in own)
        assert re.search(rf"\b{wrong} (is|are) wrong", said(page))
        mask = torch.tensor([float(head not in muted) for head in range(4)])
        found = evaluate(model, held_out, concord.relations, head_masks=[mask]).relations
        if muted:
            page.locator(".attn-before:visible").first.wait_for()
        answered(page)
        assert bars(page) == [short(found[relation.name]) for relation in concord.relations]


@pytest.fixture(scope="module")
def trained_page(browser):
    """A page with a lab whose model of two heads has been trained, to be asked sentences."""
    page, errors = browser.new_page(has_touch=True), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_viewport_size({"width": 1000, "height": 900})
    page.set_content(page_source(quick(steps=60)))
    page.evaluate(LISTEN)
    train(page)
    tells(page, "No head is muted")
    yield page
    page.close()
    assert errors == []


@pytest.fixture
def asked(trained_page):
    """The same, asked about the sentence with which it began."""
    typed(trained_page).fill(quick().sentence)
    typed(trained_page).press("Enter")
    answered(trained_page)
    return trained_page


@torch.no_grad()
def test_a_map_and_arcs_show_a_heads_weights_and_partners(asked):
    page, sentence = asked, concord.read(quick().sentence)
    assert min(target_sizes(page)) >= 24  # with what comes with a trained model
    assert page.locator(".attn-large .attn-heading").evaluate(BESIDE_ICONS)
    maps = model_of(page, 2)(torch.tensor([sentence.ids]), need_weights=True).weights[0][0]
    word(page, 4).focus()
    assert page.evaluate(ARCS_OF) == ["gave", 2]
    arcs = page.locator(".attn-arc:not(.attn-arc-before)")
    arcs.first.wait_for(state="attached")
    shown = arcs.evaluate_all("all => all.map((a) => Number(a.style.getPropertyValue('--weight')))")
    weights = maps[:, sentence.words.index("gave")]
    torch.testing.assert_close(torch.tensor(shown), weights[weights >= 0.01], atol=1e-4, rtol=0)
    word(page, 1).focus()
    assert page.evaluate(ARCS_OF) == ["the", 1]
    page.get_by_role("button", name="head 2").click()
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


def test_another_word_is_chosen_the_answers_follow_and_the_rest_stays(asked):
    page = asked
    page.locator(".attn-plot").press("ArrowDown")
    read = page.locator(".attn-read")
    before = read.inner_text()
    page.evaluate("""() => document.querySelectorAll(".attn-card select, .attn-map").forEach(
      (part) => (part.wasThere = true))""")
    word(page, 3).focus()
    word(page, 3).select_option("nun")
    changed = "the big nun gave a very strange sister their nephew ."
    expect(typed(page)).to_have_value(changed)
    answered(page)
    assert answers_on(page) == answers_of(model_of(page, 2), concord.read(changed))
    # What may not stand there isn't offered: outside "because" no noun is a thing.
    words = word(page, 3).locator("option").all_inner_texts()
    assert "queen" in words and "ball" not in words
    stayed = "(all) => all.filter((part) => part.wasThere).length"
    fields = page.locator(".attn-card select")
    assert fields.evaluate_all(stayed) >= fields.count() - 1
    assert page.locator(".attn-map").evaluate("(map) => map.wasThere")
    assert page.evaluate(FOCUSED) == "Word 3"
    assert read.inner_text() != before and "nun" in page.locator(".attn-rows").inner_text()


def test_a_change_is_drawn_once_with_its_answer_and_without_it_if_that_is_late(asked):
    page = asked
    page.evaluate("""() => {
      const own = lastWorker.onmessage;
      window.held = null;
      lastWorker.onmessage = (event) => (held ? held.push(() => own(event)) : own(event));
      window.later = setTimeout;  // an answer that comes is drawn with the change, however slowly
      window.setTimeout = (act, ms, ...rest) => later(act, ms === 50 ? 60_000 : ms, ...rest);
      const tile = document.querySelector(".attn-tile .attn-picture");
      window.blanks = 0;
      const look = () => (blanks += tile.classList.contains("attn-blank"));
      new MutationObserver(look).observe(tile, {attributes: true});
    }""")
    words, first = word(page, 1), page.locator(".attn-columns span").first
    others = words.locator("option").all_inner_texts()
    words.select_option(others[1])
    expect(first).to_have_text(others[1])
    assert page.evaluate("blanks") == 0
    page.evaluate("() => { window.setTimeout = later; window.held = []; }")
    words.select_option(others[2])
    expect(first).to_have_text(others[2])
    assert page.evaluate("blanks") > 0 and not answers_on(page)[0][0][1]
    page.evaluate("() => { const all = held; window.held = null; for (const go of all) go(); }")
    tile = page.locator(".attn-tile .attn-picture").first
    expect(tile).not_to_have_class(re.compile("attn-blank"))


def test_what_a_reader_does_before_a_change_is_drawn_is_kept(asked):
    page, field = asked, typed(asked)
    before = field.input_value().split()
    choose = """(place, word) => {
      const field = document.querySelector(`[aria-label="Word ${place}"]`);
      field.value = word ?? [...field.options].find(({value}) => value !== field.value).value;
      field.dispatchEvent(new Event("change", {bubbles: true}));
    }"""
    page.evaluate(f"""() => {{
      [1, 3].forEach((place) => ({choose})(place));
      document.querySelector('[aria-label="Word 2"]').focus();
    }}""")
    expect(field).not_to_have_value(" ".join(before))
    after = field.input_value().split()
    assert after[0] != before[0] and after[2] != before[2]
    assert page.evaluate(FOCUSED) == "Word 2"
    # Of another length: no field is drawn at a place that isn't there.
    shorter = "a big king gave a sister their nephew ."
    page.evaluate(
        f"""(text) => {{
      ({choose})(10);
      const field = document.querySelector('[aria-label="A sentence of the language"]');
      field.value = text;
      field.form.requestSubmit();
    }}""",
        shorter,
    )
    expect(page.locator(".attn-card")).to_have_count(9)
    shown = page.locator(".attn-card select, .attn-card .attn-word").evaluate_all(
        "(all) => all.map((one) => one.value ?? one.textContent)"
    )
    assert shown == shorter.split()


def test_a_sentence_is_typed_or_drawn_and_what_is_none_is_refused(show):
    page = show(quick())
    note = page.locator(".attn-note", has_text="Concord").inner_text()
    words = set(re.findall(r"-?[a-z]+", note))
    for answer in concord.readouts["A"]:
        assert {answer[:2], f"-{answer[2:]}"} <= words
    assert {"bana", "-ki"} <= words & {*concord.readouts["A"], *concord.readouts["B"]}
    field = typed(page)
    field.fill("The queen saw a monk")
    field.press("Enter")
    assert page.locator(".attn-card").count() == 6
    refusal = page.locator(".attn-refusal")
    for text, named in {
        "the <img src=x> saw": "'<img' as word 2",
        "the queen saw": "'the queen saw'",
        "the the": "'the' as word 2 after 'the'",
        " ": "Type a sentence",
    }.items():
        field.fill(text)
        field.press("Enter")
        expect(refusal).to_contain_text(named)
        assert field.get_attribute("aria-invalid") == "true"
        assert page.locator(".attn-card").count() == 6  # the sentence before is still there
    press(page, "Another sentence")
    assert refusal.inner_text() == ""
    concord.read(field.input_value())


@pytest.mark.parametrize("width", [390, 1112])
def test_another_sentence_hardly_moves_what_stands_below(show, width):
    page = show(quick(), width=width)
    heights = page.evaluate("""() => {
      const button = [...document.querySelectorAll("button")].find(
        ({textContent}) => textContent === "Another sentence");
      return Array.from({length: 30}, () => {
        button.click();
        return document.querySelector(".attn-widget").getBoundingClientRect().height;
      });
    }""")
    assert len(set(heights)) > 1
    assert max(abs(a - b) for a, b in pairwise(heights)) <= 60


def test_without_workers_it_says_so_and_the_rest_lives(show):
    page = show(quick())
    page.evaluate("() => { window.Worker = function () { throw new Error('not here'); }; }")
    press(page, "Train")
    tells(page, "not here")
    page.get_by_role("button", name="Repeat it").click()
    expect(page.locator(".attn-repeated")).to_contain_text("not here")
    word(page, 3).select_option("nun")
    assert "nun" in typed(page).input_value()
    slider(page).press("ArrowRight")
    assert page.locator(".attn-tile:visible").count() == 4


def test_a_worker_that_breaks_down_says_so_and_another_can_be_started(lab):
    page = lab(quick(steps=400))
    begun(page)
    page.evaluate("lastWorker.onerror(Object.assign(new Event('error'), {message: 'no memory'}))")
    tells(page, "no memory")
    press(page, "Train again")
    page.wait_for_function("document.querySelector('.attn-curve')?.getAttribute('d')")
    assert page.get_by_role("button", name="Pause").count() == 1


def test_views_of_one_lab_share_its_models_and_other_labs_have_their_own(lab):
    shared = quick()
    page = lab(shared, shared, quick())
    one, again, other = page.locator(".attn-widget").all()
    press(one, "Train")
    for view in (one, again):
        expect(view.locator(".attn-progress-text")).to_contain_text("Trained", timeout=60_000)
    assert other.locator(".attn-progress-text").inner_text() == "Not trained yet."
    assert page.evaluate("workers") == 1
    one.get_by_label("head 1 works").uncheck()
    expect(again.locator("output")).to_contain_text("Muted: head 1")


def test_a_lab_that_nobody_sees_or_that_is_taken_away_or_begun_anew_trains_nothing(lab):
    page = lab(quick(steps=400))
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
    later(page)
    assert page.evaluate("workers") == 0
    page.evaluate("document.querySelector('body > details').open = true")
    page.wait_for_function("workers === 2")
    page.evaluate("end()")
    page.wait_for_function("workers === 0")
    page.evaluate("draw(true)")
    page.wait_for_function("workers === 1")
    assert page.evaluate("draw(false)") == "Not trained yet."
    assert page.evaluate("workers") == 0


def few_counts(steps=10, **options):
    """A lab that repeats ten models only."""
    widget = quick(1, steps=steps, held_out=20, **options)
    widget.set_trait("counts", [1, 2])
    return widget


def repeated(page):
    expect(page.locator(".attn-repeated")).to_contain_text("10 of 10", timeout=60_000)


def test_all_models_are_repeated_in_the_background_and_dots_appear(lab):
    page = lab(few_counts(seed=7))
    legend = page.locator(".attn-repeat .attn-legend")
    assert legend.is_hidden()  # as long as there are no dots
    page.get_by_role("button", name="Repeat it").click()
    press(page, "Train")  # one in the foreground, too
    repeated(page)
    trained(page)
    assert page.get_by_role("button", name="repeat").count() == 0
    rows = page.locator(".attn-kept tbody tr").evaluate_all(CELLS)
    assert sorted(name for name, *_ in rows) == sorted(
        f"{heads}, seed {seed}"
        for heads, seeds in (("1 head", [*range(5), 7]), ("2 heads", range(5)))
        for seed in seeds
    )
    for plot, column in ((0, 1), (1, 2), (3, 3)):  # verb>subject, verb>object, their>thing
        dots = page.locator(".attn-dot-plot").nth(plot).locator(".attn-run-dot")
        drawn = [float(dot.evaluate("dot => dot.style.bottom")[:-1]) / 100 for dot in dots.all()]
        told = {h: [float(row[column]) for row in rows if row[0][0] == h] for h in "12"}
        assert drawn == pytest.approx(told["1"] + told["2"], abs=0.0051)
    cells = page.locator(".attn-repeat td").all_inner_texts()
    ours = HeadLab().ours["2 heads"]
    assert len(ours) == 7
    for cell, (shared, models) in zip(cells, ours.values(), strict=True):
        assert re.fullmatch(rf"– \({shared} of {models}\)", cell)  # none has learned
    # What dots and their height mean is said.
    assert legend.locator(".attn-entry").count() == 3
    ends = page.locator(".attn-dot-field").first.evaluate(
        "field => getComputedStyle(field, '::before').content"
    )
    assert re.findall(r"\d", ends) == ["1", "0"]
    color = "(node) => getComputedStyle(node).backgroundColor"
    keys, current = legend.locator(".attn-dot-key"), page.locator(".attn-run-dot.attn-current")
    assert keys.nth(1).evaluate(color) == current.first.evaluate(color)
    assert keys.nth(0).evaluate(color) != keys.nth(1).evaluate(color)
    # Models of before sleep; the one that is shown doesn't, and isn't trained again.
    assert page.evaluate("workers") <= 6
    page.get_by_label("head 1 works").uncheck()
    tells(page, "Muted: head 1")
    later(page)
    assert page.locator(".attn-kept tbody tr").evaluate_all(CELLS) == rows
    lines = page.locator(".attn-sharing p:not(.attn-heading)").all_inner_texts()
    assert [line.split(":")[0] for line in lines] == ["adjective", "verb", "their"]
    assert all(line.endswith(" learned") for line in lines)
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


def test_repeating_is_stopped_goes_on_and_a_model_that_sleeps_is_trained_again(lab):
    page = lab(few_counts(seed=7))
    page.get_by_role("button", name="Repeat it").click()
    page.locator(".attn-run-dot").first.wait_for()
    press(page, "Stop repeating")
    later(page)  # what was done by then is told
    done = page.locator(".attn-kept tbody tr").count()
    assert page.evaluate("workers") == done < 10
    page.get_by_role("button", name="Repeat it").click()
    repeated(page)
    page.get_by_role("button", name="1 head, seed 0").click()  # though nobody pressed Train
    tells(page, "No head is muted")


def test_a_shown_model_outlives_the_repetition(lab):
    page = lab(few_counts(steps=400))
    begun(page)
    press(page, "Stop")
    progress = page.locator(".attn-progress-text")
    expect(progress).to_contain_text("Stopped")
    stopped = progress.inner_text()
    page.get_by_role("button", name="Repeat it").click()
    slider(page).press("ArrowRight")  # to one that trains in the background
    expect(progress).to_contain_text("Training")
    press(page, "Stop repeating")
    later(page)
    expect(progress).to_contain_text("Training")
    assert page.get_by_role("button", name="Repeat it").count() == 1
    slider(page).press("ArrowLeft")
    assert progress.inner_text() == stopped


def test_what_heads_have_learned_is_counted_and_told(show):
    page = show(quick())
    counted = page.evaluate("""() => {
      const {countSharing} = attnModules["head_lab/repeat.js"];
      const run = (a, b, right = .9) =>
        ({evaluation: {mass: {a: [a], b: [b]}, relations: {a: .95, b: right}}});
      const runs = [run([.9, .1], [.2, .1]), run([.9, .1], [.1, .2]), run([.1, .3], [0, .1])];
      return countSharing([...runs, run([.9, .1], [.2, .1], .89)], ["a", "b"]);
    }""")
    assert counted == {"shared": 2, "models": 3}  # the fourth hasn't learned b
    found = page.evaluate("""() => {
      const {specialty} = attnModules["head_lab/findings.js"];
      const mass = {a: [[0.9, 0.2]], b: [[0.6, 0.1]]};
      const baselines = {a: {offset: 1, share: 0.7}, b: {offset: -1, share: 0.2}};
      return [0, 1].map((head) => specialty(head, mass, baselines));
    }""")
    assert found == [{"relation": "b", "mass": 0.6, "offset": -1, "share": 0.2}, None]
    told = page.evaluate("""() => {
      const {saySharing} = attnModules["head_lab/words.js"];
      const mass = {"verb>subject": [[.9, .1]], "verb>object": [[.2, .1]], "x>y": [[.1, .3]]};
      const pairs = [["verb>subject", "verb>object"], ["verb>subject", "x>y"]];
      const say = (right) => saySharing(
        {mass, relations: {"verb>subject": .9, "verb>object": right, "x>y": 1}}, {pairs});
      return [.9, .89].flatMap(say).map(({whose, isShared}) => [whose, isShared]);
    }""")
    assert told == [
        ["head 1 for both", True], ["heads 1 and 2", False],
        ["object not learned", False], ["heads 1 and 2", False],
    ]  # fmt: skip


def test_each_head_has_its_color_and_bars_glide_and_stay_in_forced_colors(show):
    page = show(quick(16))
    swatches = page.locator(".attn-switches .attn-swatch").evaluate_all(
        "all => all.map((swatch) => getComputedStyle(swatch).backgroundColor)"
    )
    tiles = page.locator(".attn-tile").evaluate_all(
        "all => all.map((tile) => getComputedStyle(tile).borderTopColor)"
    )
    for head in range(16):
        color = palette.head_color(head)
        rgb = f"rgb({', '.join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))})"
        assert swatches[head] == tiles[head] == rgb
    bar = page.locator(".attn-right").first
    assert bar.evaluate("bar => getComputedStyle(bar).transitionDuration") == "0.2s"
    color = "(node) => getComputedStyle(node).backgroundColor"
    before = bar.evaluate(color)
    page.emulate_media(forced_colors="active")
    assert bar.evaluate(color) == before
    page.emulate_media(forced_colors="none")


DAMAGES = {
    "num_heads should be": {"num_heads": 3},
    "seed should be": {"seed": -1},
    "trained should be": {"trained": "yes"},
    "digest should be": {"digest": "xyz"},
    "digests should be": {"digests": {"2 0": 5}},
    "induction_digests should be": {"induction_digests": [5]},
    "head should be": {"head": 16},
    "muted should be": {"muted": [16]},
    "forbidden should be": {"forbidden": "x>y"},
    "forbidden_in should be": {"forbidden_in": 16},
    "sentence should be": {"sentence": 5},
    "'zebra' as word 2": {"sentence": "the zebra saw a king"},
    "lr should be": lambda state, _: state["recipe"].update(lr=-1),
    "blocks should be": lambda state, _: state["spec"].update(blocks=None),
    "blocks should be one": lambda state, _: state["spec"].update(
        blocks=2 * state["spec"]["blocks"]
    ),
    "attention_dropout should be": lambda s, _: s["spec"]["blocks"][0].update(
        attention_dropout=0.5
    ),
    "readouts should be": lambda state, _: state["spec"].update(readouts={"next": 89}),
    "weights should be": {"weights": bytes(40)},
    "from_weights should be": {"from_weights": None},
    "small should be": {"small": 1},
    "task should be": {"task": 5},
    "symbols should be": {"symbols": 5},
    "steps should be": {"steps": -1},
    "mlp should be": {"mlp": "yes"},
    "beside should be": {"beside": [3, 0]},
    "but is [2,1000]": {"beside": [2, 1000]},
    "symbol_counts should be": {"symbol_counts": 5},
    "step_counts should be": {"step_counts": [0]},
    "steps should be a whole": {"recipes": {}},
    "ours should be": {"ours": {"2 heads": {"verb>subject & verb>object": "all"}}},
    "held_out should be": {"held_out": 0},
    "counts should be": {"counts": []},
}
