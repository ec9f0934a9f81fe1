"""HeadLab's smallest form in a real browser: what it trains, asks and draws, how small it is."""

import re

import pytest
import torch
from playwright.sync_api import expect
from tools.head_labs import (
    CELLS,
    HELD_OUT_SEED,
    LONGEST,
    answered,
    answers_of,
    answers_on,
    later,
    model_of,
    tells,
    train,
    trained,
)
from tools.weight_pictures import short
from tools.widget_pages import press, said, target_sizes, unfold

from attncourse.tasks import concord
from attncourse.training import RECIPES, evaluate
from attncourse.widgets import HeadLab

VERB, SUBJECT, OBJECT = 3, 2, 9  # of the big king gave a very strange sister their nephew .
SHORT = "the girl saw the very strange princess ."
LINK = "a[href$='/L04_Multi_Head_Attention.html#two-questions']"
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


def arcs_on(page, before=False):
    """The weights that the arcs from the verb are drawn with: those of each head."""
    mark = ".attn-arc-before" if before else ":not(.attn-arc-before)"
    arcs = page.locator(f".attn-arc{mark}").evaluate_all(
        """arcs => arcs.map(({style}) => [style.getPropertyValue("--attn-head"),
             Number(style.getPropertyValue("--weight"))])"""
    )
    heads = dict.fromkeys(color for color, _ in arcs)
    return [[weight for other, weight in arcs if other == color] for color in heads]


def told(page, heads):
    """Wait until the page says what a model with so many heads has learned."""
    words = re.compile(rf"^{heads} heads? ha(s|ve) learned ")
    expect(page.locator("output")).to_have_text(words, timeout=60_000)


def test_before_a_touch_nothing_trains_and_random_weights_are_said_to_be_random(lab):
    page = lab(quick())
    assert said(page) == "Not trained yet: these weights are random."
    assert page.locator(".attn-number").all_inner_texts() == ["", ""]
    press(page, "2")
    unfold(page)
    before = weights_on(page)
    press(page, "Another seed")
    later(page)
    assert page.evaluate("workers") == 0
    assert said(page) == "Not trained yet: these weights are random."
    rows = weights_on(page)
    assert len(rows) == 2 and rows[0] != rows[1] and rows != before
    assert all(abs(sum(row) - 1) < 0.01 for row in rows)


def test_bars_arcs_and_answers_move_while_it_trains(lab):
    page = lab(quick(steps=400))
    page.evaluate("""() => {
      window.seen = {bars: new Set(), arcs: new Set(), answers: new Set()};
      new MutationObserver(() => {
        seen.bars.add(document.querySelector(".attn-number").textContent);
        seen.arcs.add(document.querySelector(".attn-arc").style.getPropertyValue("--weight"));
        seen.answers.add(document.querySelector(".attn-asked").textContent);
      }).observe(document.querySelector(".attn-widget"),
                 {subtree: true, childList: true, attributes: true, characterData: true});
    }""")
    press(page, "Train")
    page.wait_for_function("seen.arcs.size > 4 && seen.bars.size > 2 && seen.answers.size > 1")
    press(page, "Pause")  # it still trains
    page.locator("summary").click()
    press(page, "Stop")
    told(page, 1)


def test_shares_and_weights_are_those_of_torch(lab):
    page = lab(quick(steps=120))
    press(page, "2")
    train(page)
    model = model_of(page, 2)
    held_out = concord.sentences(40, seed=HELD_OUT_SEED)
    right = evaluate(model, held_out, concord.relations).relations
    shares = [short(right[f"verb>{need}"]) for need in ("subject", "object")]
    assert page.locator(".attn-number").all_inner_texts() == shares
    knows_both = min(right["verb>subject"], right["verb>object"]) >= 0.9
    assert (said(page) == "2 heads have learned both answers.") == knows_both
    more = page.get_by_role("button", name="Try 4 heads")
    assert more.count() == (not knows_both)
    assert page.locator(".attn-why").is_visible() == knows_both
    sentence = concord.read(quick().sentence)
    answered(page)
    assert answers_on(page, ".attn-asked") == [answers_of(model, sentence)[VERB]]
    weights = model(torch.tensor([sentence.ids]), need_weights=True).weights[0][0, :, VERB]
    unfold(page)
    assert torch.allclose(torch.tensor(weights_on(page)), weights, atol=0.001)
    assert torch.allclose(torch.tensor(arcs_on(page)), weights, atol=1e-5)
    spoken = page.locator(".attn-arcs-drawing").get_attribute("aria-label")
    king, nephew = (short(weights[1, place]) for place in (SUBJECT, OBJECT))
    assert spoken.startswith("Weights of gave. Head 1: king ")
    assert spoken.endswith(f"Head 2: king {king}, nephew {nephew}.")


