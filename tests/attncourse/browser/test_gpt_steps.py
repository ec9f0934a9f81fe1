"""GptSteps in a real browser, without a kernel: torch's numbers, its lines, its manners."""

import copy
import re

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools.small_gpts import BARE, MODELS, gpt
from tools.widget_pages import asked, press, said, target_sizes

from attncourse.widgets import GptSteps
from attncourse.widgets.gpt_steps.code import LINES
from attnlib import LayerNorm, RMSNorm, split_heads
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
    widget = GptSteps(model, ["w" * 15], vocabulary=letters, boundary="M",
                      origin=text)  # fmt: skip
    widget.token, widget.line, widget.head = 15, "chances", 7
    return widget


PLACES = {"div.attn-widget > p.attn-note …"}
KEY = (".attn-player button:nth-child(3)", "Space")


WALK = """(model) => {
  const {readState} = attnModules["gpt_steps/widget.js"];
  const {walk} = attnModules["gpt_steps/numbers.js"];
  const {spec, numbers, ids, T} = readState(model);
  return walk(spec, numbers, ids.slice(0, T));
}"""


def walked(page, widget):
    """What the browser computes: for each token the lists by their lines."""
    return asked(page, widget, WALK)


def expected(model, widget):
    """Torch's numbers, in float64: of each line, for all tokens."""
    model = copy.deepcopy(model).double()
    ids = [widget.vocabulary.index(letter) for letter in widget.boundary + widget.name]
    block = model.blocks[0]
    with torch.no_grad():
        answers = model(torch.tensor([ids]), need_weights=True)
        embed = model.position_embedding(model.token_embedding(torch.tensor([ids])))
        a = block.norm_1(embed)
        q, k, v = (getattr(block.attention, f"W_{one}")(a) for one in "qkv")
        (weights,) = answers.weights
        heads = [split_heads(one, block.attention.num_heads) for one in (q, k, v)]
        joined = (weights @ heads[2]).transpose(1, 2).flatten(2)
        scores = (heads[0] @ heads[1].mT / heads[0].shape[-1] ** 0.5).tril()
        output, _ = block.attention(a, causal=True)
        residual_1 = embed + output
        residual_2, _ = block(embed, causal=True)
        logits = answers.logits["next"]
        network = block.feed_forward
        hidden = ACTIVATIONS[network.activation](network.W_1(block.norm_2(residual_1)))
    return {
        "embed": embed, "norm_1": a, "q": q, "k": k, "v": v, "joined": joined, "output": output,
        "residual_1": residual_1, "norm_2": block.norm_2(residual_1), "hidden": hidden,
        "residual_2": residual_2, "logits": logits, "chances": logits.softmax(-1),
        "scores": scores.transpose(1, 2), "weights": weights.transpose(1, 2),  # [1, T, h, T]
    }  # fmt: skip


def assert_equal_to_torch(page, model, widget):
    found = walked(page, widget)
    for name, numbers in expected(model, widget).items():
        for token, (own, wanted) in enumerate(zip(found, numbers[0].detach(), strict=True)):
            told = torch.tensor(own[name], dtype=torch.float64)
            so_far = wanted[:, : token + 1] if name in ("scores", "weights") else wanted
            assert told.shape == so_far.shape
            gap = (told - so_far).abs().max()
            assert gap <= 1e-7 * numbers.abs().max(), f"{name} of token {token}"


@st.composite
def models(draw):
    h, width = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    options = {
        "d_ff": draw(st.integers(1, 8)) * h,
        "norm": draw(st.sampled_from([LayerNorm, RMSNorm, BARE])),
        "bias": draw(st.booleans()),
        "tied": draw(st.booleans()),
        "activation": draw(st.sampled_from(["gelu", "gelu_tanh", "relu"])),
    }
    length = draw(st.integers(2, 20))
    model = gpt(27, length, h * width, h, seed=draw(st.integers(0, 999)), **options)
    letters = st.text("abcxyz", min_size=1, max_size=min(length, 16) - 1)
    return model, GptSteps(model, [draw(letters)])


def test_the_browser_computes_what_any_model_computes(show):
    page = show(steps())
    for model in MODELS.values():
        assert_equal_to_torch(page, model, GptSteps(model, ["emma"]))

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(models())
    def agree(made):
        assert_equal_to_torch(page, *made)

    agree()


def lit(page):
    """The line that is lit, as it stands in the code."""
    return page.locator(".attn-code [aria-pressed=true]").inner_text().strip()


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def choose(page, line):
    """Press the line of code that begins so."""
    page.get_by_role("button", name=line).click()


