"""HeadAtlas in a real browser, without a kernel: its order, its heads, its rows; and its file."""

import dataclasses
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect
from tools.atlases import made_atlas
from tools.browsing import open_page, violations_on
from tools.engines import FOCUS, wait_for
from tools.weight_pictures import arcs, color_of, painted, short, tiny
from tools.widget_pages import TOKEN_MAP_PLACES, press, unfold

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
    "order should be": {"order": "best"},
    "above should be": {"above": 0.5},
    "patterns should be": {"patterns": [NO_RULE, *SMALL["patterns"][1:]]},
    "layer_names should be": {"layer_names": ["layer"] * 3},
    "maps should be 216 numbers in 216 bytes, but is 215": {"maps": SMALL["maps"][1:]},
    "top_keys should be": {"top_keys": b"\6\0" + SMALL["top_keys"][2:]},
    "scores holds a number that isn't finite": {"scores": b"\xff" * 4 + SMALL["scores"][4:]},
}


IS_DRAWN = "(canvas) => canvas.getContext('2d').getImageData(0, 0, 1, 1).data[3] === 255"
DRAW_ALL = "dispatchEvent(new Event('beforeprint'))"  # else tiles wait until they are seen
DRAWN = f"({IS_DRAWN})(document.querySelector('.attn-tile canvas'))"


def choose(page, head):
    """Press a head's tile; its score belongs to its name, too."""
    page.get_by_role("button", name=head).click()


def tile_names(page):
    return page.locator(".attn-tile-title span:first-child").all_inner_texts()


def tile_numbers(page):
    return page.locator(".attn-tile .attn-number").all_inner_texts()


def name_of(head, h):
    return f"{head // h + 1}.{head % h + 1}"


def row_of(page, place=0):
    """The names and numbers of a row's bars; the token itself may stand there without."""
    lines = page.locator(".attn-keys").nth(place).locator("li:not(:has(> :only-child))")
    return [re.split(r"\n", text) for text in lines.all_inner_texts()]


def keys_of(row):
    """What row_of has of a row of shares, in the order of the text."""
    return [[f"t{key}", short(share)] for key, share in sorted(row)]


def test_the_maps_are_the_heads_shares_and_rows_are_queries(show):
    atlas, _ = made_atlas()
    widget = HeadAtlas(atlas)
    page = show(widget)
    held = np.frombuffer(widget.maps, "u1").reshape(6, 6, 6) / 255  # square roots
    for lifted in (False, True):
        page.get_by_label("Lift faint weights").set_checked(lifted)
        page.evaluate(DRAW_ALL)
        shades = torch.from_numpy(held if lifted else held**2)
        for head in range(6):
            pixels = painted(page.locator(".attn-tile canvas").nth(head))
            may_look = torch.ones(6, 6).tril().bool()
            assert torch.equal(pixels[..., 3] == 255, may_look)
            assert (pixels[..., :3] - color_of(shades[head]))[may_look].abs().max() <= 1
    page.locator(".attn-tile").nth(4).click()
    large, tile = (page.locator(f"{at} canvas") for at in (".attn-plot", ".attn-tile"))
    assert (painted(large.first) == painted(tile.nth(4))).all()


def test_tiles_stand_layer_by_layer_or_by_their_score(show):
    atlas, _ = made_atlas(3, 4, 10)
    page = show(HeadAtlas(atlas))
    assert tile_names(page) == [name_of(head, 4) for head in range(12)]
    for name in ("previous token", "entropy"):
        mean = atlas.scores[name].mean.flatten()
        press(page, name, "layer by layer")
        assert tile_numbers(page) == [tiny(score) for score in mean]
        for order, sign in (("highest first", -1), ("lowest first", 1)):
            press(page, order)
            heads = sorted(range(12), key=lambda head: sign * mean[head])
            assert tile_names(page) == [name_of(head, 4) for head in heads]
            assert tile_numbers(page) == [tiny(mean[head]) for head in heads]
    note = page.locator(".attn-heads + .attn-note").inner_text()
    assert "its entropy score (in nats, low " in note and "baseline: evenly)" in note


