"""GptSteps in a real browser, without a kernel: torch's numbers, its lines, its manners."""

import copy
import re

import pytest
import torch
from playwright.sync_api import expect
from tools.small_gpts import MODELS, gpt
from tools.widget_pages import asked, press, said

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
    "boundary should be of the vocabulary": {"boundary": "x"}, "name should be": {"name": "xyz"},
    "names should be": {"names": ["a", "abcd"]}, "token should be": {"token": 4},
    "line should be": {"line": "mask"}, "head should be": {"head": 2},
    "code should be": {"code": SMALL["code"][:-1]},
}  # fmt: skip


WALK = """(model) => {
  const {readState} = attnModules["gpt_steps/widget.js"];
  const {walk} = attnModules["gpt_steps/numbers.js"];
  const {spec, numbers, ids, T} = readState(model);
  return walk(spec, numbers, ids.slice(0, T));
}"""


def walked(page):
    """What the browser computes for "emma": for each token the lists by their lines."""
    return asked(page, steps(), WALK)


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
        found = asked(page, widget, WALK)
        ids = [widget.vocabulary.index(letter) for letter in widget.boundary + widget.name]
        for name, numbers in expected(model, ids).items():
            for token, (own, wanted) in enumerate(zip(found, numbers[0], strict=True)):
                told = torch.tensor(own[name], dtype=torch.float64)
                so_far = wanted[:, : token + 1] if name in ("scores", "weights") else wanted
                assert told.shape == so_far.shape
                gap = (told - so_far).abs().max()
                assert gap <= 1e-7 * numbers.abs().max(), f"{name} of token {token}"


def lit(page):
    """The line that is lit."""
    pressed = "all => all.map((button) => button.ariaPressed).indexOf('true')"
    return LINES[page.locator(".attn-code button").evaluate_all(pressed)]


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def choose(page, line):
    """Press a line of the code."""
    page.locator(".attn-code button").nth(LINES.index(line)).click()


def test_it_goes_line_by_line_head_by_head_token_by_token(show):
    widget = steps(name="em", model=gpt(27, 7, 4, 2))
    page = show(widget)
    code = page.locator(".attn-code button").all_inner_texts()
    assert [line.strip() for line in code] == [line.strip() for line in widget.code]
    step, back = button(page, "Step"), button(page, "Back")
    note, line = page.locator(".attn-no-mask:visible"), page.locator(".attn-code .attn-no-mask + *")
    mask = page.locator("output strong")
    inner = LINES[LINES.index("head") : LINES.index("output")]
    of_token = [*LINES[1 : LINES.index("head")], *inner, *inner, *LINES[LINES.index("output") :]]
    places, masks = [], []
    for now in ["cache", *of_token * 3]:
        assert lit(page) == now
        places.append(said(page))
        assert note.count() == mask.count()
        if note.count():  # once for each token, and it takes no line of its own
            masks.append(re.findall(r"\d", mask.inner_text()))
            above = page.locator(".attn-code [aria-pressed=true]").bounding_box()
            assert above["y"] + above["height"] == line.bounding_box()["y"]
        step.click(force=True)
    assert masks == [["2"], [], []]  # tokens to come, a token, none
    assert step.get_attribute("aria-disabled") == "true"
    for told in reversed(places):
        assert said(page) == told
        back.click(force=True)
    assert said(page) == places[0] != places[1]
    assert back.get_attribute("aria-disabled") == "true"


def test_next_token_goes_over_the_rest_of_this_one(show):
    page = show(steps("q", head=2))
    over = button(page, "Next token")
    for i, letter in enumerate("emma", start=2):
        over.click()
        assert re.findall(r"\d|: .", said(page))[:3] == [str(i), "5", f": {letter}"]
        assert lit(page) == "token"
        to_come = page.locator(".attn-tokens .attn-to-come").all_inner_texts()
        assert to_come == [*"emma"[i - 1 :]]
    over.click()
    assert lit(page) == "chances"
    assert over.get_attribute("aria-disabled") == "true"
    choose(page, "cache")
    assert button(page, "Token .").get_attribute("aria-pressed") == "true"


CELL = """([list, row, column]) => document.querySelector(`.attn-list-${list} canvas`)
  .getContext("2d").getImageData(column, row, 1, 1).data[3]"""


def alpha(page, name, row=0, column=0):
    """How much is to be seen of a list's cell: 0 where nothing is painted."""
    return page.evaluate(CELL, [name, row, column])


