"""HeadLab's smallest form in a real browser: what it trains, asks and draws, how small it is."""

import pytest
import torch
from playwright.sync_api import expect
from tools.head_labs import (
    CELLS,
    HELD_OUT_SEED,
    LONGEST,
    answers_of,
    answers_on,
    model_of,
    train,
    trained,
)
from tools.widget_pages import target_sizes, unfold

from attncourse.tasks import concord
from attncourse.training import RECIPES, evaluate
from attncourse.widgets import HeadLab

VERB, SUBJECT, OBJECT = 3, 2, 9  # of the big king gave a very strange sister their nephew .
HEADER = 64  # pixels of a page's own bar, above what a telephone shows of it


def quick(steps=30, held_out=40, sentence=None, **changes):
    """A small lab whose models are trained for a moment only."""
    widget = HeadLab(small=True, seed=0, **({"sentence": sentence} if sentence else {}))
    recipe = RECIPES["concord"].changed(steps=steps, warmup=5).as_json()
    widget.set_trait("recipe", recipe | changes)
    widget.set_trait("held_out", held_out)
    return widget


def weights_on(page):
    """The weights that the page tells in its table: those of each head, from the verb."""
    return [[float(x) for x in row[1:]] for row in page.locator("tbody tr").evaluate_all(CELLS)]


def said(page):
    return page.locator("output").inner_text()


def test_before_a_touch_nothing_trains_and_random_weights_are_said_to_be_random(lab):
    page = lab(quick())
    assert said(page) == "Not trained yet: random weights, seed 0."
    assert page.locator(".attn-number").all_inner_texts() == ["", ""]
    page.locator(".attn-track input").press("ArrowRight")
    page.get_by_role("button", name="Another seed").click()
    page.wait_for_timeout(600)
    assert page.evaluate("workers") == 0
    assert said(page) == "Not trained yet: random weights, seed 1."
    unfold(page)
    rows = weights_on(page)
    assert len(rows) == 2 and rows[0] != rows[1]
    assert all(abs(sum(row) - 1) < 0.01 for row in rows)


def test_the_random_weights_are_those_with_which_the_training_begins(lab):
    page = lab(quick(steps=1, warmup=0, lr=1e-12))
    page.locator(".attn-track input").press("End")
    unfold(page)
    before = weights_on(page)
    train(page)
    expect(page.locator("output")).to_contain_text("4 heads, seed 0: right about")
    assert weights_on(page) == before


def test_bars_and_maps_move_while_it_trains(lab):
    page = lab(quick(steps=400))
    page.evaluate("""() => {
      window.seen = {bars: new Set(), map: new Set(), answers: new Set()};
      new MutationObserver(() => {
        seen.bars.add(document.querySelector(".attn-number").textContent);
        seen.map.add(document.querySelector("canvas").toDataURL());
        seen.answers.add(document.querySelector(".attn-asked").textContent);
      }).observe(document.querySelector(".attn-widget"),
                 {subtree: true, childList: true, attributes: true, characterData: true});
    }""")
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_function("seen.map.size > 4 && seen.bars.size > 2 && seen.answers.size > 1")
    page.get_by_role("button", name="Pause").click()  # it still trains
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("output")).to_contain_text("1 head, seed 0: right about the subject in")


def test_shares_and_weights_are_those_of_torch(lab):
    page = lab(quick(steps=120))
    page.locator(".attn-track input").press("ArrowRight")
    train(page)
    model = model_of(page, 2)
    held_out = concord.sentences(40, seed=HELD_OUT_SEED)
    right = evaluate(model, held_out, concord.relations).relations
    shares = [f"{right[f'verb>{need}']:.2f}".removeprefix("0") for need in ("subject", "object")]
    assert page.locator(".attn-number").all_inner_texts() == shares
    hint = " Now give it 4 heads." if min(map(float, shares)) < 0.9 else ""
    about = f"right about the subject in {shares[0]}, about the object in {shares[1]}."
    assert said(page) == f"2 heads, seed 0: {about}{hint}"
    sentence = concord.read(quick().sentence)
    weights = model(torch.tensor([sentence.ids]), need_weights=True).weights[0][0, :, VERB]
    unfold(page)
    page.wait_for_timeout(300)
    assert torch.allclose(torch.tensor(weights_on(page)), weights, atol=0.001)
    spoken = page.locator(".attn-line-plot").get_attribute("aria-label")
    king, nephew = (f"{weights[1, place]:.2f}".removeprefix("0") for place in (SUBJECT, OBJECT))
    assert spoken.startswith("Weights of gave. Head 1: king ")
    assert spoken.endswith(f"Head 2: king {king}, nephew {nephew}.")


