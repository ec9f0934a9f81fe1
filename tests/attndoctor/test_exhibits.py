"""The exhibits are named as themselves, and are what their labels say."""

import inspect
import math
import re
from dataclasses import replace
from importlib import import_module
from itertools import combinations
from pathlib import Path
from pkgutil import iter_modules

import pytest
import torch
from tools import ROOT
from tools.diagnoses import ask, verdict

from attndoctor import museum
from attndoctor.examine import examine
from attndoctor.match import Answers
from attndoctor.module_under_test import reference_answer
from attndoctor.museum import EXHIBITS, SYMPTOMS, Exhibit, named, symptoms
from attndoctor.museum._catalog import ROOMS
from attndoctor.options import DiagnoseOptions
from attndoctor.probes import PROBES, SELF_ATTENTION
from attndoctor.reference import agree
from attnlib import MultiHeadAttention, causal_mask

PAGE = (ROOT / "book" / "museum.md").read_text(encoding="utf-8")
THREADS = [exhibit.thread for exhibit in EXHIBITS if exhibit.thread]
THREAD = r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+"
FILE = r"https://github\.com/[\w.-]+/[\w.-]+/blob/[0-9a-f]{40}/[\w./-]+\.\w+"
by_name = pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)


# --- every exhibit is rejected, and as itself ----------------------------------------------------


@by_name
def test_each_exhibit_is_named_as_itself(exhibit):
    diagnosis = ask(
        exhibit, "", f"only: {exhibit.name}", f"first: {exhibit.killed_by}", exhibit.cause,
        exhibit.hint, "not report: more",  # it explains all that is wrong
        edges=True,
    )  # fmt: skip
    at_an_edge = set(diagnosis.failed) == set(diagnosis.edges)
    assert not diagnosis and verdict(diagnosis) == ("at the edges" if at_an_edge else "broken")


@pytest.fixture(scope="module")
def behavior():
    """What an exhibit answers to a probe that a MultiHeadAttention is asked."""
    tested = examine(MultiHeadAttention, DiagnoseOptions())
    return lambda exhibit, probe: Answers(tested, {}).behavior((exhibit,), probe)


def test_no_two_exhibits_behave_alike(behavior):
    """Otherwise a diagnosis would name the first of them by chance."""
    behaviors = {e.name: [behavior(e, probe) for probe in PROBES] for e in EXHIBITS}
    for (name, ours), (other, theirs) in combinations(behaviors.items(), 2):
        assert any(
            not agree(a, b, probe.tolerance)
            for a, b, probe in zip(ours, theirs, PROBES, strict=True)
        ), f"{name} behaves like {other}"


def test_bugs_are_found_without_the_help_of_an_error(behavior):
    for exhibit in EXHIBITS:
        first = next(probe for probe in PROBES if probe.name == exhibit.killed_by)
        loud = isinstance(behavior(exhibit, first), Exception)
        assert loud == (exhibit.name == "-1e9 in half precision")


def test_on_tokens_alone_exhibits_answer_alike_whatever_else_a_module_takes():
    """So what pairs of them answer is remembered without it."""
    adapter = examine(MultiHeadAttention, DiagnoseOptions()).first
    for one, other in combinations(EXHIBITS[::4], 2):
        steps = tuple(sorted((dict(one.steps) | dict(other.steps)).items()))
        for setting in (adapter.setting, replace(adapter.setting, always_causal=True)):
            everything, nothing = (
                reference_answer(SELF_ATTENTION, setting, takes, steps)
                for takes in (adapter.takes | {"four axes"}, frozenset())
            )
            assert agree(everything, nothing, 0), (one.name, other.name)
            if isinstance(everything, Exception):
                assert str(everything) == str(nothing)


# --- where they stand: in public, on the page, in a file -----------------------------------------


def test_sources_are_threads_or_files_at_one_commit():
    for thread in THREADS:
        assert re.fullmatch(f"{THREAD}|{FILE}", thread.address)
    assert len({thread.address for thread in THREADS}) == len(THREADS)
    assert len(EXHIBITS) - len(THREADS) <= 3  # few are without