def test_the_cache_grows_by_a_column_per_token(show):
    page = show(steps("k"))
    for token in range(5):
        choose(page, "k")
        for keys, values in ((token, token), (token + 1, token), (token + 1, token + 1)):
            for name, count in (("keys", keys), ("values", values)):
                there = [alpha(page, name, 15, column) > 0 for column in range(5)]
                assert there == [column < count for column in range(5)]
            press(page, "Step", *["Step"] * (keys == token))
        press(page, "Next token")


def frames(page, kind):
    """Which lists have frames of a kind, and where: [list, top, left, height, width] in percent."""
    return page.locator(f".attn-grid .attn-{kind}").evaluate_all(
        """frames => frames.map(({parentNode, style: {top, left, height, width}}) => [
            parentNode.closest(".attn-list").querySelector("code").textContent,
            ...[top, left, height, width].map(parseFloat)])"""
    )


def test_frames_say_what_a_line_reads_and_makes_and_a_heads_part_stays_bright(show):
    page = show(steps("scores", token=2, head=3))
    assert frames(page, "reads") == [["q", 75, 0, 25, 100], ["keys", 75, 0, 25, 60]]
    assert frames(page, "makes") == [["scores", 75, 0, 25, 60]]
    press(page, "head 3")
    assert frames(page, "makes") == [["scores", 50, 0, 25, 60]]
    assert [alpha(page, "keys", row) == 255 for row in range(16)] == [
        8 <= row < 12 for row in range(16)
    ]
    choose(page, "append_v")
    assert frames(page, "reads") == [["v", 0, 0, 100, 100]]
    assert frames(page, "makes") == [["values", 0, 40, 100, 20]]
    assert alpha(page, "keys") == 255
    choose(page, "residual_1")
    assert frames(page, "reads") == [["o", 0, 0, 100, 100]]
    assert frames(page, "makes") == [["x", 0, 0, 100, 100]]


def test_bars_are_the_weights_of_the_heads_so_far(show):
    page = show(steps("weights", token=15, head=2, name="emm"))  # the last token that there is
    assert button(page, "Token m (3)").get_attribute("aria-pressed") == "true"
    assert button(page, "head 3").get_attribute("aria-pressed") == "true"
    weights = walked(page)[3]["weights"]
    paths = page.locator(".attn-list-weights path").evaluate_all(
        "paths => paths.map((path) => path.getAttribute('d'))"
    )
    drawn = [[float(top) for top in re.findall(r"V(\S+)h", path)] for path in paths]
    assert drawn[3] == []
    heights = torch.tensor([[row + 1 - top for top in drawn[row]] for row in range(3)])
    torch.testing.assert_close(heights, torch.tensor(weights[:3]))
    most = weights[2].index(max(weights[2]))  # as the line says
    assert page.locator("output bdi").inner_text() == [".", "e", "m (2)", "m (3)"][most]
    assert f"{max(weights[2]):.2f}"[1:] in said(page)
    for joined in (8, 12):
        assert alpha(page, "joined", joined - 1) and not alpha(page, "joined", joined)
        press(page, "Step")


def test_numbers_are_read_by_mouse_finger_and_keys(show):
    page = show(steps("chances", token=4))
    line = page.locator(".attn-reading-line")
    q = walked(page)[4]["q"][0]
    page.locator(".attn-list-q .attn-grid").hover(position={"x": 5, "y": 5})
    told = re.fullmatch(r"q\[0\] = (\S+) \(head 1\)", line.inner_text())
    assert float(told[1].replace("−", "-")) == pytest.approx(q, abs=0.006)
    page.locator(".attn-list-hidden .attn-grid").tap(position={"x": 1, "y": 1})
    for keys, begins in (
        ("", "hidden[0] = "), ("ArrowRight", "hidden[16] = "), ("ArrowDown", "hidden[17] = "),
        ("ArrowRight ArrowRight ArrowRight", "keys[0][1] = "), ("ArrowLeft", "hidden[49] = "),
        ("ArrowRight End", "keys[4][1] = "), ("Home ArrowUp", "keys[0][0] = "),
    ):  # fmt: skip
        page.locator(".attn-memory").focus()
        for key in keys.split():
            page.keyboard.press(key)
        assert line.inner_text().startswith(begins)
    for key, before in (("PageUp", "logits"), ("PageDown", "chances")):  # while the focus stays
        page.keyboard.press(key)
        assert lit(page) == before
        expect(page.locator(".attn-memory")).to_be_focused()
    page.locator(".attn-list-chances .attn-grid").hover()
    shown = line.inner_text()
    assert shown.startswith("chances[13] = ")
    page.keyboard.press("PageUp")  # what isn't there any more
    assert "=" not in line.inner_text()


