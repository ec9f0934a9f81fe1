"""HeadLab's forbidden looks in a real browser: what hangs on a look, as torch finds it."""

import pytest
import torch
from playwright.sync_api import expect
from tools.browser_models import forbidding
from tools.head_labs import HELD_OUT_SEED, answers_of, answers_on, bars, tells, train
from tools.weight_pictures import short
from tools.widget_pages import press, said

from attncourse import data
from attncourse.tasks import concord, pack
from attncourse.widgets import HeadLab

HELD_OUT = 60
RELATION = "verb>object"


@pytest.fixture(scope="module")
def model():
    """A model of four heads that has learned Concord."""
    return data.load("concord")[0]


def trained_lab(model, **options):
    widget = HeadLab(model=model, from_weights=True, **options)
    widget.set_trait("held_out", HELD_OUT)
    return widget


def which(page):
    return page.get_by_label("Forbid a look:")


def where(page):
    return page.get_by_label("Forbidden in")


def told(page):
    return page.locator(".attn-forbid + .attn-note")


@torch.no_grad()
def shares_of(model, head):
    """The share of right answers in each relation, with a look forbidden to one head or to all."""
    batch = pack(concord.sentences(HELD_OUT, seed=HELD_OUT_SEED))
    with forbidding(model, batch.partners[RELATION], head):
        logits = model(batch.tokens, key_mask=batch.key_mask).logits
    shares = {}
    for name, readout in ((relation.name, relation.readout) for relation in concord.relations):
        right = logits[readout].argmax(-1) == batch.answers[readout]
        shares[name] = short(right[batch.partners[name] >= 0].double().mean())
    return shares


def shares_on(page):
    return dict(zip((relation.name for relation in concord.relations), bars(page), strict=True))


@pytest.mark.everyday
def test_by_keys_a_look_is_forbidden_and_allowed_again(lab, model):
    """The answers that hang on it fall, as torch says, and come back."""
    page = lab(trained_lab(model))
    tells(page, "No head is muted")
    hint = told(page).inner_text()
    before = shares_on(page)
    sharing = page.locator(".attn-sharing .attn-heading")
    plain = sharing.inner_text()
    batch = pack([concord.read(HeadLab().sentence)])
    which(page).focus()
    for _ in range(1 + [relation.name for relation in concord.relations].index(RELATION)):
        page.keyboard.press("ArrowDown")
    assert which(page).evaluate("(select) => select.selectedOptions[0].text") == "verb → object"
    for head in (None, 0, 1):
        page.keyboard.press("Tab")
        if head is not None:
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Shift+Tab")
        name = "all heads" if head is None else f"head {head + 1}"
        tells(page, f"Forbidden: verb → object in {name}: of 10")
        shares = shares_of(model, head)
        expect(told(page)).to_contain_text(f"{shares[RELATION]} now")
        assert f"{before[RELATION]} as trained" in told(page).inner_text()
        assert shares_on(page) == shares
        assert sharing.inner_text() == f"{plain}, as trained"
        with forbidding(model, batch.partners[RELATION], head):
            assert answers_on(page) == answers_of(model, concord.read(HeadLab().sentence))
        blank = page.locator(".attn-tile .attn-barred-look").evaluate_all(
            "paths => paths.map((path) => path.getAttribute('d'))"
        )
        cell = "M9 3h1v1h-1z"  # gave, nephew
        assert blank == [cell if head in (None, tile) else "" for tile in range(4)]
    assert float(shares_of(model, None)[RELATION]) < 0.5 < float(before[RELATION])
    page.keyboard.press("Home")
    tells(page, "No head is muted")
    assert (shares_on(page), told(page).inner_text()) == (before, hint)
    assert sharing.inner_text() == plain
    assert page.locator(".attn-before:visible").count() == 0


def test_a_forbidden_look_reads_nothing_nobody_is_best_at_it_and_heads_are_muted_too(lab, model):
    page = lab(trained_lab(model, forbidden=RELATION))
    tells(page, "Forbidden")
    page.locator(".attn-plot").focus()
    for key in ["ArrowDown"] * 3 + ["ArrowRight"] * 9:
        page.keyboard.press(key)
    read = page.locator(".attn-read").inner_text()
    assert read.startswith("gave looks at nephew with 0.00. ") and "forbidden" in read
    row = page.locator(".attn-score", has_text="verb → object")
    assert row.locator(".attn-number").all_inner_texts()[1] == "0.00"
    assert row.locator(".attn-best").inner_text() == ""
    assert row.locator(".attn-before:visible").count() == 2
    assert page.locator(".attn-legend", has_text="no look forbidden").count() == 1
    where(page).select_option("head 2")
    page.get_by_label("head 1 works").uncheck()
    tells(page, "Muted: head 1. Forbidden: verb → object in head 2: of 10 answers")
    sentence = concord.read(HeadLab().sentence)
    with forbidding(model, pack([sentence]).partners[RELATION], 1):
        assert answers_on(page) == answers_of(model, sentence, [0])
    best = page.locator(".attn-score", has_text="verb → subject").locator(".attn-best-head")
    expect(best).to_have_class("attn-best-head attn-muted")
    assert best.inner_text() == "1"
    assert page.locator(".attn-legend", has_text="no head muted, no look forbidden").count() == 1


def test_it_stays_with_other_heads_but_not_for_one_of_them_nor_in_another_task(lab):
    page = lab(HeadLab(4, forbidden=RELATION, forbidden_in=3))
    assert where(page).input_value() == "head 4"
    page.locator(".attn-track input").press("ArrowLeft")
    assert (which(page).input_value(), where(page).input_value()) == ("verb → object", "all heads")
    press(page, "Two needs: keys")
    assert which(page).input_value() == "none"
    assert which(page).locator("option").all_inner_texts() == [
        "none", "question → first", "question → second",
    ]  # fmt: skip
    assert where(page).locator("option").all_inner_texts() == ["all heads", "head 1"]
    press(page, "Concord")
    assert which(page).input_value() == "none"
    widget = HeadLab()
    widget.forbidden = "1 back"  # a relation of another task
    assert which(lab(widget)).input_value() == "none"


@pytest.mark.parametrize("task", ["lookup", "diagonals"])
def test_in_a_task_with_two_needs_the_other_answer_stays(lab, task):
    widget = HeadLab(2, task=task, symbols=4)
    widget.set_trait("held_out", HELD_OUT)
    page = lab(widget)
    train(page)
    before = float(bars(page)[0])
    which(page).select_option(index=1)
    expect(told(page)).to_contain_text("now.")
    assert float(bars(page)[0]) < 0.5 < before  # of four values
    assert "Forbidden: " in said(page)
