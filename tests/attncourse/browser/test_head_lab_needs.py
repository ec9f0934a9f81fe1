"""HeadLab's tasks with two needs in a real browser, and two models beside each other."""

import re

import pytest
import torch
from playwright.sync_api import expect
from tools import head_labs as labs
from tools.weight_pictures import short
from tools.widget_pages import press

from attncourse.tasks import lookup

KEYS, PLACES = "Two needs: keys", "Two needs: places"
WIDTH = 32
CHANCE = {4: "0.25", 8: "0.13", 16: "0.06"}


def quick(num_heads=2, task="lookup", **options):
    """A lab whose models with two needs are trained for a moment only."""
    return labs.quick(num_heads, task=task, **options)


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
    page = lab(quick(steps=40))
    labs.train(page)
    note = page.locator(".attn-large .attn-spread")
    expect(note).not_to_be_empty()
    task = lookup()
    model, shown = labs.model_of(page, 2, task), labs.first_of(task)
    question, ids = shown.words[8], list(shown.ids)
    tries = page.evaluate(TRIES, ids)
    # Keys and question stay; each slot has had each value.
    assert all([i // 8 for i in other[:8]] == [i // 8 for i in ids[:8]] for other in tries)
    slots = [len({*ids}) for ids in zip(*tries, strict=True)]
    assert slots == [8] * 8 + [1]
    weights = model(torch.tensor(tries), need_weights=True).weights[0][:, :, 8]
    for head in (0, 1):
        page.get_by_role("button", name=f"head {head + 1}").click()
        ranges = []
        for part in ("first", "second"):
            found = weights[:, head, shown.partners[f"question>{part}"][8]].sort().values
            ranges.append(f"{short(found[5])} to {short(found[94])} on {part}")
        expect(note).to_contain_text(f" {question} is {' and '.join(ranges)}")
    words = words_on(page)
    options = page.get_by_label("Word 1", exact=True).locator("option").all_inner_texts()
    assert options == [f"{words[0][0]}{value}" for value in range(8)]
    assert page.get_by_label("Word 9", exact=True).locator("option").count() == 8 * 7
    asked = f"{words[0][0]}{words[3][0]}?"
    page.get_by_label("Word 9", exact=True).select_option(asked)
    page.get_by_label("Word 1", exact=True).select_option(options[6])
    labs.answered(page)
    expect(page.locator(".attn-columns span").first).to_have_text(options[6])
    assert words_on(page) == [options[6], *words[1:8], asked]
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Word 1"
    press(page, "Another question")
    assert len({word[0] for word in words_on(page)[:8]}) == 8


def test_it_says_when_one_head_has_been_found_that_answers_both(show):
    told = show(quick()).evaluate("""() => {
      const {sayOneHead} = attnModules["head_lab/words.js"];
      const {settingOf} = attnModules["head_lab/tasks.js"];
      const recipes = {lookup: {model: {d_model: 32}}};
      const say = (joint, [low, high], mlp, end) => sayOneHead({
        ...end,
        setting: settingOf({task: "lookup", symbols: 8, steps: 9, mlp, recipes}),
        evaluation: {joint, relations: {}},
      }, [{low, high}, {low: 0.2, high: 0.25}]);
      return [say(0.97, [0.1, 0.8], true),
        say(0.15, [0.3, 0.33], true, {state: "stopped", steps: 7})];
    }""")
    assert [re.findall(r"n't|MLP|hardly|\b7\b|\d?\.\d+", one) for one in told] == [
        ["0.97", "MLP", "0.10", "0.80", "0.20", "0.25"],
        ["n't", "7", "0.15", "hardly", "0.30", "0.33", "0.20", "0.25"],
    ]


def test_settings_change_what_is_trained(lab):
    page = lab(quick(1))
    labs.train(page)
    choice(page, "Values").select_option("4")
    labs.kept(page, 2)
    mlp = page.get_by_role("checkbox", name="an MLP after attention")
    mlp.check()
    labs.kept(page, 3)
    choice(page, "Steps").select_option("60")
    settings = ["8 values, 30 steps", "4 values, 30 steps", "4 values, 30 steps, MLP"]
    names = [f"1 head, {one}, seed 0" for one in (*settings, "4 values, 60 steps, MLP")]
    assert labs.kept(page, 4) == names
    # What both needs get together has a dot, too, of what is asked the same.
    dots = page.locator(".attn-dot-plot").nth(2).locator(".attn-run-dot")
    both = page.locator(".attn-kept tbody tr").last.locator("td").nth(2).inner_text()
    drawn = dots.evaluate_all("dots => dots.map(({style}) => parseFloat(style.bottom) / 100)")
    assert drawn == pytest.approx([float(both)], abs=0.0051)
    # One of them is shown again, with its settings; it isn't trained again.
    page.locator(".attn-kept button").first.click()
    shown = [choice(page, name).input_value() for name in ("Values", "Steps")]
    assert shown == ["8", "30"] and not mlp.is_checked()
    labs.trained(page)
    labs.later(page)
    assert page.evaluate("workers") == 4
    # Beside it stays only what is asked the same.
    assert page.locator(".attn-kept [type=checkbox]:visible").count() == 1


def test_another_task_is_shown_as_it_was_left_and_nothing_begins_to_train(lab):
    widget = quick(4, task="concord")
    widget.set_trait("step_counts", [30, 3000])
    page = lab(widget)
    labs.train(page)
    page.get_by_label("head 1 works").uncheck()

    def open_task(name, workers=1):  # that of the model which was trained first
        press(page, name)
        labs.later(page)
        assert page.evaluate("workers") == workers
        assert page.locator(".attn-choices").is_hidden() == (name == "Concord")
        assert page.get_by_label("head 1 works").is_checked()
        heads = page.locator(labs.SLIDER).get_attribute("aria-valuetext")
        return heads, page.locator(labs.PROGRESS).inner_text().split(":")[0]

    assert open_task(KEYS) == ("1 head", "Not trained yet.")
    page.locator(labs.SLIDER).press("ArrowRight")
    choice(page, "Values").select_option("4")
    assert open_task(PLACES) == ("1 head", "Not trained yet.")
    assert open_task("Concord") == ("4 heads", "Trained")
    assert labs.kept(page, 1) == ["4 heads, seed 0"]
    assert open_task(KEYS) == ("2 heads", "Not trained yet.")
    assert choice(page, "Values").input_value() == "4"
    # A reader who has pressed Train needn't do so again.
    open_task("Concord")
    page.locator(labs.SLIDER).press("ArrowLeft")
    labs.kept(page, 2)
    # What still trains is given up with its task, and doesn't begin again by itself.
    open_task(KEYS, workers=2)
    choice(page, "Steps").select_option("3,000")
    labs.begun(page)
    open_task(KEYS, workers=3)  # which is open
    open_task("Concord", workers=2)
    assert open_task(KEYS, workers=2)[1] == "Not trained yet."


def test_opened_from_a_link_a_model_and_the_one_beside_are_trained_again_and_it_says_so(show):
    widget = quick(2, "concord", steps=100, seed=3, muted=[1])  # which leaves time to read
    widget.trained, widget.beside = True, [1, 4]
    page = show(widget)
    page.wait_for_function("/link .* state /.test(document.querySelector('output').textContent)")
    labs.trained(page)
    labs.tells(page, "Muted: head 2: of ")
    page.locator(".attn-grid").nth(1).wait_for()
    assert is_beside(page, "1 head, seed 4").is_checked()
    assert sorted(labs.kept(page, 2)) == ["1 head, seed 4", "2 heads, seed 3"]


ROWS = ".attn-kept tbody tr"
# How many maps of each model are still blank: "0,0".
PAINTED = """[...document.querySelectorAll(".attn-grid")].map(
  (grid) => grid.querySelectorAll(".attn-tile:not([hidden]) .attn-blank").length).join()"""


def is_beside(page, name="1 head, seed 0"):
    return page.get_by_role("checkbox", name=f"{name}: keep beside")


def test_a_model_stays_beside_another_one_and_awake(lab):
    page = lab(quick(1, task="concord", steps=10, held_out=20), width=360)
    labs.train(page)
    page.locator(".attn-folded:has(.attn-kept) > .attn-opener").click()
    is_beside(page).check()
    grids = page.locator(".attn-grid")
    assert grids.count() == 1  # there is no other one yet
    page.locator(labs.SLIDER).press("ArrowRight")
    grids.nth(1).wait_for(timeout=labs.WAIT)
    labs.trained(page)
    names = ["2 heads, seed 0", "1 head, seed 0"]
    told = {name: own for name, _, own, *_ in page.locator(ROWS).evaluate_all(labs.CELLS)}
    panels = page.locator(".attn-first > :not(:last-child)").all()
    for panel, name in zip(panels, names, strict=True):
        assert labs.texts(panel, ".attn-heading")[0].startswith(f"{name}. ")
        score = panel.locator(".attn-score", has_text="verb → object")
        assert labs.texts(score, ".attn-number")[0] == told[name]
    assert [grid.locator(".attn-tile:visible").count() for grid in grids.all()] == [2, 1]
    page.wait_for_function(f"{PAINTED} === '0,0'")
    shown, other = (grid.bounding_box() for grid in grids.all())
    assert other["y"] >= shown["y"] + shown["height"]
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    # Pressed, a head of the other model is enlarged, and the models change places.
    grids.nth(1).get_by_role("button").first.click()
    headings = page.locator(".attn-first .attn-heading")
    for heading, name in zip(headings.all(), reversed(names), strict=False):
        expect(heading).to_contain_text(name)
    pressed = is_beside(page, names[0])
    pressed.focus()
    top = pressed.bounding_box()["y"]
    pressed.press("Space")
    assert grids.count() == 1
    assert "seed" not in headings.first.inner_text()
    assert pressed.bounding_box()["y"] == pytest.approx(top, abs=1)
    is_beside(page).check()  # the oldest, while others come
    for seed in range(1, 9):
        press(page, "Another seed")
        kept = labs.kept(page, seed + 2)
    assert page.evaluate("workers") <= 7
    assert kept[0] == names[1]  # it isn't trained again
    page.get_by_label("Word 3", exact=True).select_option("nun")
    page.wait_for_function(f"{PAINTED} === '0,0'")
