"""NameLab in a real browser, without a kernel: it trains, makes up names, answers as torch does."""

import re

import pytest
import torch
from playwright.sync_api import expect
from tools import head_labs as labs
from tools.browser_models import flat
from tools.widget_pages import numbers_in, press, said, style

from attncourse.tasks import names
from attncourse.training import RECIPES, evaluate, held_out_sentences
from attncourse.widgets import NameLab
from attnlib.model import TransformerModel, generate

RECIPE = RECIPES["names"]


def quick(num_heads=4, steps=30, held_out=40, **options):
    """A lab whose models are trained for a moment only."""
    widget = NameLab(num_heads, **options)
    widget.set_trait("recipe", RECIPE.changed(steps=steps, warmup=5).as_json())
    widget.set_trait("held_out", held_out)
    return widget


def example(text):
    """A lab for the tests of what every widget does; no text in it is an author's."""
    return quick(steps=10, held_out=10)


def largest(text):
    return quick(8, steps=10, held_out=10, beginning="m" * 15)


PLACES: set[str] = set()
KEY = (".attn-track input", "ArrowRight")

DAMAGES = {
    "num_heads should be": {"num_heads": 3},
    "trained should be": {"trained": "yes"},
    "got '1' in 'b1'": {"beginning": "b1"},
    "temperature should be": {"temperature": 3},
    "top_k should be": {"top_k": 0},
    "guesses should be": lambda state, _: state["guesses"].update(floor=-1),
    "lr should be": lambda state, _: state["recipe"].update(lr=-1),
    "blocks should be": lambda state, _: state["spec"].update(blocks=None),
    "vocabulary_size should be": lambda state, _: state["spec"].update(vocabulary_size=26),
    "counts should be": {"counts": []},
}


def samples_on(page):
    """The names on the page, each with what is said of it."""
    return page.locator(".attn-samples li").evaluate_all(
        "rows => rows.map((row) => [...row.children].map((node) => node.textContent))"
    )


def learned(page, model, verb="Trained"):
    """Wait until a page says of a model what it has learned."""
    live = page.locator("output.attn-live")
    expect(live).to_contain_text(f"{verb} with {model}", timeout=labs.WAIT)


def right_names(page):
    """Wait until 100 names are drawn; return how many keep all rules."""
    samples = page.locator(".attn-samples")
    expect(samples).not_to_have_attribute("aria-busy", "true", timeout=labs.WAIT)
    kept, all_names = numbers_in(page.locator(".attn-kept-share").inner_text())[:2]
    assert all_names == 100
    return kept


def test_nothing_trains_before_a_reader_asks_for_it_and_random_weights_make_up_names_too(lab):
    page = lab(quick(1, temperature=0.1))  # which tells models apart
    slider = page.get_by_role("slider", name="Heads")
    told, heights, chances = [], set(), set()
    for _ in range(4):
        chances.add(page.locator(".attn-chances").inner_text())
        heights.add(page.locator(".attn-widget").bounding_box()["height"])
        told.append(re.findall(r"\d+", slider.get_attribute("aria-valuetext")))
        slider.press("ArrowRight")
    assert told == [["1", "16"], ["2", "8"], ["4", "4"], ["8", "2"]]  # heads, and their width
    assert len(heights) == 1 and len(chances) == 4
    page.clock.run_for(5000)
    assert right_names(page) == 0 and len(samples_on(page)) == 8
    assert page.evaluate("workers") == 0
    assert page.locator(labs.PROGRESS).inner_text() == "Not trained yet."


TABLES = """tables => tables.map((table) => [...table.rows].map((row) =>
  [...row.cells].map((cell) => cell.textContent)))"""


