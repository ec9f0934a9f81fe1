"""Every exhibit of the museum is rejected and named, and nothing that is right."""

import inspect
import math
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import combinations
from pkgutil import iter_modules

import pytest
import torch
import torch.nn.functional as F
from tools import ROOT
from torch import nn

from attnlib import MultiHeadAttention, causal_mask, museum
from attnlib.museum import EXHIBITS, SteppedAttention, diagnose, named
from attnlib.museum._diagnosis import _agree, _behavior, _right
from attnlib.museum._exhibit import Exhibit
from attnlib.museum._probes import PROBES, copy_state, run

PAGE = ROOT / "book" / "museum.md"
by_name = pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)


@contextmanager
def float64_by_default():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


# --- every exhibit is rejected, and as itself ----------------------------------------------------


@by_name
def test_each_exhibit_is_named_as_itself(exhibit):
    diagnosis = diagnose(exhibit)
    assert not diagnosis
    assert diagnosis.exhibits == (exhibit,)
    assert diagnosis.failed[0] == exhibit.killed_by
    assert exhibit.cause in diagnosis.message and exhibit.hint in diagnosis.message
    assert "There is more" not in diagnosis.message  # it explains all that is wrong
    assert repr(diagnosis).startswith("Broken. ")


def test_no_two_exhibits_behave_alike():
    """Otherwise a diagnosis would name the first of them by chance."""
    behaviors = {e.name: [_behavior((e,), probe) for probe in PROBES] for e in EXHIBITS}
    for (name, ours), (other, theirs) in combinations(behaviors.items(), 2):
        assert any(
            not _agree(a, b, probe) for a, b, probe in zip(ours, theirs, PROBES, strict=True)
        ), f"{name} behaves like {other}"


@by_name
def test_bugs_are_found_without_the_help_of_an_error(exhibit):
    first = next(probe for probe in PROBES if probe.name == exhibit.killed_by)
    loud = isinstance(_behavior((exhibit,), first), Exception)
    assert loud == (exhibit.name == "-1e9 in half precision")


def test_every_probe_kills_something_or_guards_the_others():
    killers = {exhibit.killed_by for exhibit in EXHIBITS}
    assert {probe.name for probe in PROBES} - killers == {"any number of samples"}


@pytest.mark.parametrize(
    "names",
    [
        ("no scale", "forgotten W_o"),
        ("view instead of transpose", "merge without transpose"),
        ("causal mask hides the token itself", "NaN rows"),
    ],
)
def test_two_bugs_at_once_are_both_named(names):
    pair = tuple(named(name) for name in names)
    broken = partial(SteppedAttention, steps=pair[0].steps | pair[1].steps)
    assert set(diagnose(broken).exhibits) == set(pair)


def test_a_second_bug_elsewhere_is_mentioned():
    steps = named("no scale").steps | named("padding on the wrong axis").steps
    diagnosis = diagnose(partial(SteppedAttention, steps=steps))
    assert diagnosis.exhibits == (named("no scale"),)
    assert "There is more (padding)" in diagnosis.message


def test_a_bug_that_no_exhibit_has_is_described():
    for steps, words in (
        ({"softmax": lambda scores: scores.softmax(-1) * 1.5}, "rows of the weights sum to 1.5"),
        ({"report": lambda weights: weights[:, :1]}, "shape [2, 1, 5, 5] instead of [2, 3, 5, 5]"),
        ({"project_out": lambda module, joined: module.W_o(joined) + 1}, "differs by up to 1"),
        ({"softmax": lambda scores: scores / 0 * 0}, "holds NaN"),
        ({"merge": lambda heads: heads.view(1000003)}, "raises RuntimeError"),
        ({"project_out": lambda module, joined: None}, "must be a torch.Tensor, got NoneType"),
        ({"report": lambda weights: list(weights)}, "the weights must be a torch.Tensor, got list"),
        ({"report": lambda weights: weights > 0}, "the weights must hold floating point numbers"),
        ({"report": lambda weights: weights.to_sparse()}, "the weights must be dense numbers"),
        ({"fit_key_mask": lambda mask: torch.ones_like(mask)[:, None, None]}, "with padding"),
        ({"fit_key_mask": lambda mask: ~mask[:, None, None]}, "with padding"),
        ({"drop": lambda weights, dropout: (weights, weights)}, "with dropout"),
    ):
        diagnosis = diagnose(partial(SteppedAttention, steps=steps))
        assert not diagnosis and diagnosis.exhibits == ()
        assert words in diagnosis.message


# --- what is right passes, in other words --------------------------------------------------------


