"""GptSteps in a real browser, without a kernel: torch's numbers, its lines, its manners."""

import copy
import re

import pytest
import torch
from playwright.sync_api import expect
from tools.small_gpts import MODELS, gpt
from tools.weight_pictures import painted
from tools.widget_pages import asked, box, numbers_in, press, said, style

from attncourse.widgets import GptSteps
from attncourse.widgets.gpt_steps.code import LINES
from attnlib import split_heads
from attnlib.blocks import ACTIVATIONS

PAUSE = 1000  # milliseconds


def steps(line="cache", token=0, head=0, name="emma", model=None):
    widget = GptSteps(model or MODELS["microgpt"], origin="random")
    widget.name, widget.line, widget.token, widget.head = name, line, token, head
    return widget


def example(text):
    """A small one; names and tokens are letters of the model, so only one text is an author's."""
    widget = GptSteps(gpt(4, 4, 4, 2), ["ab"], vocabulary="abc.", origin=text)
    widget.line = "scores"
    return widget


def largest(text):
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"
    model = gpt(40, 20, 32, 8, d_ff=256)
    widget = GptSteps(model, ["w" * 15], vocabulary=letters, boundary="M", origin=text)
    widget.token, widget.line, widget.head = 15, "chances", 7
    return widget


PLACES = {"div.attn-widget > p.attn-note …"}
KEY = (".attn-player button:nth-child(3)", "Space")
SMALL = example("").get_state()  # what is to be damaged
DAMAGES = {
    "weights should be": {"weights": SMALL["weights"][:-4]},
    "weights holds a number that isn't finite": {"weights": b"\xff" * len(SMALL["weights"])},
    "spec should be that of a GPT of one block": {"spec": SMALL["spec"] | {"blocks": []}},
    "vocabulary should have 4 letters, but has 3": {"vocabulary": "abc"},
    "names should be": {"names": ["a", "abcd"]},
    "token should be": {"token": 4},
}

WALK = """(model) => {
  const {readState} = attnModules["gpt_steps/widget.js"];
  const {walk} = attnModules["gpt_steps/numbers.js"];
  const {spec, numbers, ids, T} = readState(model);
  return walk(spec, numbers, ids.slice(0, T));
}"""


def expected(model, ids):
    """Torch's numbers, in float64: of each line, for all tokens."""
    model = copy.deepcopy(model).double()
    block = model.blocks[0]
    attention, network = block.attention, block.feed_forward
    with torch.no_grad():
        answers = model(torch.tensor([ids]), need_weights=True)
        embed = model.position_embedding(model.token_embedding(torch.tensor([ids])))
        a = block.norm_1(embed)
        q, k, v = (getattr(attention, f"W_{one}")(a) for one in "qkv")
        (weights,) = answers.weights
        heads = [split_heads(one, attention.num_heads) for one in (q, k, v)]
        scores = (heads[0] @ heads[1].mT / heads[0].shape[-1] ** 0.5).tril()
        output, _ = attention(a, causal=True)
        m = block.norm_2(embed + output)
        logits = answers.logits["next"]
        return {
            "embed": embed, "norm_1": a, "q": q, "k": k, "v": v, "output": output, "norm_2": m,
            "joined": (weights @ heads[2]).transpose(1, 2).flatten(2),
            "residual_1": embed + output, "residual_2": block(embed, causal=True)[0],
            "hidden": ACTIVATIONS[network.activation](network.W_1(m)),
            "logits": logits, "chances": logits.softmax(-1),
            "scores": scores.transpose(1, 2), "weights": weights.transpose(1, 2),  # [1, T, h, T]
        }  # fmt: skip


def test_the_browser_computes_what_any_model_computes(show):
    page = show(steps())
    for model in MODELS.values():
        widget = GptSteps(model, ["emma"])
        found = asked(page, widget, WALK)  # for each token the lists by their lines
        ids = [widget.vocabulary.index(letter) for letter in widget.boundary + widget.name]
        for name, numbers in expected(model, ids).items():
            for token, (own, wanted) in enumerate(zip(found, numbers[0], strict=True)):
                told = torch.tensor(own[name], dtype=torch.float64)
                so_far = wanted[:, : token + 1] if name in ("scores", "weights") else wanted
                within = float(1e-7 * numbers.abs().max())
                torch.testing.assert_close(told, so_far, atol=within, rtol=0)


def lit(page):
    """The line that is lit."""
    pressed = "all => all.map((button) => button.ariaPressed).indexOf('true')"
    return LINES[page.locator(".attn-code button").evaluate_all(pressed)]


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def choose(page, line):
    """Press a line of the code."""
    page.locator(".attn-code button").nth(LINES.index(line)).click()


