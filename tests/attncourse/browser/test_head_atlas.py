"""HeadAtlas in a real browser, without a kernel: its order, its heads, its rows; and its file."""

import dataclasses
import re

import pytest
import torch
from playwright.sync_api import expect
from tools.atlases import made_atlas
from tools.browsing import open_page, violations_on
from tools.engines import wait_for
from tools.weight_pictures import arcs, painted, short, shows, tiny
from tools.widget_pages import TOKEN_MAP_PLACES, box, numbers_in, press, unfold

from attncourse.widgets import HeadAtlas


def example(text):
    """An atlas for the tests of what every widget does."""
    atlas, _ = made_atlas(tokens=[text, *"bcdef"], name=text)
    return HeadAtlas(atlas)


def largest(text):
    tokens = [f"token{i}" for i in range(23)] + [text]
    atlas, _ = made_atlas(12, 12, 24, tokens=tokens, name=text)
    return HeadAtlas(atlas)


PLACES = {
    *TOKEN_MAP_PLACES,
    "button.attn-tile > bdi.attn-tile-key …",
    "div.attn-text > button.attn-chip title",
    "div.attn-widget > p.attn-title …",
    "button.attn-chip > bdi",
    "div.attn-arcs > svg.attn-arcs-drawing aria-label …",
    "li > bdi.attn-key",
    "li > bdi.attn-query",
    "p.attn-heading > bdi.attn-query",
    "table > caption …",
}
KEY = ("input[type=range]", "ArrowRight")
SMALL = example("a").get_state()  # what is to be damaged
NO_RULE = {name: value for name, value in SMALL["patterns"][0].items() if name != "rule"}
DAMAGES = {
    "head should be": {"head": 6},
    "pinned should be": {"pinned": -2},
    "patterns should be": {"patterns": [NO_RULE, *SMALL["patterns"][1:]]},
    "maps should be 216 numbers in 216 bytes, but is 215": {"maps": SMALL["maps"][1:]},
    "top_keys should be": {"top_keys": b"\6\0" + SMALL["top_keys"][2:]},
    "scores holds a number that isn't finite": {"scores": b"\xff" * 4 + SMALL["scores"][4:]},
}

IS_DRAWN = "(canvas) => canvas.getContext('2d').getImageData(0, 0, 1, 1).data[3] === 255"
DRAW_ALL = "dispatchEvent(new Event('beforeprint'))"  # else tiles wait until they are seen
DRAWN = f"({IS_DRAWN})(document.querySelector('.attn-tile canvas'))"
PRODUCTS = "Weight × length of the value"


def choose(page, head):
    """Press a head's tile; its score belongs to its name, too."""
    page.get_by_role("button", name=re.compile(f"^{head}")).click()


def tiles_of(page):
    """The names and scores of the tiles, in order."""
    parts = (
        page.locator(f".attn-tile-title > {at}") for at in ("span:first-child", ".attn-number")
    )
    return [*zip(*(part.all_inner_texts() for part in parts), strict=True)]


def name_of(head, h):
    return f"{head // h + 1}.{head % h + 1}"


def live(page, place=0):
    return page.locator("[aria-live]").nth(place).inner_text()


def row_of(page, place=0):
    """The names and numbers of a row's bars; the token itself may stand there without."""
    lines = page.locator(".attn-keys").nth(place).locator("li:not(:has(> :only-child))")
    return [text.split("\n") for text in lines.all_inner_texts()]


def keys_of(shares):
    """What row_of has of (key, share), in the order of the text, but for the smallest."""
    return [[f"t{key}", short(share)] for key, share in sorted(shares) if share >= 0.005]


