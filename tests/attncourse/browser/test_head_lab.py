"""HeadLab in a real browser, without a kernel: it trains, is asked, muted, and torch's equal."""

import re

import pytest
import torch
from playwright.sync_api import expect
from tools.head_labs import (
    CELLS,
    HELD_OUT_SEED,
    LONGEST,
    answers_of,
    answers_on,
    model_of,
    said,
    train,
    trained,
)
from tools.widget_pages import target_sizes, unfold

from attncourse.tasks import concord, pack
from attncourse.training import RECIPES, evaluate
from attncourse.widgets import HeadLab
from attnlib import palette, patterns


def quick(num_heads=2, steps=30, held_out=40, seed=0, **options):
    """A lab whose models are trained for a moment only."""
    widget = HeadLab(num_heads, seed=seed, **options)
    widget.set_trait("recipe", RECIPES["concord"].changed(steps=steps, warmup=5).as_json())
    widget.set_trait("held_out", held_out)
    return widget


def example(text):
    """A lab for the tests of what every widget does; no text in it is an author's."""
    return quick(steps=10, held_out=10)


def largest(text):
    return quick(16, steps=10, held_out=10, sentence=LONGEST)


HEADER, TEXT = 64, 722  # pixels: a page's own bar, and a text column with the page's margins

PLACES: set[str] = set()
KEY = (".attn-track input", "ArrowRight")


def test_nothing_trains_before_a_reader_asks_for_it(lab):
    page = lab(quick())
    page.locator(".attn-track input").press("ArrowRight")
    page.get_by_label("head 1 works").uncheck()
    page.get_by_role("button", name="Another seed").click()
    page.wait_for_timeout(600)
    assert page.evaluate("workers") == 0
    assert page.locator(".attn-progress-text").inner_text() == "Not trained yet."
    assert page.locator(".attn-seed").inner_text() == "seed 1"
    # What is asked, and the right answers, are there all the same.
    right = concord.read(quick().sentence)
    assert answers_on(page)[0] == [["bale", False]]
    assert right.answers["A"][0] == concord.readouts["A"].index("bale")


def test_curve_bars_and_maps_move_while_it_trains(lab):
    page = lab(quick(steps=400))
    page.evaluate("""() => {
      window.seen = {curve: new Set(), bars: new Set(), map: new Set()};
      const pixels = (canvas) => canvas.toDataURL();
      new MutationObserver(() => {
        seen.curve.add(document.querySelector(".attn-curve")?.getAttribute("d"));
        seen.bars.add(document.querySelector(".attn-score .attn-number").textContent);
        seen.map.add(pixels(document.querySelector("canvas")));
      }).observe(document.querySelector(".attn-widget"),
                 {subtree: true, childList: true, attributes: true, characterData: true});
    }""")
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_function("seen.curve.size > 4 && seen.map.size > 4 && seen.bars.size > 2")
    assert page.get_by_role("button", name="Pause").count() == 1  # it still trains
    assert page.locator("progress").evaluate("bar => bar.value") > 0
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".attn-progress-text")).to_contain_text("Stopped")
    assert said(page).startswith("Stopped with 2 heads, seed 0: it hasn't learned ")


# Where each part of a lab begins whose place nothing may change that comes and goes above it.
TOPS = """() => ["slider", "live", "view", "cards", "grid", "map", "first"].map((part) =>
  document.querySelector(`.attn-${part}`).getBoundingClientRect().top)"""


@pytest.mark.parametrize("width", [360, 690, 1000])
def test_answers_numbers_and_lines_that_come_and_go_move_nothing(lab, width):
    page = lab(quick(1, steps=200), width=width)
    page.evaluate(
        f"""() => {{
      window.seen = [({TOPS})()];
      const look = () => seen.push(({TOPS})());
      new MutationObserver(look).observe(
        document.querySelector(".attn-widget"),
        {{subtree: true, childList: true, attributes: true, characterData: true}},
      );
    }}"""
    )
    train(page)
    expect(page.locator("output")).to_contain_text("No head is muted")
    page.locator(".attn-track input").press("ArrowRight")
    trained(page)
    expect(page.locator("output")).to_contain_text("2 heads")
    tops = page.evaluate("seen")
    assert len(tops) > 10
    for part in zip(*tops, strict=True):
        assert max(part) - min(part) < 0.5


def test_arcs_lead_from_a_word_to_where_the_heads_look_over_those_it_must_find(lab):
    page = lab(quick())
    read = """() => [...document.querySelectorAll(".attn-cards .attn-query select")].map(
      ({value}) => value).concat(document.querySelectorAll(".attn-arc-before").length)"""
    expect(page.locator(".attn-arc-before")).to_have_count(2)
    assert page.evaluate(read) == ["gave", 2]  # its subject and its object, before any training
    train(page)
    arcs = page.locator(".attn-arc:not(.attn-arc-before)")
    arcs.first.wait_for(state="attached")
    shown = arcs.evaluate_all("all => all.map((a) => Number(a.style.getPropertyValue('--weight')))")
    given = concord.read(quick().sentence)
    maps = model_of(page, 2)(torch.tensor([given.ids]), need_weights=True).weights[0][0]
    weights = maps[:, given.words.index("gave")]
    torch.testing.assert_close(torch.tensor(shown), weights[weights >= 0.01], atol=1e-4, rtol=0)
    page.locator(".attn-card select").first.focus()
    assert page.evaluate(read) == ["the", 1]
    page.locator(".attn-plot").press("ArrowDown")  # in the map, from its first row
    assert page.evaluate(read) == ["big", 1]