def test_it_goes_line_by_line_head_by_head_token_by_token_and_back(show):
    widget = steps(name="em", model=gpt(27, 7, 4, 2))
    page = show(widget)
    code = page.locator(".attn-code button").all_inner_texts()
    assert [line.strip() for line in code] == [line.strip() for line in widget.code]
    step, back, over = (button(page, name) for name in ("Step", "Back", "Next token"))
    inner = LINES[LINES.index("head") : LINES.index("output")]
    of_token = [*LINES[1 : LINES.index("head")], *inner, *inner, *LINES[LINES.index("output") :]]
    note = page.locator(".attn-no-mask:visible")
    places, notes = [], 0
    for now in ["cache", *of_token * 3]:
        assert lit(page) == now
        places.append(said(page))
        notes += note.count()
        step.dispatch_event("click")
    masks = [text.partition("causal mask")[2] for text in places if "causal mask" in text]
    assert [*map(numbers_in, masks)] == [[2], [], []]  # tokens to come, a token, none
    assert notes == 3 and step.get_attribute("aria-disabled") == "true"
    for told in reversed(places):
        assert said(page) == told
        back.dispatch_event("click")
    assert back.get_attribute("aria-disabled") == "true"
    for i, to_come in ((2, ["m"]), (3, [])):  # over the rest of a token
        over.click()
        assert lit(page) == "token" and numbers_in(said(page))[:2] == [i, 3]
        assert page.locator(".attn-tokens .attn-to-come").all_inner_texts() == to_come
    over.click()
    assert lit(page) == "chances"
    choose(page, "cache")
    assert button(page, "Token .").get_attribute("aria-pressed") == "true"


def frames(page, kind):
    """Which lists have frames of a kind, and where: [list, top, left, height, width] in percent."""
    return page.locator(f".attn-grid .attn-{kind}").evaluate_all(
        """frames => frames.map(({parentNode, style: {top, left, height, width}}) => [
            parentNode.closest(".attn-list").querySelector("code").textContent,
            ...[top, left, height, width].map(parseFloat)])"""
    )


def test_the_cache_grows_by_a_column_per_token_and_frames_say_what_a_line_reads_and_makes(show):
    page = show(steps("k", token=1))
    for line, counts in (("k", (1, 1)), ("append_k", (2, 1)), ("append_v", (2, 2))):
        choose(page, line)
        for name, count in zip(("keys", "values"), counts, strict=True):
            there = painted(page.locator(f".attn-list-{name} canvas"))[15, :, 3] > 0
            assert there.tolist() == [column < count for column in range(5)]
    assert frames(page, "reads") == [["v", 0, 0, 100, 100]]
    assert frames(page, "makes") == [["values", 0, 20, 100, 20]]
    choose(page, "scores")
    press(page, "head 3")
    assert frames(page, "reads") == [["q", 50, 0, 25, 100], ["keys", 50, 0, 25, 40]]
    assert frames(page, "makes") == [["scores", 50, 0, 25, 40]]
    looks = {style(frame, "borderTopStyle") for frame in page.locator(".attn-frame").all()}
    assert len(looks) == 2  # whatever their colors
    bright = painted(page.locator(".attn-list-keys canvas"))[:, 0, 3] == 255
    assert bright.tolist() == [8 <= row < 12 for row in range(16)]  # the part of the head


def test_numbers_are_read_by_mouse_finger_and_keys(show):
    page = show(steps("chances", token=4))
    line, memory = page.locator(".attn-reading-line"), page.locator(".attn-memory")
    page.locator(".attn-list-q .attn-grid").hover(position={"x": 5, "y": 5})
    q = asked(page, steps(), WALK)[4]["q"][0]
    assert numbers_in(line.inner_text()) == [0, pytest.approx(q, abs=0.006), 1]  # of head 1
    for name in ("scores", "weights"):
        page.locator(f".attn-list-{name} .attn-grid").hover(position={"x": 5, "y": 5})
        assert f"{name}[0] = " in line.inner_text() and "(head 1 " in line.inner_text()
    page.locator(".attn-list-hidden .attn-grid").tap(position={"x": 1, "y": 1})
    memory.focus()
    for keys, begins in (
        ("ArrowRight ArrowDown", "hidden[17] = "),
        ("ArrowRight ArrowRight ArrowRight ArrowLeft", "hidden[49] = "),
        ("ArrowRight End", "keys[4][1] = "),
    ):
        for key in keys.split():
            page.keyboard.press(key)
        assert line.inner_text().startswith(begins)
    for key, now in (("PageUp", "logits"), ("PageDown", "chances")):  # while the focus stays
        page.keyboard.press(key)
        assert lit(page) == now
        expect(memory).to_be_focused()