@pytest.mark.parametrize("sentence", [None, LONGEST])
def test_what_the_verb_answers_is_what_torch_answers_before_training_too(lab, sentence):
    """With steps that change next to nothing torch is given the weights of before."""
    told = []
    for widget in (quick(1, warmup=0, lr=1e-12, sentence=sentence), quick(60, sentence=sentence)):
        page = lab(widget)
        before = answers_on(page, ".attn-asked")
        train(page)
        expect(page.locator("output")).to_contain_text("right about")
        page.wait_for_timeout(300)
        words = concord.read(widget.sentence)
        verb = max(words.partners["verb>subject"])
        expected = answers_of(model_of(page, 1), words)[verb]
        told += [before, answers_on(page, ".attn-asked")]
        assert told[-1] == [expected]
    assert told[0] == told[1] == told[2]


def test_in_each_heads_line_the_two_words_are_framed(show):
    page = show(quick())
    page.locator(".attn-track input").press("ArrowRight")
    path = page.locator(".attn-frame").get_attribute("d")
    assert path.count("M") == 4
    assert all(f"M{place} {head}h1v1h-1z" in path for head in (0, 1) for place in (SUBJECT, OBJECT))
    keys = page.locator(".attn-line-words .attn-key").all_inner_texts()
    assert keys == ["king", "nephew"]


def test_the_verb_is_the_last_one_of_a_sentence(show):
    page = show(quick(sentence=LONGEST))
    assert page.locator(".attn-line-words .attn-query").inner_text() == "gave"


def test_it_offers_three_numbers_of_heads_and_trains_each_once(lab):
    page = lab(quick(steps=10))
    slider = page.locator(".attn-track input")
    train(page)
    slider.press("ArrowRight")
    expect(page.locator("output")).to_contain_text("2 heads, seed 0: right", timeout=60_000)
    slider.press("ArrowRight")
    expect(page.locator("output")).to_contain_text("4 heads, seed 0: right", timeout=60_000)
    slider.press("ArrowLeft")
    trained(page)
    expect(page.locator("output")).to_contain_text("2 heads, seed 0: right")
    assert page.evaluate("workers") == 3
    assert page.locator(".attn-line-names > span").count() == 2


@pytest.mark.parametrize(("width", "height"), [(360, 640), (390, 844)])
def test_on_a_telephone_the_controls_and_what_they_change_are_in_one_view(lab, width, height):
    page = lab(quick(steps=10), width=width)
    page.set_viewport_size({"width": width, "height": height})
    page.locator(".attn-track input").press("End")
    before = page.locator(".attn-widget").bounding_box()["height"]
    train(page)
    top = page.locator(".attn-controls").bounding_box()["y"]
    said = page.locator("output").bounding_box()
    assert said["y"] + said["height"] - top < height - HEADER
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert min(target_sizes(page)) >= 24
    assert page.locator(".attn-widget").bounding_box()["height"] == before  # nothing moves


def test_of_the_seed_at_the_start_two_heads_learn_what_one_does_not(lab):
    page = lab(HeadLab(small=True))
    about_object = page.locator(".attn-number").last
    train(page)
    assert float(about_object.inner_text()) < 0.6
    page.locator(".attn-track input").press("ArrowRight")
    expect(page.locator("output")).to_contain_text("2 heads, seed 1: right", timeout=60_000)
    assert float(about_object.inner_text()) > 0.9


def test_without_workers_it_says_so_and_random_weights_stay(show):
    page = show(quick())
    page.evaluate("() => { window.Worker = function () { throw new Error('not here'); }; }")
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.locator("output")).to_contain_text("this browser starts none: not here.")
    page.locator(".attn-track input").press("ArrowRight")
    expect(page.locator(".attn-line-names > span")).to_have_count(2)
