"""HeadLab in a real browser, without a kernel: it trains, is asked, muted, and torch's equal."""

import re
from itertools import pairwise

import pytest
import torch
from playwright.sync_api import expect
from tools import head_labs as labs
from tools.widget_pages import press, style, target_sizes

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


COLORS = "all => all.map((node) => getComputedStyle(node).backgroundColor)"
# Which word has arcs, and to how many that it must find.
ARCS_OF = """() => [...document.querySelectorAll(".attn-cards .attn-query select")].map(
  ({value}) => value).concat(document.querySelectorAll(".attn-arc-before").length)"""


def test_nothing_trains_before_a_reader_asks_and_sentences_are_typed_drawn_or_refused(lab):
    page = lab(labs.quick())
    expect(page.locator(".attn-arc-before")).to_have_count(2)
    assert page.evaluate(ARCS_OF) == ["gave", 2]  # its subject and its object
    note = page.locator(".attn-note", has_text="Concord").inner_text()
    words = {*re.findall(r"-?[a-z]+", note)}  # the parts of words of which it tells
    assert {part for word in concord.readouts["A"] for part in (word[:2], f"-{word[2:]}")} <= words
    page.locator(labs.SLIDER).press("ArrowRight")
    page.get_by_label("head 1 works").uncheck()
    press(page, "Another seed")
    labs.later(page)
    assert page.evaluate("workers") == 0
    assert labs.texts(page, ".attn-seed, .attn-progress-text") == ["seed 1", "Not trained yet."]
    assert labs.answers_on(page)[0] == [["bale", False]]  # the right one is there all the same
    assert concord.read(SENTENCE).answers["A"][0] == concord.readouts["A"].index("bale")
    assert "(wanted)" in page.locator(".attn-mark").first.inner_text()
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
    press(page, "Another sentence")
    assert (refusal.inner_text(), field.get_attribute("aria-invalid")) == ("", "false")
    concord.read(field.input_value())


WIDTHS = [360, 690, 1000]
# Where each part of a lab begins whose place nothing may change that comes and goes above it.
TOPS = """() => ["slider", "live", "view", "cards", "grid", "map", "first", "sharing", "kept",
  "repeat"].map((part) => document.querySelector(`.attn-${part}`).getBoundingClientRect().top)
  .concat(document.querySelector(".attn-widget").getBoundingClientRect().height)"""


def at_widths(page, look):
    """What is to be seen at each width."""
    found = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        found += page.evaluate(look)
    return found


def test_answers_numbers_and_lines_that_come_and_go_move_nothing(lab):
    page = lab(labs.quick(1, steps=100))
    before = at_widths(page, TOPS)
    page.evaluate(f"""() => {{
      window.seen = [];
      new MutationObserver(() => seen.push(({TOPS})())).observe(
        document.querySelector(".attn-widget"),
        {{subtree: true, childList: true, attributes: true, characterData: true}});
    }}""")
    labs.train(page)
    labs.tells(page, "No head is muted")
    tops = page.evaluate("seen")
    assert len(tops) > 10
    assert all(top == pytest.approx(before[-len(top) :], abs=0.5) for top in tops)
    assert at_widths(page, TOPS) == pytest.approx(before, abs=0.5)
    page.locator(labs.SLIDER).press("ArrowRight")
    labs.tells(page, "Trained with 2 heads")
    assert at_widths(page, TOPS) == pytest.approx(before, abs=0.5)


# How high a lab is after so many sentences, and how much they differ.
OTHERS = """() => {
  const button = [...document.querySelectorAll("button")].find(
    ({textContent}) => textContent === "Another sentence");
  return Array.from({length: 30}, () => {
    button.click();
    const widget = document.querySelector(".attn-widget");
    return [widget.getBoundingClientRect().height, widget.textContent];
  });
}"""


@pytest.mark.parametrize("width", [390, 1112])
def test_tabs_other_sentences_and_more_heads_hardly_move_what_stands_below(show, width):
    page = show(labs.quick(), width=width)
    heights, texts = zip(*page.evaluate(OTHERS), strict=True)
    assert len(set(texts)) > 20
    assert max(abs(a - b) for a, b in pairwise(heights)) <= 60
    page.evaluate("document.body.style.paddingBlock = '900px'")
    for tab in page.locator(".attn-tabs button").all():  # the last one is of two layers
        tab.scroll_into_view_if_needed()
        before = tab.bounding_box()
        tab.click()
        assert tab.bounding_box() == before
    heights = []
    for i in range(5):
        page.locator(labs.SLIDER).fill(str(i))
        heights.append(page.locator(".attn-widget").bounding_box()["height"])
    assert page.locator(".attn-tile").count() == 32
    assert max(abs(a - b) for a, b in pairwise(heights)) <= 60


