"""GptSteps in a real browser, without a kernel: torch's numbers, its lines, its manners."""

import base64
import copy
import re
from functools import partial

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools.widget_pages import target_sizes

from attncourse.widgets import GptSteps
from attncourse.widgets.gpt_steps.code import LINES
from attnlib import LayerNorm, RMSNorm, split_heads
from attnlib.blocks import ACTIVATIONS
from attnlib.model import GPT

BARE = partial(RMSNorm, gain=False)
PAUSE = 1000  # milliseconds


def gpt(*sizes, seed=0, std=0.5, **options):
    """A GPT all of whose numbers are random, biases and gains too."""
    generator = torch.Generator().manual_seed(seed)
    model = GPT(*sizes, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=std, generator=generator)
    return model


def microgpt(seed=0, **options):
    return gpt(27, 16, 16, 4, norm=BARE, activation="relu", seed=seed, **options)


def steps(line="cache", token=0, head=0, name="emma", model=None):
    widget = GptSteps(model or microgpt(), origin="random")
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
KEY = (".attn-player button:nth-child(2)", "Space")


WALK = """({values, bytes}) => {
  const {readState} = attnModules["gpt_steps/widget.js"];
  const {walk} = attnModules["gpt_steps/numbers.js"];
  const data = Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0));
  const model = new Map([...Object.entries(values), ["weights", new DataView(data.buffer)]]);
  const {spec, numbers, ids, T} = readState(model);
  return walk(spec, numbers, ids.slice(0, T));
}"""


def walked(page, widget):
    """What the browser computes: for each token the lists by their lines."""
    state = widget.get_state()
    values = {name: value for name, value in state.items() if not isinstance(value, bytes)}
    data = base64.b64encode(state["weights"]).decode()
    return page.evaluate(WALK, {"values": values, "bytes": data})


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


MODELS = {
    "microgpt": microgpt(),
    "the course's": gpt(27, 12, 6, 3, d_ff=10, seed=1),
    "as GPT-2": gpt(27, 9, 8, 2, d_ff=20, tied=True, bias=True, activation="gelu_tanh", seed=2),
    "RMSNorm": gpt(27, 7, 10, 5, d_ff=3, norm=RMSNorm, seed=3),
    "no bias": gpt(27, 5, 4, 1, d_ff=7, norm=partial(LayerNorm, bias=False, eps=0.1), seed=4),
    "scores in the thousands": gpt(27, 6, 12, 4, d_ff=9, std=9.0, seed=5),
}


@pytest.mark.parametrize("case", MODELS)
def test_the_browser_computes_what_the_model_computes(show, case):
    widget = GptSteps(MODELS[case], ["emma"])
    assert_equal_to_torch(show(widget), MODELS[case], widget)


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

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(models())
    def agree(made):
        assert_equal_to_torch(page, *made)

    agree()


def lit(page):
    """The line that is lit, as it stands in the code."""
    return page.locator(".attn-code [aria-pressed=true]").inner_text().strip()


def said(page):
    return page.locator("output").inner_text()


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


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
    page.get_by_role("button", name="weights = softmax(scores)").click()
    assert lit(page) == "weights = softmax(scores)"
    weights = walked(page, steps(token=2))[2]["weights"][1]
    sharpest = max(weights)
    share = f"{sharpest:.2f}".removeprefix("0")
    assert f"Most goes to {['.', 'e', 'm (2)'][weights.index(sharpest)]}, {share}." in said(page)
    page.get_by_role("button", name="keys, values = [], []").click()
    assert said(page) == "The cache begins empty: no token has been read."
    assert page.get_by_role("button", name="Token .").get_attribute("aria-pressed") == "true"


CELL = """([list, row, column]) => {
  const canvas = document.querySelector(`.attn-list-${list} canvas`);
  return [...canvas.getContext("2d").getImageData(column, row, 1, 1).data];
}"""


def is_there(page, name, row=0, column=0):
    """Whether a list's cell is painted."""
    return page.evaluate(CELL, [name, row, column])[3] > 0


def bars(page, name):
    """How high the bars of a list are, row by row, in shares of a row."""
    paths = page.locator(f".attn-list-{name} path").evaluate_all(
        "paths => paths.map((path) => path.getAttribute('d'))"
    )
    return [[float(h) for h in re.findall(r"V(\S+)h", path)] for path in paths]


