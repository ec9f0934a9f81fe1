"""HeadLab in a real browser, without a kernel: it trains, is asked, muted, and torch's equal."""

import re
from itertools import pairwise

import pytest
import torch
from playwright.sync_api import expect
from tools import head_labs as labs
from tools.widget_pages import asked, press, target_sizes, unfold

from attncourse.tasks import concord
from attncourse.training import RECIPES, train
from attncourse.widgets import HeadLab


def example(text):
    """A lab for the tests of what every widget does; no text in it is an author's."""
    return labs.quick(held_out=10)


def largest(text):
    return labs.quick(16, held_out=10, sentence=labs.LONGEST)


PLACES: set[str] = set()
KEY = (".attn-track input", "ArrowRight")
SENTENCE = HeadLab().sentence
TYPED = '[aria-label="A sentence of the language"]'

# Which word has arcs, and to how many that it must find.
ARCS_OF = """() => [...document.querySelectorAll(".attn-cards .attn-query select")].map(
  ({value}) => value).concat(document.querySelectorAll(".attn-arc-before").length)"""


def test_nothing_trains_unasked_and_sentences_are_typed_drawn_or_refused_without_workers_too(lab):
    page = lab(labs.quick())
    assert page.evaluate(ARCS_OF) == ["gave", 2]  # its subject and its object
    page.locator(labs.SLIDER).press("ArrowRight")
    page.get_by_label("head 1 works").uncheck()
    press(page, "Another seed")
    page.clock.run_for(1000)
    assert page.evaluate("workers") == 0
    assert labs.texts(page, ".attn-seed, .attn-progress-text") == ["seed 1", "Not trained yet."]
    right = concord.readouts["A"][concord.read(SENTENCE).answers["A"][0]]
    assert labs.answers_on(page)[0] == [[right, False]]  # it is there all the same
    field, cards = page.locator(TYPED), page.locator(".attn-card")
    field.fill("The queen saw a monk")
    field.press("Enter")
    assert cards.count() == 6
    refusal = page.locator(".attn-refusal")
    for text, named in {"the queen saw": "'the queen saw'", " ": "Type a sentence"}.items():
        field.fill(text)
        field.press("Enter")
        expect(refusal).to_contain_text(named)
        assert field.get_attribute("aria-invalid") == "true"
        assert cards.count() == 6  # the sentence before is still there
    press(page, "Another sentence")
    assert (refusal.inner_text(), field.get_attribute("aria-invalid")) == ("", "false")
    concord.read(field.input_value())
    page.evaluate("() => { window.Worker = function () { throw new Error('not here'); }; }")
    press(page, "Train")
    labs.tells(page, "not here")
    field.fill("The nun saw a very strange monk")
    field.press("Enter")
    assert cards.count() == 8