@pytest.mark.parametrize("width", [360, 1000])
def test_a_pressed_tab_stays_where_it_is(lab, width):
    page = lab(quick(), width=width)
    page.evaluate("document.body.style.paddingBlock = '900px'")
    for tab in page.locator(".attn-tabs button").all():
        tab.scroll_into_view_if_needed()
        before = tab.bounding_box()
        tab.click()
        assert tab.bounding_box() == before


@pytest.mark.parametrize(
    ("width", "height", "seen"), [(1280, 900, ".attn-map"), (390, 844, ".attn-grid")]
)
@pytest.mark.parametrize("num_heads", [1, 4])
def test_the_slider_and_the_maps_are_in_one_view(lab, width, height, seen, num_heads):
    page = lab(quick(num_heads), width=min(width, TEXT))
    page.set_viewport_size({"width": min(width, TEXT), "height": height})
    top = page.locator(".attn-slider").bounding_box()["y"]
    maps = page.locator(seen).bounding_box()
    assert maps["y"] + maps["height"] - top < height - HEADER


def test_a_training_out_of_sight_draws_nothing_before_it_ends(lab):
    """A page has other widgets, and clicks on them would wait for it."""
    page = lab(quick(steps=200))
    page.evaluate("document.body.style.paddingBottom = '5000px'")
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_function("document.querySelector('progress').value > 0")
    page.evaluate("""() => new Promise((gone) => {
      const lab = document.querySelector(".attn-widget");
      new IntersectionObserver(([{isIntersecting}]) => {
        if (isIntersecting) return;
        const read = () => lab.querySelector(".attn-progress-text").textContent;
        window.told = new Set([read()]);
        new MutationObserver(() => told.add(read()))
          .observe(lab, {subtree: true, childList: true, attributes: true, characterData: true});
        gone();
      }).observe(lab);
      scrollTo(0, 5000);
    })""")
    trained(page)
    assert said(page).startswith("Trained with 2 heads, seed 0: ")
    before, after = page.evaluate("[...told]")
    assert before.startswith("Training: step ") and after.startswith("Trained: 200 steps")


def test_a_training_that_comes_in_sight_is_drawn(lab):
    page = lab(quick(steps=400))
    page.get_by_role("button", name="Train", exact=True).click()
    # Out of sight it hears of some steps, then of nothing more.
    page.evaluate("""() => new Promise((heard) => {
      new IntersectionObserver(([{isIntersecting}]) => {
        if (isIntersecting) return;
        const own = lastWorker.onmessage;
        lastWorker.onmessage = (event) => {
          own(event);
          if (event.data.kind !== "losses") return;
          lastWorker.onmessage = null;
          setTimeout(heard, 1000);
        };
      }).observe(document.querySelector(".attn-widget"));
      document.body.style.paddingTop = "5000px";
      scrollTo(0, 0);
    })""")
    told = page.locator(".attn-progress-text")
    before = told.inner_text()
    told.scroll_into_view_if_needed()
    expect(told).not_to_have_text(before)


def test_a_task_that_is_opened_again_is_as_it_was_left(lab):
    """Nothing of it is made anew, which would take longer than a click may."""
    page = lab(quick())
    tabs = page.locator(".attn-tabs button")
    parts = "() => [document.querySelector('.attn-view'), ...document.querySelectorAll('select')]"
    page.evaluate(f"window.parts = ({parts})()")
    tabs.nth(1).click()
    assert page.evaluate(f"({parts})()[0] !== parts[0]")
    tabs.nth(0).click()
    assert page.evaluate(f"({parts})().every((part, i) => part === parts[i])")


def test_a_training_is_paused_goes_on_and_ends_where_it_would_have(lab):
    steps = 400  # a busy machine presses Pause late
    page = lab(quick(steps=steps))
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_function("document.querySelector('progress').value > 0")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_timeout(300)
    paused = page.locator(".attn-progress-text").inner_text()
    assert paused.startswith("Paused: step ")
    page.wait_for_timeout(300)
    assert page.locator(".attn-progress-text").inner_text() == paused
    page.get_by_role("button", name="Go on").click()
    trained(page)
    losses = page.locator(".attn-kept td:nth-child(5)").last.inner_text()
    page.get_by_role("button", name="Train again").click()
    trained(page)
    assert page.locator(".attn-kept td:nth-child(5)").last.inner_text() == losses
    assert page.locator(".attn-kept tbody tr").count() == 1


def test_what_comes_with_a_trained_model_is_large_enough_for_a_finger(lab):
    page = lab(quick())
    before = len(target_sizes(page))
    train(page)
    sizes = target_sizes(page)
    assert len(sizes) >= before + 2  # its name, and the tick that keeps it beside another
    assert min(sizes) >= 24