@by_name
def test_the_page_of_the_book_shows_it_with_its_first_symptom(exhibit):
    before, shown = PAGE.split(f"\n({exhibit.anchor})=\n### ")  # once
    group = re.findall("^## (.+)$", before, re.M)[-1]
    assert group == symptoms(exhibit)[0].group
    shown = re.split("^##", shown, maxsplit=1, flags=re.M)[0]
    parts = exhibit.anchor.replace("-", "_"), "\n  figure:\n", f'museum.named("{exhibit.name}")'
    assert [shown.find(part) for part in parts] == sorted({*map(shown.index, parts)})
    assert f'\n    "{exhibit.killed_by}": ' in PAGE, f"QUESTIONS lack {exhibit.killed_by!r}"


def test_no_exhibit_stays_in_the_cellar():
    files = [
        import_module(f"attndoctor.museum.{one.name}") for one in iter_modules(museum.__path__)
    ]
    made = [value for file in files for value in vars(file).values() if isinstance(value, Exhibit)]
    hidden = {exhibit.name for exhibit in made} - {exhibit.name for exhibit in EXHIBITS}
    assert not hidden, f"ROOMS doesn't name the file of {', '.join(hidden)}"


def test_no_label_is_without_its_exhibit():
    texts = [Path(one.__file__).with_suffix(".md").read_text("utf-8") for one in ROOMS]
    headings = re.findall("^# (.+)$", "\n".join(texts), re.M)
    assert sorted(headings) == sorted(exhibit.name for exhibit in EXHIBITS)


def test_each_label_has_its_own_words():
    for field in ("name", "cause", "story", "notice", "hint"):
        texts = [getattr(exhibit, field) for exhibit in EXHIBITS]
        assert all(texts) and len(set(texts)) == len(texts)


@by_name
def test_a_label_shows_its_own_code_and_story(exhibit):
    source = exhibit.source
    for function in exhibit.steps.values():
        assert inspect.getsource(function).strip() in source
    assert max(map(len, source.splitlines())) <= 78  # as wide as a page's column
    assert "right:" in source or exhibit.steps.keys() > {"split"}
    label = exhibit._repr_markdown_()
    told = (exhibit.story, exhibit.cause, exhibit.notice, source, f"“{exhibit.killed_by}”")
    assert all(text in label for text in told)
    assert exhibit.cause.endswith(".") and exhibit.cause.count(". ") == 0  # one sentence
    assert exhibit.thread is None or f"]({exhibit.thread.address})" in label


# --- exhibits are modules ------------------------------------------------------------------------


@by_name
def test_an_exhibit_is_a_module(exhibit):
    module, x = exhibit(12, 3, bias=False), torch.randn(2, 5, 12)
    output, weights = module(x, need_weights=True)
    assert output.shape == (2, 5, 12) and weights.isfinite().all()
    with pytest.raises(NotImplementedError):
        module.contributions(x)
    output, weights = exhibit(12, 3, device="meta")(x.to("meta"), causal=True)
    assert output.is_meta and weights.is_meta


def pair(exhibit, d_model=12, num_heads=3, **options):
    """The right attention with biases, and an exhibit with the same parameters."""
    right = MultiHeadAttention(d_model, num_heads, **options).eval()
    for W in (right.W_q, right.W_k, right.W_v, right.W_o):
        torch.nn.init.normal_(W.bias)
    broken = exhibit(d_model, num_heads, **options).eval()
    broken.load_state_dict(right.state_dict())
    return right, broken


def answer(module, *tokens, **options):
    with torch.no_grad():
        return module(*tokens, need_weights=True, **options)


# --- what one sees of them -----------------------------------------------------------------------


