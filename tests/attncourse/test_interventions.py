"""Interventions change what they name, and leave the model as it was."""

from functools import partial
from itertools import product

import pytest
import torch
from tools.refusing import refusals

from attncourse.interventions import (
    attention_knockout,
    follower_looks,
    mean_ablation,
    right_answers,
    zero_ablation,
)
from attncourse.tasks import concord, induction, pack
from attncourse.training.evaluation import evaluate
from attnlib.model import TransformerModel
from attnlib.pattern_sums import partner_pairs

SENTENCES = concord.sentences(7, seed=3)
BATCH = pack(SENTENCES)


@pytest.fixture
def model():
    return TransformerModel.of_sizes(concord, 24, 3, 2, dtype=torch.float64).eval()


def ask(model):
    with torch.no_grad():
        return model(BATCH.tokens, key_mask=BATCH.key_mask, need_weights=True)


def test_looks_are_those_that_plain_loops_find():
    partners = torch.tensor([[-1, 0, 2], [1, -1, -1]])
    assert partner_pairs(partners).nonzero().tolist() == [[0, 1, 0], [0, 2, 2], [1, 0, 1]]
    tokens = torch.tensor([[1, 2, 1, 3, 1, 2], [4, 4, 4, 5, 5, 4]])
    for after, b, row, i in product((1, 3, 9), range(2), range(6), range(6)):
        follows = i >= after and tokens[b, i - after] == tokens[b, row] and i <= row
        assert follower_looks(tokens, after)[b, row, i] == follows


def test_a_forbidden_look_is_gone_and_the_rest_of_its_row_sums_to_1(model):
    before = ask(model)
    places = partner_pairs(BATCH.partners["verb>object"])
    with attention_knockout(model, places, layer=0, heads=[0, 2]):
        after = ask(model)
    left = before.weights[0].masked_fill(places[:, None], 0)
    left = left / left.sum(-1, keepdim=True)
    for head in (0, 2):
        torch.testing.assert_close(after.weights[0][:, head], left[:, head])
    assert torch.equal(after.weights[0][:, 1], before.weights[0][:, 1])
    assert not torch.equal(after.logits["B"], before.logits["B"])
    assert torch.equal(ask(model).logits["B"], before.logits["B"])


def test_all_heads_of_the_last_layer_are_meant_beside_the_causal_mask():
    task = induction(symbols=6, length=9, chunks=(2, 2))
    batch = pack(task.sentences(3, seed=0))
    model = TransformerModel.of_sizes(task, 8, 2, 2).eval()
    places = follower_looks(batch.tokens)
    with attention_knockout(model, places), torch.no_grad():
        first, last = model(batch.tokens, need_weights=True).weights
    looked_at = places[:, None].expand_as(last)
    assert not last.triu(1).any() and not last[looked_at].any() and first[looked_at].any()
    with attention_knockout(model, torch.ones_like(places)), torch.no_grad():
        assert not model(batch.tokens, need_weights=True).weights[1].any()


def test_interventions_add_up_and_muted_heads_are_those_of_head_masks(model):
    verbs, nouns = (
        partner_pairs(BATCH.partners[name]) for name in ("verb>object", "adjective>noun")
    )
    with attention_knockout(model, verbs | nouns):
        both = ask(model).weights[1]
    with attention_knockout(model, verbs), attention_knockout(model, nouns):
        assert torch.equal(ask(model).weights[1], both)
    with (
        zero_ablation(model, [1], layer=0), zero_ablation(model, [0]), zero_ablation(model, [2, 2])
    ):  # fmt: skip
        muted = ask(model).logits["A"]
    masks = [torch.tensor([1.0, 0.0, 1.0]), torch.tensor([0.0, 1.0, 0.0])]
    with torch.no_grad():
        wanted = model(BATCH.tokens, key_mask=BATCH.key_mask, head_masks=masks).logits["A"]
    torch.testing.assert_close(muted, wanted)


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
        with mean_ablation(model, [2, 2]):  # a head that is named twice counts once
            output, _ = attention(x, key_mask=BATCH.key_mask)
    torch.testing.assert_close(output, wanted)


def test_right_answers_are_those_of_an_evaluation(model):
    found = right_answers(model, BATCH, concord.relations)
    wanted = evaluate(model, SENTENCES, concord.relations).relations
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)


def test_the_model_is_as_before_after_an_error_too(model):
    before = ask(model).logits["A"]
    places = partner_pairs(BATCH.partners["verb>object"])
    for changed, what in ((attention_knockout, places), (zero_ablation, [0]), (mean_ablation, [0])):
        with pytest.raises(KeyError), changed(model, what):
            raise KeyError
        assert torch.equal(ask(model).logits["A"], before)
    with pytest.raises(ValueError, match="from -2 to 1, got 2"), zero_ablation(model, [0], layer=2):
        pass


def untrained():
    return TransformerModel.of_sizes(concord, 24, 3, 2)


def forbid(forbidden, ask=lambda model: None, **options):
    model = untrained()
    with attention_knockout(model, forbidden, **options):
        ask(model)


def mute(way, heads):
    with way(untrained(), heads):
        pass


some = partial(forbid, torch.ones(2, 3, 3).bool())
in_another_batch = partial(forbid, ask=lambda model: model(BATCH.tokens))
test_what_does_not_fit_is_refused = refusals({
    TypeError: {
        forbid: {"forbidden": [torch.ones(2, 3, 3), "all"]},
        some: {"heads": [1, [True]]},
        partial(right_answers, batch=BATCH, relations=concord.relations): {"model": [3]},
        partial(right_answers, untrained(), relations=concord.relations): {"batch": [3]},
        follower_looks: {"tokens": [[1, 2]]},
    },
    ValueError: {
        forbid: {"forbidden": [torch.ones(3, 3).bool(), torch.ones(2, 3, 4).bool()]},
        in_another_batch: {"forbidden": [torch.ones(2, 3, 3).bool()]},
        some: {"layer": [2], "heads": [[3]]},
        partial(mute, zero_ablation): {"heads": [[-1], [3]]},
        partial(mute, mean_ablation): {"heads": [[-1], [3]]},
        partial(follower_looks, BATCH.tokens): {"after": [0]},
        follower_looks: {"tokens": [BATCH.tokens[0]]},
    },
})  # fmt: skip
