"""Interventions change what they name, and leave the model as it was."""

import pytest
import torch

from attncourse.interventions import (
    averaged_heads,
    follower_looks,
    forbidden_looks,
    looks_at,
    muted_heads,
    right_answers,
)
from attncourse.tasks import concord, induction, pack
from attncourse.training.evaluation import evaluate
from attnlib.model import TransformerModel

SENTENCES = concord.sentences(7, seed=3)
BATCH = pack(SENTENCES)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TransformerModel.of_sizes(concord, 24, 3, 2, dtype=torch.float64).eval()


def ask(model):
    with torch.no_grad():
        return model(BATCH.tokens, key_mask=BATCH.key_mask, need_weights=True)


def test_a_relation_s_looks_are_those_to_its_partners():
    partners = torch.tensor([[-1, 0, 2], [1, -1, -1]])
    wanted = torch.zeros(2, 3, 3, dtype=torch.bool)
    wanted[0, 1, 0] = wanted[0, 2, 2] = wanted[1, 0, 1] = True
    assert torch.equal(looks_at(partners), wanted)


@pytest.mark.parametrize("after", [1, 2, 3, 9])
def test_followers_are_found_as_plain_loops_find_them(after):
    tokens = torch.tensor([[1, 2, 1, 3, 1, 2], [4, 4, 4, 5, 5, 4]])
    wanted = [
        [
            [i - after >= 0 and i <= row and sample[i - after] == sample[row] for i in range(6)]
            for row in range(6)
        ]
        for sample in tokens.tolist()
    ]
    assert follower_looks(tokens, after).tolist() == wanted


def test_a_forbidden_look_is_gone_and_the_rest_of_its_row_sums_to_1(model):
    before = ask(model)
    places = looks_at(BATCH.partners["verb>object"])
    with forbidden_looks(model, places, layer=0, heads=[0, 2]):
        after = ask(model)
    left = before.weights[0].masked_fill(places[:, None], 0)
    left = left / left.sum(-1, keepdim=True)
    for head in (0, 2):
        torch.testing.assert_close(after.weights[0][:, head], left[:, head])
    assert torch.equal(after.weights[0][:, 1], before.weights[0][:, 1])
    assert not torch.equal(after.logits["B"], before.logits["B"])
    assert torch.equal(ask(model).logits["B"], before.logits["B"])


def test_the_last_layer_and_all_heads_are_meant_unless_others_are_named(model):
    places = torch.ones(*BATCH.tokens.shape, BATCH.tokens.shape[1], dtype=torch.bool)
    with forbidden_looks(model, places):
        first, last = ask(model).weights
    assert first.sum() > 0
    assert not last.any()  # a row that may look nowhere


def test_looks_are_forbidden_beside_the_causal_mask():
    task = induction(symbols=6, length=9, chunks=(2, 2))
    batch = pack(task.sentences(3, seed=0))
    torch.manual_seed(0)
    model = TransformerModel.of_sizes(task, 8, 2).eval()
    with forbidden_looks(model, follower_looks(batch.tokens)), torch.no_grad():
        [weights] = model(batch.tokens, need_weights=True).weights
    assert not weights.triu(1).any()
    assert not weights[follower_looks(batch.tokens)[:, None].expand_as(weights)].any()


def test_muted_heads_are_those_of_head_masks(model):
    with muted_heads(model, [1], layer=0):
        muted = ask(model).logits["A"]
    masks = [torch.tensor([1.0, 0.0, 1.0]), None]
    with torch.no_grad():
        wanted = model(BATCH.tokens, key_mask=BATCH.key_mask, head_masks=masks).logits["A"]
    torch.testing.assert_close(muted, wanted)


def test_interventions_add_up(model):
    verbs, nouns = (looks_at(BATCH.partners[name]) for name in ("verb>object", "adjective>noun"))
    with forbidden_looks(model, verbs | nouns):
        both = ask(model).weights[1]
    with forbidden_looks(model, verbs), forbidden_looks(model, nouns):
        assert torch.equal(ask(model).weights[1], both)
    with muted_heads(model, [0, 2]):
        both = ask(model).logits["A"]
    with muted_heads(model, [0]), muted_heads(model, [2, 2]):
        assert torch.equal(ask(model).logits["A"], both)


def test_an_averaged_head_says_its_mean_to_every_word(model):
    attention = model.blocks[1].attention
    seen = []
    hook = attention.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    ask(model)
    hook.remove()
    [x] = seen
    with torch.no_grad():
        added = attention.contributions(x, key_mask=BATCH.key_mask)  # [B, h, T, d]
        mean = sum(added[b, 2, : len(one)].sum(0) for b, one in enumerate(SENTENCES))
        mean = mean / sum(map(len, SENTENCES))
        wanted = added[:, :2].sum(1) + mean  # W_o of a task's model has no bias
        with averaged_heads(model, [2, 2]):  # a head that is named twice counts once
            output, _ = attention(x, key_mask=BATCH.key_mask)
    torch.testing.assert_close(output, wanted)


def test_right_answers_are_those_of_an_evaluation(model):
    found = right_answers(model, BATCH, concord.relations)
    wanted = evaluate(model, SENTENCES, concord.relations).relations
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)


@pytest.mark.parametrize("changed", [forbidden_looks, muted_heads, averaged_heads])
def test_the_model_is_as_before_after_an_error_too(model, changed):
    before = ask(model).logits["A"]
    what = looks_at(BATCH.partners["verb>object"]) if changed is forbidden_looks else [0]
    with pytest.raises(KeyError), changed(model, what):
        raise KeyError
    assert torch.equal(ask(model).logits["A"], before)


@pytest.mark.parametrize(
    ("places", "options", "error", "named"),
    [
        (torch.ones(2, 3, 3), {}, TypeError, "places"),
        (torch.ones(3, 3, dtype=torch.bool), {}, ValueError, "places"),
        (torch.ones(2, 3, 4, dtype=torch.bool), {}, ValueError, "places"),
        (torch.ones(2, 3, 3, dtype=torch.bool), {"layer": 2}, ValueError, "layer"),
        (torch.ones(2, 3, 3, dtype=torch.bool), {"heads": [3]}, ValueError, "heads"),
    ],
)
def test_what_can_t_be_forbidden_is_refused_by_name(model, places, options, error, named):
    with pytest.raises(error, match=named), forbidden_looks(model, places, **options):
        pass


def test_followers_begin_one_place_after():
    with pytest.raises(ValueError, match="after"):
        follower_looks(BATCH.tokens, 0)


@pytest.mark.parametrize("changed", [muted_heads, averaged_heads])
def test_a_head_that_isn_t_there_is_refused(model, changed):
    with pytest.raises(ValueError, match="heads"), changed(model, [-1]):
        pass