def test_bars_are_the_weights_of_the_heads_so_far_and_tables_have_all_numbers(show):
    page = show(steps("weights", token=1, head=2))
    found = asked(page, steps(), WALK)[1]
    paths = page.locator(".attn-list-weights path").evaluate_all(
        "paths => paths.map((path) => path.getAttribute('d'))"
    )
    drawn = [[float(top) for top in re.findall(r"V(\S+)h", path)] for path in paths]
    assert drawn[3] == []
    heights = torch.tensor([[row + 1 - top for top in drawn[row]] for row in range(3)])
    torch.testing.assert_close(heights, torch.tensor(found["weights"][:3]))
    press(page, "head 4")
    choose(page, "mix")
    assert numbers_in(said(page))[:3] == [4, 16, 16]  # of a head, in joined, and in the end
    page.locator("summary").last.click()
    page.locator("details tbody tr").first.wait_for()

    def read(table, column):
        cells = f"table:nth-of-type({table + 1}) tbody tr > :nth-child({column + 1})"
        return numbers_in(" ".join(page.locator(cells).all_text_contents()))

    for table, column, name in ((0, 1, "embed"), (0, 3, "q"), (0, 6, "joined")):
        assert read(table, column) == pytest.approx(found[name], abs=0.006)
    for table, name in ((4, "scores"), (5, "weights")):
        assert read(table, 2) == pytest.approx([head[1] for head in found[name]], abs=0.006)
    assert read(0, 7) == read(1, 1) == read(6, 1) == []  # o, hidden and logits: not yet
    choose(page, "chances")
    assert read(6, 2) == pytest.approx(found["chances"], abs=0.006)
    assert page.locator(".attn-list-chances .attn-lit").inner_text() == "m"  # what comes next
    assert numbers_in(said(page))[-1] == pytest.approx(found["chances"][12], abs=0.006)


def test_another_name_is_typed_and_a_letter_that_is_not_there_is_refused(show):
    page = show(steps("chances", token=4))
    field, refusal = page.get_by_role("textbox", name="Name"), page.locator(".attn-refusal")
    tokens = page.locator(".attn-tokens button")
    field.fill("Ann")
    assert tokens.all_inner_texts() == [".", "a", "n", "n"]
    assert field.input_value() == "Ann"  # what a reader types stays
    for text, named in (("an!", "“!”"), ("a.", "“.”"), ("a" * 16, "15")):
        field.fill(text)
        assert named in refusal.inner_text() and refusal.get_attribute("role") == "status"
        assert field.get_attribute("aria-invalid") == "true"
        assert tokens.count() == 4
    press(page, "tollas")
    assert tokens.count() == 7 and field.input_value() == "tollas"
    assert refusal.inner_text() == "" and field.get_attribute("aria-invalid") == "false"


def test_it_plays_to_the_end_and_stops_where_a_reader_does_anything(show):
    page = show(steps("logits", token=3))
    page.clock.install()
    press(page, "Play")
    assert page.locator("output").get_attribute("aria-live") == "off"
    page.clock.run_for(60 * PAUSE)
    assert lit(page) == "chances"
    press(page, "Play")  # it has stopped by itself, and begins anew
    assert lit(page) == "cache"
    choose(page, "q")
    page.clock.run_for(3 * PAUSE)
    assert lit(page) == "q"  # a reader who presses a line looks at it
    page.emulate_media(reduced_motion="reduce")
    page.clock.run_for(100)  # it is told a frame later
    press(page, "Play")  # nothing glides in it
    page.clock.run_for(2 * PAUSE)
    assert lit(page) == "v"


def test_on_a_phone_nothing_moves_from_line_to_line_and_the_lit_one_is_in_sight(show):
    page = show(steps("token", token=2, name="mahollulamorabc"), width=360)
    places = set()
    for name in ["Back", *["Step"] * 30, *["Next token"] * 3]:
        button(page, name).evaluate("button => button.click()")  # a mouse would scroll there
        lists = box(page, ".attn-memory")
        places.add((lists["top"], lists["height"]))
        code, line = box(page, ".attn-code"), box(page, ".attn-code [aria-pressed=true]")
        assert code["top"] <= line["top"] and line["bottom"] <= code["bottom"]
    assert len(places) == 1 and code["height"] < 220
    page = show(steps("chances"), width=360)  # from the start, too
    page.wait_for_function("document.querySelector('.attn-code').scrollTop > 0")
