"""HeadLab's other models in a real browser: a reader's own, one that may not look, two layers."""

import re
from contextlib import nullcontext

import pytest
import torch
from playwright.sync_api import expect
from tools import head_labs as labs
from tools.weight_pictures import short
from tools.widget_pages import press, said, style, unfold

from attncourse import data
from attncourse.interventions import attention_knockout
from attncourse.tasks import concord, diagonals, lookup, pack
from attncourse.training import RECIPES
from attncourse.widgets import HeadLab
from attnlib import palette, patterns
from attnlib.model import TransformerModel
from attnlib.norms import RMSNorm

HELD_OUT = 60
RELATION = "verb>object"
TOLD = ".attn-forbid + .attn-note"  # of what becomes of the answers
INDUCTION = RECIPES["induction-short"].task
HEADS = ["1.1", "1.2", "2.1", "2.2"]  # of two layers
# Whether these are the shares that stand somewhere.
SHARES = """([selector, shares]) => {
  const found = [...document.querySelectorAll(selector)].map((node) => Number(node.textContent));
  return found.length === shares.length &&
    found.every((share, i) => Math.abs(share - shares[i]) < 0.0051);
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
    assert page.evaluate("workers") == 0
    own_weights = page.get_by_label("Begin with your model's own weights")
    own_weights.check()
    labs.tells(page, "No head is muted")
    assert labs.texts(page, ".attn-kept button") == ["4 heads, as it came"]
    labs.train(page)
    name = "4 heads, seed 0, from your weights"
    labs.tells(page, f"with {name}")
    state = labs.with_numbers_of(page, own_model()).state_dict()
    torch.testing.assert_close(dict(state), dict(model.state_dict()), atol=1e-6, rtol=0)
    assert labs.texts(page, ".attn-repeated") == [""]  # this is no repetition
    assert page.locator(".attn-run-dot").count() == 0
    own_weights.uncheck()
    assert labs.kept(page, 2) == [name, "4 heads, seed 0"]
    ticks = page.locator(".attn-kept [type=checkbox]")  # what began with them isn't kept beside
    assert [tick.is_visible() for tick in ticks.all()] == [False, True]
    other = labs.with_numbers_of(page, own_model()).state_dict()
    weights = "blocks.0.attention.W_q.weight"
    assert not torch.allclose(other[weights], state[weights], atol=1e-3)
    page.locator(labs.SLIDER).press("ArrowRight")
    assert own_weights.is_hidden()
    labs.kept(page, 3)
    labs.answered(page)
    form = labs.with_numbers_of(page, own_model(8))
    assert labs.answers_on(page) == labs.answers_of(form, concord.read(HeadLab().sentence))


CASES = {  # a task, what guessing gets, a number of heads, and what else a lab of it is given
    "concord": (concord, "0.25", 4, {"steps": 120, "sentence": labs.LONGEST}),
    "keys": (lookup(values=4), "0.25", 2, {"symbols": 4, "steps": 400}),
    "places, MLP": (diagonals(symbols=4), "0.25", 2, {"symbols": 4, "mlp": True}),
    "own": (concord, "0.25", 4, {"model": own_model(), "from_weights": True}),
    "induction": (INDUCTION, "0.08", 2, {"steps": 100}),
}


# Whether words tell these numbers.
IN_WORDS = r"""([place, numbers]) => {
  const told = document.querySelector(place)?.innerText.match(/\d?\.\d\d/g) ?? [];
  const isNear = (text, i) => Math.abs(Number(text) - numbers[i]) < 0.0051;
  return told.length === numbers.length && told.every(isNear);
}"""


def found_by(model, task, sentence, batch, muted=(), relation=None, heads=None):
    """What torch's model answers about a sentence, and the shares that are right in a batch."""

    def changed(batch):
        if relation is None:
            return nullcontext()
        partners = batch.partners[relation]
        places = partners[:, :, None] == torch.arange(partners.shape[1])
        return attention_knockout(model, places, heads=heads)

    with changed(pack([sentence])):
        answers = labs.answers_of(model, sentence, muted, task)
    with changed(batch):
        options = {"key_mask": batch.key_mask, "head_masks": labs.masks_of(model, muted)}
        logits = model(batch.tokens, **options).logits
    rights = [
        (logits[own.readout].argmax(-1) == batch.answers[own.readout])[
            batch.partners[own.name] >= 0
        ]
        for own in task.relations
    ]
    if len(rights) == 2:  # needs of one place, which may both be right
        rights.append(rights[0] & rights[1])
    return answers, [right.double().mean().item() for right in rights]