def test_heads_that_do_not_beat_the_baseline_are_left_out(show):
    atlas, _ = made_atlas(3, 4, 10)
    page = show(HeadAtlas(atlas))
    scores = atlas.scores["previous token"]
    lead = (scores.mean - scores.baseline).flatten()
    slider = page.get_by_role("slider", name="Above the baseline by")
    for step in range(1, 5):
        slider.press("ArrowRight")
        kept = [head for head in range(12) if lead[head] > (step - 1) * 0.05]
        assert tile_names(page) == [name_of(head, 4) for head in kept]
        least = short((step - 1) * 0.05) if step > 1 else "0"
        expected = f"more than {least}: {len(kept)} of 12 heads"
        assert slider.get_attribute("aria-valuetext") == expected
    slider.press("End")
    assert tile_names(page) == ["1.1"]  # the best one is always left
    slider.press("Home")
    assert len(tile_names(page)) == 12
    press(page, "entropy")
    slider = page.get_by_role("slider", name="Below the baseline by")
    slider.press("End")
    sharpest = int(atlas.scores["entropy"].mean.argmin())
    assert name_of(sharpest, 4) in tile_names(page)


def test_a_baseline_that_nobody_beats_leaves_the_score_to_filter_by(show):
    atlas, _ = made_atlas(3, 4, 10)
    scores = atlas.scores["previous token"]
    beyond = dataclasses.replace(scores, baseline=torch.ones(3, 4, dtype=torch.float64))
    page = show(HeadAtlas(dataclasses.replace(atlas, scores={"previous token": beyond})))
    slider = page.get_by_role("slider", name="none beats its baseline")
    for _ in range(4):
        slider.press("ArrowRight")
    kept = [head for head in range(12) if scores.mean.flatten()[head] > 0.15]
    assert 0 < len(kept) < 12
    assert tile_names(page) == [name_of(head, 4) for head in kept]


def test_a_chosen_head_is_enlarged_and_its_scores_stand_beside_their_baselines(show):
    atlas, _ = made_atlas()
    page = show(HeadAtlas(atlas))
    choose(page, "layer 2, head 3")
    assert page.locator(".attn-heading").first.inner_text() == "Layer 2, head 3 of layer.1"
    rows = page.locator(".attn-scores tr").all_inner_texts()
    means = [short(scores.mean[1, 2]) for scores in atlas.scores.values()]
    bases = [short(scores.baseline[1, 2]) for scores in atlas.scores.values()]
    assert [row.split("\t") for row in rows] == [
        ["score", "2.3", "baseline"],
        ["previous token", f"{means[0]} ± 0.02", bases[0]],
        ["best offset", f"{means[1]} ± 0.02 at −1", bases[1]],
        ["entropy", f"{means[2]} ± 0.02", bases[2]],
    ]
    table, note = page.locator(".attn-scores"), page.locator(".attn-scores + .attn-note")
    for baseline in ("token (40 rows), evenly", "offset (40 rows), always at offset −3"):
        assert baseline in note.inner_text()
    assert note.bounding_box()["y"] == table.bounding_box()["y"]  # beside it: less to scroll
    live = page.locator("[aria-live]").first.inner_text()
    assert live == f"Previous token, layer 2, head 3: {means[0]} ± 0.02 (baseline {bases[0]})"