def test_a_phone_folds_what_few_need_and_what_comes_and_goes_hardly_moves_what_is_below(lab):
    for width in (1112, 390):
        page = lab(labs.quick(4, steps=50), width=width)
        page.evaluate(labs.NOTE_CHANGES, [".attn-progress", ".attn-view"])
        labs.train(page)
        labs.tells(page, "No head is muted")
        assert page.evaluate("seen.every(({size}) => size > 3)")
        assert page.evaluate("Math.max(...heights) - Math.min(...heights)") <= 1
    openers = page.locator(".attn-opener:visible")
    assert openers.count() == 5
    assert page.locator(".attn-map:visible, .attn-switches:visible").count() == 0
    slider, maps = (page.locator(part).bounding_box() for part in (labs.SLIDER, ".attn-grid"))
    assert maps["y"] + maps["height"] - slider["y"] < 780  # under a page's own bar
    page.locator(".attn-tile").nth(3).click()
    assert page.locator(".attn-map").is_visible()  # of a head that is pressed
    openers.nth(1).press("Enter")
    assert openers.nth(1).get_attribute("aria-expanded") == "true"
    page.get_by_label("head 1 works").uncheck()
    expect(page.locator(".attn-tile .attn-picture").first).not_to_have_css("opacity", "1")
    page.evaluate("document.body.style.paddingBlock = '900px'")
    for width in (390, 1112, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        heights = []
        for _ in range(10):
            page.get_by_text("Another sentence", exact=True).evaluate("button => button.click()")
            heights.append(page.locator(".attn-widget").bounding_box()["height"])
        assert max(abs(a - b) for a, b in pairwise(heights)) <= 60
        for tab in page.locator(".attn-tabs button").all()[::-1]:  # from that of two layers
            tab.scroll_into_view_if_needed()
            before = tab.bounding_box()
            tab.click()
            assert tab.bounding_box() == before
    assert openers.count() == 0  # all is open


# What is to be seen of a model, and moves while it trains: its steps, losses, shares and maps.
MOVES = """() => [document.querySelector(".attn-progress-text").textContent,
  document.querySelector(".attn-curve")?.getAttribute("d"),
  [...document.querySelectorAll(".attn-number")].map(({textContent}) => textContent).join(),
  document.querySelector("canvas").toDataURL()]"""


def test_a_training_moves_is_paused_goes_on_and_ends_where_it_would_have(lab):
    page = lab(labs.quick(steps=100, seed=3))
    begin = page.evaluate(MOVES)
    press(page, "Train")
    page.locator(".attn-curve[d^=M]").wait_for(state="attached")
    press(page, "Pause")
    labs.answered(page)
    paused = page.evaluate(MOVES)
    labs.answered(page)
    page.clock.run_for(1000)
    assert page.evaluate(MOVES) == paused
    press(page, "Go on")
    labs.trained(page)
    labs.answered(page)
    end = page.evaluate(MOVES)
    assert {len({*seen}) for seen in zip(begin, paused, end, strict=True)} == {3}
    depths = [float(depth) for depth in re.findall(r"[\d.]+[ ,]([\d.]+)", end[1])]
    assert depths[0] < depths[-1]  # the loss falls
    unfold(page)
    recipe = RECIPES["concord"].changed(model={"num_heads": 2}, steps=100, warmup=5)
    digest, command = labs.texts(page, ".attn-digest code")
    assert digest == train(recipe, seed=3, progress=False).digest
    assert command == "python -m attncourse.training concord --seed 3 --heads 2"
    press(page, "Train again")
    expect(page.locator(".attn-digest")).to_have_count(0)


def test_the_slider_trains_other_models_once_where_it_comes_to_rest(lab):
    page = lab(labs.quick(1))
    slider = page.locator(labs.SLIDER)
    labs.train(page)
    slider.press("ArrowRight")
    names = ["1 head, seed 0", "2 heads, seed 0"]
    assert labs.kept(page, 2) == names
    assert page.locator(".attn-curve").count() == page.locator(".attn-tile:visible").count() == 2
    page.get_by_role("button", name=names[0]).press("Enter")
    assert page.evaluate("document.activeElement.textContent") == names[0]
    assert slider.get_attribute("aria-valuetext") == "1 head"
    labs.trained(page)
    page.clock.run_for(1000)
    assert page.evaluate("workers") == 2  # it is still there
    press(page, "Another seed")
    assert labs.kept(page, 3) == [*names, "1 head, seed 1"]
    slider.evaluate("""(slider) => [2, 3, 4].forEach((value) => {
      slider.value = value;
      slider.dispatchEvent(new InputEvent("input", {bubbles: true}));
    })""")
    assert labs.kept(page, 4)[3] == "16 heads, seed 1"
    assert page.evaluate("workers") == 4
    labs.answered(page)  # arcs of one head: those of all would hide the sentence
    heads = "arcs => new Set(arcs.map(({style}) => style.getPropertyValue('--attn-head'))).size"
    assert page.locator(".attn-arc:not(.attn-arc-before)").evaluate_all(heads) == 1


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
    # Frames stand around true partners; rows of words that are asked nothing are faint.
    path = page.locator(".attn-plot .attn-frame").get_attribute("d")
    pairs = {pair for found in sentence.partners.values() for pair in found.items()}
    assert path.count("M") == len(pairs)
    assert all(f"M{column} {row}h1v1h-1z" in path for row, column in pairs)
    faint = page.locator(".attn-plot .attn-faint").get_attribute("d")
    assert faint.count("M") == len(sentence) - len({row for row, _ in pairs})
    # What may not stand there isn't offered: outside "because" no noun is a thing.
    field = page.get_by_label("Word 3", exact=True)
    words = field.locator("option").all_inner_texts()
    assert "queen" in words and "ball" not in words
    field.focus()
    field.select_option("nun")
    changed = SENTENCE.replace("king", "nun")
    expect(page.locator(TYPED)).to_have_value(changed)
    expect(page.locator(".attn-columns span").nth(2)).to_have_text("nun")
    labs.answered(page)
    assert labs.answers_on(page) == labs.answers_of(model, concord.read(changed))
    assert page.evaluate("document.activeElement.ariaLabel") == "Word 3"


def test_a_lab_that_nobody_sees_or_that_is_taken_away_trains_nothing(lab):
    page = lab(HeadLab())
    widget = labs.quick(steps=400)
    widget.trained, widget.beside = True, [1, 0]
    in_a_closed_fold = """(state) => {
      const [fold, el] = ["details", "div"].map((name) => document.createElement(name));
      fold.append(el);
      document.body.prepend(fold);
      const model = {get: (name) => state.get(name), on() {}, off() {}};
      window.end = attnModules["head_lab/widget.js"].default.render({model, el});
    }"""
    asked(page, widget, in_a_closed_fold)
    page.evaluate("""new Promise((isSeen) => new IntersectionObserver(() => isSeen()).observe(
      document.querySelector("details")))""")  # after the lab's own
    page.clock.run_for(1000)
    assert page.evaluate("workers") == 0
    page.evaluate("document.querySelector('details').open = true")
    page.wait_for_function("workers === 2")
    page.evaluate("end()")
    page.wait_for_function("workers === 0")


def test_all_models_are_repeated_in_the_background_and_dots_appear(lab):
    page = lab(labs.quick(1, held_out=20, counts=[1, 2], seed=7))
    page.get_by_role("button", name="Repeat it").click()
    page.locator(".attn-run-dot").first.wait_for()
    press(page, "Stop repeating")
    page.clock.run_for(1000)  # what was done by then is told
    models = page.locator(".attn-kept tbody tr")
    assert page.evaluate("workers") == models.count() < 10
    press(page, "Repeat it: train 10 models")
    expect(page.locator(".attn-repeated")).to_contain_text("10 of 10", timeout=labs.WAIT)
    assert page.get_by_role("button", name="repeat").count() == 0
    names = [f"{heads}, seed {seed}" for heads in ("1 head", "2 heads") for seed in range(5)]
    assert sorted(labs.kept(page, 10)) == names
    # The first ones sleep: one that is chosen is trained again, though nobody pressed Train.
    assert page.evaluate("workers") <= 6
    page.get_by_role("button", name=names[0]).click()
    labs.tells(page, "No head is muted")
    rows = models.evaluate_all(labs.CELLS)
    for plot, column in ((1, 2), (3, 3)):  # verb>object, their>thing
        dots = page.locator(".attn-dot-plot").nth(plot).locator(".attn-run-dot")
        drawn = dots.evaluate_all("dots => dots.map(({style}) => parseFloat(style.bottom) / 100)")
        current = dots.evaluate_all("dots => dots.map((dot) => dot.matches('.attn-current'))")
        shown = [row[0] == names[0] for heads in "12" for row in rows if row[0][0] == heads]
        assert current == shown
        told = [float(row[column]) for heads in "12" for row in rows if row[0][0] == heads]
        assert drawn == pytest.approx(told, abs=0.0051)
    assert labs.texts(page, ".attn-repeat td") == [  # none has learned
        f"– ({shared} of {models})" for shared, models in HeadLab().ours["2 heads"].values()
    ]


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


WRONG = {  # a trait -> a value that is refused
    "num_heads": 3, "seed": 1000, "trained": "yes", "digest": "xyz", "digests": {"2 0": 5},
    "induction_digests": [5], "head": 16, "muted": [16], "forbidden": "x>y", "forbidden_in": 16,
    "sentence": 5, "weights": bytes(40), "from_weights": None, "small": 1, "task": 5, "symbols": 5,
    "steps": -1, "mlp": "yes", "beside": [3, 0], "symbol_counts": 5, "step_counts": [0],
    "ours": {"2 heads": {"verb>subject & verb>object": "all"}}, "held_out": 0, "counts": [],
}  # fmt: skip
DAMAGES = {f"{name} should be": {name: value} for name, value in WRONG.items()} | {
    "'zebra' as word 2": {"sentence": "the zebra saw a king"},
    "steps should be a whole": {"recipes": {}},
    "lr should be": lambda state, _: state["recipe"].update(lr=-1),
    "blocks should be one": lambda s, _: s["spec"].update(blocks=2 * s["spec"]["blocks"]),
    "readouts should be": lambda state, _: state["spec"].update(readouts={"next": 89}),
}