def test_it_goes_line_by_line_head_by_head_token_by_token(show):
    widget = steps(name="em", model=gpt(27, 7, 4, 2))
    page = show(widget)
    step = button(page, "Step")
    inner = LINES[LINES.index("head") : LINES.index("output")]
    of_token = [*LINES[1 : LINES.index("head")], *inner, *inner, *LINES[LINES.index("output") :]]
    way = ["cache", *of_token * 3]
    code = dict(zip(LINES, widget.code, strict=True))
    places = []
    for line in way:
        assert lit(page) == code[line].strip()
        places.append(said(page))
        step.click(force=True)
    assert step.get_attribute("aria-disabled") == "true"
    assert "The name ends here" in said(page)
    for told in reversed(places):
        assert said(page) == told
        button(page, "Back").click(force=True)
    assert said(page) == places[0]
    assert button(page, "Back").get_attribute("aria-disabled") == "true"


def test_next_token_goes_over_the_rest_of_this_one(show):
    page = show(steps("q"))
    over = button(page, "Next token")
    for i, letter in enumerate("emma", start=2):
        over.click()
        assert said(page).startswith(f"Token {i} of 5: {letter}")
        assert lit(page) == "for pos, token in enumerate(name):"
    over.click()
    assert lit(page) == "chances = softmax(logits)"
    assert over.get_attribute("aria-disabled") == "true"


def test_a_line_that_is_pressed_has_run(show):
    page = show(steps("q", token=2, head=1))
    choose(page, "weights = softmax(scores)")
    assert lit(page) == "weights = softmax(scores)"
    weights = walked(page, steps(token=2))[2]["weights"][1]
    sharpest = max(weights)
    share = f"{sharpest:.2f}"
    assert f"Most goes to {['.', 'e', 'm (2)'][weights.index(sharpest)]}, {share}." in said(page)
    choose(page, "keys, values = [], []")
    assert "empty" in said(page)
    assert page.get_by_role("button", name="Token .").get_attribute("aria-pressed") == "true"


CELL = """([list, row, column]) => {
  const canvas = document.querySelector(`.attn-list-${list} canvas`);
  return [...canvas.getContext("2d").getImageData(column, row, 1, 1).data];
}"""


def is_there(page, name, row=0, column=0):
    """Whether a list's cell is painted."""
    return page.evaluate(CELL, [name, row, column])[3] > 0


def test_the_cache_grows_by_a_column_per_token(show):
    page = show(steps("k"))
    for token in range(5):
        choose(page, "k = linear(a, W_k)")
        for name in ("keys", "values"):
            there = [is_there(page, name, 15, column) for column in range(5)]
            assert there == [column < token for column in range(5)]
        press(page, "Step", "Step")
        assert [is_there(page, "keys", 0, i) for i in range(5)] == [i <= token for i in range(5)]
        assert [is_there(page, "values", 0, i) for i in range(5)] == [i < token for i in range(5)]
        press(page, "Step")
        assert is_there(page, "values", 0, token)
        press(page, "Next token")


def test_bars_are_the_weights_of_the_heads_so_far(show):
    page = show(steps("weights", token=15, head=2, name="emm"))  # the last token that there is
    assert button(page, "Token m (3)").get_attribute("aria-pressed") == "true"
    assert button(page, "head 3").get_attribute("aria-pressed") == "true"
    weights = walked(page, steps())[3]["weights"]
    paths = page.locator(".attn-list-weights path").evaluate_all(
        "paths => paths.map((path) => path.getAttribute('d'))"
    )
    drawn = [[float(top) for top in re.findall(r"V(\S+)h", path)] for path in paths]
    assert [len(row) for row in drawn] == [4, 4, 4, 0]
    for row in range(3):
        heights = [row + 1 - top for top in drawn[row]]
        torch.testing.assert_close(torch.tensor(heights), torch.tensor(weights[row]))
    assert is_there(page, "joined", 7) and not is_there(page, "joined", 8)
    press(page, "Step")
    assert is_there(page, "joined", 11) and not is_there(page, "joined", 12)


def frames(page, kind):
    """Which lists have frames of a kind, and where: [list, top, left, height, width] in percent."""
    return page.locator(f".attn-grid .attn-{kind}").evaluate_all(
        """frames => frames.map(({parentNode, style: {top, left, height, width}}) => [
            parentNode.closest(".attn-list").querySelector("code").textContent,
            ...[top, left, height, width].map(parseFloat)])"""
    )


def test_frames_say_what_a_line_reads_and_makes(show):
    page = show(steps("scores", token=2, head=3))
    assert frames(page, "reads") == [["q", 75, 0, 25, 100], ["keys", 75, 0, 25, 60]]
    assert frames(page, "makes") == [["scores", 75, 0, 25, 60]]
    choose(page, "values.append(v)")
    assert frames(page, "reads") == [["v", 0, 0, 100, 100]]
    assert frames(page, "makes") == [["values", 0, 40, 100, 20]]
    choose(page, "x = add(x, o)")
    assert frames(page, "reads") == [["o", 0, 0, 100, 100]]
    assert frames(page, "makes") == [["x", 0, 0, 100, 100]]