def test_the_slider_trains_other_models_once_and_shows_them_again(lab):
    page = lab(quick(1))
    train(page)
    slider = page.locator(".attn-track input")
    slider.press("ArrowRight")
    expect(page.locator(".attn-kept tbody tr")).to_have_count(2, timeout=60_000)
    names = page.locator(".attn-kept button").all_inner_texts()
    assert names == ["1 head, seed 0", "2 heads, seed 0"]
    assert page.locator(".attn-curve").count() == 2
    assert page.locator(".attn-tile:visible").count() == 2
    assert page.evaluate("workers") == 2
    rows = page.locator(".attn-kept tbody tr").all_inner_texts()
    slider.press("ArrowLeft")
    trained(page)
    page.wait_for_timeout(600)
    assert page.evaluate("workers") == 2  # the first model is still there
    assert page.locator(".attn-kept tbody tr").all_inner_texts() == rows
    assert page.locator(".attn-kept [aria-pressed=true]").inner_text() == "1 head, seed 0"
    page.get_by_role("button", name="2 heads, seed 0").press("Enter")
    focused = "document.activeElement.textContent"
    assert page.evaluate(focused) == "2 heads, seed 0"
    assert slider.get_attribute("aria-valuetext") == "2 heads"
    page.get_by_role("button", name="Another seed").click()
    expect(page.locator(".attn-kept tbody tr")).to_have_count(3, timeout=60_000)
    assert page.locator(".attn-kept button").last.inner_text() == "2 heads, seed 1"


def test_a_slider_that_moves_on_trains_only_where_it_comes_to_rest(lab):
    page = lab(quick(1))
    train(page)
    slider = page.locator(".attn-track input")
    for _ in range(4):
        slider.press("ArrowRight")
    expect(page.locator(".attn-kept tbody tr")).to_have_count(2, timeout=60_000)
    assert page.locator(".attn-kept button").last.inner_text() == "16 heads, seed 0"
    assert page.evaluate("workers") == 2


def test_what_a_model_answers_is_what_torch_answers_with_all_heads_and_with_some(lab):
    widget = quick(4, steps=120, sentence=LONGEST)
    page = lab(widget)
    train(page)
    model = model_of(page, 4)
    sentence = concord.read(LONGEST)
    expect(page.locator("output")).to_contain_text("No head is muted")
    assert answers_on(page) == answers_of(model, sentence)
    for muted in ([2], [1, 2], [0, 1, 2, 3]):
        for head in range(4):
            page.get_by_label(f"head {head + 1} works").set_checked(head not in muted)
        numbers = [str(head + 1) for head in muted]
        who = " and ".join(filter(None, [", ".join(numbers[:-1]), numbers[-1]]))
        expect(page.locator("output")).to_contain_text(
            f"Muted: head{'s' if len(muted) > 1 else ''} {who}: of "
        )
        expected = answers_of(model, sentence, muted)
        assert answers_on(page) == expected
        wrong = sum(not right for own in expected for _, right in own)
        assert re.search(rf"\b{wrong} (is|are) wrong", said(page))


def test_scores_baselines_and_masses_are_those_of_python(lab):
    widget = quick(4, steps=120, held_out=60)
    page = lab(widget)
    train(page)
    model = model_of(page, 4)
    held_out = concord.sentences(60, seed=HELD_OUT_SEED)
    unfold(page)
    rows = page.locator("details tbody tr").evaluate_all(CELLS)
    cells = {name: numbers for name, *numbers in rows}
    batch = pack(held_out)
    weights = model(batch.tokens, key_mask=batch.key_mask, need_weights=True).weights[0]
    mask = torch.ones(4)
    for muted in ([], [1]):
        mask[muted] = 0
        found = evaluate(model, held_out, concord.relations, head_masks=[mask])
        for head in muted:
            page.get_by_label(f"head {head + 1} works").uncheck()
            page.locator(".attn-before:visible").first.wait_for()
        bars = page.locator(".attn-relation + .attn-bar-track + .attn-number").all_inner_texts()
        for relation, bar in zip(concord.relations, bars, strict=True):
            share = f"{found.relations[relation.name]:.2f}"
            assert bar == share.removeprefix("0")
    for relation in concord.relations:
        _, baseline, _, *masses = cells[relation.name.replace(">", " → ")]
        partners = batch.partners[relation.name]
        scores = patterns.relation_mass(weights.detach(), partners)
        offset, share = patterns.best_offset(partners)
        sign = "+" if offset > 0 else "−"
        assert baseline == f"{share:.3f}".removeprefix("0") + f" ({sign}{abs(offset)})"
        for mass, score in zip(masses, scores.heads.tolist(), strict=True):
            assert abs(float(mass) - score) < 0.001
        best = page.locator(".attn-score", has_text=relation.name.replace(">", " → "))
        assert best.locator(".attn-best").inner_text() == str(scores.best + 1)


