"""A trained model is named by its digest: in the numbers, and in a state."""

import re

from playwright.sync_api import expect
from tools import head_labs as labs
from tools.widget_pages import press, unfold

from attncourse.widgets import HeadLab


def test_the_numbers_tell_the_digest_and_the_command_and_a_state_names_the_model(lab):
    widget = labs.quick(2, 10, held_out=10, seed=3)
    page = lab(widget)
    unfold(page)
    digests, progress = page.locator(".attn-digest"), page.locator(labs.PROGRESS)
    assert digests.count() == 0
    labs.train(page)
    command = "python -m attncourse.training concord --seed 3 --heads 2"
    expect(digests.locator("code").last).to_have_text(command)
    digest = digests.locator("code").first.inner_text()  # torch's, says test_same_bits.py
    own, plain = digest[:8], digests.inner_text()
    assert re.fullmatch("[0-9a-f]{64}", digest)
    assert digests.locator("strong").inner_text() == own
    assert not re.search(r"\b[0-9a-f]{8}\b", progress.text_content())
    # Held against another digest, of the course or of a state, it is the same or isn't.
    widget.trained = True
    for named in (own, "01234567"):
        widget.digest = named
        widget.set_trait("digests", {"2 3": named})
        page = lab(widget)
        progress, digests = page.locator(labs.PROGRESS), page.locator(".attn-digest")
        expect(progress).to_contain_text(named, timeout=labs.WAIT)
        told = re.findall(r"\b[0-9a-f]{8}\b", progress.text_content())
        assert told == [*dict.fromkeys((named, own))]
        unfold(page)
        assert digests.inner_text().startswith(plain) and digests.inner_text() != plain
        assert ("01234567" in digests.inner_text()) == (named != own)
    press(page, "Another seed")
    expect(progress).not_to_contain_text(named)
    expect(digests).to_contain_text("--seed 4", timeout=labs.WAIT)
    assert digest not in digests.inner_text()


def test_a_recipes_own_number_of_heads_is_not_named_and_where_it_stopped_is(lab):
    for widget in (
        labs.quick(4, 100_000, held_out=10, seed=3),
        HeadLab(1, task="lookup", steps=3000),  # which no command names
    ):
        page = lab(widget)
        labs.begun(page)
        press(page, "Stop")
        progress = page.locator(labs.PROGRESS)
        expect(progress).to_contain_text("Stopped")
        unfold(page)
        steps = re.search(r"step (\d+)", progress.inner_text())[1]
        _, *commands = labs.texts(page, ".attn-digest code")
        command = f"python -m attncourse.training concord --seed 3 --stop {steps}"
        assert commands == ([command] if widget.task == "concord" else [])