def test_maps_and_rows_are_the_heads_shares(show):
    atlas, weights = made_atlas()
    page = show(HeadAtlas(atlas))
    lifted_shares = (weights.view(6, 6, 6).sqrt() * 255).round() / 255  # as a byte holds them
    products = weights.view(6, 6, 6) * atlas.value_norms.view(6, 1, 6)
    valued = products / products.sum(-1, keepdim=True)
    tiles, may_look = page.locator(".attn-tile canvas"), torch.ones(6, 6).tril().bool()
    legend = page.locator(".attn-legend .attn-entry").first
    for lifted, times_values, shares in (
        (0, 0, lifted_shares**2), (1, 0, lifted_shares), (0, 1, valued),
    ):  # fmt: skip
        page.get_by_label("Lift faint weights").set_checked(bool(lifted))
        page.get_by_label(PRODUCTS).set_checked(bool(times_values))
        page.evaluate(DRAW_ALL)
        assert (".25" in legend.inner_text()) == bool(lifted)
        assert legend.inner_text().startswith("share" if times_values else "weight")
        for canvas, of_head in zip(tiles.all(), shares, strict=True):
            assert torch.equal(painted(canvas)[..., 3] == 255, may_look)
            assert shows(canvas, of_head.double(), within=4 if times_values else 1, where=may_look)
        choose(page, "layer 2, head 2")
        assert (painted(page.locator(".attn-plot canvas").first) == painted(tiles.nth(4))).all()
    *row, _ = row_of(page)  # and one other
    assert row == keys_of(enumerate(valued[4, 5]))
    page = show(HeadAtlas(made_atlas(has_values=False, causal=False)[0]))
    assert page.get_by_label(PRODUCTS).is_disabled()
    assert page.get_by_text("blank").is_hidden()


def test_tiles_are_sorted_and_left_out_by_their_score(show):
    atlas, _ = made_atlas(3, 4, 10)
    page = show(HeadAtlas(atlas))
    slider = page.get_by_role("slider")
    for name, side, size in (("previous token", "Above", 0.05), ("entropy", "Below", 0.25)):
        scores = atlas.scores[name]
        mean = scores.mean.flatten()
        lead = (mean - scores.baseline.flatten()) * (1 if side == "Above" else -1)
        press(page, name)
        assert live(page).startswith(name.capitalize()) and short(mean[0]) in live(page)
        for step in (0, 1, 3):
            slider.fill(str(step))
            assert page.get_by_role("slider", name=side).count() == 1
            kept = [head for head in range(12) if step == 0 or lead[head] > (step - 1) * size]
            told = numbers_in(slider.get_attribute("aria-valuetext"))
            assert told == pytest.approx([(step - 1) * size, len(kept), 12] if step else [12])
            for order, sign in (("layer by layer", 0), ("highest first", -1), ("lowest first", 1)):
                press(page, order)
                heads = sorted(kept, key=lambda head: sign * mean[head])
                assert tiles_of(page) == [(name_of(head, 4), tiny(mean[head])) for head in heads]
        slider.press("End")  # the best one is always left
        assert name_of(int(lead.argmax()), 4) in dict(tiles_of(page))
        assert page.locator(".attn-tile[tabindex='0']").count() == 1  # also where none is pressed
    slider.press("Home")
    page.locator(".attn-tile").first.focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    chosen = page.locator(".attn-tile[aria-pressed=true]").inner_text()
    assert chosen.startswith(tiles_of(page)[5][0])  # four in a line
    # A baseline that nobody beats leaves the score to filter by.
    scores = atlas.scores["previous token"]
    beyond = dataclasses.replace(scores, baseline=scores.baseline + 1)
    page = show(HeadAtlas(dataclasses.replace(atlas, scores={"previous token": beyond})))
    page.get_by_role("slider").fill("4")
    kept = [head for head in range(12) if scores.mean.flatten()[head] > 0.15]
    assert [name for name, _ in tiles_of(page)] == [name_of(head, 4) for head in kept]