@pytest.mark.parametrize("T", [6, 130])
def test_a_chosen_token_shows_its_row(show, T):
    atlas, weights = made_atlas(T=T)
    page = show(HeadAtlas(atlas))
    choose(page, "layer 1, head 2")
    token = T - 2
    page.locator(".attn-chip").nth(token).click()
    found = {key: number for key, number in row_of(page)[:-1]}
    row = weights[0, 1, token]
    top = row.topk(min(8, T)).indices.tolist()
    assert found == {f"t{key}": short(row[key]) for key in top if row[key] >= 0.005}
    near = sorted(key for key in top if row[key] >= 0.01)  # in the order of the text
    expect(page.locator(".attn-arc")).to_have_count(len(near))
    torch.testing.assert_close(arcs(page), row[near].double(), atol=1e-3, rtol=0)
    others = token + 1 - len(found)
    assert row_of(page)[-1] == [
        f"{others} others, together",
        short(1 - row[top[: len(found)]].sum()),
    ]
    favorites = weights[:, :, token].argmax(-1).flatten().tolist()
    labels = page.locator(".attn-tile-key").all_inner_texts()
    assert labels == [f"→ t{key}" for key in favorites]
    spoken = page.locator("[aria-live]").last.inner_text()
    most = max(map(favorites.count, favorites))
    assert spoken.startswith(f"From t{token}: {most} of 6 heads look most at ")
    tinted = page.locator(".attn-chip").evaluate_all(
        "chips => chips.flatMap((chip, i) => chip.style.getPropertyValue('--share') ? [i] : [])"
    )
    assert sorted(tinted) == sorted(int(key[1:]) for key in found)


def test_a_row_that_may_look_nowhere_has_no_others(show):
    atlas, _ = made_atlas()
    atlas.top_keys[:, :, 4], atlas.top_weights[:, :, 4], atlas.maps[:, :, 4] = -1, 0, 0
    page = show(HeadAtlas(atlas))
    choose(page, "layer 1, head 2")
    page.locator(".attn-chip").nth(4).click()
    for _ in range(2):
        ((told,),) = row_of(page)
        assert "nothing" in told
        assert "no head" in page.locator("[aria-live]").last.inner_text()
        page.get_by_label("Weight × length of the value").check()


def test_the_chosen_token_is_in_sight_in_the_text(show):
    atlas, _ = made_atlas(T=130)
    widget = HeadAtlas(atlas)
    page = show(widget, widget, width=360)

    def is_in_sight(place):
        box = page.locator(".attn-text").first.bounding_box()
        chip = page.locator(".attn-chip").nth(place).bounding_box()
        return box["y"] <= chip["y"] and chip["y"] + chip["height"] <= box["y"] + box["height"]

    assert is_in_sight(129) and page.evaluate("scrollY") == 0  # the text is scrolled alone
    page.locator(".attn-chip").nth(130 + 3).click()  # in the other view
    assert is_in_sight(3) and not is_in_sight(129)


def test_two_heads_stand_side_by_side(show):
    atlas, weights = made_atlas()
    page = show(HeadAtlas(atlas))
    press(page, "Pin layer 1, head 1")
    assert page.get_by_text("It is pinned").is_visible()
    assert page.locator(".attn-plot").locator("visible=true").count() == 1
    choose(page, "layer 2, head 2")
    left, right = (plot.bounding_box() for plot in page.locator(".attn-plot").all())
    assert abs(left["y"] - right["y"]) < 2 and left["x"] + left["width"] < right["x"]
    assert page.locator(".attn-scores th").nth(1).inner_text() == "2.2"
    assert page.locator(".attn-scores th").nth(2).inner_text() == "1.1"
    best = [weights[at][5].argmax() for at in ((1, 1), (0, 0))]
    assert [row_of(page, place)[0][0] for place in (0, 1)] == [f"t{key}" for key in best]
    page.locator(".attn-plot").last.focus()
    page.keyboard.press("ArrowDown")
    expected = f"2.2 {short(weights[1, 1, 1, 0])}, 1.1 {short(weights[0, 0, 1, 0])}"
    assert page.locator("[aria-live]").first.inner_text() == f"t1 → t0 {expected}"
    press(page, "Unpin layer 1, head 1")
    assert page.locator(".attn-plot").locator("visible=true").count() == 1