@torch.no_grad()
def test_all_moves_while_it_trains_and_then_losses_chances_and_weights_are_torchs(lab):
    widget = quick(4, steps=3000, held_out=60, seed=3)  # many more than it takes to see that
    widget.draw = 999  # after the last draw comes the first
    page = lab(widget, width=390)
    page.evaluate(labs.NOTE_CHANGES, [".attn-curves", ".attn-samples", ".attn-chances"])
    press(page, "Train")
    page.wait_for_function("seen.every(({size}) => size > 3)", timeout=labs.WAIT)
    assert page.get_by_role("button", name="Pause").count() == 1  # it still trains
    assert page.evaluate("Math.max(...heights) - Math.min(...heights)") <= 2
    press(page, "Stop")
    learned(page, "4 heads, seed 3", "Stopped")
    progress = page.locator(labs.PROGRESS).inner_text()
    steps = re.search(r"step ([\d,]+) of 3,000, batch loss", progress)[1]
    model = labs.model_of(page, 4, names)
    found = evaluate(model, held_out_sentences(RECIPE)[:60])
    drawing = page.locator(".attn-curve-box").get_attribute("aria-label")
    reached = re.search(r"to (\d\.\d{3})", drawing)[1]
    assert float(reached) == pytest.approx(found.loss, abs=0.001)
    assert f"{found.loss:.2f}" in said(page)
    marks = [f"{name} {loss:.2f}" for name, loss in widget.guesses.items()]
    assert all(f"; {mark}" in drawing for mark in marks)
    spans = [page.locator(".attn-curve-marks span", has_text=mark) for mark in marks]
    tops = [span.bounding_box()["y"] for span in spans]
    assert tops == sorted(tops)  # a larger loss stands higher; the largest is named first
    page.locator("summary", has_text="The numbers").click()
    (rows := page.locator("details tbody tr")).first.wait_for()  # once the table is open
    assert ["4 heads, seed 3", steps, reached] in rows.evaluate_all(labs.CELLS)
    command = f"python -m attncourse.training names --seed 3 --stop {steps.replace(',', '')}"
    assert page.locator(".attn-digest code").last.inner_text() == command
    right_names(page)
    made = samples_on(page)
    for name, verdict in made:
        broken = names.broken_rules("" if name == "(no letter)" else name)
        assert all(rule in verdict for rule in broken)
        assert verdict.startswith("✗" if broken else "✓")
    press(page, "Sample again")
    right_names(page)
    assert samples_on(page) != made
    temperature, top_k = (page.get_by_role("slider", name=n) for n in ("Temperature", "Top-k"))
    for beginning, key, share, kept in (
        ("mellen", "Home", 0, 27), ("", "End", 2, 1), ("b", "End", 2, 3),
    ):  # fmt: skip
        page.get_by_role("textbox").fill(beginning)
        temperature.press(key)
        top_k.fill(str(kept))
        ids = names.read(beginning).ids if beginning else (names.boundary,)
        answer = model(torch.tensor([ids]), need_weights=True)
        logits = answer.logits["next"][0, -1]
        likely, places = logits.topk(1 if share == 0 else kept)
        drawn_from = torch.zeros(27).scatter(0, places, (likely / (share or 1)).softmax(0))
        (head, *chances), (_, *looks), _ = page.locator("details table").evaluate_all(TABLES)
        tokens = [26 if name == "end" else names.vocabulary.index(name) for name, *_ in chances]
        assert sorted(tokens) == [*range(27)] and ["drawn" in title for title in head] == [0, 0, 1]
        numbers = torch.tensor([[float(own), float(now)] for _, own, now in chances])
        wanted = torch.stack([logits.softmax(0), drawn_from], 1)[tokens]
        torch.testing.assert_close(numbers, wanted, atol=0.0011, rtol=0)
        told = torch.tensor([[float(cell) for cell in row[1:]] for row in looks])
        torch.testing.assert_close(told, answer.weights[0][0, :, -1], atol=0.0011, rtol=0)
        assert labs.texts(page, ".attn-letter") == [name for name, *_ in chances[:8]]
        bars = [float(number) for number in labs.texts(page, ".attn-chances .attn-number")]
        assert bars == pytest.approx([float(now) for _, _, now in chances[:8]], abs=0.006)
        assert f" {chances[0][0]} {bars[0]:.2f}, " in said(page) and beginning in said(page)
        left = drawn_from.sort(descending=True).values[8:].sum().item()
        rest = page.locator(".attn-chances + .attn-note").inner_text()
        assert numbers_in(rest) == pytest.approx([19, left], abs=0.006)
        right_names(page)
        are_alike = len({name for name, _ in samples_on(page)}) == 1
        assert are_alike == (share == 0 or kept == 1)  # always the likeliest letter