def test_a_map_shows_a_heads_weights_and_frames_the_partners(lab):
    widget = quick(2, steps=60)
    page = lab(widget)
    train(page)
    expect(page.locator("output")).to_contain_text("No head is muted")
    model = model_of(page, 2)
    sentence = concord.read(widget.sentence)
    weights = model(torch.tensor([sentence.ids]), need_weights=True).weights[0][0]
    page.get_by_role("button", name="head 2").click()
    plot = page.locator(".attn-plot")
    plot.focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    weight = f"{weights[1, 3, 2]:.2f}".removeprefix("0")
    assert page.locator(".attn-read").inner_text() == (
        f"gave looks at king with {weight}. That is its subject."
    )
    path = page.locator(".attn-plot .attn-frame").get_attribute("d")
    pairs = {pair for found in sentence.partners.values() for pair in found.items()}
    assert path.count("M") == len(pairs)
    assert all(f"M{column} {row}h1v1h-1z" in path for row, column in pairs)
    faint = page.locator(".attn-plot .attn-faint").get_attribute("d")
    asked = {row for row, _ in pairs}
    assert faint.count("M") == len(sentence) - len(asked)


def test_another_word_is_chosen_and_the_answers_follow(lab):
    widget = quick(2, steps=60)
    page = lab(widget)
    train(page)
    model = model_of(page, 2)
    page.get_by_label("Word 3").select_option("nun")
    changed = "the big nun gave a very strange sister their nephew ."
    expect(page.get_by_label("A sentence of the language")).to_have_value(changed)
    page.wait_for_timeout(300)
    assert answers_on(page) == answers_of(model, concord.read(changed))
    # What may not stand there isn't offered: outside "because" no noun is a thing.
    words = page.get_by_label("Word 3").locator("option").all_inner_texts()
    assert "queen" in words and "ball" not in words
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Word 3"


def test_another_word_leaves_the_other_fields_and_the_map_and_its_cursor(lab):
    page = lab(quick())
    page.get_by_role("button", name="Train", exact=True).click()
    trained(page)
    page.locator(".attn-plot").press("ArrowDown")
    read = page.locator(".attn-read")
    before = read.inner_text()
    page.evaluate("""() => {
      const parts = [...document.querySelectorAll(".attn-card select, .attn-map")];
      for (const part of parts) part.wasThere = true;
    }""")
    words = page.get_by_label("Word 1", exact=True)
    words.focus()
    other = words.locator("option").nth(1).inner_text()
    words.select_option(other)
    expect(page.locator(".attn-columns span").first).to_have_text(other)
    stayed = "(all) => all.filter((part) => part.wasThere).length"
    fields = page.locator(".attn-card select")
    assert fields.evaluate_all(stayed) >= fields.count() - 1
    assert page.locator(".attn-map").evaluate("(map) => map.wasThere")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Word 1"
    assert read.inner_text() != before and other in page.locator(".attn-rows").inner_text()


def test_a_change_is_drawn_once_with_its_answer_and_without_it_if_that_is_late(lab):
    page = lab(quick())
    page.get_by_role("button", name="Train", exact=True).click()
    trained(page)
    page.evaluate("""() => {
      const own = lastWorker.onmessage;
      window.held = null;
      lastWorker.onmessage = (event) => (held ? held.push(() => own(event)) : own(event));
      window.later = setTimeout;  // an answer that comes is drawn with the change, however slowly
      window.setTimeout = (act, ms, ...rest) => later(act, ms === 50 ? 60_000 : ms, ...rest);
      const tile = document.querySelector(".attn-tile .attn-picture");
      window.blanks = 0;
      const look = () => (blanks += tile.classList.contains("attn-blank"));
      new MutationObserver(look).observe(tile, {attributes: true});
    }""")
    words, first = page.get_by_label("Word 1", exact=True), page.locator(".attn-columns span").first
    others = words.locator("option").all_inner_texts()
    words.select_option(others[1])
    expect(first).to_have_text(others[1])
    assert page.evaluate("blanks") == 0
    page.evaluate("() => { window.setTimeout = later; window.held = []; }")
    words.select_option(others[2])
    expect(first).to_have_text(others[2])
    assert page.evaluate("blanks") > 0 and not answers_on(page)[0][0][1]
    page.evaluate("() => { const all = held; window.held = null; for (const go of all) go(); }")
    tile = page.locator(".attn-tile .attn-picture").first
    expect(tile).not_to_have_class(re.compile("attn-blank"))


def test_what_a_reader_does_before_a_change_is_drawn_is_kept(lab):
    page = lab(quick())
    page.get_by_role("button", name="Train", exact=True).click()
    trained(page)
    before = page.get_by_label("A sentence of the language").input_value().split()
    page.evaluate("""() => {
      const choose = (place, word) => {
        const field = document.querySelector(`[aria-label="Word ${place}"]`);
        field.value = word ?? [...field.options].find(({value}) => value !== field.value).value;
        field.dispatchEvent(new Event("change", {bubbles: true}));
      };
      choose(1);
      choose(3);
      document.querySelector('[aria-label="Word 2"]').focus();
    }""")
    field = page.get_by_label("A sentence of the language")
    expect(field).not_to_have_value(" ".join(before))
    after = field.input_value().split()
    assert after[0] != before[0] and after[2] != before[2]
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Word 2"
    # Of another length: no field is drawn at a place that isn't there.
    page.evaluate(
        """(text) => {
      const last = [...document.querySelectorAll(".attn-card select")].at(-1);
      last.value = [...last.options].find(({value}) => value !== last.value).value;
      last.dispatchEvent(new Event("change", {bubbles: true}));
      const field = document.querySelector('[aria-label="A sentence of the language"]');
      field.value = text;
      field.form.requestSubmit();
    }""",
        "a big king gave a sister their nephew .",
    )
    expect(page.locator(".attn-card")).to_have_count(9)
    shown = page.locator(".attn-card select, .attn-card .attn-word").evaluate_all(
        "(all) => all.map((one) => one.value ?? one.textContent)"
    )
    assert shown == "a big king gave a sister their nephew .".split()


