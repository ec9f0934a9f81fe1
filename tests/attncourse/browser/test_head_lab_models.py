"""HeadLab's other models in a real browser: a reader's own, one that may not look, two layers.

And how a state names a trained model: by its digest.
"""

import re

import pytest
import torch
from playwright.sync_api import expect
from tools import head_labs as labs
from tools.browser_models import forbidding
from tools.weight_pictures import short
from tools.widget_pages import press, said, style, unfold

from attncourse import data
from attncourse.tasks import concord, diagonals, pack
from attncourse.training import RECIPES
from attncourse.widgets import HeadLab
from attnlib import patterns
from attnlib.model import TransformerModel
from attnlib.norms import RMSNorm

HELD_OUT = 60
TOLD = ".attn-forbid + .attn-note"  # of what becomes of the answers
INDUCTION = RECIPES["induction-short"].task
HEADS = ["1.1", "1.2", "2.1", "2.2"]  # of two layers
# Whether these numbers, and no others, stand in some places.
STAND_THERE = r"""([selector, numbers]) => {
  const texts = [...document.querySelectorAll(selector)].map((node) => node.innerText);
  const found = texts.join().match(/\d?\.\d\d/g) ?? [];
  return found.length === numbers.length &&
    found.every((text, i) => Math.abs(Number(text) - numbers[i]) < 0.0051);
}"""


def barred(page):
    """The paths over looks that are forbidden, in each head's small map."""
    paths = page.locator(".attn-tile .attn-barred-look")
    return paths.evaluate_all("paths => paths.map((path) => path.getAttribute('d'))")


def own_model(num_heads=4):
    """A small model of another form than the course's, with weights that nobody has trained."""
    torch.manual_seed(0)
    model = TransformerModel.of_sizes(
        concord, 24, num_heads, d_ff=20, norm=RMSNorm, norm_position="post",
        num_kv_heads=num_heads // 2, bias=True, embedding_std=0.5,
    )  # fmt: skip
    return model.eval()


def test_a_readers_model_is_trained_on_or_in_its_form_with_the_numbers_of_heads_that_fit(lab):
    model = own_model()
    page = lab(labs.quick(None, steps=1, model=model, recipe={"warmup": 0, "lr": 1e-12}))
    assert labs.texts(page, ".attn-ticks span") == ["2", "4", "8"]
    own_weights = page.get_by_label("Begin with your model's own weights")
    own_weights.check()
    labs.tells(page, "No head is muted")
    assert labs.texts(page, ".attn-kept button") == ["4 heads, as it came"]
    labs.train(page)
    name = "4 heads, seed 0, from your weights"
    labs.tells(page, f"with {name}")
    state = labs.with_numbers_of(page, own_model()).state_dict()
    torch.testing.assert_close(dict(state), dict(model.state_dict()), atol=1e-6, rtol=0)
    assert page.locator(".attn-run-dot").count() == 0  # this is no repetition
    own_weights.uncheck()
    assert labs.kept(page, 2) == [name, "4 heads, seed 0"]
    ticks = page.locator(".attn-kept [type=checkbox]")  # what began with them isn't kept beside
    assert [tick.is_visible() for tick in ticks.all()] == [False, True]
    page.locator(labs.SLIDER).press("ArrowRight")
    assert own_weights.is_hidden()
    labs.kept(page, 3)
    labs.answered(page)
    form = labs.with_numbers_of(page, own_model(8))
    assert labs.answers_on(page) == labs.answers_of(form, concord.read(HeadLab().sentence))


CASES = {  # a task, what guessing gets, a number of heads, and what else a lab of it is given
    "places, MLP": (diagonals(symbols=4), "0.25", 2, {"symbols": 4, "mlp": True}),
    "own": (concord, "0.25", 4, {"model": own_model(), "from_weights": True}),
    "induction": (INDUCTION, "0.08", 2, {}),
}


def found_by(model, task, sentence, batch, muted=(), forbidden=None):
    """What torch's model answers about a sentence, and the shares that are right in a batch."""
    with forbidding(model, pack([sentence]), forbidden):
        answers = labs.answers_of(model, sentence, muted, task)
    with forbidding(model, batch, forbidden):
        options = {"key_mask": batch.key_mask, "head_masks": labs.masks_of(model, muted)}
        logits = model(batch.tokens, **options).logits
    rights = []
    for own in task.relations:
        is_right = logits[own.readout].argmax(-1) == batch.answers[own.readout]
        rights.append(is_right[batch.partners[own.name] >= 0])
    if len(rights) == 2:  # needs of one place, which may both be right
        rights.append(rights[0] & rights[1])
    return answers, [right.double().mean().item() for right in rights]


