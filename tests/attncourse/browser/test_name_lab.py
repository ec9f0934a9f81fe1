"""NameLab in a real browser, without a kernel: it trains, makes up names, answers as torch does."""

import re

import pytest
import torch
from playwright.sync_api import expect
from tools.head_labs import CELLS, train, with_numbers_of
from tools.widget_pages import numbers_in, press, said

from attncourse.tasks import names
from attncourse.training import RECIPES, evaluate, held_out_sentences
from attncourse.widgets import NameLab
from attnlib.model import TransformerModel

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


def within(name, **changes):
    """Damage what stands in a trait."""
    return lambda state, _: state[name].update(changes)


DAMAGES = {
    "num_heads should be": {"num_heads": 3},
    "seed should be": {"seed": -1},
    "trained should be": {"trained": "yes"},
    "beginning should be": {"beginning": 5},
    "got '1' in 'b1'": {"beginning": "b1"},
    "temperature should be": {"temperature": 3},
    "top_k should be": {"top_k": 0},
    "draw should be": {"draw": 1000},
    "guesses should be": within("guesses", floor=-1),
    "lr should be": within("recipe", lr=-1),
    "blocks should be": within("spec", blocks=None),
    "vocabulary_size should be": within("spec", vocabulary_size=26),
    "length should be": within("spec", length=15),
    "causal should be": within("spec", causal=False),
    "readouts should be": within("spec", readouts={"next": 27, "other": 1}),
    "embedding_std should be": lambda s, _: s["recipe"]["model"].update(embedding_std="wide"),
    "held_out should be": {"held_out": 0},
    "counts should be": {"counts": []},
}


def model_of(page, num_heads):
    """Torch's copy of the model that a page has trained last."""
    model = TransformerModel.of_sizes(names, **{**RECIPE.model, "num_heads": num_heads})
    return with_numbers_of(page, model)


def samples_on(page):
    """The names on the page, each with what is said of it."""
    return page.locator(".attn-samples li").evaluate_all(
        "rows => rows.map((row) => [...row.children].map((node) => node.textContent))"
    )


def learned(page, model):
    """Wait until a page says of a model what it has learned."""
    live = page.locator("output.attn-live")
    expect(live).to_contain_text(f"Trained with {model}", timeout=60_000)


def drawn(page):
    """Wait until all names of the page are drawn."""
    expect(page.locator(".attn-kept-share")).to_contain_text("of 100 names")


def test_nothing_trains_before_a_reader_asks_for_it(lab):
    page = lab(quick(1, temperature=0.1))  # which tells models apart
    page.clock.install()
    slider = page.get_by_role("slider", name="Heads")
    told, heights, chances = [], set(), set()
    for _ in range(4):
        chances.add(page.locator(".attn-chances").inner_text())
        heights.add(page.locator(".attn-widget").bounding_box()["height"])
        told.append(re.findall(r"\d+", slider.get_attribute("aria-valuetext")))
        slider.press("ArrowRight")
    assert told == [["1", "16"], ["2", "8"], ["4", "4"], ["8", "2"]]  # heads, and their width
    assert len(heights) == 1 and len(chances) == 4
    page.get_by_role("button", name="Another seed").click()
    page.get_by_role("button", name="Sample again").click()
    page.get_by_role("textbox").fill("tol")
    # The model with its first weights makes up names all the same.
    drawn(page)
    assert page.locator(".attn-kept-share").inner_text().startswith("0 of 100")
    assert len(samples_on(page)) == 8
    page.clock.run_for(5000)
    assert page.evaluate("workers") == 0
    assert page.locator(".attn-progress-text").inner_text() == "Not trained yet."


def test_loss_names_and_bars_move_while_it_trains(lab):
    page = lab(quick(1, steps=3000), width=390)  # many more than it takes to see that
    page.evaluate("""() => {
      window.seen = {curve: new Set(), names: new Set(), bars: new Set(), heights: []};
      new MutationObserver(() => {
        seen.curve.add(document.querySelector(".attn-curve")?.getAttribute("d"));
        seen.names.add(document.querySelector(".attn-samples").textContent);
        seen.bars.add(document.querySelector(".attn-chances").textContent);
        seen.heights.push(document.querySelector(".attn-widget").offsetHeight);
      }).observe(document.querySelector(".attn-widget"),
                 {subtree: true, childList: true, attributes: true, characterData: true});
    }""")
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_function("seen.curve.size > 4 && seen.names.size > 3 && seen.bars.size > 4")
    assert page.get_by_role("button", name="Pause").count() == 1  # it still trains
    assert page.evaluate("Math.max(...seen.heights) - Math.min(...seen.heights)") <= 2
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".attn-progress-text")).to_contain_text("Stopped")
    expect(page.locator("output.attn-live")).to_contain_text("Stopped with 1 head, seed 0 after")