def test_what_answers_begin_and_end_with_is_said(show):
    note = show(quick()).locator(".attn-note", has_text="Concord").inner_text()
    words = set(re.findall(r"-?[a-z]+", note))
    for answer in concord.readouts["A"]:
        assert {answer[:2], f"-{answer[2:]}"} <= words
    assert {"bana", "-ki"} <= words & {*concord.readouts["A"], *concord.readouts["B"]}


def test_a_sentence_is_typed_or_drawn_and_what_is_none_is_refused(lab):
    page = lab(quick())
    field = page.get_by_label("A sentence of the language")
    field.fill("The queen saw a monk")
    field.press("Enter")
    assert len(page.locator(".attn-card").all()) == 6
    refusal = page.locator(".attn-refusal")
    for text, message in {
        "the <img src=x> saw": "got '<img' as word 2; there may stand very, too",
        "the queen saw": "got its end after 'the queen saw'; there may stand the, a, this",
        "the the": "got 'the' as word 2 after 'the'",
        " ": "Type a sentence.",
    }.items():
        field.fill(text)
        field.press("Enter")
        expect(refusal).to_contain_text(message)
        assert field.get_attribute("aria-invalid") == "true"
        assert len(page.locator(".attn-card").all()) == 6  # the sentence before is still there
    page.get_by_role("button", name="Another sentence").click()
    assert refusal.inner_text() == ""
    concord.read(field.input_value())


def test_without_workers_it_says_so_and_the_rest_lives(show):
    page = show(quick())
    page.evaluate("() => { window.Worker = function () { throw new Error('not here'); }; }")
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.locator("output")).to_contain_text(
        "Models train in a Web Worker, and this browser starts none: not here."
    )
    page.get_by_label("Word 3").select_option("nun")
    assert "nun" in page.get_by_label("A sentence of the language").input_value()
    page.locator(".attn-track input").press("ArrowRight")
    assert page.locator(".attn-tile:visible").count() == 4


def test_a_worker_that_breaks_down_says_so_and_another_can_be_started(lab):
    page = lab(quick(steps=400))
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_function("document.querySelector('progress').value > 0")
    page.evaluate("lastWorker.onerror(Object.assign(new Event('error'), {message: 'no memory'}))")
    expect(page.locator("output")).to_contain_text("The worker broke down: no memory.")
    page.get_by_role("button", name="Train again").click()
    page.wait_for_function("document.querySelector('.attn-curve')?.getAttribute('d')")
    assert page.get_by_role("button", name="Pause").count() == 1


def test_opened_as_trained_it_trains_again_and_says_so(show):
    widget = quick(2, steps=100, seed=3, muted=[1])  # as many as leave time to read
    widget.trained = True
    page = show(widget)
    page.wait_for_function(
        "document.querySelector('output').textContent.startsWith('The link or saved state asks')"
    )
    trained(page)
    expect(page.locator("output")).to_contain_text("Muted: head 2: of 10 answers")
    assert page.locator(".attn-kept button").all_inner_texts() == ["2 heads, seed 3"]


def test_views_of_one_lab_share_its_models_and_other_labs_have_their_own(lab):
    shared = quick()
    page = lab(shared, shared, quick())
    one, again, other = page.locator(".attn-widget").all()
    one.get_by_role("button", name="Train", exact=True).click()
    for view in (one, again):
        expect(view.locator(".attn-progress-text")).to_contain_text("Trained", timeout=60_000)
    assert other.locator(".attn-progress-text").inner_text() == "Not trained yet."
    assert page.evaluate("workers") == 1
    one.get_by_label("head 1 works").uncheck()
    expect(again.locator("output")).to_contain_text("Muted: head 1")


# How a function begins that has `model`, a copy of the widget with its `values` at hand.
COPY = """() => {
      const state = JSON.parse(document.querySelector("script[type*=state]").textContent).state;
      const values = new Map(Object.entries(Object.values(state).find(
        (entry) => entry.state.recipe).state));
      const model = {get: (name) => values.get(name), on() {}, off() {}};"""


def test_a_lab_that_is_taken_away_trains_no_longer(lab):
    page = lab(quick(steps=400))
    page.evaluate(
        COPY
        + """
      values.set("trained", true);
      const el = document.createElement("div");
      document.body.prepend(el);
      window.end = attnModules["head_lab/widget.js"].default.render({model, el});
    }"""
    )
    page.wait_for_function("workers === 1")
    page.evaluate("end()")
    page.wait_for_function("workers === 0")