@pytest.mark.parametrize("sentence", [None, LONGEST])
def test_before_training_weights_and_answers_are_those_with_which_it_begins(lab, sentence):
    """With steps that change next to nothing torch is given the weights of before."""
    page = lab(quick(1, warmup=0, lr=1e-12, sentence=sentence))
    press(page, "2")
    unfold(page)
    weights, before = weights_on(page), answers_on(page, ".attn-asked")
    train(page)
    told(page, 2)
    answered(page)
    assert weights_on(page) == weights
    words = concord.read(quick(sentence=sentence).sentence)
    verb = max(words.partners["verb>subject"])
    expected = [answers_of(model_of(page, 2), words)[verb]]
    assert before == answers_on(page, ".attn-asked") == expected


def test_the_verb_and_its_two_words_stand_out_and_nouns_have_their_classes(show):
    page = show(quick())
    assert page.locator(".attn-said .attn-query").all_inner_texts() == ["gave"]
    assert page.locator(".attn-said .attn-key").all_inner_texts() == ["king", "nephew"]
    classes = page.locator(".attn-said").evaluate_all(
        "words => words.map((word) => [...word.children].map((part) => part.textContent))"
    )
    nouns = [pair for pair in classes if pair[1]]
    assert nouns == [["king", "ba"], ["sister", "ki"], ["nephew", "lu"]]
    sentence = concord.read(quick().sentence)
    rule = page.locator(".attn-note").first.inner_text()
    for readout, answers in concord.readouts.items():
        assert answers[sentence.answers[readout][VERB]] in rule
    page = show(quick(sentence=LONGEST))
    assert page.locator(".attn-said .attn-query").inner_text() == "gave"  # its last verb


# Whether there are so many arcs, each ending at the middle of its word.
END_AT_WORDS = """count => {
  const arcs = [...document.querySelectorAll(".attn-arc")];
  const box = document.querySelector(".attn-arcs-drawing").getBoundingClientRect();
  const words = [...document.querySelectorAll(".attn-said")].map((w) => w.getBoundingClientRect());
  const isDown = words[1].top > words[0].bottom - 1;
  const middle = (w) => (isDown ? w.top + w.height / 2 - box.top : w.left + w.width / 2 - box.left);
  return arcs.length === count && arcs.every((arc, i) => {
    const {x, y} = arc.getPointAtLength(arc.getTotalLength());
    return Math.abs((isDown ? y : x) - middle(words[i % words.length])) < 6;
  });
}"""