class Projections(nn.Module):
    """The four matrices that everybody has."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def heads(self, x):
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)


class WithEinsum(Projections):
    """Self-attention alone, without masks."""

    def forward(self, x):
        q, k, v = (W(x).unflatten(-1, (self.h, -1)) for W in (self.W_q, self.W_k, self.W_v))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        weights = scores.softmax(-1)
        return self.W_o(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2)), weights


class WithALoop(Projections):
    """One head after the other, with masks of two dimensions or three."""

    def forward(self, query, key, value, mask=None):
        outputs, maps = [], []
        allowed = torch.ones(1, 1, dtype=torch.bool) if mask is None else mask
        for q, k, v in zip(
            *(
                W(x).chunk(self.h, -1)
                for W, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value))
            ),
            strict=True,
        ):
            exponentials = (q @ k.mT / q.shape[-1] ** 0.5).exp() * allowed
            weights = exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-6)
            outputs.append(weights @ v)
            maps.append(weights)
        return self.W_o(torch.cat(outputs, -1)), torch.stack(maps, 1)


class WithSoftmaxInFloat32(Projections):
    """Half precision, but for the softmax, whose weights are shown as they are."""

    def __init__(self, d_model, num_heads, dropout):
        super().__init__(d_model, num_heads)
        self.dropout = dropout

    def forward(self, x, mask=None):
        q, k, v = (self.heads(W(x)) for W in (self.W_q, self.W_k, self.W_v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            mask = mask[:, None] if mask.dim() == 3 else mask
            blind = ~mask.any(-1, keepdim=True)
            scores = scores.masked_fill(~mask & ~blind, -torch.inf)
        weights = scores.softmax(-1, dtype=torch.float32)
        weights = weights if mask is None else weights.masked_fill(blind, 0.0)
        heads = F.dropout(weights, self.dropout, self.training).to(v.dtype) @ v
        return self.W_o(heads.transpose(1, 2).flatten(2)), weights


class Fused(Projections):
    """The kernel, which returns no weights."""

    def forward(self, query, key=None, value=None, *, mask=None, key_mask=None, causal=False):
        q = self.heads(self.W_q(query))
        k, v = self.heads(self.W_k(key)), self.heads(self.W_v(value))
        allowed = mask[:, None] if mask is not None and mask.dim() == 3 else mask
        if key_mask is not None:
            allowed = key_mask[:, None, None]
        heads = F.scaled_dot_product_attention(q, k, v, allowed, is_causal=causal)
        return self.W_o(heads.transpose(1, 2).flatten(2))


class Torch(nn.Module):
    """nn.MultiheadAttention, with everything turned that has to be."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.inner = nn.MultiheadAttention(d_model, num_heads, batch_first=True)

    def forward(self, query, key, value, *, mask=None, key_mask=None):
        hide = None if mask is None else ~mask
        if hide is not None and hide.dim() == 3:
            hide = hide.repeat_interleave(self.inner.num_heads, 0)
        padding = None if key_mask is None else ~key_mask
        blind = None if hide is None else hide.all(-1)
        if blind is not None:  # NaN, otherwise
            hide = hide & ~blind[..., None]
        output, weights = self.inner(
            query, key, value, attn_mask=hide, key_padding_mask=padding, average_attn_weights=False
        )
        if blind is not None and blind.dim() == 1:
            output = torch.where(blind[None, :, None], self.inner.out_proj.bias, output)
            weights = weights.masked_fill(blind[None, None, :, None], 0.0)
        return output, weights


def load_torch(module, reference):
    layers = reference.W_q, reference.W_k, reference.W_v
    with torch.no_grad():
        module.inner.in_proj_weight.copy_(torch.cat([W.weight for W in layers]))
        module.inner.in_proj_bias.copy_(torch.cat([W.bias for W in layers]))
    module.inner.out_proj.load_state_dict(reference.W_o.state_dict())


@pytest.mark.parametrize(
    ("candidate", "load", "asked"),
    [
        (MultiHeadAttention, copy_state, 13),
        (partial(SteppedAttention, steps={}), copy_state, 13),
        (WithEinsum, copy_state, 1),
        (WithALoop, copy_state, 8),
        (WithSoftmaxInFloat32, copy_state, 8),
        (Fused, copy_state, 10),
        (Torch, load_torch, 9),
    ],
    ids=["attnlib", "in steps", "einsum", "loop", "float32 softmax", "fused", "torch"],
)  # fmt: skip
def test_what_is_right_passes_in_other_words(candidate, load, asked):
    diagnosis = diagnose(candidate, load=load)
    assert diagnosis, diagnosis
    assert len(PROBES) - len(diagnosis.untried) == asked
    assert repr(diagnosis).startswith("Healthy. ")
    assert all(name in diagnosis.message for name in diagnosis.untried)


