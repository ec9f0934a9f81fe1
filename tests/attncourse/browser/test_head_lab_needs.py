"""HeadLab's tasks with two needs in a real browser, and two models beside each other."""

import re

import pytest
import torch
from playwright.sync_api import expect
from tools.head_labs import (
    CELLS,
    HELD_OUT_SEED,
    answers_on,
    bars,
    begun,
    kept,
    later,
    tells,
    train,
    trained,
    with_numbers_of,
)
from tools.weight_pictures import short
from tools.widget_pages import press, said, unfold

from attncourse.tasks import diagonals, lookup, pack
from attncourse.training import evaluate
from attncourse.widgets import HeadLab
from attnlib import patterns
from attnlib.model import TransformerModel

TASKS = {"lookup": lambda n: lookup(values=n), "diagonals": lambda n: diagonals(symbols=n)}
KEYS, PLACES = "Two needs: keys", "Two needs: places"
WIDTH = 32
CHANCE = {4: "0.25", 8: "0.13", 16: "0.06"}


def quick(num_heads=2, task="lookup", steps=20, held_out=40, seed=0, **options):
    """A lab whose models with two needs are trained for a moment only."""
    widget = HeadLab(num_heads, task=task, seed=seed, **options)
    widget.set_trait("step_counts", [steps, 2 * steps])
    widget.steps = steps
    widget.set_trait("held_out", held_out)
    recipe = widget.recipe | {"steps": steps, "warmup": 5}
    widget.set_trait("recipe", recipe)
    return widget


def torch_model(page, task, num_heads, d_ff=None):
    """Torch's copy of the model that a page has trained last."""
    return with_numbers_of(page, TransformerModel.of_sizes(task, WIDTH, num_heads, d_ff=d_ff))


def words_on(page):
    return page.locator(".attn-card select").evaluate_all("all => all.map((one) => one.value)")


def sentence_on(page, task):
    """The sentence that a page shows, as the task would have it: found among its sentences."""
    words = words_on(page)
    ids = [task.vocabulary.index(word) for word in words]
    drawn = page.evaluate(
        """([ids, name, options]) => {
          const modules = attnModules["engine/sequences.js"];
          return modules[name](options).sentenceOf(ids);
        }""",
        [ids, *maker_of(task)],
    )
    assert drawn["words"] == words
    return drawn


def maker_of(task):
    if task.name.startswith("lookup"):
        return "makeLookup", {"values": task.values}
    return "makeDiagonals", {"symbols": task.symbols}


def word(page, place):
    return page.get_by_label(f"Word {place}", exact=True)


def choice(page, name):
    return page.get_by_role("combobox", name=name)


@pytest.mark.parametrize(
    ("name", "symbols", "mlp"), [("lookup", 4, False), ("lookup", 8, True), ("diagonals", 4, True)]
)
def test_scores_answers_and_baselines_are_those_of_python(lab, name, symbols, mlp):
    page = lab(quick(task=name, symbols=symbols, mlp=mlp))
    train(page)
    tells(page, "No head is muted")
    task = TASKS[name](symbols)
    model = torch_model(page, task, 2, d_ff=4 * WIDTH if mlp else None)
    held_out = task.sentences(40, seed=HELD_OUT_SEED)
    batch = pack(held_out)
    found = evaluate(model, held_out, task.relations)
    weights = model(batch.tokens, need_weights=True).weights[0].detach()
    unfold(page)
    rows = page.locator("details tbody tr").evaluate_all(CELLS)
    cells = {row: numbers for row, *numbers in rows}
    for relation in task.relations:
        guessing, baseline, right, *masses = cells[relation.name.replace(">", " → ")]
        partners = batch.partners[relation.name]
        assert guessing == CHANCE[symbols]
        assert right == short(found.relations[relation.name], 3)
        scores = patterns.relation_mass(weights, partners).heads.tolist()
        assert list(map(float, masses)) == pytest.approx(scores, abs=0.001)
        if name == "lookup":
            offset, share = patterns.best_offset(partners)
            assert baseline == f"{short(share, 3)} (−{abs(offset)})"
        else:  # where a fixed distance is the task itself
            asking = [row for row in range(task.length) if partners[0, row] >= 0]
            alike = sum(1 / (row + 1) for row in asking) / len(asking)
            assert baseline == short(alike, 3)
    both = cells["both"]
    assert both[:3] == [short(1 / symbols**2), "–", short(found.joint, 3)]
    assert f"both ({short(found.joint)})" in said(page)
    # What is answered about the sentence on the page.
    shown = sentence_on(page, task)
    answers = model(torch.tensor([shown["ids"]]))
    expected = [
        [
            [task.readouts[readout][given], given == right]
            for readout in task.readouts
            if (right := shown["answers"][readout][word]) is not None
            for given in [int(answers.logits[readout][0, word].argmax())]
        ]
        for word in range(len(shown["words"]))
    ]
    assert answers_on(page) == expected