def test_each_exhibit_shows_something_and_each_symptom_leads_somewhere():
    shown = [symptoms(exhibit) for exhibit in EXHIBITS]
    assert all(shown) and set().union(*shown) == set(SYMPTOMS)
    assert {first.group for first, *_ in shown} == {symptom.group for symptom in SYMPTOMS}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("causal mask peeks one ahead", {"The loss is too good", "Generated text is nonsense"}),
        ("causal mask ignores the cache", {"Generated text is nonsense"}),
        ("padding on the wrong axis", {"Padding changes the result"}),
        ("NaN only in the gradient", {"The loss is NaN"}),
        ("sqrt(d_model)", {"Maps are too flat"}),
        ("scale upside down", {"Maps are too sharp"}),
        ("dropout in evaluation", {"Evaluation is random"}),
        ("forgotten W_o", {"A matrix never learns", "The maps are right, the output isn't"}),
        ("queries and keys swapped", {"Loaded weights give nonsense"}),
    ],
)
def test_symptoms_are_those_that_the_label_tells(name, shown):
    assert {symptom.name for symptom in symptoms(named(name))} == shown


def test_symptoms_leave_torch_as_it_was():
    torch.manual_seed(3)
    museum.symptoms(Exhibit("new", {}, "", "", "", "", ""))
    after = torch.rand(3)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(3), after)
    assert SYMPTOMS[0].name in repr(SYMPTOMS[0])


# --- loaded weights alone show these -------------------------------------------------------------


def exchange(right, broken):
    broken.W_q.load_state_dict(right.W_k.state_dict())
    broken.W_k.load_state_dict(right.W_q.state_dict())


def turn(*matrices):
    for W in matrices:
        W.weight.copy_(W.weight.T.clone())


def pack(right, broken):
    """Let three blocks of the matrix packed head by head be what queries, keys and values need."""
    for part in ("weight", "bias"):
        rows = torch.cat([getattr(W, part) for W in (right.W_q, right.W_k, right.W_v)])
        by_head = rows.unflatten(0, (right.num_heads, 3, -1))
        for W, heads in zip((broken.W_q, broken.W_k, broken.W_v), by_head.unbind(1), strict=True):
            getattr(W, part).copy_(heads.flatten(0, 1))


def regroup(right, broken):
    """Let query heads 0 and 2, which meet key head 0 now, be those that did so before."""
    order = torch.tensor([0, 2, 1, 3])
    for part in ("weight", "bias"):
        heads = getattr(right.W_q, part).unflatten(0, (4, -1))
        getattr(broken.W_q, part).copy_(heads[order].flatten(0, 1))
    columns = right.W_o.weight.unflatten(1, (4, -1))
    broken.W_o.weight.copy_(columns[:, order].flatten(1))


REARRANGED = {
    "queries and keys swapped": exchange,
    "fused qkv cut by blocks": pack,
    "grouped heads tiled": regroup,
    "transposed unless square": lambda _, b: turn(b.W_q, b.W_k, b.W_v, b.W_o),
    "untransposed square projection": lambda _, b: turn(b.W_o),
}


def test_what_only_loaded_weights_show_is_marked():
    assert {exhibit.name for exhibit in EXHIBITS if exhibit.only_loaded} == REARRANGED.keys()


@pytest.mark.parametrize("name", REARRANGED)
def test_what_only_loaded_weights_show_can_be_learned_around(name):
    num_heads, options = (4, {"num_kv_heads": 2}) if name == "grouped heads tiled" else (3, {})
    right, broken = pair(named(name), num_heads=num_heads, **options)
    x = torch.randn(2, 5, 12)
    expected = answer(right, x)[0]
    assert (answer(broken, x)[0] - expected).abs().max() > 0.1
    with torch.no_grad():
        REARRANGED[name](right, broken)
    torch.testing.assert_close(answer(broken, x)[0], expected, atol=1e-5, rtol=1e-5)


# --- their labels tell the truth -----------------------------------------------------------------


def test_half_of_four_is_its_root():
    for d_model, equal in ((12, True), (30, False)):  # heads of 4 numbers, and of 10
        right, broken = pair(named("d_k ** 1/2"), d_model)
        x = torch.randn(2, 5, d_model)
        assert torch.allclose(answer(right, x)[1], answer(broken, x)[1], atol=1e-6) == equal