def test_a_lab_that_nobody_sees_trains_nothing(lab):
    page = lab(quick(steps=400))
    page.evaluate(
        COPY
        + """
      values.set("trained", true);
      values.set("beside", [1, 0]);
      const [fold, el] = ["details", "div"].map((name) => document.createElement(name));
      fold.append(el);
      document.body.prepend(fold);
      window.end = attnModules["head_lab/widget.js"].default.render({model, el});
    }"""
    )
    page.wait_for_timeout(600)
    assert page.evaluate("workers") == 0
    page.evaluate("document.querySelector('body > details').open = true")
    page.wait_for_function("workers === 2")
    page.evaluate("end()")
    page.wait_for_function("workers === 0")


def test_begun_anew_a_lab_trains_no_longer(lab):
    page = lab(quick(steps=400))
    page.evaluate(
        COPY
        + """
      const el = document.createElement("div");
      document.body.prepend(el);
      window.draw = (trained) => {
        window.end?.();
        values.set("trained", trained);
        window.end = attnModules["head_lab/widget.js"].default.render({model, el});
        return el.querySelector(".attn-progress-text").textContent;
      };
      draw(true);
    }"""
    )
    page.wait_for_function("workers === 1")
    assert page.evaluate("draw(false)") == "Not trained yet."
    assert page.evaluate("workers") == 0


def few_counts(**options):
    """A lab that repeats ten models only."""
    widget = quick(1, steps=10, held_out=20, **options)
    widget.set_trait("counts", [1, 2])
    return widget


def test_all_models_are_repeated_in_the_background_and_dots_appear(lab):
    page = lab(few_counts(seed=7))
    page.get_by_role("button", name="Repeat it: train 10 models").click()
    page.get_by_role("button", name="Train", exact=True).click()  # one in the foreground, too
    page.locator(".attn-run-dot").first.wait_for()
    repeated = page.locator(".attn-repeated")
    expect(repeated).to_have_text("10 of 10 models are trained.", timeout=60_000)
    trained(page)
    assert page.get_by_role("button", name="repeat").count() == 0
    kept = page.locator(".attn-kept tbody tr").evaluate_all(CELLS)
    assert sorted(name for name, *_ in kept) == sorted(
        f"{heads}, seed {seed}"
        for heads, seeds in (("1 head", [*range(5), 7]), ("2 heads", range(5)))
        for seed in seeds
    )
    for plot, column in ((0, 1), (1, 2), (3, 3)):  # verb>subject, verb>object, their>thing
        dots = page.locator(".attn-dot-plot").nth(plot).locator(".attn-run-dot")
        drawn = [float(dot.evaluate("dot => dot.style.bottom")[:-1]) / 100 for dot in dots.all()]
        told = {h: [float(row[column]) for row in kept if row[0][0] == h] for h in "12"}
        assert drawn == pytest.approx(told["1"] + told["2"], abs=0.0051)
    assert page.evaluate("workers") <= 6  # the models of before sleep
    cells = page.locator(".attn-repeat td").all_inner_texts()
    ours = HeadLab().ours["2 heads"]
    assert len(ours) == 7
    for cell, (shared, models) in zip(cells, ours.values(), strict=True):
        assert re.fullmatch(rf"– \({shared} of {models}\)", cell)  # none has learned
    # A model that sleeps is trained again when it is chosen.
    page.get_by_role("button", name="1 head, seed 0").click()
    expect(page.locator("output")).to_contain_text("No head is muted", timeout=60_000)


def test_a_model_that_sleeps_is_trained_again_though_nobody_pressed_train(lab):
    page = lab(few_counts(seed=7))
    page.get_by_role("button", name="Repeat it").click()
    expect(page.locator(".attn-repeated")).to_contain_text("10 of 10", timeout=60_000)
    page.get_by_role("button", name="1 head, seed 0").click()
    expect(page.locator("output")).to_contain_text("No head is muted", timeout=60_000)


def test_what_dots_and_their_height_mean_is_said(lab):
    page = lab(few_counts())
    legend = page.locator(".attn-repeat .attn-legend")
    assert legend.is_hidden()  # as long as there are no dots
    page.get_by_role("button", name="Repeat it").click()
    expect(page.locator(".attn-repeated")).to_contain_text("10 of 10", timeout=60_000)
    assert legend.locator(".attn-entry").all_inner_texts() == [
        "a model: its share of right answers (0 to 1), by number of heads",
        "the one shown above",
        "what guessing gets",
    ]
    ends = page.locator(".attn-dot-field").first.evaluate(
        "field => getComputedStyle(field, '::before').content"
    )
    assert re.findall(r"\d", ends) == ["1", "0"]
    color = "(node) => getComputedStyle(node).backgroundColor"
    keys, current = legend.locator(".attn-dot-key"), page.locator(".attn-run-dot.attn-current")
    assert keys.nth(1).evaluate(color) == current.first.evaluate(color)
    assert keys.nth(0).evaluate(color) != keys.nth(1).evaluate(color)