@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_all_numbers_are_torchs_with_muted_heads_and_forbidden_looks_too(lab, case):
    task, chance, h, options = CASES[case]
    kind = task.name.split("-")[0]
    held_out = task.sentences(HELD_OUT, seed=labs.HELD_OUT_SEED)
    sentence = concord.read(labs.LONGEST) if task is concord else held_out[0]
    page = lab(labs.quick(h, task=kind, held_out=HELD_OUT, sentence=labs.LONGEST, **options))
    if case == "own":  # as it came
        labs.tells(page, "No head is muted")
        model = options["model"]
        assert page.locator(".attn-curve[d^=M]").count() == 0
    else:
        labs.train(page)
        labs.tells(page, "No head is muted")
        model = labs.model_of(page, h, task, **{"d_ff": 128} if "MLP" in case else {})
    batch = pack(held_out)
    heads = HEADS if kind == "induction" else [str(head + 1) for head in range(h)]

    def compare(*change):
        answers, shares = found_by(model, task, sentence, batch, *change)
        assert labs.answers_on(page) == answers
        page.wait_for_function(STAND_THERE, arg=[labs.BARS, shares])
        wrong = sum(not right for own in answers for _, right in own)
        assert re.search(rf"\b{wrong or 'none'} (is|are) wrong", said(page))
        return shares

    shares = compare()
    per_layer = " a layer" if kind == "induction" else ""
    assert labs.texts(page, ".attn-kept button")[0].startswith(f"{h} heads{per_layer}, ")
    unfold(page)
    commands = labs.texts(page, ".attn-digest code")[1:]  # none trains other recipes than ours
    assert len(commands) == (case == "induction")
    rows = page.locator("details tbody tr").evaluate_all(labs.CELLS)
    cells = {name: numbers for name, *numbers in rows}
    if len(shares) == 3:
        assert cells["both"][:3] == [short(float(chance) ** 2), "–", short(shares[2], 3)]
        assert f"both ({short(shares[2])})" in said(page)
    tiles = page.locator(".attn-tile:visible")
    assert len({style(tile, "borderTopColor") for tile in tiles.all()}) == h
    layers = model(batch.tokens, key_mask=batch.key_mask, need_weights=True).weights
    for relation, right in zip(task.relations, shares, strict=False):
        name, partners = relation.name.replace(">", " → "), batch.partners[relation.name]
        scores = patterns.relation_mass(torch.cat(layers, 1), partners)
        offset, distance = patterns.best_offset(partners)
        behind = f" ({'+' if offset > 0 else '−'}{abs(offset)})"
        if kind == "diagonals":  # where a fixed distance is the task itself
            asking = [row for row in range(task.length) if partners[0, row] >= 0]
            behind, distance = "", sum(1 / (row + 1) for row in asking) / len(asking)
        assert cells[name][:3] == [chance, short(distance, 3) + behind, short(right, 3)]
        assert list(map(float, cells[name][3:])) == pytest.approx(scores.heads.tolist(), abs=0.001)
        row = page.locator(".attn-score", has_text=name)
        assert labs.texts(row, ".attn-best") == [heads[scores.best]]
        color = style(row.locator(".attn-swatch"), "backgroundColor")
        assert color == style(tiles.nth(scores.best), "borderTopColor")
        lines = row.locator(".attn-baseline").evaluate_all(
            "lines => lines.map(({style, hidden}) => hidden ? null : parseFloat(style.left) / 100)"
        )
        assert lines == pytest.approx([float(chance), distance], abs=0.0051)
    # By keys the weight is read with which a word looks at its partner, in several heads.
    maps = torch.cat(model(torch.tensor([sentence.ids]), need_weights=True).weights, 1)[0]
    row, partner = next(pair for pairs in sentence.partners.values() for pair in pairs.items())
    plot, who, whom = page.locator(".attn-plot"), sentence.words[row], sentence.words[partner]
    for head in (0, len(heads) - 1):
        tiles.nth(head).click()
        expect(plot).to_have_attribute("aria-label", re.compile(f"head {heads[head]};"))
        plot.focus()
        for key in (["ArrowDown"] * row + ["ArrowRight"] * partner) * (head == 0):
            page.keyboard.press(key)  # then it stays in the cell
        looks = f"{who} looks at {whom} with {short(maps[head, row, partner])}. "
        assert page.locator(".attn-read").inner_text().startswith(looks)
    for muted in ([len(heads) - 2, len(heads) - 1], []):
        for head, name in enumerate(heads):
            page.get_by_label(f"head {name} works").set_checked(head not in muted)
        labs.tells(page, f"{' and '.join(heads[head] for head in muted) or 'is muted'}: of ")
        assert page.get_by_role("button", name=", muted").count() == len(muted)
        compare(muted)
    relation = task.relations[0].name
    page.get_by_label("Forbid a look:").select_option(relation.replace(">", " → "))
    where = page.get_by_label("Forbidden in")
    for index, head, barred_heads in ((0, None, range(h)), (2, 1, [1])):
        where.select_option(index=index)
        labs.tells(page, f" in {where.input_value()}: of ")
        forbidden = {"relation": relation, "head": head, "layer": -1}
        now = compare((), forbidden)
        page.wait_for_function(STAND_THERE, arg=[TOLD, [shares[0], now[0]]])
        blank = [head for head, path in enumerate(barred(page)) if path]
        assert blank == [len(heads) - h + head for head in barred_heads]  # of the last layer
    page.get_by_label(f"head {heads[-1]} works").uncheck()
    labs.tells(page, f"{heads[-1]}. Forbidden: ")
    compare([len(heads) - 1], forbidden)