@pytest.mark.parametrize("width", [1000, 390])
@pytest.mark.parametrize("sentence", [SHORT, LONGEST])
def test_arcs_end_at_their_words_in_a_line_and_downward(show, width, sentence):
    page = show(quick(sentence=sentence), width=width)
    press(page, "2")
    for _ in range(2):  # and where the window has become narrower
        page.wait_for_function(END_AT_WORDS, arg=2 * len(sentence.split()))
        page.set_viewport_size({"width": 330, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == 330


def test_each_number_of_heads_is_trained_once_and_the_run_before_stays_beside(lab):
    page = lab(quick(steps=60, sentence=SHORT))
    train(page)
    told(page, 1)
    answered(page)
    before, answers = arcs_on(page), answers_on(page, ".attn-asked")[0]
    shares = page.locator(".attn-number").all_inner_texts()
    assert page.locator(".attn-ghost").all_inner_texts() == ["", ""]
    assert page.locator(".attn-arc-key").is_hidden()
    page.get_by_role("button", name="Try 2 heads").click()
    told(page, 2)
    answered(page)
    assert page.locator(".attn-arc-key").is_visible()  # what gray arcs are is said
    assert arcs_on(page, before=True) == before and len(arcs_on(page)) == 2
    marks = [f"1 head: {given} {'✓' if right else '✗'}" for given, right in answers]
    assert page.locator(".attn-ghost").all_inner_texts() == marks
    legend = page.locator(".attn-shares .attn-legend")
    assert f"1 head: {', '.join(shares)}" in legend.inner_text()
    lines = page.locator(".attn-before").evaluate_all("lines => lines.map((l) => l.style.left)")
    assert [round(float(line.rstrip("%"))) for line in lines] == [
        round(100 * float(share)) for share in shares
    ]
    press(page, "4")
    told(page, 4)
    press(page, "2")  # each is trained once
    trained(page)
    told(page, 2)
    assert page.evaluate("workers") == 3
    assert page.locator(".attn-look .attn-swatch").count() == 2


@pytest.mark.parametrize(("width", "height"), [(360, 640), (390, 844), (1280, 900)])
def test_the_controls_and_what_they_change_are_in_one_view_and_nothing_moves(lab, width, height):
    page = lab(quick(steps=10, sentence=SHORT), width=width)
    page.set_viewport_size({"width": width, "height": height})
    box = page.locator(".attn-widget").bounding_box()
    before = box["height"]
    assert box["width"] == min(width - 32, 1080)  # as a lab, wider than text
    train(page)
    press(page, "4")
    told(page, 4)
    top = page.locator(".attn-controls").bounding_box()["y"]
    verdict = page.locator(".attn-verdict").bounding_box()
    assert verdict["y"] + verdict["height"] - top < height - HEADER
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert min(target_sizes(page)) >= 24
    assert page.locator(".attn-widget").bounding_box()["height"] == before
    page.locator(".attn-more summary").click()
    before = page.locator(".attn-widget").bounding_box()["height"]
    press(page, "1")  # of another digest, and a table of fewer rows
    expect(page.locator(".attn-more tbody tr")).to_have_count(1)
    assert page.locator(".attn-widget").bounding_box()["height"] == before


def test_of_the_start_pages_sentence_two_heads_answer_what_one_does_not(lab):
    """One head's map agrees: it looks most at the subject, hardly at the object."""
    page = lab(HeadLab(small=True, sentence=SHORT))
    sentence = concord.read(SHORT)
    (verb,) = sentence.partners["verb>subject"]
    subject, object_ = (sentence.partners[f"verb>{need}"][verb] for need in ("subject", "object"))
    assert [right for _, right in answers_on(page, ".attn-asked")[0]] == [False, False]
    train(page)
    expect(page.locator("output")).to_have_text("1 head has learned the subject, not the object.")
    answered(page)
    assert [right for _, right in answers_on(page, ".attn-asked")[0]] == [True, False]
    (head,) = arcs_on(page)
    assert max(head) == head[subject] > 3 * head[object_]
    page.get_by_role("button", name="Try 2 heads").press("Enter")
    told(page, 2)
    answered(page)
    assert [right for _, right in answers_on(page, ".attn-asked")[0]] == [True, True]
    assert min(max(head[place] for head in arcs_on(page)) for place in (subject, object_)) > 0.8
    assert page.locator(".attn-why").is_visible()
    assert page.locator(LINK).count() == 0  # on the site alone
    shares = page.locator(".attn-number").all_inner_texts()
    assert min(map(float, shares)) > 0.9


def test_without_workers_it_says_so_and_random_weights_stay(show):
    page = show(quick())
    page.evaluate("() => { window.Worker = function () { throw new Error('not here'); }; }")
    press(page, "Train")
    tells(page, "not here")
    press(page, "2")
    expect(page.locator(".attn-look .attn-swatch")).to_have_count(2)