def test_the_numbers_of_the_table_are_those_of_the_walk(show):
    page = show(steps("mix", token=1, head=3))
    page.locator("summary").last.click()
    page.locator("details tbody tr").first.wait_for()
    found = walked(page)[1]
    cells = "(rows, column) => rows.map((row) => row.children[column].textContent)"

    def read(table, column):
        rows = page.locator("table").nth(table).locator("tbody tr")
        texts = rows.evaluate_all(cells, column)
        return [float(text.replace("−", "-")) if text else None for text in texts]

    for column, name in ((1, "embed"), (3, "q"), (6, "joined")):
        assert read(0, column) == pytest.approx(found[name], abs=0.006)
    for table, column in ((0, 7), (1, 1), (6, 1), (6, 2)):  # o, hidden, logits, chances
        assert {*read(table, column)} == {None}  # not yet
    for table, name in ((4, "scores"), (5, "weights")):
        assert [read(table, token + 1) for token in (0, 1)] == [
            pytest.approx([head[token] for head in found[name]], abs=0.006) for token in (0, 1)
        ]
    choose(page, "chances")
    assert read(0, 1) == pytest.approx(found["residual_2"], abs=0.006)
    assert page.locator(".attn-list-chances .attn-lit").inner_text() == "m"  # what comes next
    assert said(page).endswith(f"{found['chances'][12]:.2f}."[1:])
    for column, name in ((1, "logits"), (2, "chances")):
        assert read(6, column) == pytest.approx(found[name], abs=0.006)


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
    assert tokens.count() == 7
    assert refusal.inner_text() == "" and field.get_attribute("aria-invalid") == "false"
    assert field.input_value() == "tollas"


def test_it_plays_to_the_end_and_stops_where_a_reader_does_anything(show):
    page = show(steps("logits", token=3))
    page.clock.install()
    animation = "getComputedStyle(document.querySelector('.attn-frame')).animationName"
    assert page.evaluate(animation) == "none"  # what a page opens with stands there at once
    press(page, "Play")
    page.clock.run_for(2 * PAUSE)
    assert lit(page) == "token"
    assert page.locator("output").get_attribute("aria-live") == "off"
    page.clock.run_for(60 * PAUSE)
    assert lit(page) == "chances"
    assert page.locator("output").get_attribute("aria-live") == "polite"
    press(page, "Play")  # it has stopped by itself, and begins anew
    assert lit(page) == "cache"
    choose(page, "q")
    page.clock.run_for(3 * PAUSE)
    assert lit(page) == "q"  # a reader who presses a line looks at it
    press(page, "Back", "Step")
    assert page.evaluate(animation) != "none"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(animation) == "none"
    press(page, "Play")  # without gliding
    page.clock.run_for(2 * PAUSE)
    assert lit(page) == "v"


@pytest.mark.parametrize("width", [1000, 360])
def test_nothing_moves_from_line_to_line_and_the_lit_one_is_in_sight(show, width):
    page = show(steps("token", token=2, name="mahollulamorabc"), width=width)
    code, memory, live = (page.locator(f) for f in (".attn-code", ".attn-memory", "output"))
    places = set()
    for name in ["Back", *["Step"] * 30, *["Next token"] * 3, *["Step"] * 16]:
        button(page, name).evaluate("button => button.click()")  # a mouse would scroll there
        box = memory.bounding_box()
        places.add((box["y"], box["height"]))
        box, line = code.bounding_box(), code.locator("[aria-pressed=true]").bounding_box()
        assert box["y"] <= line["y"]
        assert line["y"] + line["height"] <= box["y"] + box["height"]
    assert len(places) == 1
    if width == 1000:
        side = page.locator(".attn-side").bounding_box()  # code and lists are beside each other
        assert box["x"] + box["width"] <= side["x"] and abs(box["y"] - side["y"]) < 50
        return
    assert box["y"] + box["height"] <= live.bounding_box()["y"] + 1
    assert box["height"] < 220
    page = show(steps("chances"), width=360)  # from the start, too
    page.wait_for_function("document.querySelector('.attn-code').scrollTop > 0")


COLORS = """nodes => nodes.map((node) => getComputedStyle(node)).map(
  ({fill, backgroundColor, backgroundImage, borderTopStyle}) =>
    [fill, backgroundColor, backgroundImage, borderTopStyle].join())"""


def test_pictures_keep_their_colors_in_forced_colors_and_frames_differ(show):
    page = show(steps("weights", token=2))
    painted = page.locator(
        ".attn-list-weights path, .attn-list-keys .attn-spine span, .attn-signed"
    )
    before = painted.evaluate_all(COLORS)
    page.emulate_media(forced_colors="active")
    assert painted.evaluate_all(COLORS) == before
    assert len({*page.locator(".attn-grid .attn-frame").evaluate_all(COLORS)}) == 2
    page.emulate_media(forced_colors="none")
