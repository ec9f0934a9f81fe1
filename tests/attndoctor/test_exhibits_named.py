"""Every exhibit of the museum is rejected and named, and its label says what it does."""

import inspect
import re
from importlib import import_module
from itertools import combinations
from pathlib import Path
from pkgutil import iter_modules

import pytest
import torch
from tools import ROOT

from attndoctor import diagnose, museum
from attndoctor.examine import examine
from attndoctor.match import Answers
from attndoctor.museum import EXHIBITS, named
from attndoctor.museum._catalog import ROOMS
from attndoctor.museum._exhibit import Exhibit, room
from attndoctor.options import DiagnoseOptions
from attndoctor.probes import PROBES
from attndoctor.reference import agree
from attnlib import MultiHeadAttention, causal_mask

PAGE = ROOT / "book" / "museum.md"
by_name = pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)


# --- every exhibit is rejected, and as itself ----------------------------------------------------


@by_name
def test_each_exhibit_is_named_as_itself(exhibit):
    diagnosis = diagnose(exhibit, edges=True)
    assert not diagnosis
    assert diagnosis.exhibits == (exhibit,)
    assert diagnosis.failed[0] == exhibit.killed_by
    assert exhibit.cause in diagnosis.message and exhibit.hint in diagnosis.message
    assert "There is more" not in diagnosis.message  # it explains all that is wrong
    at_an_edge = set(diagnosis.failed) == set(diagnosis.edges)
    headings = {True: "Healthy, but it differs at the edges. ", False: "Broken. "}
    assert repr(diagnosis).startswith(headings[at_an_edge])


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


@by_name
def test_bugs_are_found_without_the_help_of_an_error(behavior, exhibit):
    first = next(probe for probe in PROBES if probe.name == exhibit.killed_by)
    loud = isinstance(behavior(exhibit, first), Exception)
    assert loud == (exhibit.name == "-1e9 in half precision")


# --- the labels ----------------------------------------------------------------------------------


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


def test_a_room_refuses_an_exhibit_without_its_label(tmp_path):
    (tmp_path / "room.md").write_text("# half\n\n* Story: one.\n* Hint: two.\n")
    exhibit = room(str(tmp_path / "room.py"))
    for name in ("half", "none"):
        with pytest.raises(ValueError, match=f"wanted '# {name}' with Story, Cause"):
            exhibit(name, {})


def test_the_museum_is_large_enough():
    assert len(EXHIBITS) >= 15
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
    assert all(text in label for text in (exhibit.story, exhibit.cause, exhibit.notice, source))
    assert exhibit.cause.endswith(".") and exhibit.cause.count(". ") == 0  # one sentence
    if exhibit.thread is None:
        assert "No public thread known" in label
    else:
        assert exhibit.thread.address.startswith("https://github.com/")
        assert f"]({exhibit.thread.address})" in label


@by_name
def test_the_page_of_the_book_shows_it(exhibit):
    call = f'museum.named("{exhibit.name}")'
    assert call in PAGE.read_text(encoding="utf-8"), f"no cell of book/museum.md calls {call}"


def test_pictures_agree_with_the_story_of_the_cache():
    """The one exhibit whose bug is nowhere but in a cache; here by hand, from the definition."""
    triangle = named("causal mask ignores the cache").steps["triangle"]
    assert triangle(1, 5).tolist() == [[True, False, False, False, False]]
    assert torch.equal(triangle(4, 4), causal_mask(4))


# --- exhibits are modules ------------------------------------------------------------------------


@by_name
def test_an_exhibit_does_without_biases_and_may_be_asked_for_weights(exhibit):
    module, x = exhibit(12, 3, bias=False), torch.randn(2, 5, 12)
    output, weights = module(x, need_weights=True)
    assert output.shape == (2, 5, 12) and weights.isfinite().all()


@by_name
def test_an_exhibit_works_on_other_devices(exhibit):
    module, x = exhibit(12, 3, device="meta"), torch.empty(2, 5, 12, device="meta")
    output, weights = module(x, causal=True)
    assert output.is_meta and weights.is_meta


@by_name
def test_an_exhibit_has_no_contributions(exhibit):
    with pytest.raises(NotImplementedError, match="exhibits have none"):
        exhibit(12, 3).contributions(torch.randn(2, 5, 12))


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
