"""HeadLab with a reader's own model in a real browser: trained in its form, or asked as it came."""

import pytest
import torch
from playwright.sync_api import expect
from tools.head_labs import (
    HELD_OUT_SEED,
    answers_of,
    answers_on,
    bars,
    kept,
    tells,
    train,
    trained,
    with_numbers_of,
)

from attncourse.tasks import concord
from attncourse.training import RECIPES, evaluate
from attncourse.widgets import HeadLab
from attnlib.model import TransformerModel
from attnlib.norms import RMSNorm


def own_model(num_heads=4):
    """A small model of another form than the course's, with weights that nobody has trained."""
    torch.manual_seed(0)
    model = TransformerModel.of_sizes(
        concord, 24, num_heads, d_ff=20, norm=RMSNorm, norm_position="post",
        num_kv_heads=num_heads // 2, bias=True, embedding_std=0.5,
    )  # fmt: skip
    return model.eval()


def quick(model, steps=30, held_out=40, from_weights=False, **changes):
    widget = HeadLab(model=model, from_weights=from_weights, seed=0)
    recipe = RECIPES["concord"].changed(steps=steps, warmup=5).as_json()
    widget.set_trait("recipe", recipe | changes)
    widget.set_trait("held_out", held_out)
    return widget


def as_it_came(page):
    expect(page.locator(".attn-progress-text")).to_contain_text("as it came", timeout=60_000)
    tells(page, "No head is muted")


def test_models_of_its_form_are_trained_with_the_numbers_of_heads_that_fit(lab):
    page = lab(quick(own_model()))
    form = page.locator(".attn-note").nth(1).inner_text()
    for part in ("d = 24, 4 heads", "share 2 of keys and values", "d_ff = 20", "RMSNorm after"):
        assert part in form
    slider = page.locator(".attn-track input")
    assert page.locator(".attn-ticks span").all_inner_texts() == ["2", "4", "8"]
    slider.press("ArrowRight")
    assert page.get_by_label("Begin with your model's own weights").is_hidden()
    train(page)
    model = with_numbers_of(page, own_model(8))
    tells(page, "No head is muted")
    assert answers_on(page) == answers_of(model, concord.read(HeadLab().sentence))


def test_its_weights_are_asked_as_they_came_and_muted(lab):
    model = own_model()
    page = lab(quick(model))
    assert page.evaluate("workers") == 0
    page.get_by_label("Begin with your model's own weights").check()
    as_it_came(page)
    sentence = concord.read(HeadLab().sentence)
    assert answers_on(page) == answers_of(model, sentence)
    page.get_by_label("head 2 works").uncheck()
    tells(page, "Muted: head 2")
    assert answers_on(page) == answers_of(model, sentence, [1])
    page.get_by_label("head 2 works").check()
    held_out = concord.sentences(40, seed=HELD_OUT_SEED)
    right = evaluate(model, held_out, concord.relations).relations
    assert list(map(float, bars(page))) == pytest.approx(list(right.values()), abs=0.0051)
    assert page.locator(".attn-kept button").all_inner_texts() == ["4 heads, as it came"]
    assert page.locator(".attn-curve[d^=M]").count() == 0
    assert page.locator("progress").evaluate("bar => bar.value") == 0


def test_training_goes_on_from_its_weights_and_begins_elsewhere_without_them(lab):
    model = own_model()
    page = lab(quick(model, steps=1, warmup=0, lr=1e-12, from_weights=True))
    as_it_came(page)
    train(page)
    state = with_numbers_of(page, own_model(4)).state_dict()
    for name, value in model.state_dict().items():
        assert torch.allclose(state[name], value, atol=1e-6), name
    tells(page, "with 4 heads, seed 0, from your weights")
    assert page.locator(".attn-repeated").inner_text() == ""  # this is no repetition
    assert page.locator(".attn-run-dot").count() == 0
    page.get_by_label("Begin with your model's own weights").uncheck()
    kept(page, 2)
    trained(page)
    other = with_numbers_of(page, own_model(4)).state_dict()
    name = "blocks.0.attention.W_q.weight"
    assert not torch.allclose(other[name], state[name], atol=1e-3)
    page.get_by_role("button", name="4 heads, seed 0, from your weights").click()
    assert page.get_by_label("Begin with your model's own weights").is_checked()
    tells(page, "from your weights")