def test_the_row_that_asks_how_it_changes_with_the_values_and_what_muting_does_are_torchs(lab):
    page = lab(quick(2, steps=40))
    train(page)
    note = page.locator(".attn-large .attn-note:visible", has_text="tries with other values")
    note.wait_for()
    task = lookup()
    model = torch_model(page, task, 2)
    shown = sentence_on(page, task)
    question = shown["words"][8]
    page.get_by_role("button", name="head 2").click()
    sizes = page.locator(".attn-plot canvas").evaluate("({width, height}) => [width, height]")
    assert sizes == [9, 1]  # drawn alone
    row = model(torch.tensor([shown["ids"]]), need_weights=True).weights[0][0, 1, 8]
    partners = {pair["8"]: name for name, pair in shown["partners"].items()}
    page.locator(".attn-plot").focus()
    for column in range(9):
        told = page.locator(".attn-read").inner_text()
        expected = f"{question} looks at {shown['words'][column]} with {short(row[column])}."
        if column in partners:
            expected += f" That is its {partners[column].split('>')[1]}."
        assert told == expected
        page.keyboard.press("ArrowRight")
    path = page.locator(".attn-plot .attn-frame").get_attribute("d")
    assert sorted(path.replace("Z", "z").split("z")[:-1]) == sorted(
        f"M{column} 0h1v1h-1" for column in partners
    )
    assert page.locator(".attn-plot .attn-faint").get_attribute("d") == ""
    tries = page.evaluate(
        """([ids]) => {
          const task = attnModules["engine/sequences.js"].makeLookup();
          const rng = attnModules["engine/rng.js"].sfc32(0);
          const shown = task.sentenceOf(ids);
          return Array.from({length: 100}, () => task.withOtherValues(shown, rng).ids);
        }""",
        [shown["ids"]],
    )
    for ids in tries:  # keys and question stay
        assert [i // 8 for i in ids[:8]] == [i // 8 for i in shown["ids"][:8]]
        assert ids[8] == shown["ids"][8]
    assert len({tuple(ids) for ids in tries}) == 100
    weights = model(torch.tensor(tries), need_weights=True).weights[0][:, :, 8].detach()
    for head in (0, 1):
        page.get_by_role("button", name=f"head {head + 1}").click()
        ranges = []
        for relation in ("question>first", "question>second"):
            found = weights[:, head, shown["partners"][relation]["8"]].sort().values
            part = relation.split(">")[1]
            ranges.append(f"{short(found[5])} to {short(found[94])} on {part}")
        expect(note).to_contain_text(f"weight in the row of {question} is ")
        expect(note).to_contain_text(" and ".join(ranges))
    page.get_by_label("head 1 works").uncheck()
    page.locator(".attn-before:visible").first.wait_for()
    held_out = task.sentences(40, seed=HELD_OUT_SEED)
    found = evaluate(model, held_out, task.relations, head_masks=[torch.tensor([0.0, 1.0])])
    assert bars(page) == [short(share) for share in (*found.relations.values(), found.joint)]
    assert said(page).startswith("Muted: head 1: of 2 answers")


def test_another_value_keeps_the_key_and_another_question_may_be_asked(lab):
    page = lab(quick(1))
    words = words_on(page)
    options = word(page, 1).locator("option").all_inner_texts()
    assert options == [f"{words[0][0]}{value}" for value in range(8)]
    questions = word(page, 9).locator("option").all_inner_texts()
    assert len(questions) == 8 * 7
    asked = f"{words[0][0]}{words[3][0]}?"
    word(page, 9).select_option(asked)
    word(page, 1).select_option(f"{words[0][0]}6")
    assert words_on(page) == [f"{words[0][0]}6", *words[1:8], asked]
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Word 1"
    right = [answer for answer, _ in answers_on(page)[8]]
    assert right == ["6", words[3][1]]
    press(page, "Another question")
    assert len({word[0] for word in words_on(page)[:8]}) == 8
    assert words_on(page)[:8] != [f"{words[0][0]}6", *words[1:8]]


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
      return [
        say(0.97, [0.1, 0.8], false), say(1, [0.6, 0.64], true), say(0.15, [0.3, 0.33], true),
        say(0.15, [0.3, 0.33], false, {state: "stopped", steps: 7}),
      ];
    }""")
    facts = [re.findall(r"doesn't|MLP|hardly|\d+ steps|\d?\.\d+", one) for one in told]
    assert facts == [
        ["0.97", "0.10", "0.80", "0.20", "0.25"],
        ["1.00", "MLP", "hardly", "0.60", "0.64", "0.20", "0.25"],
        ["doesn't", "0.15", "hardly", "0.30", "0.33", "0.20", "0.25"],
        ["doesn't", "7 steps", "0.15", "hardly", "0.30", "0.33", "0.20", "0.25"],
    ]


def test_tabs_and_settings_change_what_is_trained(lab):
    page = lab(quick(1, task="concord"))
    train(page)
    assert page.locator(".attn-choices").is_hidden()
    page.get_by_label("head 1 works").uncheck()
    press(page, KEYS)
    assert page.get_by_label("head 1 works").is_checked()
    train(page)
    choice(page, "Values").select_option("4")
    kept(page, 2)
    page.get_by_role("checkbox", name="an MLP after attention").check()
    kept(page, 3)
    choice(page, "Steps").select_option("40")
    assert kept(page, 4) == [
        "1 head, 8 values, 20 steps, seed 0",
        "1 head, 4 values, 20 steps, seed 0",
        "1 head, 4 values, 20 steps, MLP, seed 0",
        "1 head, 4 values, 40 steps, MLP, seed 0",
    ]
    # One of them is shown again, with its settings; it isn't trained again.
    workers = page.evaluate("workers")
    page.locator(".attn-kept button").first.click()
    assert (choice(page, "Values").input_value(), choice(page, "Steps").input_value()) == (
        "8",
        "20",
    )
    assert not page.get_by_role("checkbox", name="an MLP after attention").is_checked()
    trained(page)
    later(page)
    assert page.evaluate("workers") == workers
    # Beside it stays only what is asked the same.
    assert page.locator(".attn-kept [type=checkbox]:visible").count() == 1
    press(page, "Concord")
    trained(page)
    assert kept(page, 1) == ["1 head, seed 0"]


def test_another_task_is_shown_as_it_was_left_and_nothing_begins_to_train(lab):
    page = lab(quick(4, task="concord"))
    train(page)
    slider = page.locator(".attn-track input")

    def open_task(name):
        press(page, name)
        later(page)
        assert page.evaluate("workers") == 1  # that of the model which was trained first
        return slider.get_attribute("aria-valuetext"), page.locator(
            ".attn-progress-text"
        ).inner_text()

    assert open_task(KEYS) == ("1 head", "Not trained yet.")
    slider.press("ArrowRight")
    choice(page, "Values").select_option("4")
    assert open_task(PLACES) == ("1 head", "Not trained yet.")
    heads, told = open_task("Concord")
    assert heads == "4 heads" and told.startswith("Trained: 20 steps")
    assert kept(page, 1) == ["4 heads, seed 0"]
    assert open_task(KEYS) == ("2 heads", "Not trained yet.")
    assert choice(page, "Values").input_value() == "4"
    # A reader who has pressed Train needn't do so again.
    open_task("Concord")
    slider.press("ArrowLeft")
    kept(page, 2)


def test_what_still_trains_is_given_up_with_its_task(lab):
    page = lab(quick(1, task="concord", steps=400))
    begun(page)
    press(page, "Concord")  # which is open
    progress = page.locator(".attn-progress-text")
    assert progress.inner_text().startswith("Training")
    press(page, KEYS, "Concord")
    later(page)
    assert (page.evaluate("workers"), progress.inner_text()) == (0, "Not trained yet.")


LINKED = {  # a task -> its tab, the model that the link names, and the one beside it
    "concord": ("Concord", "2 heads, seed 3", [1, 4]),
    "lookup": (KEYS, "2 heads, 4 values, 400 steps, MLP, seed 3", []),
    "diagonals": (PLACES, "2 heads, 4 symbols, 400 steps, MLP, seed 3", []),
}


@pytest.mark.parametrize("task", LINKED)
def test_opened_from_a_link_a_model_is_trained_again_and_says_so(show, task):
    tab, name, beside = LINKED[task]
    steps = 100 if task == "concord" else 400  # as many as leave time to read
    widget = quick(2, task, steps=steps, symbols=4, mlp=True, seed=3, muted=[1])
    widget.trained, widget.beside = True, beside
    page = show(widget)
    page.wait_for_function(
        "document.querySelector('output').textContent.startsWith('The link or saved state asks')"
    )
    trained(page)
    tells(page, "Muted: head 2: of ")
    assert page.locator(".attn-tabs [aria-pressed=true]").all_inner_texts() == [tab]
    if beside:
        page.locator(".attn-grid").nth(1).wait_for()
        assert is_beside(page, "1 head, seed 4").is_checked()
        assert sorted(kept(page, 2)) == ["1 head, seed 4", name]
    else:
        assert kept(page, 1) == [name]


def test_all_numbers_of_heads_are_repeated_with_two_needs(lab):
    widget = quick(1, steps=5, held_out=10)
    widget.set_trait("counts", [1, 2])
    page = lab(widget)
    page.get_by_role("button", name="Repeat it").click()
    expect(page.locator(".attn-repeated")).to_contain_text("10 of 10", timeout=60_000)
    plots = page.locator(".attn-dot-plot")
    assert [text.split("\n")[0] for text in plots.all_inner_texts()] == [
        "question → first", "question → second", "both",
    ]  # fmt: skip
    assert plots.last.locator(".attn-run-dot").count() == 10
    assert page.locator(".attn-repeat td").all_inner_texts()[0].endswith("–")  # none has learned


def test_each_task_tells_of_its_own_repetition(lab):
    widget = quick(1, task="concord", steps=400)
    widget.set_trait("counts", [1, 2])
    page = lab(widget)
    page.get_by_role("button", name="Repeat it").click()
    press(page, KEYS)
    assert page.get_by_role("button", name="Repeat it").count() == 1
    assert page.locator(".attn-repeated").inner_text() == ""
    press(page, "Concord", "Stop repeating")
    page.wait_for_function("workers <= 1")  # the one that is shown


# How many maps of each model are still blank: "0,0".
PAINTED = """[...document.querySelectorAll(".attn-grid")].map(
  (grid) => grid.querySelectorAll(".attn-tile:not([hidden]) .attn-blank").length).join()"""


def is_beside(page, name="1 head, seed 0"):
    return page.get_by_role("checkbox", name=f"{name}: keep beside")


@pytest.mark.parametrize("width", [1000, 360])
def test_a_model_stays_beside_another_one(lab, width):
    page = lab(quick(1, task="concord"), width=width)
    train(page)
    if width == 360:
        page.locator(".attn-folded:has(.attn-kept) > .attn-opener").click()
    is_beside(page).check()
    assert page.locator(".attn-grid").count() == 1  # there is no other one yet
    page.locator(".attn-track input").press("ArrowRight")
    page.locator(".attn-grid").nth(1).wait_for(timeout=60_000)
    trained(page)
    headings = page.locator(".attn-first .attn-heading")
    assert [text.split(". ")[0] for text in headings.all_inner_texts()[:2]] == [
        "2 heads, seed 0", "1 head, seed 0",
    ]  # fmt: skip
    rows = page.locator(".attn-kept tbody tr").evaluate_all(CELLS)
    told = {name: numbers[1] for name, *numbers in rows}
    panels = page.locator(".attn-first > :not(:last-child)").all()
    for panel, name in zip(panels, ("2 heads, seed 0", "1 head, seed 0"), strict=True):
        score = panel.locator(".attn-score", has_text="verb → object").locator(".attn-number")
        assert score.first.inner_text() == told[name]
    grids = page.locator(".attn-grid").all()
    assert [grid.locator(".attn-tile:visible").count() for grid in grids] == [2, 1]
    page.wait_for_function(f"{PAINTED} === '0,0'")
    shown, other = (grid.bounding_box() for grid in grids)
    assert other["y"] >= shown["y"] + shown["height"]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    # Pressed, a head of the other model is enlarged, and the models change places.
    page.locator(".attn-grid").nth(1).get_by_role("button").first.click()
    expect(headings.first).to_contain_text("1 head, seed 0")
    expect(headings.nth(1)).to_contain_text("2 heads, seed 0")
    pressed = is_beside(page, "2 heads, seed 0")
    pressed.focus()
    top = pressed.bounding_box()["y"]
    pressed.press("Space")
    assert page.locator(".attn-grid").count() == 1
    assert "seed" not in headings.first.inner_text()
    assert pressed.bounding_box()["y"] == pytest.approx(top, abs=1)


def test_a_model_beside_stays_awake(lab):
    page = lab(quick(1, task="concord", steps=5, held_out=10))
    train(page)
    is_beside(page).check()
    for seed in range(1, 9):
        press(page, "Another seed")
        names = kept(page, seed + 1)
    assert page.evaluate("workers") <= 7
    # It isn't trained again: it still is the oldest.
    assert names[0] == "1 head, seed 0"
    word(page, 3).select_option("nun")
    page.wait_for_function(f"{PAINTED} === '0,0'")