def read_by_keys(page, sentence, model, heads):
    """Enlarge each head, and have the weight read with which a word looks at its partner."""
    layers = model(torch.tensor([sentence.ids]), need_weights=True).weights
    pairs = [next(iter(found.items())) for found in sentence.partners.values() if found]
    row, partner = pairs[0]
    is_alone = len({row for found in sentence.partners.values() for row in found}) == 1
    plot, words = page.locator(".attn-plot"), sentence.words
    for head, (name, weights) in enumerate(zip(heads, torch.cat(layers, 1)[0], strict=True)):
        page.locator(".attn-tile:visible").nth(head).click()
        expect(plot).to_have_attribute("aria-label", re.compile(f"head {name};"))
        plot.focus()
        if head == 0:
            page.keyboard.press("Home")
            for key in ["ArrowDown"] * (not is_alone) * row + ["ArrowRight"] * partner:
                page.keyboard.press(key)
        looks = f"{words[row]} looks at {words[partner]} with {short(weights[row, partner])}. That"
        assert page.locator(".attn-read").inner_text().startswith(looks)
    sizes = plot.locator("canvas").evaluate("({width, height}) => [width, height]")
    assert sizes == [len(words), 1 if is_alone else len(words)]  # one row is drawn alone


@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_all_numbers_are_torchs_with_muted_heads_and_forbidden_looks_too(lab, case):
    task, chance, h, options = CASES[case]
    kind = task.name.split("-")[0]
    page = lab(labs.quick(h, task=kind, held_out=HELD_OUT, **options))
    if case != "own":
        labs.train(page)
    labs.tells(page, "No head is muted")
    if case == "own":  # as it came
        model = options["model"]
        assert page.locator(".attn-curve[d^=M]").count() == 0
        assert page.locator("progress").evaluate("bar => bar.value") == 0
    else:
        model = labs.model_of(page, h, task, **{"d_ff": 128} if "MLP" in case else {})
    read = options.get("sentence", HeadLab().sentence)
    sentence = concord.read(read) if task is concord else labs.first_of(task)
    batch = pack(list(task.sentences(HELD_OUT, seed=labs.HELD_OUT_SEED)))
    heads = HEADS if kind == "induction" else [str(head + 1) for head in range(h)]

    def compare(*change):
        answers, shares = found_by(model, task, sentence, batch, *change)
        assert labs.answers_on(page) == answers
        page.wait_for_function(SHARES, arg=[labs.BARS, shares])
        wrong = sum(not right for own in answers for _, right in own)
        assert re.search(rf"\b{wrong or 'none'} (is|are) wrong", said(page))
        return shares

    shares = compare()
    unfold(page)
    rows = page.locator("details tbody tr").evaluate_all(labs.CELLS)
    cells = {name: numbers for name, *numbers in rows}
    if len(shares) == 3:
        both = [short(1 / len(next(iter(task.readouts.values()))) ** 2), "–", short(shares[2], 3)]
        assert cells["both"][:3] == both and f"both ({short(shares[2])})" in said(page)
    layers = model(batch.tokens, key_mask=batch.key_mask, need_weights=True).weights
    for relation, right in zip(task.relations, shares, strict=False):
        name, partners = relation.name.replace(">", " → "), batch.partners[relation.name]
        scores = patterns.relation_mass(torch.cat(layers, 1), partners)
        offset, distance = patterns.best_offset(partners)
        behind = f" ({'+' if offset > 0 else '−'}{abs(offset)})"
        if kind == "diagonals":  # where a fixed distance is the task itself
            asking = [row for row in range(task.length) if partners[0, row] >= 0]
            behind, distance = "", sum(1 / (row + 1) for row in asking) / len(asking)
        numbers = [chance, short(distance, 3) + behind, short(right, 3)]
        assert cells[name][:3] == numbers
        assert list(map(float, cells[name][3:])) == pytest.approx(scores.heads.tolist(), abs=0.001)
        row = page.locator(".attn-score", has_text=name)
        assert labs.texts(row, ".attn-best") == [heads[scores.best]]
        color = style(row.locator(".attn-swatch"), "backgroundColor")
        assert color == labs.in_rgb(palette.head_color(scores.best % h))
        lines = row.locator(".attn-baseline").evaluate_all(
            "lines => lines.map(({style, hidden}) => hidden ? null : parseFloat(style.left) / 100)"
        )
        assert lines == pytest.approx([float(chance), distance], abs=0.0051)
    read_by_keys(page, sentence, model, heads)
    for muted in ([1], [len(heads) - 2, len(heads) - 1], []):
        for head, name in enumerate(heads):
            page.get_by_label(f"head {name} works").set_checked(head not in muted)
        labs.tells(page, f"{' and '.join(heads[head] for head in muted) or 'is muted'}: of ")
        assert page.get_by_role("button", name=", muted").count() == len(muted)
        compare(muted)
    relation = RELATION if task is concord else task.relations[0].name
    page.get_by_label("Forbid a look:").select_option(relation.replace(">", " → "))
    where = page.get_by_label("Forbidden in")
    for i, own in enumerate((None, [0], [1])):
        where.select_option(index=i)
        labs.tells(page, f" in {where.input_value()}: of ")
        now = compare((), relation, own)
        if case == "keys" and own is None:  # it has learned both: one falls, the other stays
            assert now[0] < 0.5 < min(shares[0], now[1])
        place = [one.name for one in task.relations].index(relation)
        page.wait_for_function(IN_WORDS, arg=[TOLD, [shares[place], now[place]]])
        last = [own is None or head in own for head in range(h)]
        blank = [path != "" for path in barred(page)]
        assert blank == [False] * (len(heads) - h) + last
    page.get_by_label(f"head {heads[-1]} works").uncheck()
    labs.tells(page, f"{heads[-1]}. Forbidden: ")
    compare([len(heads) - 1], relation, [1])


