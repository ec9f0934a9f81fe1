"""HeadLab's tab Induction in a real browser: two layers that learn what comes next."""

import re

import pytest
import torch
from playwright.sync_api import expect
from tools.head_labs import (
    CELLS,
    HELD_OUT_SEED,
    answers_on,
    bars,
    tells,
    train,
    with_numbers_of,
)
from tools.weight_pictures import short
from tools.widget_pages import press, unfold

from attncourse.interventions import attention_knockout
from attncourse.tasks import pack
from attncourse.training import RECIPES, evaluate
from attncourse.widgets import HeadLab
from attnlib import patterns
from attnlib.model import TransformerModel

RECIPE = RECIPES["induction-short"]
TASK = RECIPE.task
(RELATION,) = TASK.relations
HELD_OUT = 40
NAMES = ["1.1", "1.2", "2.1", "2.2"]


def quick(num_heads=2, steps=20, **options):
    """A lab whose models are trained for a moment only."""
    widget = HeadLab(num_heads, seed=0, **options)
    recipe = RECIPE.changed(steps=steps, warmup=5).as_json()
    widget.set_trait("recipes", widget.recipes | {"induction": recipe})
    widget.set_trait("held_out", HELD_OUT)
    return widget


def torch_model(page, num_heads=2):
    """Torch's copy of the model that a page has trained last."""
    sizes = {**RECIPE.model, "num_heads": num_heads}
    return with_numbers_of(page, TransformerModel.of_sizes(TASK, **sizes))


def first_sequence():
    return next(iter(TASK.sentences(1, seed=HELD_OUT_SEED)))


def answers_of(model, sentence, head_masks=None):
    """What torch's model answers where the next symbol is predictable, as `answers_on` has it."""
    logits = model(torch.tensor([sentence.ids]), head_masks=head_masks).logits["next"][0]
    found = [[] for _ in sentence.words]
    for word in sentence.partners["induction"]:
        given = int(logits[word].argmax())
        right = sentence.answers["next"][word]
        found[word] = [[TASK.readouts["next"][given], given == right]]
    return found


@pytest.mark.everyday
@torch.no_grad()
def test_by_keys_two_layers_train_and_muted_heads_or_a_forbidden_look_change_the_answers(lab):
    """The maps of both layers, the answers and the scores are torch's."""
    page = lab(quick(steps=100))
    page.get_by_role("button", name="Induction").press("Enter")
    page.locator(".attn-track input").press("ArrowLeft")
    expect(page.locator(".attn-track input")).to_have_attribute("aria-valuetext", "2 heads a layer")
    page.get_by_role("button", name="Train", exact=True).press("Enter")
    tells(page, "No head is muted")
    assert page.locator(".attn-tile-name:visible").all_inner_texts() == NAMES
    model, sentence = torch_model(page), first_sequence()
    asked = len(sentence.partners["induction"])
    answers = answers_on(page)
    assert answers == answers_of(model, sentence)
    layers = model(torch.tensor([sentence.ids]), need_weights=True).weights
    words, (row, partner) = sentence.words, next(iter(sentence.partners["induction"].items()))
    plot = page.locator(".attn-plot")
    for head, name in enumerate(NAMES):
        page.locator(".attn-tile:visible").nth(head).click()
        expect(plot).to_have_attribute("aria-label", re.compile(f"head {name};"))
        plot.focus()
        if head == 0:
            for key in ["ArrowDown"] * row + ["ArrowRight"] * partner:
                page.keyboard.press(key)
        weight = layers[head // 2][0, head % 2, row, partner].item()
        looks = f"{words[row]} looks at {words[partner]} with {short(weight)}. That"
        assert page.locator(".attn-read").inner_text().startswith(looks)
    held_out = list(TASK.sentences(HELD_OUT, seed=HELD_OUT_SEED))
    batch = pack(held_out)
    layers = model(batch.tokens, need_weights=True).weights
    wanted = [
        mass
        for weights in layers
        for mass in patterns.relation_mass(weights, batch.partners["induction"]).heads.tolist()
    ]
    unfold(page)
    [[_, guessing, _, _, *masses]] = page.locator("details tbody tr").evaluate_all(CELLS)
    titles = page.locator("details thead th").all_inner_texts()
    assert titles[-4:] == [f"head {name}" for name in NAMES]
    assert guessing == short(1 / 12)
    assert [float(mass) for mass in masses] == pytest.approx(wanted, abs=0.001)
    for head in (2, 3):
        page.get_by_label(f"head {NAMES[head]} works").focus()
        page.keyboard.press("Space")
    tells(page, f"Muted: heads 2.1 and 2.2: of {asked} answers")
    masks = [torch.ones(2), torch.zeros(2)]
    muted = answers_on(page)
    assert muted == answers_of(model, sentence, masks) != answers
    found = evaluate(model, held_out, TASK.relations, head_masks=masks)
    page.locator(".attn-before:visible").first.wait_for()
    assert bars(page) == [short(found.relations["induction"])]
    for head in (2, 3):
        page.get_by_label(f"head {NAMES[head]} works").check()
    page.get_by_label("Forbid a look:").select_option("induction")
    where = page.get_by_label("Forbidden in")
    assert where.locator("option").all_inner_texts() == [
        "all heads of layer 2", "head 2.1", "head 2.2",
    ]  # fmt: skip
    partners = batch.partners["induction"]
    places = partners[:, :, None] == torch.arange(partners.shape[1])
    for index, heads in enumerate((None, [0], [1])):
        where.select_option(index=index)
        name = f"head 2.{index}" if index else "all heads of layer 2"
        tells(page, f"Forbidden: induction in {name}: of")
        with attention_knockout(model, places, heads=heads):
            right = model(batch.tokens).logits["next"].argmax(-1) == batch.answers["next"]
        share = short(right[partners >= 0].double().mean().item())
        expect(page.locator(".attn-forbid + .attn-note")).to_contain_text(f"trained, {share} now.")
        blank = page.locator(".attn-tile .attn-barred-look").evaluate_all(
            "paths => paths.map((path) => path.getAttribute('d') !== '')"
        )
        assert blank == [False, False, heads in (None, [0]), heads in (None, [1])]


def test_a_state_names_heads_of_the_second_layer_and_another_tab_has_none(lab):
    widget = quick(task="induction", muted=[3])
    widget.head = 3
    page = lab(widget)
    assert page.get_by_label("head 2.2 works").is_checked() is False
    assert page.locator(".attn-large .attn-heading").inner_text() == "Head 2.2"
    press(page, "Concord")
    assert page.locator(".attn-tile-name:visible").all_inner_texts() == ["1"]
    assert page.locator(".attn-switches label:visible").all_inner_texts() == ["1"]
    press(page, "Induction")
    assert page.locator(".attn-tile-name:visible").all_inner_texts() == NAMES
    train(page)
    press(page, "Another sequence")
    tells(page, "No head is muted")
    assert page.locator(".attn-kept button").inner_text() == "2 heads a layer, seed 0"
