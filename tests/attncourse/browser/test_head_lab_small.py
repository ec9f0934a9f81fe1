"""HeadLab's smallest form in a real browser: what it trains, asks and draws, how small it is."""

import re

import pytest
import torch
from playwright.sync_api import expect
from tools import head_labs as labs
from tools.weight_pictures import short
from tools.widget_pages import press, said, target_sizes, unfold

from attncourse.tasks import concord
from attncourse.training import evaluate
from attncourse.widgets import HeadLab

SHORT = "the girl saw the very strange princess ."


def weights_on(page):
    """The weights that the page tells in its table: those of each head, from the verb."""
    rows = page.locator("tbody tr").evaluate_all(labs.CELLS)
    return torch.tensor([[float(x) for x in row[1:]] for row in rows])


def arcs_on(page, heads, kind=":not(.attn-arc-before)"):
    """The weights that the arcs from the verb are drawn with: those of each head."""
    weights = page.locator(f".attn-arc{kind}").evaluate_all(
        "arcs => arcs.map(({style}) => Number(style.getPropertyValue('--weight')))"
    )
    return torch.tensor(weights).view(heads, -1)


def told(page, heads):
    """Wait until the page says what a model with so many heads has learned, and answers."""
    words = re.compile(rf"^{heads} heads? ha(s|ve) learned ")
    expect(page.locator("output")).to_have_text(words, timeout=labs.WAIT)
    labs.answered(page)


def answers_on(page):
    return labs.answers_on(page, ".attn-asked")[0]


def test_before_a_touch_weights_and_answers_are_those_with_which_training_begins(lab):
    """With steps that change next to nothing torch is given the weights of before."""
    page = lab(labs.quick(1, small=True, sentence=SHORT, recipe={"warmup": 0, "lr": 1e-12}))
    press(page, "2")
    unfold(page)
    others = weights_on(page)
    press(page, "Another seed")
    page.clock.run_for(1000)
    assert page.evaluate("workers") == 0
    assert "random" in said(page) and labs.texts(page, ".attn-number") == ["", ""]
    weights, before = weights_on(page), answers_on(page)
    assert not torch.equal(weights, others) and not torch.equal(*weights)
    labs.train(page)
    told(page, 2)
    assert torch.equal(weights_on(page), weights)
    model = labs.model_of(page, 2)
    assert before == answers_on(page) == labs.answers_of(model, concord.read(SHORT))[2]
    press(page, "Another sentence")  # which is as long, and its own verb is asked
    labs.answered(page)
    words = labs.texts(page, ".attn-said > :first-child")
    assert len(words) == len(SHORT.split())
    sentence = concord.read(" ".join(words))
    verb = max(sentence.partners["verb>subject"])
    assert answers_on(page) == labs.answers_of(model, sentence)[verb]


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


def test_the_verb_its_words_and_nouns_classes_stand_out_and_arcs_end_at_their_words(show):
    page = show(HeadLab(small=True, sentence=SHORT))
    assert labs.texts(page, ".attn-said .attn-query") == ["saw"]
    assert labs.texts(page, ".attn-said .attn-key") == ["girl", "princess"]
    said_words = ["the", "girl\nlu", "saw", "the", "very", "strange", "princess\nki", "."]
    assert labs.texts(page, ".attn-said") == said_words
    rule, read = labs.texts(page, ".attn-note")[0], concord.read(SHORT)
    for readout, answers in concord.readouts.items():
        assert answers[read.answers[readout][2]] in rule  # what the verb is to answer
    press(page, "2")
    for width in (1000, 390):  # in a line, or downward
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(END_AT_WORDS, arg=2 * len(read))


def heights_of(page):
    """How high the widget is on each screen; controls and what they change are in one view."""
    found = []
    for width, height in ((360, 640), (390, 844), (1280, 900)):
        page.set_viewport_size({"width": width, "height": height})
        top = page.locator(".attn-controls").bounding_box()["y"]
        verdict = page.locator(".attn-verdict").bounding_box()
        assert verdict["y"] + verdict["height"] - top < height - 64  # a page has its own bar above
        found.append(page.locator(".attn-widget").bounding_box()["height"])
    return found


def test_of_the_start_pages_sentence_two_heads_answer_what_one_does_not(lab):
    """The maps agree: one head looks at the subject, hardly at the object. All is torch's."""
    widget, sentence = HeadLab(small=True, sentence=SHORT), concord.read(SHORT)
    widget.set_trait("held_out", 60)  # on which it is evaluated meanwhile
    page = lab(widget)
    places, needs = [1, 6], ["verb>subject", "verb>object"]
    heights = heights_of(page)
    page.evaluate(labs.NOTE_CHANGES, [".attn-number", ".attn-asked", ".attn-arcs-drawing"])
    press(page, "Train")
    told(page, 1)
    assert page.evaluate("seen.every(({size}) => size > 2)")  # all has moved meanwhile
    assert re.search("subject.* not .*object", said(page))
    answers, shares = answers_on(page), labs.texts(page, ".attn-number")
    assert [right for _, right in answers] == [True, False]
    before = arcs_on(page, 1)
    assert before.max() == before[0, 1] > 3 * before[0, 6]
    assert page.locator(".attn-why").is_hidden() and labs.texts(page, ".attn-ghost") == ["", ""]
    page.get_by_role("button", name="Try 2 heads").press("Enter")
    told(page, 2)
    assert page.locator(".attn-why").is_visible()
    model = labs.model_of(page, 2)
    assert answers_on(page) == labs.answers_of(model, sentence)[2]
    assert [right for _, right in answers_on(page)] == [True, True]
    weights = model(torch.tensor([sentence.ids]), need_weights=True).weights[0][0, :, 2]
    torch.testing.assert_close(arcs_on(page, 2), weights, atol=1e-5, rtol=0)
    assert weights[:, places].amax(0).min() > 0.8
    assert heights_of(page) == pytest.approx(heights, abs=0.5)  # nothing has moved
    unfold(page)
    torch.testing.assert_close(weights_on(page), weights, atol=0.001, rtol=0)
    spoken = page.locator(".attn-arcs-drawing").get_attribute("aria-label")
    told_of = [short(row[place]) for row in weights for place in places]
    assert re.findall(r"\d?\.\d\d", spoken) == told_of
    assert "has the same digest" in page.locator(".attn-digest").inner_text()  # as torch's
    held_out = concord.sentences(60, seed=labs.HELD_OUT_SEED)
    right = evaluate(model, held_out, concord.relations).relations
    assert labs.texts(page, ".attn-number") == [short(right[need]) for need in needs]
    # The run before stays beside, and each is trained once.
    assert torch.equal(arcs_on(page, 1, ".attn-arc-before"), before)
    marks = [f"1 head: {given} {'✓' if right else '✗'}" for given, right in answers]
    assert labs.texts(page, ".attn-ghost") == marks
    assert ", ".join(shares) in page.locator(".attn-shares .attn-legend").inner_text()
    assert min(target_sizes(page)) >= 24
    press(page, "1")
    told(page, 1)
    assert labs.texts(page, ".attn-ghost")[0].startswith("2 heads")  # the newest other
    assert page.evaluate("workers") == 2