def test_a_chosen_head_has_scores_beside_their_baselines_and_a_row_for_a_chosen_token(show):
    atlas, weights = made_atlas(T=130)
    atlas.top_keys[:, :, 4], atlas.top_weights[:, :, 4], atlas.maps[:, :, 4] = -1, 0, 0
    page = show(HeadAtlas(atlas))
    choose(page, "layer 2, head 2")
    unfold(page)

    def numbers(head):
        """Mean, spread and baseline of each score; the second one has an offset, too."""
        found = []
        for each in atlas.scores.values():
            found += [float(each.mean.flatten()[head]), 0.02, float(each.baseline.flatten()[head])]
        return pytest.approx([*found[:5], -1, *found[5:]], abs=0.0051)

    assert numbers_in(" ".join(page.locator(".attn-scores td").all_inner_texts())) == numbers(4)
    assert "40 rows in 2 of 3 " in page.locator(".attn-scores + .attn-note").inner_text()
    scores, shares = page.locator(".attn-table table").all()
    for head, row in enumerate(scores.locator("tbody tr").all()):
        assert row.locator("th").inner_text() == name_of(head, 3)
        assert numbers_in(" ".join(row.locator("td").all_inner_texts())) == numbers(head)
    for token in (2, 125):
        page.locator(".attn-chip").nth(token).click()
        keys = weights[:, :, token].argmax(-1).flatten().tolist()
        assert page.locator(".attn-tile-key").all_inner_texts() == [f"→ t{key}" for key in keys]
        most = max(map(keys.count, keys))
        assert numbers_in(live(page, 1))[:3] == [token, most, 6]  # so many heads of six
    top = weights[1, 1, 125].topk(8)
    pairs = [*zip(top.indices.tolist(), top.values, strict=True)]
    *found, (others, together) = row_of(page)
    assert found == keys_of(pairs)
    assert others.startswith(f"{126 - len(found)} other")
    assert together == short(1 - sum(share for _, share in pairs if share >= 0.005))
    first = shares.locator("tbody tr").first.inner_text()
    assert first == f"t{pairs[0][0]}\t{short(pairs[0][1], 3)}"
    near = [share for _, share in sorted(pairs) if share >= 0.01]
    expect(page.locator(".attn-arc")).to_have_count(len(near))
    torch.testing.assert_close(arcs(page), torch.stack(near).double(), atol=1e-3, rtol=0)
    assert page.locator(".attn-chip[style*='--share']").count() == len(found)  # tinted
    page.get_by_label(PRODUCTS).check()  # shares of what is known
    products = top.values * atlas.value_norms[1, 1, top.indices]
    shares = products / products.sum()
    assert row_of(page) == keys_of(zip(top.indices.tolist(), shares, strict=True))
    page.locator(".attn-chip").nth(4).click()  # which may look nowhere
    assert [len(line) for line in row_of(page)] == [1]  # nothing, and no others
    assert numbers_in(live(page, 1)) == [4]


def test_two_heads_stand_side_by_side_and_are_read_by_keys(show):
    atlas, weights = made_atlas(T=130)  # 44 cells of 3 tokens
    page = show(HeadAtlas(atlas))
    assert page.get_by_label("Lift faint weights").is_checked()  # where cells hold several
    plots = page.locator(".attn-plot").locator("visible=true")
    press(page, "Pin layer 1, head 1")
    assert plots.count() == 1 and page.locator(".attn-row > .attn-note").is_visible()
    choose(page, "layer 2, head 2")
    left, right = (plot.bounding_box() for plot in plots.all())
    assert abs(left["y"] - right["y"]) < 2 and left["x"] + left["width"] < right["x"]
    assert page.locator(".attn-scores th").all_inner_texts()[1:3] == ["2.2", "1.1"]
    for place, at in enumerate([(1, 1), (0, 0)]):
        best = weights[at][129].topk(8).indices.tolist()
        assert {key for key, _ in row_of(page, place)[:-1]} <= {f"t{key}" for key in best}
        heading = page.locator(".attn-heading", has_text="looks at").nth(place).inner_text()
        assert f"layer {at[0] + 1}, head {at[1] + 1}" in heading
    plots.last.focus()
    for key in "ArrowDown ArrowDown ArrowRight".split():
        page.keyboard.press(key)
    first, second = (short(weights[at][6:9, 3:6].sum(-1).mean()) for at in ((1, 1), (0, 0)))
    assert live(page) == f"t6 … t8 (6–8) → t3 … t5 (3–5) 2.2 {first}, 1.1 {second}"
    for key, barred in (("ArrowRight", False), ("ArrowRight", True)):
        page.keyboard.press(key)
        assert ("2.2" not in live(page)) == barred
    press(page, "Unpin layer 1, head 1")
    assert plots.count() == 1