def test_names_stay_in_sight_on_a_phone_while_tables_scroll(lab):
    page = lab(few_counts(), width=360)
    page.get_by_role("button", name="Repeat it").click()
    expect(page.locator(".attn-repeated")).to_contain_text("10 of 10", timeout=60_000)
    places = page.locator(".attn-kept .attn-scroll").evaluate("""(box) => {
      const {left, top} = box.getBoundingClientRect();
      box.scrollTo(1000, 1000);
      const names = [...box.querySelectorAll("thead th, tbody tr:last-child th")];
      const at = names.map((name) => name.getBoundingClientRect());
      return {scrolled: [box.scrollLeft, box.scrollTop], row: at.at(-1).left - left,
              corner: [at[0].left - left, at[0].top - top], columns: at[1].top - top};
    }""")
    assert min(places["scrolled"]) > 50
    assert places["row"] == places["columns"] == 0 and places["corner"] == [0, 0]


def test_on_a_phone_the_name_of_a_pair_leaves_room_for_what_is_told_of_it(lab):
    page = lab(quick(1, steps=10), width=360)
    train(page)
    page.locator(".attn-repeat table").first.wait_for()
    room, *names = page.locator(".attn-repeat").evaluate("""(node) => [
      node.querySelector(".attn-scroll").clientWidth,
      ...[...node.querySelectorAll("tbody th")].map((name) => name.offsetWidth)]""")
    assert len(names) == 7 and max(names) < room / 2


def test_repeating_is_stopped_and_goes_on_where_it_was(lab):
    page = lab(few_counts())
    page.get_by_role("button", name="Repeat it").click()
    page.locator(".attn-run-dot").first.wait_for()
    page.get_by_role("button", name="Stop repeating").click()
    page.wait_for_timeout(400)  # what was done by then is told
    done = page.locator(".attn-kept tbody tr").count()
    page.wait_for_timeout(400)
    assert page.locator(".attn-kept tbody tr").count() == done < 10
    assert page.evaluate("workers") == done
    page.get_by_role("button", name="Repeat it").click()
    expect(page.locator(".attn-repeated")).to_contain_text("10 of 10", timeout=60_000)


def test_a_shown_model_never_sleeps(lab):
    page = lab(few_counts())
    train(page)
    page.get_by_role("button", name="Repeat it").click()
    expect(page.locator(".attn-repeated")).to_contain_text("10 of 10", timeout=60_000)
    assert page.evaluate("workers") <= 6
    page.get_by_label("head 1 works").uncheck()
    expect(page.locator("output")).to_contain_text("Muted: head 1")
    page.wait_for_timeout(500)
    # It isn't trained again: it still is the oldest.
    assert page.locator(".attn-kept button").first.inner_text() == "1 head, seed 0"


def test_a_shown_model_outlives_the_repetition(lab):
    widget = few_counts()
    widget.set_trait("recipe", widget.recipe | {"steps": 400})
    page = lab(widget)
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_function("document.querySelector('progress').value > 0")
    page.get_by_role("button", name="Stop", exact=True).click()
    progress = page.locator(".attn-progress-text")
    expect(progress).to_contain_text("Stopped")
    stopped = progress.inner_text()
    page.get_by_role("button", name="Repeat it").click()
    page.locator(".attn-track input").press("ArrowRight")  # to one that trains in the background
    expect(progress).to_contain_text("Training")
    page.get_by_role("button", name="Stop repeating").click()
    page.wait_for_timeout(400)
    expect(progress).to_contain_text("Training")
    assert page.get_by_role("button", name="Repeat it").count() == 1
    page.locator(".attn-track input").press("ArrowLeft")
    assert progress.inner_text() == stopped


def test_repeating_without_workers_says_so(show):
    page = show(quick())
    page.evaluate("() => { window.Worker = function () { throw new Error('not here'); }; }")
    page.get_by_role("button", name="Repeat it").click()
    expect(page.locator(".attn-repeated")).to_contain_text("this browser starts none: not here")


def test_sharing_is_counted_by_best_heads(show):
    counted = show(quick()).evaluate("""() => {
      const {countSharing} = attnModules["head_lab/repeat.js"];
      const run = (a, b, right = .9) =>
        ({evaluation: {mass: {a: [a], b: [b]}, relations: {a: .95, b: right}}});
      const runs = [run([.9, .1], [.2, .1]), run([.9, .1], [.1, .2]), run([.1, .3], [0, .1])];
      return countSharing([...runs, run([.9, .1], [.2, .1], .89)], ["a", "b"]);
    }""")
    assert counted == {"shared": 2, "models": 3}  # the fourth hasn't learned b


def test_a_head_is_best_where_it_leaves_a_fixed_distance_furthest_behind(show):
    found = show(quick()).evaluate("""() => {
      const {specialty} = attnModules["head_lab/findings.js"];
      const mass = {a: [[0.9, 0.2]], b: [[0.6, 0.1]]};
      const baselines = {a: {offset: 1, share: 0.7}, b: {offset: -1, share: 0.2}};
      return [0, 1].map((head) => specialty(head, mass, baselines));
    }""")
    assert found == [{"relation": "b", "mass": 0.6, "offset": -1, "share": 0.2}, None]