def test_a_beginning_is_typed_or_refused_a_map_is_read_and_the_rules_are_told(show):
    page = show(quick(2, beginning="mel"))
    field, refusal = page.get_by_role("textbox"), page.locator(".attn-refusal")
    heading = page.locator(".attn-next .attn-heading").first
    field.fill("Tol")
    assert "tol" in heading.inner_text() and "tol" in said(page)
    line, plot = page.locator(".attn-reading-line"), page.locator(".attn-plot")
    plot.focus()
    assert line.inner_text().startswith("Head 1 looks from l at start with 0.")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    assert line.inner_text().startswith("Head 2 looks from l at l with 0.")
    box = plot.bounding_box()
    page.touchscreen.tap(box["x"] + 0.6 * box["width"], box["y"] + box["height"] - 2)
    assert line.inner_text().startswith("Head 2 looks from l at o with 0.")
    field.fill("t ol")
    expect(refusal).to_contain_text("' ' in 't ol'")
    assert field.get_attribute("aria-invalid") == "true"
    page.get_by_role("slider", name="Top-k").press("ArrowLeft")  # all else is still sound
    assert "tol" in heading.inner_text()  # the one before is still there
    field.fill("")
    assert refusal.inner_text() == "" and field.get_attribute("aria-invalid") == "false"
    assert "start of a name" in heading.inner_text()
    page.get_by_text("The four rules").click()
    told = page.locator(".attn-rules dl").inner_text()
    assert all(part in told for part in ("e, i and y", "a, o and u", "2 to 5"))
    for last, firsts in names.data["endings"].items():
        assert f"{last} after {', '.join(firsts[:-1])} and {firsts[-1]}" in told
    page.emulate_media(forced_colors="active")
    assert style(page.locator(".attn-chance").first, "forcedColorAdjust") == "none"
    page.emulate_media(forced_colors="none")


def test_other_models_keep_their_curves_and_views_share_them(lab):
    shared = quick(1)
    page = lab(shared, shared)
    one, other = page.locator(".attn-widget").all()
    press(one, "Train")
    learned(other, "1 head,")
    slider = one.get_by_role("slider", name="Heads")
    slider.press("ArrowRight")
    for view in (one, other):
        learned(view, "2 heads,")
    chances = labs.texts(page, ".attn-chances")
    assert chances[0] == chances[1]
    slider.press("ArrowLeft")
    learned(one, "1 head,")
    # The first model is still there, and no view has trained one of its own.
    assert one.locator(".attn-curve").count() == page.evaluate("workers") == 2


SAMPLE = """([spec, weights, options, number]) => {
  const {TransformerModel} = attnModules["engine/model.js"];
  const {goneOn} = attnModules["engine/sampling.js"];
  const model = new TransformerModel(spec);
  model.load(weights);
  const rng = attnModules["engine/rng.js"].sfc32(5);
  return Array.from({length: number}, () => goneOn(model, [26], 26, options, rng));
}"""


@torch.no_grad()
def test_the_likeliest_name_is_torchs_and_letters_come_as_often_as_their_chance_says(model_page):
    torch.manual_seed(0)
    model = TransformerModel.of_sizes(names, **RECIPE.model).double()
    model.readouts["next"].weight.mul_(60)  # no two letters alike
    given = [model.spec(), flat(model.state_dict())]
    wanted = generate(model, torch.tensor([[26]]), 16, temperature=0, stop=26)[0].tolist()
    for temperature in (0, 1e-30):  # which makes no infinity of a logit
        options = {"temperature": temperature, "topK": 27}
        assert model_page.evaluate(SAMPLE, [*given, options, 1]) == [wanted]
    found = model_page.evaluate(SAMPLE, [*given, {"temperature": 0.8, "topK": 4}, 800])
    first = torch.bincount(torch.tensor([ids[1] for ids in found]), minlength=27) / len(found)
    likely, places = model(torch.tensor([[26]])).logits["next"][0, 0].topk(4)
    wanted = torch.zeros(27).double().scatter(0, places, (likely / 0.8).softmax(0))
    assert (first - wanted).abs().max() < 0.05
    assert all(len(ids) <= 17 and 26 not in ids[1:-1] for ids in found)