def test_the_cache_grows_by_a_column_per_token(show):
    page = show(steps("k"))
    step = button(page, "Step")
    for token in range(5):
        page.get_by_role("button", name="k = linear(a, W_k)").click()
        for name in ("keys", "values"):
            there = [is_there(page, name, 15, column) for column in range(5)]
            assert there == [column < token for column in range(5)]
        step.click()
        step.click()
        assert [is_there(page, "keys", 0, i) for i in range(5)] == [i <= token for i in range(5)]
        assert [is_there(page, "values", 0, i) for i in range(5)] == [i < token for i in range(5)]
        step.click()
        assert is_there(page, "values", 0, token)
        button(page, "Next token").click()


def test_bars_are_the_weights_of_the_heads_so_far(show):
    page = show(steps("weights", token=3, head=2))
    weights = walked(page, steps())[3]["weights"]
    drawn = bars(page, "weights")
    assert [len(row) for row in drawn] == [4, 4, 4, 0]
    for row in range(3):
        heights = [row + 1 - top for top in drawn[row]]
        torch.testing.assert_close(torch.tensor(heights), torch.tensor(weights[row]))
    assert is_there(page, "joined", 7) and not is_there(page, "joined", 8)
    button(page, "Step").click()
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
    page.get_by_role("button", name="values.append(v)").click()
    assert frames(page, "reads") == [["v", 0, 0, 100, 100]]
    assert frames(page, "makes") == [["values", 0, 40, 100, 20]]
    page.get_by_role("button", name="x = add(x, o)").click()
    assert frames(page, "reads") == [["o", 0, 0, 100, 100]]
    assert frames(page, "makes") == [["x", 0, 0, 100, 100]]


def test_a_head_is_chosen_and_its_part_stays_bright(show):
    page = show(steps("q_h", token=1))
    button(page, "head 3").click()
    assert said(page).startswith("Head 3's part of the query.")
    alpha = [page.evaluate(CELL, ["keys", row, 0])[3] for row in range(16)]
    assert [a == 255 for a in alpha] == [8 <= row < 12 for row in range(16)]
    page.get_by_role("button", name="q = linear(a, W_q)").click()
    assert page.evaluate(CELL, ["keys", 0, 0])[3] == 255


def test_it_is_said_once_that_there_is_no_mask(show):
    page = show(steps("v_h", token=2))
    step, told = button(page, "Step"), []
    note = page.locator(".attn-no-mask.attn-now")
    while lit(page) != "chances = softmax(logits)":
        step.click()
        assert note.count() == ("mask" in said(page))
        if "mask" in said(page):
            told.append(said(page))
    assert len(told) == 1
    assert "holds only what has been read, and the 2 tokens to come have no key yet" in told[0]
    shown = show(steps("scores", token=4))
    assert "holds only what has been read." in said(shown)
    line, next_line = (
        shown.get_by_role("button", name=name).bounding_box()
        for name in ("scores = [", "weights = ")
    )
    mark = shown.locator(".attn-no-mask").bounding_box()
    assert line["y"] < mark["y"] < next_line["y"]


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
    page.keyboard.press("ArrowRight")
    assert line.inner_text().startswith("hidden[16] = ")
    page.keyboard.press("ArrowDown")
    assert line.inner_text().startswith("hidden[17] = ")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert line.inner_text().startswith("keys[0][1] = ") and "(., head 1)" in line.inner_text()
    page.keyboard.press("ArrowLeft")
    assert line.inner_text().startswith("hidden[49] = ")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    assert "(a, head 1)" in line.inner_text()
    page.keyboard.press("PageUp")  # a line back, while the focus stays
    assert lit(page).startswith("logits")
    assert page.locator(".attn-memory").evaluate("node => node === document.activeElement")
    page.locator(".attn-list-chances .attn-grid").hover()
    assert line.inner_text() == "chances[13] isn't there yet."


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

    assert row("weights", "head 2") == [
        f"{one:.3f}".removeprefix("0") for one in found["weights"][1]
    ]
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
    assert page.locator(".attn-refusal").inner_text() == "This model has no letter “!”."
    assert field.get_attribute("aria-invalid") == "true"
    assert page.locator(".attn-tokens button").count() == 4
    field.fill("a" * 16)
    assert page.locator(".attn-refusal").inner_text() == "A name has 1 to 15 letters here."
    button(page, "tollas").click()
    assert page.locator(".attn-tokens button").count() == 7
    assert page.locator(".attn-refusal").inner_text() == ""
    assert field.input_value() == "tollas"