def test_a_cell_of_several_tokens_says_which(show):
    atlas, weights = made_atlas(T=130)  # 44 cells of 3 tokens
    page = show(HeadAtlas(atlas))
    choose(page, "layer 2, head 1")
    plot = page.locator(".attn-plot").first
    plot.focus()
    for key in "ArrowDown ArrowDown ArrowRight".split():
        page.keyboard.press(key)
    share = weights[1, 0, 6:9, 3:6].sum(-1).mean()
    expected = f"t6 … t8 (6–8) → t3 … t5 (3–5) {short(share)}"
    assert page.locator("[aria-live]").first.inner_text() == expected
    page.keyboard.press("End")
    assert "(may not look" in page.locator("[aria-live]").first.inner_text()
    for _ in range(43):
        page.keyboard.press("ArrowDown")
    assert page.locator("[aria-live]").first.inner_text().startswith("t129 → ")


def test_weights_are_taken_times_the_length_of_the_value(show):
    atlas, weights = made_atlas()
    page = show(HeadAtlas(atlas))
    choose(page, "layer 2, head 1")
    page.get_by_label("Weight × length of the value").check()
    products = weights[1, 0] * atlas.value_norms[1, 0]
    shares = products / products.sum(-1, keepdim=True)
    assert row_of(page) == keys_of(enumerate(shares[5]))
    legend = page.locator(".attn-legend .attn-entry").first.inner_text()
    assert legend == "share 0\n1"
    assert page.locator(".attn-legend + .attn-note").is_visible()
    page.evaluate(DRAW_ALL)
    pixels = painted(page.locator(".attn-tile canvas").nth(3))
    assert (pixels[..., :3] - color_of(shares))[torch.ones(6, 6).tril().bool()].abs().max() <= 4
    page = show(HeadAtlas(made_atlas(has_values=False)[0]))
    assert page.get_by_label("Weight × length of the value").is_disabled()


def test_of_products_that_are_not_known_it_says_so(show):
    atlas, weights = made_atlas(T=130)
    page = show(HeadAtlas(atlas))
    choose(page, "layer 2, head 1")
    page.get_by_label("Weight × length of the value").check()
    top = weights[1, 0, 129].topk(8)
    products = top.values * atlas.value_norms[1, 0, top.indices]
    shares = products / products.sum()
    assert row_of(page) == keys_of(zip(top.indices.tolist(), shares, strict=True))
    assert "mean length" in page.locator(".attn-legend + .attn-note").inner_text()
    note = page.locator(".attn-arcs + .attn-note").first.inner_text()
    assert "8 largest" in note and "other 122 keys" in note


def test_the_numbers_stand_in_tables(show):
    atlas, weights = made_atlas()
    page = show(HeadAtlas(atlas))
    press(page, "highest first")
    unfold(page)
    scores, rows = page.locator(".attn-table table").all()
    row = weights[0, 0, 5].sort(descending=True)
    assert rows.locator("tbody tr").first.inner_text() == f"t4\t{short(row.values[0], 3)}"
    first = scores.locator("tbody tr").first.inner_text().split("\t")
    mean, base = (
        short(getattr(atlas.scores["entropy"], part)[0, 0]) for part in ("mean", "baseline")
    )
    assert first[0] == "1.1" and first[3] == f"{mean} ± 0.02 ({base})"
    assert scores.locator("tbody tr").count() == 6