def test_a_head_is_chosen_and_its_part_stays_bright(show):
    page = show(steps("q_h", token=1))
    press(page, "head 3")
    assert said(page).startswith("Head 3's part")
    alpha = [page.evaluate(CELL, ["keys", row, 0])[3] for row in range(16)]
    assert [a == 255 for a in alpha] == [8 <= row < 12 for row in range(16)]
    choose(page, "q = linear(a, W_q)")
    assert page.evaluate(CELL, ["keys", 0, 0])[3] == 255


def test_it_is_said_once_that_there_is_no_mask(show):
    page = show(steps("v_h", token=2))
    step, told = button(page, "Step"), []
    line, note, next_line = (
        page.locator(part)
        for part in (".attn-code [aria-pressed=true]", ".attn-no-mask:visible", ".attn-no-mask + *")
    )
    while lit(page) != "chances = softmax(logits)":
        step.click()
        assert note.count() == ("mask" in said(page))
        if "mask" in said(page):
            told.append(said(page))
            above, mark, below = (one.bounding_box() for one in (line, note, next_line))
            assert above["y"] < mark["y"] < below["y"]
            assert above["y"] + above["height"] == below["y"]  # it takes no line of its own
    assert len(told) == 1
    assert "the 2 tokens to come" in told[0]
    shown = show(steps("scores", token=4))
    assert "to come" not in said(shown)


def test_numbers_are_read_by_mouse_finger_and_keys(show):
    page = show(steps("chances", token=4))
    line = page.locator(".attn-reading-line")
    found = walked(page, steps())
    page.locator(".attn-list-q .attn-grid").hover(position={"x": 5, "y": 5})
    told = re.fullmatch(r"q\[0\] = (\S+) \(head 1\)", line.inner_text())
    assert float(told[1].replace("−", "-")) == pytest.approx(found[4]["q"][0], abs=0.006)
    page.locator(".attn-list-hidden .attn-grid").tap(position={"x": 1, "y": 1})
    assert line.inner_text().startswith("hidden[0] = ")
    page.locator(".attn-memory").focus()
    for keys, begins in (
        ("ArrowRight", "hidden[16] = "), ("ArrowDown", "hidden[17] = "),
        ("ArrowRight ArrowRight ArrowRight", "keys[0][1] = "), ("ArrowLeft", "hidden[49] = "),
    ):  # fmt: skip
        for key in keys.split():
            page.keyboard.press(key)
        assert line.inner_text().startswith(begins)
    page.keyboard.press("ArrowRight")
    assert "(., head 1)" in line.inner_text()
    page.keyboard.press("End")
    assert "(a, head 1)" in line.inner_text()
    page.keyboard.press("PageUp")  # a line back, while the focus stays
    assert lit(page).startswith("logits")
    assert page.locator(".attn-memory").evaluate("node => node === document.activeElement")
    page.locator(".attn-list-chances .attn-grid").hover()
    assert line.inner_text().startswith("chances[13] isn't")


def test_the_numbers_of_the_table_are_those_of_the_walk(show):
    page = show(steps("mix", token=1, head=3))
    page.get_by_text("The numbers").click()
    page.locator("details tbody tr").first.wait_for()
    found = walked(page, steps())[1]

    def row(caption, name):
        table = page.locator("table").filter(has=page.locator("caption", has_text=caption))
        rows = table.locator("tbody tr")
        texts = [one.locator("th, td").all_inner_texts() for one in rows.all()]
        return next(cells for head, *cells in texts if head == name)

    assert row("weights", "head 2") == [f"{one:.3f}" for one in found["weights"][1]]
    assert row("What comes next", "a") == ["", ""]
    texts = row("Lists of this token", "5")
    assert [text == "" for text in texts] == [False] * 6 + [True, True]
    assert float(texts[2].replace("−", "-")) == pytest.approx(found["q"][5], abs=0.006)


def test_another_name_is_typed_and_a_letter_that_is_not_there_is_refused(show):
    page = show(steps("chances", token=4))
    field = page.get_by_role("textbox", name="Name")
    field.fill("Ann")
    assert page.locator(".attn-tokens button").all_inner_texts() == [".", "a", "n", "n"]
    assert "The name ends here" in said(page)
    field.fill("an!")
    assert "“!”" in page.locator(".attn-refusal").inner_text()
    assert field.get_attribute("aria-invalid") == "true"
    assert page.locator(".attn-tokens button").count() == 4
    field.fill("a" * 16)
    assert "1 to 15 letters" in page.locator(".attn-refusal").inner_text()
    press(page, "tollas")
    assert page.locator(".attn-tokens button").count() == 7
    assert page.locator(".attn-refusal").inner_text() == ""
    assert field.input_value() == "tollas"