def test_it_plays_to_the_end_and_pauses(show):
    page = show(steps("logits", token=3))
    page.clock.install()
    button(page, "Play").click()
    page.clock.run_for(2 * PAUSE)
    assert lit(page) == "for pos, token in enumerate(name):"
    assert page.locator("output").get_attribute("aria-live") == "off"
    button(page, "Pause").click()
    page.clock.run_for(3 * PAUSE)
    assert lit(page) == "for pos, token in enumerate(name):"
    button(page, "Play").click()
    page.clock.run_for(60 * PAUSE)
    assert lit(page) == "chances = softmax(logits)"
    button(page, "Play").click()  # it has stopped by itself, and begins anew
    assert lit(page) == "keys, values = [], []"
    page.get_by_role("button", name="q = linear(a, W_q)").click()
    page.clock.run_for(3 * PAUSE)
    assert lit(page) == "q = linear(a, W_q)"  # whoever presses a line wants to look at it


def test_where_motion_is_unwelcome_it_plays_without_gliding(show):
    page = show(steps("q"))
    animation = "getComputedStyle(document.querySelector('.attn-frame')).animationName"
    assert page.evaluate(animation) == "none"  # what a page opens with stands there at once
    button(page, "Back").click()
    assert page.evaluate(animation) != "none"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(animation) == "none"
    page.clock.install()
    button(page, "Play").click()
    page.clock.run_for(2 * PAUSE)
    assert lit(page) == "k = linear(a, W_k)"


def test_nothing_moves_from_line_to_line(show):
    for width in (1000, 360):
        page = show(steps("token", token=2, name="mahollulamorabc"), width=width)
        places = set()
        for _ in range(50):
            memory = page.locator(".attn-memory").bounding_box()
            places.add((round(memory["y"] + page.evaluate("scrollY")), round(memory["height"])))
            button(page, "Step").click(force=True)
        assert len(places) == 1


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


def test_the_lit_line_is_in_sight_from_the_start(show):
    page = show(steps("chances"), width=360)
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
    try:
        assert page.evaluate(COLORS) == before
        kinds = page.locator(".attn-grid .attn-frame").evaluate_all(
            "nodes => nodes.map((node) => getComputedStyle(node).borderTopStyle)"
        )
        assert kinds == ["dashed", "solid"]
    finally:
        page.emulate_media(forced_colors="none")


def test_what_python_chose_is_shown(show):
    page = show(steps("weights", token=15, head=3, name="al"))  # the last token that there is
    assert page.get_by_role("button", name="Token l").get_attribute("aria-pressed") == "true"
    assert button(page, "head 4").get_attribute("aria-pressed") == "true"
    assert lit(page) == "weights = softmax(scores)"


def shorten(state, buffers):
    buffers[0]["data"] = base64.b64encode(base64.b64decode(buffers[0]["data"])[:-4]).decode()


def poison(state, buffers):
    size = len(base64.b64decode(buffers[0]["data"]))
    buffers[0]["data"] = base64.b64encode(b"\xff" * size).decode()


DAMAGES = {
    "weights should be": shorten,
    "weights holds a number that isn't finite": poison,
    "spec should be that of a GPT of one block": lambda state, _: state["spec"].update(blocks=[]),
    "vocabulary should have 4 letters, but has 3": lambda s, _: s.update(vocabulary="abc"),
    "boundary should be of the vocabulary": lambda state, _: state.update(boundary="x"),
    "name should be 1 to 3 of the model's letters": lambda state, _: state.update(name="xyz"),
    "names should be a list of names": lambda state, _: state.update(names=["a", "abcd"]),
    "token should be one of 0 to 3": lambda state, _: state.update(token=4),
    "line should be the name of a line": lambda state, _: state.update(line="mask"),
    "head should be one of 0 to 1": lambda state, _: state.update(head=2),
    "code should be 25 strings": lambda state, _: state["code"].pop(),
}