@pytest.mark.parametrize("width", [360, 1440])
def test_all_of_sixteen_heads_can_be_muted_and_a_phone_folds_what_few_need(show, width):
    page = show(labs.quick(16), width=width)
    is_phone = width < 400
    openers = page.locator(".attn-opener:visible")
    assert openers.count() == (5 if is_phone else 0)
    if is_phone:
        assert page.locator(".attn-widget").bounding_box()["height"] < 2000
        assert page.locator(".attn-map:visible, .attn-switches:visible").count() == 0
        page.locator(".attn-tile").nth(3).click()
        assert page.locator(".attn-map").is_visible()  # of a head that is pressed
        openers.nth(1).press("Enter")
        assert openers.nth(1).get_attribute("aria-expanded") == "true"
    places = [head.bounding_box() for head in page.locator(".attn-switches label").all()]
    assert len({(place["x"], place["y"]) for place in places}) == 16


def test_heads_have_their_colors_bars_glide_and_slider_and_maps_are_in_one_view(show):
    page = show(labs.quick(16))
    swatches = page.locator(".attn-switches .attn-swatch").evaluate_all(COLORS)
    tiles = page.locator(".attn-tile").evaluate_all(
        "all => all.map((tile) => getComputedStyle(tile).borderTopColor)"
    )
    assert swatches == tiles == [labs.in_rgb(palette.head_color(head)) for head in range(16)]
    page.get_by_label("head 1 works").uncheck()
    expect(page.locator(".attn-tile .attn-picture").first).to_have_css("opacity", "0.25")
    bar = page.locator(".attn-right").first
    assert style(bar, "transitionDuration") == "0.2s"
    before = style(bar, "backgroundColor")
    page.emulate_media(forced_colors="active")
    assert style(bar, "backgroundColor") == before
    page.emulate_media(forced_colors="none")
    page = show(labs.quick(4))
    for width, height, seen in ((TEXT, 900, ".attn-map"), (390, 844, ".attn-grid")):
        page.set_viewport_size({"width": width, "height": height})
        top = page.locator(labs.SLIDER).bounding_box()["y"]
        maps = page.locator(seen).bounding_box()
        assert maps["y"] + maps["height"] - top < height - HEADER


# What is to be seen of a model, and moves while it trains: its losses, shares and maps.
MOVES = """() => [document.querySelector(".attn-curve")?.getAttribute("d"),
  [...document.querySelectorAll(".attn-number")].map(({textContent}) => textContent).join(),
  document.querySelector("canvas").toDataURL()]"""


def test_a_training_moves_is_paused_goes_on_and_ends_where_it_would_have(lab):
    page = lab(labs.quick(steps=100))
    page.evaluate("""() => {
      const look = () => {
        if (window.isPaused || !document.querySelector(".attn-curve")?.getAttribute("d")) return;
        window.isPaused = true;
        document.querySelector(".attn-main").click();
      };
      new MutationObserver(look).observe(document.querySelector(".attn-widget"),
        {subtree: true, childList: true, attributes: true, characterData: true});
    }""")
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


CHOOSE = """(places) => places.forEach((place) => {
  const field = document.querySelector(`[aria-label="Word ${place}"]`);
  field.value = [...field.options].find(({value}) => value !== field.value).value;
  field.dispatchEvent(new Event("change", {bubbles: true}));
})"""