def test_on_a_phone_what_is_chosen_comes_into_sight_and_far_tiles_wait(show):
    page = show(HeadAtlas(made_atlas(12, 12, 130)[0]), width=360)
    page.set_viewport_size({"width": 360, "height": 640})
    text, chip = box(page, ".attn-text"), page.locator(".attn-chip").last.bounding_box()
    assert text["top"] <= chip["y"] and chip["y"] + chip["height"] <= text["bottom"]
    assert page.evaluate("scrollY") == 0  # the text is scrolled alone
    page.wait_for_function(DRAWN)
    drawn = f"[...document.querySelectorAll('.attn-tile canvas')].map({IS_DRAWN})"
    assert not page.evaluate(drawn)[-1]
    page.locator(".attn-tile").last.focus()
    page.wait_for_function(f"{drawn}.slice(-3).every(Boolean)")
    assert not all(page.evaluate(drawn))
    page.locator(".attn-tile").nth(9).tap()
    assert box(page, ".attn-plot")["top"] < 640 - 100
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert all(page.evaluate(drawn))  # on paper none is blank


ODD = {
    "</script>": "</script>", "ש\u202eל": "ש\u202eל", "\n": "⏎", "": "(empty)", " the ": "␣the␣",
    "\u00a0": "U+00A0", "\U0001f469\u200d\U0001f680": "\U0001f469\u200d\U0001f680",
}  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """An atlas of 144 heads with odd tokens, saved as it stands."""
    tokens = [*ODD, "<!--", "\ud800", *(f"token{i}" for i in range(119))]
    path = tmp_path_factory.mktemp("atlas") / "atlas of heads.html"
    atlas, _ = made_atlas(12, 12, 128, tokens=tokens, name="a </title><img> &amp; model")
    widget = HeadAtlas(atlas)
    widget.head, widget.token, widget.order = 27, 0, "highest"
    widget.save_html(path)
    return path


def test_the_file_opens_from_a_folder_in_the_dark_of_a_phone_and_asks_nobody(browser, file):
    with open_page(browser, file.as_uri(), scheme="dark", width=360) as (page, problems):
        page.locator(".attn-tile").first.wait_for()
        page.wait_for_function(DRAWN)
        title = "Atlas of heads: a </title><img> &amp; model"
        assert page.title() == page.locator("h1").inner_text() == title
        assert page.locator("img").count() == 0
        assert page.locator("html").get_attribute("data-theme") == "dark"
        assert page.locator(".attn-heading").first.inner_text().startswith("Layer 3, head 4")
        assert page.locator("[aria-pressed=true]").get_by_text("highest first").count() == 1
        assert row_of(page) == [["</script>", "1.00"]]
        assert page.locator(".attn-chip").all_inner_texts()[: len(ODD)] == [*ODD.values()]
        page.get_by_text("The texts, token by token").click()
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        assert violations_on(page) == []
        page.emulate_media(color_scheme="light")
        expect(page.locator("html")).to_have_attribute("data-theme", "light")
        assert violations_on(page) == []
        assert problems == []


def test_other_engines_open_the_file(engine, file):
    engine.open(file.as_uri())
    count = "document.querySelectorAll('.attn-tile').length"
    wait_for(engine, f"() => {count} === 144 && {DRAWN}")
