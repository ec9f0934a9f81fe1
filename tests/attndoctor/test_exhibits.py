"""The exhibits are named as themselves, and are what their labels say."""

import inspect
import re
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

# --- every exhibit is rejected, and as itself ----------------------------------------------------


def test_no_two_exhibits_behave_alike_and_each_label_names_the_question_that_finds_it():
    """If two were alike, a diagnosis would name the first of them by chance."""
    probes = sorted(PROBES, key=lambda probe: probe.sizes == ("dropout",))  # those come last
    answers = Answers(examine(MultiHeadAttention, DiagnoseOptions()), {})
    behaviors = {
        exhibit: [answers.behavior((exhibit,) if exhibit else (), probe) for probe in probes]
        for exhibit in (None, *EXHIBITS)
    }
    for (exhibit, ours), (other, theirs) in combinations(behaviors.items(), 2):
        asked = zip(probes, ours, theirs, strict=True)
        differ = ((probe.name, b) for probe, a, b in asked if not agree(a, b, probe.tolerance))
        if exhibit is None:
            found = dict(differ)[other.killed_by]  # without the help of an error
            assert isinstance(found, Exception) == (other.name == "-1e9 in half precision")
        else:
            assert any(differ), f"{exhibit} behaves like {other}"


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
def test_each_exhibit_is_named_as_itself(exhibit):
    diagnosis = ask(
        exhibit, "", f"only: {exhibit.name}", f"first: {exhibit.killed_by}", exhibit.cause,
        exhibit.hint, "not report: more",  # it explains all that is wrong
        edges=True,
    )  # fmt: skip
    at_an_edge = set(diagnosis.failed) == set(diagnosis.edges)
    assert not diagnosis and verdict(diagnosis) == ("at the edges" if at_an_edge else "broken")


def test_on_tokens_alone_exhibits_answer_alike_whatever_else_a_module_takes():
    """So what pairs of them answer is remembered without it."""
    adapter = examine(MultiHeadAttention, DiagnoseOptions()).first
    for one, other in combinations(EXHIBITS[::4], 2):
        steps = tuple(sorted((dict(one.steps) | dict(other.steps)).items()))
        everything, nothing = (
            reference_answer(SELF_ATTENTION, adapter.setting, takes, steps)
            for takes in (adapter.takes | {"four axes"}, frozenset())
        )
        assert agree(everything, nothing, 0), (one.name, other.name)


# --- where they stand: in public, on the page, in a file -----------------------------------------


def test_sources_are_threads_or_files_at_one_commit():
    for thread in THREADS:
        assert re.fullmatch(f"{THREAD}|{FILE}", thread.address)
    assert len({thread.address for thread in THREADS}) == len(THREADS)
    assert len(EXHIBITS) - len(THREADS) <= 3  # few are without


def test_the_page_of_the_book_shows_each_with_its_first_symptom():
    for exhibit in EXHIBITS:
        before, shown = PAGE.split(f"\n({exhibit.anchor})=\n### ")  # once
        group = re.findall("^## (.+)$", before, re.M)[-1]
        assert group == symptoms(exhibit)[0].group, exhibit
        shown = re.split("^##", shown, maxsplit=1, flags=re.M)[0]
        parts = exhibit.anchor.replace("-", "_"), "\n  figure:\n", f'named("{exhibit.name}")'
        assert [shown.find(part) for part in parts] == sorted({*map(shown.index, parts)})
        assert f'\n    "{exhibit.killed_by}": ' in PAGE, f"QUESTIONS lack {exhibit.killed_by!r}"


def test_each_exhibit_has_one_label_with_its_own_words():
    files = [
        import_module(f"{museum.__name__}.{one.name}") for one in iter_modules(museum.__path__)
    ]
    made = [value for file in files for value in vars(file).values() if isinstance(value, Exhibit)]
    hidden = {exhibit.name for exhibit in made} - {exhibit.name for exhibit in EXHIBITS}
    assert not hidden, f"ROOMS doesn't name the file of {', '.join(hidden)}"
    labels = [Path(one.__file__).with_suffix(".md").read_text("utf-8") for one in ROOMS]
    headings = re.findall("^# (.+)$", "\n".join(labels), re.M)
    assert sorted(headings) == sorted(exhibit.name for exhibit in EXHIBITS)
    for field in ("name", "cause", "story", "notice", "hint"):
        texts = [getattr(exhibit, field) for exhibit in EXHIBITS]
        assert all(texts) and len(set(texts)) == len(texts)