@pytest.mark.everyday
def test_by_keys_a_look_is_forbidden_and_allowed_again(lab):
    widget = HeadLab(model=data.load("concord")[0], from_weights=True)
    widget.set_trait("held_out", HELD_OUT)
    page = lab(widget)
    labs.tells(page, "No head is muted")
    places = (labs.BARS, TOLD, ".attn-sharing .attn-heading")
    before = [labs.texts(page, place) for place in places]
    which = page.get_by_label("Forbid a look:")
    which.focus()
    while which.input_value() != "verb → object":
        page.keyboard.press("ArrowDown")
    labs.tells(page, "Forbidden: verb → object in all heads: of 10")
    assert barred(page) == ["M9 3h1v1h-1z"] * 4  # gave, nephew
    row = page.locator(".attn-score", has_text="verb → object")
    expect(row.locator(".attn-number").nth(1)).to_have_text("0.00")
    assert labs.texts(row, ".attn-best") == [""]  # nobody
    assert row.locator(".attn-before:visible").count() == 2
    legend = page.locator(".attn-legend", has=page.locator(".attn-before-key")).inner_text()
    assert "no look" in legend and "no head" not in legend
    page.locator(".attn-plot").focus()
    for key in ["ArrowDown"] * 3 + ["ArrowRight"] * 9:
        page.keyboard.press(key)
    read = page.locator(".attn-read").inner_text()
    assert read.startswith("gave looks at nephew with 0.00. ") and "forbidden" in read
    which.focus()
    page.keyboard.press("Home")
    labs.tells(page, "No head is muted")
    assert [labs.texts(page, place) for place in places] == before
    assert page.locator(".attn-before:visible").count() == 0


@pytest.mark.everyday
def test_what_a_state_says_of_heads_is_kept_as_far_as_another_model_has_them(lab):
    page = lab(HeadLab(4, forbidden="verb>object", forbidden_in=3))
    which, where = page.get_by_label("Forbid a look:"), page.get_by_label("Forbidden in")
    assert where.input_value() == "head 4"
    page.locator(labs.SLIDER).press("ArrowLeft")
    assert (which.input_value(), where.input_value()) == ("verb → object", "all heads")
    press(page, "Two needs: keys")
    assert which.input_value() == "none"
    options = [labs.texts(one, "option") for one in (which, where)]
    assert options == [["none", "question → first", "question → second"], ["all heads", "head 1"]]
    press(page, "Concord")
    assert which.input_value() == "none"
    widget = labs.quick(task="induction", muted=[3])
    widget.head = 3
    page = lab(widget)
    assert not page.get_by_label("head 2.2 works").is_checked()
    for key in ("ArrowRight", "ArrowLeft"):
        page.locator(labs.SLIDER).press(key)
        expect(page.locator(".attn-large .attn-heading")).to_have_text("Head 2.2")
    for tab, names in (("Concord", ["1"]), ("Induction", HEADS)):
        page.get_by_role("button", name=tab).press("Enter")
        assert labs.texts(page, ".attn-tile-name:visible") == names
        assert labs.texts(page, ".attn-switches label:visible") == names


def test_a_state_has_its_model_and_one_beside_trained_again_and_names_it_by_its_digest(lab):
    widget = labs.quick(2, steps=60, seed=3, muted=[1])  # which leaves time to read
    widget.trained, widget.beside, widget.digest = True, [1, 4], "01234567"
    page = lab(widget)
    page.wait_for_function("/link .* state /.test(document.querySelector('output').textContent)")
    labs.tells(page, "Muted: head 2: of ")
    assert sorted(labs.kept(page, 2)) == ["1 head, seed 4", "2 heads, seed 3"]
    assert page.get_by_role("checkbox", name="1 head, seed 4: keep beside").is_checked()
    unfold(page)
    own = page.locator(".attn-digest strong").inner_text()
    digests, progress = re.compile(r"\b[0-9a-f]{8}\b"), page.locator(labs.PROGRESS)
    assert digests.findall(progress.inner_text()) == ["01234567", own]
    press(page, "Another seed")
    expect(progress).not_to_contain_text("01234567")
    widget.beside = []
    widget.digest = own
    widget.set_trait("digests", {"2 3": "01234567"})  # the course has trained it, too
    page = lab(widget)
    labs.tells(page, "Muted: head 2: of ")
    assert digests.findall(page.locator(labs.PROGRESS).inner_text()) == [own]
    unfold(page)
    expect(page.locator(".attn-digest")).to_contain_text("01234567")