def test_each_head_has_its_color(lab):
    page = lab(quick(16))
    swatches = page.locator(".attn-switches .attn-swatch").evaluate_all(
        "all => all.map((swatch) => getComputedStyle(swatch).backgroundColor)"
    )
    tiles = page.locator(".attn-tile").evaluate_all(
        "all => all.map((tile) => getComputedStyle(tile).borderTopColor)"
    )
    for head in range(16):
        color = palette.head_color(head)
        rgb = f"rgb({', '.join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))})"
        assert swatches[head] == tiles[head] == rgb


def test_bars_glide_only_where_motion_is_welcome(show):
    page = show(quick())
    style = "getComputedStyle(document.querySelector('.attn-right')).transitionDuration"
    assert page.evaluate(style) == "0.2s"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(style) == "0s"


def test_in_forced_colors_bars_and_frames_stay(show):
    page = show(quick())
    color = "(node) => getComputedStyle(node).backgroundColor"
    before = page.locator(".attn-right").first.evaluate(color)
    page.emulate_media(forced_colors="active")
    assert page.locator(".attn-right").first.evaluate(color) == before
    page.emulate_media(forced_colors="none")


def test_words_with_two_needs_are_told_of(lab):
    page = lab(quick(1, steps=10))
    train(page)
    lines = page.locator(".attn-sharing p:not(.attn-heading)").all_inner_texts()
    assert lines == [
        "adjective: noun and adverb: noun and adverb not learned",
        "verb: subject and object: subject and object not learned",
        "their: owner and thing: owner and thing not learned",
    ]
    told = page.evaluate("""() => {
      const {saySharing} = attnModules["head_lab/words.js"];
      const mass = {"verb>subject": [[.9, .1]], "verb>object": [[.2, .1]], "x>y": [[.1, .3]]};
      const pairs = [["verb>subject", "verb>object"], ["verb>subject", "x>y"]];
      const say = (right) => saySharing(
        {mass, relations: {"verb>subject": .9, "verb>object": right, "x>y": 1}}, {pairs});
      return [.9, .89].flatMap(say).map(({whose, isShared}) => [whose, isShared]);
    }""")
    assert told == [
        ["head 1 for both", True], ["heads 1 and 2", False],
        ["object not learned", False], ["heads 1 and 2", False],
    ]  # fmt: skip


DAMAGES = {
    "num_heads should be one of 1, 2, 4, 8, 16, but is 3": lambda s, _: s.update(num_heads=3),
    "seed should be one of 0 to 999, but is -1": lambda state, _: state.update(seed=-1),
    'trained should be true or false, but is "yes"': lambda s, _: s.update(trained="yes"),
    'digest should be eight hexadecimal digits, or none, but is "xyz"': lambda state, _: (
        state.update(digest="xyz")
    ),
    "digests should be digits of models by heads and seed": lambda state, _: state.update(
        digests={"2 0": 5}
    ),
    "induction_digests should be digits of models": lambda state, _: state.update(
        induction_digests=[5]
    ),
    "head should be one of 0 to 15, but is 16": lambda state, _: state.update(head=16),
    "muted should be a list of heads from 0 to 15, but is [16]": lambda s, _: s.update(muted=[16]),
    'forbidden should be a relation, or empty, but is "x>y"': lambda state, _: state.update(
        forbidden="x>y"
    ),
    "forbidden_in should be one of 0 to 15, or null, but is 16": lambda state, _: state.update(
        forbidden_in=16
    ),
    "sentence should be text, but is 5": lambda state, _: state.update(sentence=5),
    "got 'zebra' as word 2": lambda state, _: state.update(sentence="the zebra saw a king"),
    "lr should be above 0, but is -1": lambda state, _: state["recipe"].update(lr=-1),
    "blocks should be a list, but is null": lambda state, _: state["spec"].update(blocks=None),
    "from_weights should be true or false": lambda state, _: state.update(from_weights=None),
    "small should be true or false, but is 1": lambda state, _: state.update(small=1),
    "task should be one of concord, lookup, diagonals, induction, but is 5": lambda state, _: (
        state.update(task=5)
    ),
    "symbols should be one of 4, 8, 16, but is 5": lambda state, _: state.update(symbols=5),
    "steps should be one of 400, 1200, 3000, but is -1": lambda state, _: state.update(steps=-1),
    'mlp should be true or false, but is "yes"': lambda state, _: state.update(mlp="yes"),
    "beside should be empty, or a number of heads and a seed, but is [3,0]": lambda state, _: (
        state.update(beside=[3, 0])
    ),
    "beside should be empty, or a number of heads and a seed, but is [2,1000]": lambda state, _: (
        state.update(beside=[2, 1000])
    ),
    "symbol_counts should be a list of numbers of symbols": lambda s, _: s.update(symbol_counts=5),
    "step_counts should be a list of numbers of steps": lambda s, _: s.update(step_counts=[0]),
    "steps should be a whole number, 1 or more, but is undefined": lambda state, _: state.update(
        recipes={}
    ),
    "ours should be counts of pairs by numbers of heads": lambda state, _: state.update(
        ours={"2 heads": {"verb>subject & verb>object": "all"}}
    ),
    "held_out should be a whole number from 1 to 10000": lambda s, _: s.update(held_out=0),
    "counts should be a list of numbers of heads": lambda s, _: s.update(counts=[]),
}