def test_tiles_and_tokens_are_walked_by_keys(show):
    page = show(HeadAtlas(made_atlas()[0]))
    page.locator(".attn-tile").first.focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert page.locator(".attn-heading strong").first.inner_text() == "Layer 2, head 2"
    page.locator(".attn-chip[tabindex='0']").focus()
    for key in ("Home", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert page.locator(".attn-chip[aria-pressed=true]").inner_text() == "t1"
    # Where the chosen head is left out, Tab still reaches the others.
    page.locator(".attn-tile").last.click()
    page.get_by_role("slider").press("End")
    assert page.locator(".attn-tile[aria-pressed=true]").count() == 0
    assert page.locator(".attn-tile[tabindex='0']").count() == 1


@pytest.mark.parametrize("width", [360, 1000])
def test_a_pressed_tile_brings_the_large_map_into_the_window(show, width):
    page = show(HeadAtlas(made_atlas(6, 4, 12)[0]), width=width)
    page.set_viewport_size({"width": width, "height": 640})
    page.locator(".attn-tile").nth(9).click()
    plot = page.locator(".attn-plot").first.bounding_box()
    assert plot["y"] < 640 - 100


def test_tiles_out_of_sight_are_drawn_when_they_come_in_sight_or_are_printed(show):
    page = show(HeadAtlas(made_atlas(12, 12, 12)[0]), width=360)
    page.wait_for_function(DRAWN)
    drawn = f"[...document.querySelectorAll('.attn-tile canvas')].map({IS_DRAWN})"
    seen = page.evaluate(drawn)
    assert seen[0] and not seen[-1]
    page.locator(".attn-tile").last.focus()
    page.wait_for_function(f"{drawn}.at(-1)")
    assert not all(page.evaluate(drawn))
    page.evaluate(DRAW_ALL)
    assert all(page.evaluate(drawn))


def test_in_forced_colors_maps_keep_theirs_and_the_chosen_is_framed(show):
    page = show(HeadAtlas(made_atlas()[0]))
    page.emulate_media(forced_colors="active")
    for part in (".attn-tile", ".attn-share", ".attn-scale"):
        adjust = "node => getComputedStyle(node).forcedColorAdjust"
        assert page.locator(part).first.evaluate(adjust) == "none"
    chosen = page.locator(".attn-tile[aria-pressed=true]")
    assert chosen.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    page.emulate_media(forced_colors="none")


def test_odd_tokens_can_be_read(show):
    shown = {
        "": "(empty)", " ": "␣", "\n": "⏎", " the": "␣the", "\u200b": "U+200B",
        "\u00a0": "U+00A0", "a b": "a b",
        "\U0001f469\u200d\U0001f680": "\U0001f469\u200d\U0001f680",
    }  # fmt: skip
    page = show(HeadAtlas(made_atlas(T=8, tokens=[*shown])[0]))
    assert page.locator(".attn-chip").all_inner_texts() == [*shown.values()]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """An atlas of 144 heads with odd tokens, saved."""
    odd = ["</script>", "ש\u202eל", "\n", "", "<!--", "\U0001f469\u200d\U0001f680", "\ud800"]
    tokens = [*odd, *(f"token{i}" for i in range(121))]
    path = tmp_path_factory.mktemp("atlas") / "atlas of heads.html"
    HeadAtlas(
        made_atlas(12, 12, 128, tokens=tokens, name="a </title><img> &amp; model")[0]
    ).save_html(path)
    return path


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_the_file_opens_from_a_folder_and_asks_nobody(browser, file, width, scheme):
    with open_page(browser, file.as_uri(), scheme=scheme, width=width) as (page, problems):
        page.locator(".attn-tile").first.wait_for()
        page.wait_for_function(DRAWN)
        title = "Atlas of heads: a </title><img> &amp; model"
        assert page.title() == page.locator("h1").inner_text() == title
        assert page.locator("img").count() == 0
        assert page.locator("html").get_attribute("data-theme") == scheme
        choose(page, "layer 3, head 4")
        page.locator(".attn-chip").first.click()
        assert row_of(page) == [["</script>", "1.00"]]
        page.get_by_text("The texts, token by token").click()
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert violations_on(page) == []
        assert problems == []


def test_a_damaged_file_says_so(browser, file, tmp_path):
    text = file.read_text(encoding="utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace('"head": 0', '"head": 144'), encoding="utf-8")
    page = browser.new_page()
    page.goto(broken.as_uri())
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "could not be started: head should be one of 0 to 143, but is 144" in alert.inner_text()
    page.close()


def test_other_engines_open_the_file(engine, file):
    engine.open(file.as_uri())
    wait_for(engine, f"() => document.querySelector('.attn-tile') !== null && {DRAWN}")
    selector, key = KEY
    before = engine.evaluate("() => document.querySelectorAll('.attn-tile').length")
    assert before == 144 and engine.evaluate(FOCUS, selector)
    for _ in range(4):
        engine.press(key)
    wait_for(engine, "() => document.querySelectorAll('.attn-tile').length < 144")
