"""HeadLab's tab Induction in a real browser: two layers that learn what comes next."""

import pytest
import torch
from playwright.sync_api import expect
from tools.head_labs import CELLS, HELD_OUT_SEED, answers_on, train, with_numbers_of
from tools.widget_pages import unfold

from attncourse import data
from attncourse.interventions import forbidden_looks
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


def short(number, digits=2):
    return f"{number:.{digits}f}".removeprefix("0")


def tiles(page):
    return page.locator(".attn-tile:visible")


def press(page, name, key="Enter"):
    page.get_by_role("button", name=name, exact=True).focus()
    page.keyboard.press(key)


@pytest.mark.everyday
@torch.no_grad()
def test_by_keys_two_layers_train_and_muted_heads_change_the_answers(lab):
    """The maps of both layers, the answers and the scores are torch's."""
    page = lab(quick(steps=100))
    press(page, "Induction")
    page.locator(".attn-track input").press("ArrowLeft")
    expect(page.locator(".attn-track input")).to_have_attribute("aria-valuetext", "2 heads a layer")
    press(page, "Train")
    expect(page.locator(".attn-progress-text")).to_contain_text("Trained", timeout=60_000)
    expect(page.locator("output")).to_contain_text("No head is muted")
    assert page.locator(".attn-tile-name:visible").all_inner_texts() == NAMES
    model, sentence = torch_model(page), first_sequence()
    asked = len(sentence.partners["induction"])
    answers = answers_on(page)
    assert answers == answers_of(model, sentence)
    for head in (2, 3):
        page.get_by_label(f"head {NAMES[head]} works").focus()
        page.keyboard.press("Space")
    expect(page.locator("output")).to_contain_text(f"Muted: heads 2.1 and 2.2: of {asked} answers")
    masks = [torch.ones(2), torch.zeros(2)]
    muted = answers_on(page)
    assert muted == answers_of(model, sentence, masks) != answers
    held_out = TASK.sentences(HELD_OUT, seed=HELD_OUT_SEED)
    found = evaluate(model, held_out, TASK.relations, head_masks=masks)
    page.locator(".attn-before:visible").first.wait_for()
    right = page.locator(".attn-score .attn-number").first
    assert right.inner_text() == short(found.relations["induction"])


@torch.no_grad()
def test_maps_and_prefix_matching_of_both_layers_are_torchs(lab):
    page = lab(quick(task="induction"))
    train(page)
    expect(page.locator("output")).to_contain_text("No head is muted")
    model, sentence = torch_model(page), first_sequence()
    layers = model(torch.tensor([sentence.ids]), need_weights=True).weights
    row, partner = next(iter(sentence.partners["induction"].items()))
    plot = page.locator(".attn-plot")
    for head, name in enumerate(NAMES):
        tiles(page).nth(head).click()
        expect(plot).to_have_attribute(
            "aria-label", f"Weights of head {name}; arrow keys read them"
        )
        plot.focus()
        if head == 0:
            for key in ["ArrowDown"] * row + ["ArrowRight"] * partner:
                page.keyboard.press(key)
        weight = layers[head // 2][0, head % 2, row, partner].item()
        assert page.locator(".attn-read").inner_text() == (
            f"{sentence.words[row]} looks at {sentence.words[partner]} with {short(weight)}. "
            "That is one place after the earlier copy."
        )
    batch = pack(TASK.sentences(HELD_OUT, seed=HELD_OUT_SEED))
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


@torch.no_grad()
def test_a_look_is_forbidden_to_layer_2(lab):
    page = lab(quick(task="induction", steps=100))
    train(page)
    model, batch = torch_model(page), pack(TASK.sentences(HELD_OUT, seed=HELD_OUT_SEED))
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
        expect(page.locator("output")).to_contain_text(f"Forbidden: induction in {name}: of")
        with forbidden_looks(model, places, heads=heads):
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
    page.get_by_role("button", name="Concord").click()
    assert page.locator(".attn-tile-name:visible").all_inner_texts() == ["1"]
    assert page.locator(".attn-switches label:visible").all_inner_texts() == ["1"]
    page.get_by_role("button", name="Induction").click()
    assert page.locator(".attn-tile-name:visible").all_inner_texts() == NAMES
    train(page)
    page.get_by_role("button", name="Another sequence").click()
    expect(page.locator("output")).to_contain_text("No head is muted")
    assert page.locator(".attn-kept button").inner_text() == "2 heads a layer, seed 0"


def test_the_recipe_is_that_of_the_lesson_and_so_are_the_digests():
    widget = HeadLab()
    assert widget.recipes["induction"] == RECIPE.as_json()
    for seed in range(3):
        digest = data.read_card("induction-short", seed).digest
        assert digest.startswith(widget.induction_digests[f"4 {seed}"])
    assert HeadLab(task="induction", muted=[31], forbidden="induction").muted == [31]
    with pytest.raises(ValueError, match="each of muted must be from 0 to 31, got 32"):
        HeadLab(task="induction", muted=[32])