@pytest.mark.everyday
def test_by_keys_a_look_is_forbidden_and_allowed_again(lab):
    """The answers that hang on it fall, as torch says, and come back; heads are muted, too."""
    widget = HeadLab(model=data.load("concord")[0], from_weights=True)
    widget.set_trait("held_out", HELD_OUT)
    page = lab(widget)
    labs.tells(page, "No head is muted")
    places = (labs.BARS, TOLD, ".attn-sharing .attn-heading")
    before = [labs.texts(page, place) for place in places]
    own = [relation.name for relation in concord.relations].index(RELATION)
    which, legend = page.get_by_label("Forbid a look:"), page.locator(".attn-legend")
    legend = legend.filter(has=page.locator(".attn-before-key"))
    which.focus()
    for _ in range(1 + own):
        page.keyboard.press("ArrowDown")
    assert which.input_value() == "verb → object"
    for head, name in ((None, "all heads"), (0, "head 1"), (1, "head 2")):
        page.keyboard.press("Tab")
        if head is not None:
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Shift+Tab")
        labs.tells(page, f"Forbidden: verb → object in {name}: of 10")
        cell = "M9 3h1v1h-1z"  # gave, nephew
        assert barred(page) == [cell if head in (None, tile) else "" for tile in range(4)]
        if head is None:
            expect(page.locator(TOLD)).to_contain_text("now")
            assert float(labs.texts(page, labs.BARS)[own]) < 0.5 < float(before[0][own])
            assert len(labs.texts(page, places[2])[0]) > len(before[2][0])  # of it as trained
            assert "no look" in legend.inner_text() and "no head" not in legend.inner_text()
            row = page.locator(".attn-score", has_text="verb → object")
            assert row.locator(".attn-number").all_inner_texts()[1] == "0.00"
            assert row.locator(".attn-best").inner_text() == ""  # nobody
            assert row.locator(".attn-before:visible").count() == 2
            page.locator(".attn-plot").focus()
            for key in ["ArrowDown"] * 3 + ["ArrowRight"] * 9:
                page.keyboard.press(key)
            read = page.locator(".attn-read").inner_text()
            assert read.startswith("gave looks at nephew with 0.00. ") and "forbidden" in read
            which.focus()
    page.get_by_label("head 1 works").uncheck()
    labs.tells(page, "Muted: head 1. Forbidden: verb → object in head 2: of 10 answers")
    assert "no look" in legend.inner_text() and "no head" in legend.inner_text()
    page.get_by_label("head 1 works").check()
    which.focus()
    page.keyboard.press("Home")
    labs.tells(page, "No head is muted")
    assert [labs.texts(page, place) for place in places] == before
    assert page.locator(".attn-before:visible").count() == 0


def test_a_look_stays_forbidden_with_other_heads_but_not_for_one_of_them_nor_in_another_task(lab):
    page = lab(HeadLab(4, forbidden=RELATION, forbidden_in=3))
    which, where = page.get_by_label("Forbid a look:"), page.get_by_label("Forbidden in")
    assert where.input_value() == "head 4"
    page.locator(labs.SLIDER).press("ArrowLeft")
    assert (which.input_value(), where.input_value()) == ("verb → object", "all heads")
    press(page, "Two needs: keys")
    assert which.input_value() == "none"
    options = [one.locator("option").all_inner_texts() for one in (which, where)]
    assert options == [["none", "question → first", "question → second"], ["all heads", "head 1"]]
    press(page, "Concord")
    assert which.input_value() == "none"
    widget = HeadLab()
    widget.forbidden = "1 back"  # a relation of another task
    assert lab(widget).get_by_label("Forbid a look:").input_value() == "none"


@pytest.mark.everyday
def test_a_state_names_heads_of_the_second_layer_and_another_tab_has_none(lab):
    widget = labs.quick(task="induction", muted=[3])
    widget.head = 3
    page = lab(widget)
    assert not page.get_by_label("head 2.2 works").is_checked()
    assert page.locator(".attn-large .attn-heading").inner_text() == "Head 2.2"
    for tab, names in (("Concord", ["1"]), ("Induction", HEADS)):
        page.get_by_role("button", name=tab).press("Enter")
        assert labs.texts(page, ".attn-tile-name:visible") == names
        assert labs.texts(page, ".attn-switches label:visible") == names
    expect(page.locator(labs.SLIDER)).to_have_attribute("aria-valuetext", "2 heads a layer")
    labs.train(page)
    press(page, "Another sequence")
    labs.tells(page, "No head is muted")
    assert labs.texts(page, ".attn-kept button") == ["2 heads a layer, seed 0"]
