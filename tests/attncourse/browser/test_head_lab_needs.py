"""HeadLab's tasks with two needs in a real browser, and two models beside each other."""

import pytest
import torch
from playwright.sync_api import expect
from tools import head_labs as labs
from tools.weight_pictures import short
from tools.widget_pages import press

from attncourse.tasks import lookup

KEYS = "Two needs: keys"


def words_on(page):
    return page.locator(".attn-card select").evaluate_all("all => all.map((one) => one.value)")


def choice(page, name):
    return page.get_by_role("combobox", name=name)


# Other values for a question, as a lab draws them.
TRIES = """(ids) => {
  const task = attnModules["engine/sequences.js"].makeLookup();
  const rng = attnModules["engine/rng.js"].sfc32(0);
  const shown = task.sentenceOf(ids);
  return Array.from({length: 100}, () => task.withOtherValues(shown, rng).ids);
}"""


@torch.no_grad()
def test_how_a_row_changes_with_the_values_is_torchs_and_others_may_be_asked(lab):
    page = lab(labs.quick(task="lookup"))
    labs.train(page)
    task = lookup()
    model, [shown] = labs.model_of(page, 2, task), task.sentences(1, seed=labs.HELD_OUT_SEED)
    tries = page.evaluate(TRIES, list(shown.ids))
    kept = [[*(id // 8 for id in ids[:8]), ids[8]] for ids in (shown.ids, *tries)]
    assert all(keys == kept[0] for keys in kept)  # and the question; each slot has had each value
    assert [len({*ids}) for ids in zip(*tries, strict=True)] == [8] * 8 + [1]
    weights = model(torch.tensor(tries), need_weights=True).weights[0][:, :, 8]
    rows = page.locator(".attn-plot canvas").evaluate("({height}) => height")
    assert rows == 1  # the one that asks is drawn alone
    for head in (0, 1):
        page.get_by_role("button", name=f"head {head + 1}").click()
        ranges = []
        for part in ("first", "second"):
            found = weights[:, head, shown.partners[f"question>{part}"][8]].sort().values
            ranges.append(f"{short(found[5])} to {short(found[94])} on {part}")
        expect(page.locator(".attn-large .attn-spread")).to_contain_text(" and ".join(ranges))
    words = words_on(page)
    options = labs.texts(page.get_by_label("Word 1", exact=True), "option")
    assert options == [f"{words[0][0]}{value}" for value in range(8)]
    asked = f"{words[0][0]}{words[3][0]}?"
    page.get_by_label("Word 9", exact=True).select_option(asked)
    page.get_by_label("Word 1", exact=True).select_option(options[6])
    labs.answered(page)
    assert words_on(page) == [options[6], *words[1:8], asked]
    press(page, "Another question")
    assert len({word[0] for word in words_on(page)[:8]}) == 8


def test_settings_change_what_is_trained(lab):
    page = lab(labs.quick(1, task="lookup"))
    labs.train(page)
    expect(page.locator(".attn-sharing .attn-note")).to_contain_text("doesn't answer both")
    choice(page, "Values").select_option("4")
    labs.kept(page, 2)
    mlp = page.get_by_role("checkbox", name="an MLP after attention")
    mlp.check()
    settings = ["8 values, 10 steps", "4 values, 10 steps", "4 values, 10 steps, MLP"]
    assert labs.kept(page, 3) == [f"1 head, {setting}, seed 0" for setting in settings]
    choice(page, "Steps").select_option("20")
    assert "20 steps" in labs.kept(page, 4)[3]
    # One of them is shown again, with its settings; it isn't trained again.
    page.locator(".attn-kept button").first.click()
    shown = [choice(page, name).input_value() for name in ("Values", "Steps")]
    assert shown == ["8", "10"] and not mlp.is_checked()
    labs.trained(page)
    page.clock.run_for(1000)
    assert page.evaluate("workers") == 4
    # Beside it stays only what is asked the same, and it alone has a dot.
    assert page.locator(".attn-kept [type=checkbox]:visible").count() == 1
    assert page.locator(".attn-dot-plot").nth(2).locator(".attn-run-dot").count() == 1


def test_another_task_is_shown_as_it_was_left_and_nothing_begins_to_train(lab):
    widget = labs.quick(4)
    widget.set_trait("step_counts", [10, 3000])
    page = lab(widget)
    labs.train(page)
    page.get_by_label("head 1 works").uncheck()

    def open_task(name, workers=1):  # that of the model which was trained first
        press(page, name)
        page.clock.run_for(1000)
        assert page.evaluate("workers") == workers
        assert page.get_by_label("head 1 works").is_checked()
        heads = page.locator(labs.SLIDER).get_attribute("aria-valuetext")
        return heads, page.locator(labs.PROGRESS).inner_text().split(":")[0]

    assert open_task(KEYS) == ("1 head", "Not trained yet.")
    page.locator(labs.SLIDER).press("ArrowRight")
    choice(page, "Values").select_option("4")
    assert open_task("Two needs: places") == ("1 head", "Not trained yet.")
    assert open_task("Concord") == ("4 heads", "Trained")
    assert page.locator(".attn-choices").is_hidden()
    page.locator(labs.SLIDER).press("ArrowLeft")
    labs.kept(page, 2)  # a reader who has pressed Train needn't do so again
    assert open_task(KEYS, workers=2) == ("2 heads", "Not trained yet.")
    assert choice(page, "Values").input_value() == "4"
    # What still trains is given up with its task, and doesn't begin again by itself.
    choice(page, "Steps").select_option("3,000")
    press(page, "Train")
    page.wait_for_function("document.querySelector('progress').value > 0")
    open_task(KEYS, workers=3)  # which is open
    open_task("Concord", workers=2)
    assert open_task(KEYS, workers=2)[1] == "Not trained yet."


# How many maps of each model are still blank: "0,0".
PAINTED = """[...document.querySelectorAll(".attn-grid")].map(
  (grid) => grid.querySelectorAll(".attn-tile:not([hidden]) .attn-blank").length).join()"""


def test_a_model_stays_beside_another_one_and_awake(lab):
    page = lab(labs.quick(1, held_out=20), width=360)
    names = ["2 heads, seed 0", "1 head, seed 0"]
    first, other = (page.get_by_role("checkbox", name=f"{name}: keep beside") for name in names)
    labs.train(page)
    page.get_by_role("button", name="Your models so far").click()
    other.check()
    grids = page.locator(".attn-grid")
    assert grids.count() == 1  # there is no other one yet
    page.locator(labs.SLIDER).press("ArrowRight")
    labs.kept(page, 2)
    page.wait_for_function(f"{PAINTED} === '0,0'")
    rows = page.locator(".attn-kept tbody tr").evaluate_all(labs.CELLS)
    told = {name: own for name, _, own, *_ in rows}
    panels = page.locator(".attn-first > :not(:last-child)").all()
    for panel, name in zip(panels, names, strict=True):
        assert labs.texts(panel, ".attn-heading")[0].startswith(f"{name}. ")
        score = panel.locator(".attn-score", has_text="verb → object")
        assert labs.texts(score, ".attn-number")[0] == told[name]
    assert [grid.locator(".attn-tile:visible").count() for grid in grids.all()] == [2, 1]
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    # Pressed, a head of the other model is enlarged, and the models change places.
    grids.nth(1).get_by_role("button").first.click()
    expect(page.locator(".attn-first .attn-heading").first).to_contain_text(names[1])
    first.focus()
    top = first.bounding_box()["y"]
    first.press("Space")
    assert grids.count() == 1
    assert first.bounding_box()["y"] == pytest.approx(top, abs=1)
    other.check()  # the oldest, while others come
    for seed in range(1, 8):
        press(page, "Another seed")
        kept = labs.kept(page, seed + 2)
    assert page.evaluate("workers") <= 7
    assert kept[0] == names[1]  # it isn't trained again
    page.get_by_label("Word 3", exact=True).select_option("nun")
    page.wait_for_function(f"{PAINTED} === '0,0'")