def test_loss_and_guesses_are_those_of_python(lab):
    widget = quick(2, steps=150, held_out=60, seed=3)
    page = lab(widget)
    train(page)
    learned(page, "2 heads, seed 3: loss")
    found = evaluate(model_of(page, 2), held_out_sentences(RECIPE)[:60])
    drawing = page.locator(".attn-curve-box").get_attribute("aria-label")
    reached = re.search(r"to (\d\.\d{3})", drawing)
    assert abs(float(reached[1]) - found.loss) < 0.001
    for name, loss in widget.guesses.items():
        assert f"; {name} {loss:.2f}" in drawing
        assert page.locator(".attn-curve-marks", has_text=f"{name} {loss:.2f}").count() == 1
    marks = page.locator(".attn-curve-marks span").all()
    tops = [mark.bounding_box()["y"] for mark in marks]
    assert tops == sorted(tops)  # a larger loss stands higher; the largest is named first
    assert f"{found.loss:.2f}" in said(page)
    unfold_numbers(page)
    cells = page.locator("details tbody tr").evaluate_all(CELLS)
    assert ["floor", "–", f"{widget.guesses['floor']:.3f}"] in cells
    assert ["2 heads, seed 3", "150", reached[1]] in cells


def unfold_numbers(page):
    page.locator("summary", has_text="The numbers").click()
    page.locator("details tbody tr").first.wait_for()


TABLES = """tables => tables.map((table) => [...table.tBodies[0].rows].map((row) =>
  [...row.cells].map((cell) => cell.textContent)))"""


def test_chances_and_weights_behind_a_beginning_are_torchs(lab):
    page = lab(quick(4, steps=100))
    train(page)
    learned(page, "4 heads")
    unfold_numbers(page)
    model = model_of(page, 4)
    temperature, top_k = (page.get_by_role("slider", name=n) for n in ("Temperature", "Top-k"))
    for beginning, key, share, kept in (
        ("tol", "End", 2, 27), ("mellen", "Home", 0, 27), ("", "End", 2, 1), ("b", "End", 2, 3),
    ):  # fmt: skip
        page.get_by_role("textbox").fill(beginning)
        temperature.press(key)
        while int(top_k.input_value()) != kept:
            top_k.press("Home" if kept == 1 else "ArrowRight")
        ids = names.read(beginning).ids if beginning else (names.boundary,)
        answer = model(torch.tensor([ids]), need_weights=True)
        logits = answer.logits["next"][0, -1].detach()
        likely, places = logits.topk(1 if share == 0 else kept)
        drawn_from = torch.zeros(27).scatter(0, places, (likely / (share or 1)).softmax(0))
        chances, looks, _ = page.locator("details table").evaluate_all(TABLES)
        assert len(chances) == 27
        for letter, own, now in chances:
            token = names.boundary if letter == "end" else names.vocabulary.index(letter)
            assert abs(float(own) - logits.softmax(0)[token].item()) < 0.0011
            assert abs(float(now) - drawn_from[token].item()) < 0.0011
        weights = answer.weights[0][0, :, -1]
        assert [row[0] for row in looks] == [f"head {head}" for head in range(1, 5)]
        for row, own in zip(looks, weights.tolist(), strict=True):
            assert [float(cell) for cell in row[1:]] == pytest.approx(own, abs=0.0011)
        bars = page.locator(".attn-chances li").all()
        shown = [bar.locator(":scope > *").all_text_contents() for bar in bars]
        for (letter, _, bar, *_), (name, _, now) in zip(shown, chances[:8], strict=True):
            assert letter == name and abs(float(bar) - float(now)) < 0.006
        letter, _, bar, *_ = shown[0]
        assert f" {letter} {bar}, " in said(page) and beginning in said(page)
        left = drawn_from.sort(descending=True).values[8:].sum().item()
        rest = page.locator(".attn-chances + .attn-note").inner_text()
        assert numbers_in(rest) == pytest.approx([19, left], abs=0.006)


def test_a_cell_of_the_map_is_read_by_keys_and_pointer(show):
    page = show(quick(2, beginning="tol"))
    line = page.locator(".attn-reading-line")
    assert line.inner_text().startswith("Point at a cell")
    plot = page.locator(".attn-plot")
    plot.focus()
    assert line.inner_text().startswith("Head 1 looks from l at start with 0.")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    assert line.inner_text().startswith("Head 2 looks from l at l with 0.")
    box = plot.bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 2)
    assert line.inner_text().startswith("Head 1 looks from l at t with 0.")
    page.touchscreen.tap(box["x"] + 0.6 * box["width"], box["y"] + box["height"] - 2)
    assert line.inner_text().startswith("Head 2 looks from l at o with 0.")
    bar, color = (
        page.locator(".attn-chance").first,
        "(bar) => getComputedStyle(bar).backgroundColor",
    )
    before = bar.evaluate(color)
    page.emulate_media(forced_colors="active")
    assert bar.evaluate(color) == before
    page.emulate_media(forced_colors="none")