def test_it_plays_to_the_end(show):
    page = show(steps("logits", token=3))
    page.clock.install()
    animation = "getComputedStyle(document.querySelector('.attn-frame')).animationName"
    assert page.evaluate(animation) == "none"  # what a page opens with stands there at once
    press(page, "Play")
    page.clock.run_for(2 * PAUSE)
    assert lit(page) == "for pos, token in enumerate(name):"
    assert page.locator("output").get_attribute("aria-live") == "off"
    page.clock.run_for(60 * PAUSE)
    assert lit(page) == "chances = softmax(logits)"
    press(page, "Play")  # it has stopped by itself, and begins anew
    assert lit(page) == "keys, values = [], []"
    choose(page, "q = linear(a, W_q)")
    page.clock.run_for(3 * PAUSE)
    assert lit(page) == "q = linear(a, W_q)"  # a reader who presses a line looks at it
    press(page, "Back", "Step")
    assert page.evaluate(animation) != "none"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(animation) == "none"
    press(page, "Play")  # without gliding
    page.clock.run_for(2 * PAUSE)
    assert lit(page) == "v = linear(a, W_v)"


def test_nothing_moves_from_line_to_line(show):
    for width in (1000, 360):
        page = show(steps("token", token=2, name="mahollulamorabc"), width=width)
        places = set()
        for _ in range(50):
            memory = page.locator(".attn-memory").bounding_box()
            places.add((round(memory["y"] + page.evaluate("scrollY")), round(memory["height"])))
            button(page, "Step").click(force=True)
        assert len(places) == 1


def test_code_and_lists_stand_beside_each_other(show):
    page = show(steps("token", token=2), width=1000)
    code, side = (page.locator(f".attn-{part}").bounding_box() for part in ("code", "side"))
    assert code["x"] + code["width"] <= side["x"] and abs(code["y"] - side["y"]) < 50


def test_on_a_phone_the_lit_line_is_in_sight_above_its_numbers(show):
    page = show(steps("token", token=2), width=360)
    box = page.locator(".attn-code").bounding_box()
    assert box["y"] + box["height"] <= page.locator("output").bounding_box()["y"] + 1
    for name in ("Back", "Step", *["Next token"] * 3, *["Step"] * 16):
        button(page, name).evaluate("button => button.click()")  # a mouse would scroll there
        pressed = page.locator(".attn-code [aria-pressed=true]").bounding_box()
        box = page.locator(".attn-code").bounding_box()
        assert box["y"] <= pressed["y"]
        assert pressed["y"] + pressed["height"] <= box["y"] + box["height"]
    assert box["height"] < 220
    assert min(target_sizes(page)) >= 24
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page = show(steps("chances"), width=360)  # from the start, too
    page.wait_for_function("document.querySelector('.attn-code').scrollTop > 0")


COLORS = """() => [
  getComputedStyle(document.querySelector(".attn-list-weights path")).fill,
  getComputedStyle(document.querySelector(".attn-list-keys .attn-spine span")).backgroundColor,
  getComputedStyle(document.querySelector(".attn-signed")).backgroundImage,
]"""


def test_pictures_keep_their_colors_in_forced_colors(show):
    page = show(steps("weights", token=2))
    before = page.evaluate(COLORS)
    page.emulate_media(forced_colors="active")
    assert page.evaluate(COLORS) == before
    kinds = page.locator(".attn-grid .attn-frame").evaluate_all(
        "nodes => nodes.map((node) => getComputedStyle(node).borderTopStyle)"
    )
    assert kinds == ["dashed", "solid"]
    page.emulate_media(forced_colors="none")


SMALL = example("").get_state()  # what is to be damaged
DAMAGES = {
    "weights should be": {"weights": SMALL["weights"][:-4]},
    "weights holds a number that isn't finite": {"weights": b"\xff" * len(SMALL["weights"])},
    "spec should be that of a GPT of one block": {"spec": SMALL["spec"] | {"blocks": []}},
    "vocabulary should have 4 letters, but has 3": {"vocabulary": "abc"},
    "boundary should be of the vocabulary": {"boundary": "x"},
    "name should be": {"name": "xyz"},
    "names should be": {"names": ["a", "abcd"]},
    "token should be": {"token": 4},
    "line should be": {"line": "mask"},
    "head should be": {"head": 2},
    "code should be": {"code": SMALL["code"][:-1]},
}