def test_a_label_shows_its_own_code_and_story():
    for exhibit in EXHIBITS:
        source, label = exhibit.source, exhibit._repr_markdown_()
        for function in exhibit.steps.values():
            assert inspect.getsource(function).strip() in source
        assert max(map(len, source.splitlines())) <= 78  # as wide as a page's column
        assert "right:" in source or exhibit.steps.keys() > {"split"}, exhibit
        told = f"Cause.** {exhibit.cause}", f"notice.** {exhibit.notice}", f"“{exhibit.killed_by}”"
        assert all(text in label for text in (exhibit.story, source, *told))
        assert exhibit.cause.endswith(".") and exhibit.cause.count(". ") == 0  # one sentence
        assert exhibit.thread is None or f"]({exhibit.thread.address})" in label


def test_an_exhibit_is_a_module():
    x = torch.randn(2, 5, 12)
    for exhibit in EXHIBITS:
        output, weights = exhibit(12, 3, bias=False)(x, need_weights=True)
        assert output.shape == (2, 5, 12) and weights.isfinite().all()
        output, weights = exhibit(12, 3, device="meta")(x.to("meta"), causal=True)
        assert output.is_meta and weights.is_meta
    with pytest.raises(NotImplementedError):
        EXHIBITS[0](12, 3).contributions(x)


SHOWN = {
    "causal mask peeks one ahead": {"The loss is too good", "Generated text is nonsense"},
    "causal mask ignores the cache": {"Generated text is nonsense"},
    "padding on the wrong axis": {"Padding changes the result"},
    "NaN only in the gradient": {"The loss is NaN"},
    "sqrt(d_model)": {"Maps are too flat"},
    "scale upside down": {"Maps are too sharp"},
    "dropout in evaluation": {"Evaluation is random"},
    "forgotten W_o": {"A matrix never learns", "The maps are right, the output isn't"},
    "queries and keys swapped": {"Loaded weights give nonsense"},
}


def test_symptoms_are_those_that_the_labels_tell_and_each_leads_somewhere():
    shown = {exhibit.name: symptoms(exhibit) for exhibit in EXHIBITS}
    assert all(shown.values()) and set().union(*shown.values()) == set(SYMPTOMS)
    assert {first.group for first, *_ in shown.values()} == {one.group for one in SYMPTOMS}
    assert {name: {one.name for one in shown[name]} for name in SHOWN} == SHOWN
    assert SYMPTOMS[0].name in repr(SYMPTOMS[0])
    torch.manual_seed(3)
    symptoms(Exhibit("new", {}, "", "", "", "", ""))
    after = torch.rand(3)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(3), after)


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


def test_what_only_loaded_weights_show_is_marked_and_can_be_learned_around():
    marked = [exhibit for exhibit in EXHIBITS if exhibit.only_loaded]
    assert {exhibit.name for exhibit in marked} == REARRANGED.keys()
    for exhibit in marked:
        num_heads, kv_heads = (4, 2) if exhibit.name == "grouped heads tiled" else (3, 3)
        right = MultiHeadAttention(12, num_heads, num_kv_heads=kv_heads)
        broken, x = exhibit(12, num_heads, num_kv_heads=kv_heads), torch.randn(2, 5, 12)
        with torch.no_grad():
            for W in (right.W_q, right.W_k, right.W_v, right.W_o):
                torch.nn.init.normal_(W.bias)
            broken.load_state_dict(right.state_dict())
            expected, _ = right(x)
            assert (broken(x)[0] - expected).abs().max() > 0.1
            REARRANGED[exhibit.name](right, broken)
            torch.testing.assert_close(broken(x)[0], expected, atol=1e-5, rtol=1e-5)


def test_nan_rows_reach_half_the_matrices_in_one_step_and_all_in_two():
    module, x, mask = named("NaN rows")(12, 3), torch.randn(2, 5, 12), causal_mask(5)
    mask[2] = False
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    for reached in ({"W_v", "W_o"}, {"W_q", "W_k", "W_v", "W_o"}):
        module(x, mask=mask)[0].square().sum().backward()
        optimizer.step()
        parameters = module.named_parameters()
        assert {name.split(".")[0] for name, p in parameters if p.isnan().any()} == reached


def test_one_head_s_values_move_d_k_numbers_where_w_o_is_forgotten():
    """As the label of "forgotten W_o" has it."""
    module, x = named("forgotten W_o")(12, 3), torch.randn(2, 5, 12)
    with torch.no_grad():
        before, _ = module(x)
        module.W_v.weight[4:8] = 0
        after, _ = module(x)
    moved = (before != after).any(1).any(0)
    assert moved.tolist() == [4 <= i < 8 for i in range(12)]
