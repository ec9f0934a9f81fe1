"""A trained model is named by its digest: in the numbers, and in a state."""

import hashlib
import re
import struct

import pytest
from playwright.sync_api import expect
from tools import head_labs as labs
from tools.widget_pages import press

from attncourse.training import RECIPES
from attncourse.widgets import HeadLab, NameLab


def name_lab():
    """One whose models are trained for a moment only."""
    widget = NameLab(2, seed=3)
    recipe = RECIPES["names"].changed(steps=10, warmup=5).as_json()
    for trait, value in {"recipe": recipe, "held_out": 10, "digests": {}}.items():
        widget.set_trait(trait, value)
    return widget


LABS = {
    "HeadLab": lambda: labs.quick(2, 10, held_out=10, seed=3),
    "small": lambda: labs.quick(2, 10, held_out=10, seed=3, small=True),
    "NameLab": name_lab,
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


@pytest.mark.parametrize("name", LABS)
def test_the_numbers_tell_the_digest_and_the_command_and_a_state_names_the_model(lab, name):
    widget = LABS[name]()
    page = lab(widget)
    unfold(page)
    digests, progress = page.locator(".attn-digest"), page.locator(labs.PROGRESS)
    assert digests.count() == 0
    labs.train(page)
    recipe = "names" if name == "NameLab" else "concord"
    command = f"python -m attncourse.training {recipe} --seed 3 --heads 2"
    expect(digests.locator("code").last).to_have_text(command)
    digest = digest_on(page)
    own, plain = digest[:8], digests.inner_text()
    assert digests.locator("code").first.inner_text() == digest
    assert digests.locator("strong").inner_text() == own
    assert not re.search(r"\b[0-9a-f]{8}\b", progress.text_content())
    # Held against another digest, of the course or of a state, it is the same or isn't.
    widget.trained = True
    for named in (own, "01234567"):
        widget.digest = named
        widget.set_trait("digests", {"2 3": named})
        page = lab(widget)
        progress, digests = page.locator(labs.PROGRESS), page.locator(".attn-digest")
        expect(progress).to_contain_text(named, timeout=60_000)
        told = re.findall(r"\b[0-9a-f]{8}\b", progress.text_content())
        assert told == [*dict.fromkeys((named, own))]
        unfold(page)
        assert digests.inner_text().startswith(plain) and digests.inner_text() != plain
        assert ("01234567" in digests.inner_text()) == (named != own)
    press(page, "Another seed")
    expect(progress).not_to_contain_text(named)
    expect(digests).to_contain_text("--seed 4", timeout=60_000)
    assert digest_on(page) in digests.inner_text() and digest not in digests.inner_text()


def test_a_recipes_own_number_of_heads_is_not_named_and_where_it_stopped_is(lab):
    command = "python -m attncourse.training concord --seed 3 --stop {}"
    for widget, said in (
        (labs.quick(4, 100_000, held_out=10, seed=3), command),
        (HeadLab(1, task="lookup", steps=3000), None),  # which no command names
    ):
        page = lab(widget)
        labs.begun(page)
        press(page, "Stop")
        progress = page.locator(labs.PROGRESS)
        expect(progress).to_contain_text("Stopped")
        unfold(page)
        steps = re.search(r"step (\d+)", progress.inner_text())[1]
        told = [digest_on(page), *([said.format(steps)] if said else [])]
        assert labs.texts(page, ".attn-digest code") == told
