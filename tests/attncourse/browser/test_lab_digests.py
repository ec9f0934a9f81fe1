"""A trained model is named by its digest: in the numbers, and in a state."""

import hashlib
import re
import struct

import pytest
from playwright.sync_api import expect
from tools.head_labs import train, trained

from attncourse.training import RECIPES
from attncourse.widgets import HeadLab, NameLab


def quick(kind, **options):
    """A lab whose models are trained for a moment only."""
    widget = kind(2, seed=3, **options)
    recipe = RECIPES["names" if kind is NameLab else "concord"].changed(steps=10, warmup=5)
    widget.set_trait("recipe", recipe.as_json())
    widget.set_trait("held_out", 10)
    widget.set_trait("digests", {})  # those of the whole training
    return widget


LABS = {
    "HeadLab": lambda: quick(HeadLab),
    "small": lambda: quick(HeadLab, small=True),
    "NameLab": lambda: quick(NameLab),
}


def digest_on(page):
    """The digest of what a page has trained last, of the weights themselves."""
    weights = page.evaluate("lastTraining.ask('weights')")
    multiples = [round(2**20 * x) for values in weights.values() for x in values]
    return hashlib.sha256(struct.pack(f"<{len(multiples)}i", *multiples)).hexdigest()


def unfold(page):
    """Open the numbers; NameLab has another fold before."""
    page.locator("details:has(.attn-table) summary").click()
    page.locator(".attn-table tbody tr").first.wait_for()


def told(page):
    return page.locator(".attn-digest").inner_text()


@pytest.mark.parametrize("name", LABS)
def test_the_numbers_tell_the_digest_and_the_command(lab, name):
    page = lab(LABS[name]())
    unfold(page)
    assert page.locator(".attn-digest").count() == 0
    train(page)
    recipe = "names" if name == "NameLab" else "concord"
    command = f"python -m attncourse.training {recipe} --seed 3 --heads 2"
    expect(page.locator(".attn-digest code").last).to_have_text(command)
    digest = digest_on(page)
    assert told(page).startswith(f"Digest of 2 heads, seed 3: {digest}. ")
    assert page.locator(".attn-digest strong").inner_text() == digest[:8]
    page.get_by_role("button", name="Another seed").click()
    expect(page.locator(".attn-digest")).to_contain_text("--seed 4", timeout=60_000)
    assert digest_on(page) in told(page) and digest not in told(page)


def stop_soon(page):
    """Train for some steps; return how many."""
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_function("document.querySelector('progress').value > 0")
    page.get_by_role("button", name="Stop", exact=True).click()
    progress = page.locator(".attn-progress-text")
    expect(progress).to_contain_text("Stopped")
    unfold(page)
    return re.search(r"step (\d+)", progress.inner_text())[1]


def test_a_recipes_own_number_of_heads_is_not_named_and_where_it_stopped_is(lab):
    widget = quick(HeadLab)
    widget.num_heads = 4
    widget.set_trait("recipe", widget.recipe | {"steps": 100_000})
    page = lab(widget)
    command = f"python -m attncourse.training concord --seed 3 --stop {stop_soon(page)}"
    expect(page.locator(".attn-digest code").last).to_have_text(command)
    page = lab(HeadLab(1, task="lookup"))  # which no command names
    stop_soon(page)
    assert page.locator(".attn-digest code").all_inner_texts() == [digest_on(page)]


def test_a_digest_is_held_against_the_courses_and_nothing_fails(lab):
    widget = quick(HeadLab)
    page = lab(widget)
    train(page)
    unfold(page)
    digits = page.locator(".attn-digest strong").inner_text()
    assert "The course" not in told(page)
    for known, words in ((digits, "has the same digest"), ("01234567", "its digest is 01234567")):
        widget.set_trait("digests", {"2 3": known})
        page = lab(widget)
        train(page)
        unfold(page)
        expect(page.locator(".attn-digest")).to_contain_text(words)
        assert digits in told(page)


@pytest.mark.parametrize("name", LABS)
def test_a_state_names_its_model_and_is_told_which_one_was_trained(lab, name):
    widget = LABS[name]()
    widget.trained = True
    page = lab(widget)
    trained(page)
    assert "names" not in page.locator(".attn-progress-text").inner_text()
    unfold(page)
    digits = page.locator(".attn-digest strong").inner_text()
    for named, words in (
        (digits, f"It is, bit for bit, the model that the link or saved state names: {digits}."),
        ("01234567", f"names another model: 01234567. This one is {digits}."),
    ):
        widget.digest = named
        page = lab(widget)
        progress = page.locator(".attn-progress-text")
        expect(progress).to_contain_text(words, timeout=60_000)
        if name == "small":
            unfold(page)  # the button stands there
        page.get_by_role("button", name="Another seed").click()
        expect(progress).not_to_contain_text("names")