def test_torch_s_own_module_is_named_for_what_it_does():
    """Unadapted, it averages heads; with all heads it still has NaN rows."""

    class Averaging(Torch):
        def forward(self, query, key, value):
            return self.inner(query, key, value)

    class Naive(Torch):
        def forward(self, query, key, value, *, mask=None):
            hide = None if mask is None or mask.dim() == 3 else ~mask
            if mask is not None and mask.dim() == 3:
                hide = ~mask.repeat_interleave(self.inner.num_heads, 0)
            return self.inner(query, key, value, attn_mask=hide, average_attn_weights=False)

    assert diagnose(Averaging, load=load_torch).exhibits == (named("averaged heads"),)
    assert diagnose(Naive, load=load_torch).exhibits == (named("NaN rows"),)


def test_a_bug_in_a_reader_s_own_class_is_named():
    class Mine(WithALoop):
        def forward(self, query, key, value, mask=None):
            if mask is not None:
                mask = ~mask
            return super().forward(query, key, value, mask)

    assert diagnose(Mine).exhibits == (named("inverted mask"),)


def test_the_steps_are_attention():
    module = MultiHeadAttention(12, 6, num_kv_heads=2)
    stepped = SteppedAttention(12, 6, num_kv_heads=2, steps={})
    stepped.load_state_dict(module.state_dict())
    x, mask = torch.randn(2, 5, 12), torch.rand(2, 5, 5) < 0.5
    for options in ({}, {"causal": True}, {"mask": mask, "causal": True}):
        ours, theirs = stepped(x, **options), module(x, need_weights=True, **options)
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


# --- bad input, and leaving things as they were --------------------------------------------------


def test_what_cannot_be_diagnosed_is_told_why():
    with pytest.raises(TypeError, match="hand in the class itself"):
        diagnose(MultiHeadAttention(12, 3))
    with pytest.raises(TypeError, match="got int"):
        diagnose(7)
    with pytest.raises(ValueError, match="pass load="):
        diagnose(nn.MultiheadAttention)
    with pytest.raises(ValueError, match="'no scale'"):
        named("no scales")
    with pytest.raises(TypeError, match="name must be a string, got list"):
        named(["no scale"])


def test_dropout_in_evaluation_is_found():
    class Forgets(WithSoftmaxInFloat32):
        def train(self, mode=True):
            return super().train(True)

    diagnosis = diagnose(Forgets)
    assert not diagnosis and diagnosis.failed == ("training with dropout",)


@pytest.mark.parametrize(
    "settings",
    [
        torch.no_grad,
        torch.inference_mode,
        partial(torch.autocast, "cpu", torch.bfloat16),
        partial(torch.device, "meta"),
        float64_by_default,
    ],
    ids=["no_grad", "inference_mode", "autocast", "another device", "float64"],
)
def test_torch_s_settings_change_no_diagnosis(settings):
    """Neither one made within them nor one made later, for which answers are kept."""
    bug = named("NaN only in the gradient")
    for function in (_behavior, _right):
        function.cache_clear()
    with settings():
        within = diagnose(MultiHeadAttention), diagnose(bug)
    for healthy, broken in (within, (diagnose(MultiHeadAttention), diagnose(bug))):
        assert healthy and broken.exhibits == (bug,)


def test_the_reader_s_random_numbers_stay_the_same():
    torch.manual_seed(3)
    diagnose(WithEinsum)
    after = torch.rand(3)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(3), after)


def test_a_probe_that_cannot_be_asked_gives_nothing():
    cache = next(probe for probe in PROBES if probe.name == "a cache")
    assert run(cache, WithEinsum, copy_state) == []


# --- the labels ----------------------------------------------------------------------------------


def test_no_exhibit_stays_in_the_cellar():
    rooms = [import_module(f"attnlib.museum.{room.name}") for room in iter_modules(museum.__path__)]
    made = [value for room in rooms for value in vars(room).values() if isinstance(value, Exhibit)]
    hidden = {exhibit.name for exhibit in made} - {exhibit.name for exhibit in EXHIBITS}
    assert not hidden, f"EXHIBITS of its file doesn't name {', '.join(hidden)}"


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
    assert output.isfinite().all() and not weights.any()


def test_one_head_s_values_move_d_k_numbers_where_w_o_is_forgotten():
    """As the label of "forgotten W_o" has it."""
    module, x = named("forgotten W_o")(12, 3), torch.randn(2, 5, 12)
    with torch.no_grad():
        before, _ = module(x)
        module.W_v.weight[4:8] = 0
        after, _ = module(x)
    moved = (before != after).any(1).any(0)
    assert moved.tolist() == [4 <= i < 8 for i in range(12)]