def right_names(page):
    """Wait until 100 names are drawn; return how many keep all rules."""
    expect(page.locator(".attn-samples")).not_to_have_attribute("aria-busy", "true")
    kept, all_names = numbers_in(page.locator(".attn-kept-share").inner_text())[:2]
    assert all_names == 100
    return kept


def test_temperature_and_top_k_govern_the_names_and_each_is_told_what_it_breaks(lab):
    widget = quick(4, steps=200)
    widget.draw = 999  # after the last draw comes the first
    page = lab(widget)
    train(page)
    learned(page, "4 heads")
    progress = page.locator(".attn-progress-text").inner_text()
    assert re.search(r"s, batch loss \d\.\d\d\.$", progress)  # the loss of one batch is called that
    right_names(page)
    made = samples_on(page)
    classes = page.locator(".attn-samples li").evaluate_all("rows => rows.map((r) => r.className)")
    for (name, verdict), style in zip(made, classes, strict=True):
        broken = names.broken_rules("" if name == "(no letter)" else name)
        assert all(rule in verdict for rule in broken)
        assert verdict.startswith("✗" if broken else "✓")
        assert ("attn-broken" in style) == bool(broken)
    press(page, "Sample again")
    right_names(page)
    assert samples_on(page) != made
    temperature, top_k = (page.get_by_role("slider", name=n) for n in ("Temperature", "Top-k"))
    for slider, key, alone in ((temperature, "Home", True), (temperature, "End", False),
                               (top_k, "Home", True), (top_k, "End", False)):  # fmt: skip
        slider.press(key)
        assert right_names(page) in ((0, 100) if alone else range(101))
        assert (len({name for name, _ in samples_on(page)}) == 1) == alone
    assert temperature.get_attribute("aria-valuetext") == "2.0"


def test_most_names_are_right_after_the_whole_training(lab):
    page = lab(NameLab())
    train(page)
    expect(page.locator("output.attn-live")).to_contain_text("Trained with")
    page.wait_for_function(
        "parseInt(document.querySelector('.attn-kept-share').textContent) > 70", timeout=20_000
    )
    floor = NameLab().guesses["floor"]
    drawing = page.locator(".attn-curve-box").get_attribute("aria-label")
    assert floor < float(re.search(r"to (\d\.\d{3})", drawing)[1]) < floor + 0.15


def test_a_beginning_that_is_none_is_refused_in_words(show):
    page = show(quick())
    field = page.get_by_role("textbox")
    refusal = page.locator(".attn-refusal")
    heading = page.locator(".attn-next .attn-heading").first
    field.fill("Tol")
    assert heading.inner_text() == "After “tol” it expects"
    assert said(page).startswith("After “tol” it expects ")
    for text, message in {
        "jürgen": "This must hold letters from a to z, got 'ü' in 'jürgen'",
        "t ol": "This must hold letters from a to z, got ' ' in 't ol'",
        "m" * 16: "This must have 1 to 15 letters, got 16",
        "<img src=x>": "got '<' in '<img src=x>'",
    }.items():
        field.fill(text)
        expect(refusal).to_contain_text(message)
        assert field.get_attribute("aria-invalid") == "true"
        assert heading.inner_text() == "After “tol” it expects"  # the one before is still there
    page.get_by_role("slider", name="Top-k").press("ArrowLeft")  # all but the text is still sound
    assert heading.inner_text() == "After “tol” it expects"
    field.fill("")
    assert refusal.inner_text() == "" and field.get_attribute("aria-invalid") == "false"
    assert heading.inner_text() == "At the start of a name it expects"


def test_other_models_keep_their_curves_and_views_share_them(lab):
    shared = quick(1)
    page = lab(shared, shared)
    one, other = page.locator(".attn-widget").all()
    one.get_by_role("button", name="Train", exact=True).click()
    slider = one.get_by_role("slider", name="Heads")
    for heads, workers, key in (("1 head,", 1, "ArrowRight"), ("2 heads,", 2, "ArrowLeft")):
        for view in (one, other):
            learned(view, heads)
        assert page.evaluate("workers") == workers
        chances = [view.locator(".attn-chances").inner_text() for view in (one, other)]
        assert chances[0] == chances[1]
        slider.press(key)
    learned(one, "1 head,")
    assert one.locator(".attn-curve").count() == 2
    assert page.evaluate("workers") == 2  # the first model is still there


def test_the_rules_are_told_with_their_letters(show):
    page = show(quick())
    page.get_by_text("The four rules").click()
    told = page.locator(".attn-rules dl").inner_text()
    for word in ("shape", "harmony", "doubling", "ending", "e, i and y", "a, o and u", "2 to 5"):
        assert word in told
    for last, firsts in names.data["endings"].items():
        assert f"{last} after {', '.join(firsts[:-1])} and {firsts[-1]}" in told