def test_rows_sum_to_one_over_the_root_where_the_scale_comes_last():
    _, broken = pair(named("scale after the softmax"))
    sums = answer(broken, torch.randn(2, 5, 12), mask=causal_mask(5))[1].sum(-1)
    torch.testing.assert_close(sums, torch.full((2, 3, 5), 1 / math.sqrt(4)))


def test_floor_division_cannot_be_trained():
    _, broken = pair(named("floor division"))
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide"):
        broken(torch.randn(2, 5, 12))[0].sum().backward()


def test_no_score_is_negative_behind_a_relu():
    right, _ = pair(named("ReLU on the projections"))
    x = torch.randn(2, 5, 12)
    q, k, _ = named("ReLU on the projections").steps["project"](right, x, x, x)
    assert (q @ k.mT >= 0).all() and (right.W_q(x) @ right.W_k(x).mT < 0).any()


def test_values_made_from_the_keys_follow_W_k():
    exhibit = named("values made from the keys")
    _, broken = pair(exhibit)
    x = torch.randn(2, 5, 12)
    torch.nn.init.zeros_(broken.W_k.weight)
    _, _, v = exhibit.steps["project"](broken, x, x, x)
    assert torch.allclose(v, v[:, :1])  # nothing of the tokens is left


def test_only_square_matrices_stay_turned():
    exhibit = named("transposed unless square")
    right, broken = pair(exhibit, 12, 6, num_kv_heads=3)
    x = torch.randn(2, 5, 12)
    q, k, v = exhibit.steps["project"](broken, x, x, x)
    assert torch.allclose(k, right.W_k(x)) and torch.allclose(v, right.W_v(x))
    assert not torch.allclose(q, right.W_q(x))


def test_pictures_agree_with_the_story_of_the_cache():
    """The one exhibit whose bug is nowhere but in a cache; here by hand, from the definition."""
    triangle = named("causal mask ignores the cache").steps["triangle"]
    assert triangle(1, 5).tolist() == [[True, False, False, False, False]]
    assert torch.equal(triangle(4, 4), causal_mask(4))


def test_one_step_hides_nan_from_the_loss_and_not_from_the_parameters():
    """As the label of "NaN only in the gradient" has it."""
    module, x = named("NaN only in the gradient")(12, 3), torch.randn(2, 5, 12)
    mask = causal_mask(5)
    mask[2] = False
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    output, weights = module(x, mask=mask)
    assert weights.sum() > 1
    output.square().sum().backward()
    optimizer.step()
    output, weights = module(x, mask=mask)
    assert module.W_q.weight.isnan().any() and module.W_k.weight.isnan().any()
    assert module.W_v.weight.isfinite().all() and module.W_o.weight.isfinite().all()
    assert output.isfinite().all() and not weights.any()


def test_nan_rows_reach_the_parameters_in_two_steps():
    """As the label of "NaN rows" has it."""
    module, x = named("NaN rows")(12, 3), torch.randn(2, 5, 12)
    mask = causal_mask(5)
    mask[2] = False
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    for are_nan in ({"W_v", "W_o"}, {"W_q", "W_k", "W_v", "W_o"}):
        module(x, mask=mask)[0].square().sum().backward()
        optimizer.step()
        names = {name.split(".")[0] for name, p in module.named_parameters() if p.isnan().any()}
        assert names == are_nan


def test_one_head_s_values_move_d_k_numbers_where_w_o_is_forgotten():
    """As the label of "forgotten W_o" has it."""
    module, x = named("forgotten W_o")(12, 3), torch.randn(2, 5, 12)
    with torch.no_grad():
        before, _ = module(x)
        module.W_v.weight[4:8] = 0
        after, _ = module(x)
    moved = (before != after).any(1).any(0)
    assert moved.tolist() == [4 <= i < 8 for i in range(12)]