@torch.no_grad()
def test_arcs_are_a_heads_weights_and_words_are_changed_where_they_stand(lab):
    page, sentence = lab(labs.quick()), concord.read(SENTENCE)
    labs.train(page)
    labs.tells(page, "No head is muted")
    assert min(target_sizes(page)) >= 24  # with what comes with a trained model
    model = labs.model_of(page, 2)
    page.get_by_label("Word 1", exact=True).focus()
    assert page.evaluate(ARCS_OF) == ["the", 1]
    page.locator(".attn-card").nth(3).tap()
    assert page.evaluate(ARCS_OF) == ["gave", 2]
    arcs = page.locator(".attn-arc:not(.attn-arc-before)")
    shown = arcs.evaluate_all("all => all.map((a) => Number(a.style.getPropertyValue('--weight')))")
    maps = model(torch.tensor([sentence.ids]), need_weights=True).weights[0][0]
    weights = maps[:, sentence.words.index("gave")]
    torch.testing.assert_close(torch.tensor(shown), weights[weights >= 0.01], atol=1e-4, rtol=0)
    path = page.locator(".attn-plot .attn-frame").get_attribute("d")
    pairs = {pair for found in sentence.partners.values() for pair in found.items()}
    assert path.count("M") == len(pairs)
    assert all(f"M{column} {row}h1v1h-1z" in path for row, column in pairs)
    faint = page.locator(".attn-plot .attn-faint").get_attribute("d")
    assert faint.count("M") == len(sentence) - len({row for row, _ in pairs})
    # What may not stand there isn't offered: outside "because" no noun is a thing.
    field, typed = page.get_by_label("Word 3", exact=True), page.locator(TYPED)
    words = field.locator("option").all_inner_texts()
    assert "queen" in words and "ball" not in words
    field.focus()
    field.select_option("nun")
    changed = "the big nun gave a very strange sister their nephew ."
    expect(typed).to_have_value(changed)
    expect(page.locator(".attn-columns span").nth(2)).to_have_text("nun")
    labs.answered(page)
    assert labs.answers_on(page) == labs.answers_of(model, concord.read(changed))
    assert page.evaluate(FOCUSED) == "Word 3"
    # Two changes at once are both kept, and where a reader has gone on meanwhile stays the focus.
    page.evaluate(f"""() => {{
      ({CHOOSE})([1, 3]);
      document.querySelector('[aria-label="Word 2"]').focus();
    }}""")
    expect(typed).not_to_have_value(changed)
    after = typed.input_value().split()
    assert after[0] != "the" and after[2] != "nun"
    labs.answered(page)
    assert page.evaluate(FOCUSED) == "Word 2"


def test_without_workers_it_says_so_and_the_rest_lives(show):
    page = show(labs.quick())
    page.evaluate("() => { window.Worker = function () { throw new Error('not here'); }; }")
    press(page, "Train")
    labs.tells(page, "not here")
    page.get_by_role("button", name="Repeat it").click()
    expect(page.locator(".attn-repeated")).to_contain_text("not here")
    page.get_by_label("Word 3", exact=True).select_option("nun")
    assert "nun" in page.locator(TYPED).input_value()
    page.locator(labs.SLIDER).press("ArrowRight")
    assert page.locator(".attn-tile:visible").count() == 4


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
    press(page, "Repeat it: train 10 models")
    expect(page.locator(".attn-repeated")).to_contain_text("10 of 10", timeout=labs.WAIT)
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
    # What dots mean is said, and what guessing gets.
    assert page.locator(".attn-guess").first.evaluate("line => line.style.bottom") == "25%"
    assert legend.locator(".attn-entry").count() == 3
    plain, shown = legend.locator(".attn-dot-key").evaluate_all(COLORS)
    assert plain != shown == style(page.locator(".attn-current").last, "backgroundColor")
    lines = labs.texts(page, ".attn-sharing p:not(.attn-heading)")
    assert [line.split(":")[0] for line in lines] == ["adjective", "verb", "their"]


def test_what_heads_have_learned_is_counted_and_told(show):
    counted, found, told = show(labs.quick()).evaluate("""() => {
      const [{countSharing}, {specialty}, {saySharing}] =
        ["repeat", "findings", "words"].map((name) => attnModules[`head_lab/${name}.js`]);
      const pair = ["verb>subject", "verb>object"];
      const run = (object, right = .9) => ({evaluation: {
        mass: {"verb>subject": [[.9, .1]], "verb>object": [object]},
        relations: {"verb>subject": .9, "verb>object": right}}});
      const runs = [run([.2, .1]), run([.1, .2]), run([.2, .1], .89)];
      const masses = {a: [[0.9, 0.2]], b: [[0.6, 0.1]]};
      const baselines = {a: {offset: 1, share: 0.7}, b: {offset: -1, share: 0.2}};
      return [countSharing(runs, pair),
        [0, 1].map((head) => specialty(head, masses, baselines)),
        runs.map((one) => saySharing(one.evaluation, {pairs: [pair]})[0].whose)];
    }""")
    assert counted == {"shared": 1, "models": 2}  # of those that have learned both
    assert found == [{"relation": "b", "mass": 0.6, "offset": -1, "share": 0.2}, None]
    assert told == ["head 1 for both", "heads 1 and 2", "object not learned"]


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
