"""Generating: one draw after the other, the same with a cache and without, and when it ends."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tools.modules import randomize
from tools.refusing import refusals

from attnlib import TransformerBlock
from attnlib.model import GPT, TaskSizes, TransformerModel, generate

BEGIN = torch.tensor([[1, 2, 3], [10, 0, 10]])
OPTIONS = [{}, {"tied": True}, {"positions": "rotary"}, {"positions": None}, {"num_kv_heads": 1}]


def small(**options):
    """A GPT whose parameters have opinions."""
    return randomize(GPT(11, 9, 8, 4, 2, **options))


class Constant(TransformerModel):
    """A model that always says the same."""

    def __init__(self, logits):
        blocks = [TransformerBlock(4, 2)]
        super().__init__(len(logits), 9, blocks, {"next": len(logits)}, causal=True)
        self.said = torch.tensor(logits)

    def forward(self, tokens, **options):
        answers = super().forward(tokens, **options)
        return answers._replace(logits={"next": self.said.expand(*tokens.shape, -1)})


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def shares(logits, **options):
    """How often each token is drawn of 20,000."""
    begin = torch.zeros(20_000, 1, dtype=torch.int64)
    drawn = generate(Constant(logits), begin, 1, generator=seeded(0), **options)[:, 1]
    return (drawn.bincount(minlength=len(logits)) / len(drawn)).tolist()


def test_greedy_by_hand():
    model, tokens = small().eval(), BEGIN
    for _ in range(5):
        likeliest = model(tokens).logits["next"][:, -1].argmax(-1)
        tokens = torch.cat([tokens, likeliest[:, None]], dim=1)
    assert torch.equal(generate(model, BEGIN, 5, temperature=0), tokens)
    assert torch.equal(generate(model, BEGIN, 5, top_k=1), tokens)
    assert torch.equal(generate(model, BEGIN, 5, temperature=1e-300), tokens)


@given(st.data())
def test_the_same_with_a_cache_and_without(data):
    dtype = data.draw(st.sampled_from([torch.float64, torch.float64, torch.bfloat16]))
    model = small(**data.draw(st.sampled_from(OPTIONS))).to(dtype)
    B, T = data.draw(st.integers(0, 4)), data.draw(st.integers(1, 9))
    steps = data.draw(st.integers(0, 10 - T))  # of 9 places: the last token needs none
    options = {
        "temperature": data.draw(st.sampled_from([0, 0.5, 1, 3.0])),
        "top_k": data.draw(st.sampled_from([None, 1, 4, 11])),
        "stop": data.draw(st.sampled_from([None, 3])),
    }
    begin = torch.randint(11, (B, T))
    found, without = (
        generate(model, begin, steps, **options, generator=seeded(5), use_cache=use_cache)
        for use_cache in (True, False)
    )
    assert torch.equal(found, without) or dtype == torch.bfloat16
    assert torch.equal(found[:, :T], begin) and found.shape[1] <= T + steps
    assert options["stop"] is not None or found.shape == (B, T + steps)


def test_tokens_are_drawn_as_often_as_the_model_says():
    logits = [0.0, 1.0, 2.0, -1.0]
    for temperature in (1, 0.5, 2):
        wanted = (torch.tensor(logits) / temperature).softmax(-1).tolist()
        assert shares(logits, temperature=temperature) == pytest.approx(wanted, abs=0.015)
    first, second = torch.tensor([1.0, 2.0]).softmax(-1).tolist()
    assert shares(logits, top_k=2) == pytest.approx([0, first, second, 0], abs=0.015)
    alike = shares([1.0, 1.0, 1.0, 1.0, 0.0], top_k=2)
    assert sum(share > 0 for share in alike) == 2  # no more than asked


def test_a_text_that_has_stopped_is_filled_up_and_the_others_go_on():
    model = small()
    begin = torch.arange(11)[:, None]
    free = generate(model, begin, 8, generator=seeded(4)).tolist()
    found = generate(model, begin, 8, generator=seeded(4), stop=6).tolist()
    wanted = []  # a row that draws the token 6 has stopped; what the others draw is as it was
    for first, *drawn in free:  # a token that was given doesn't stop
        end = drawn.index(6) if 6 in drawn else 8
        wanted.append([first, *drawn[:end], *[6] * (8 - end)])
    assert found == wanted and found != free
    said = Constant([0.0, 99.0])  # where all have stopped it ends
    assert generate(said, torch.tensor([[0], [1]]), 8, stop=1).shape == (2, 2)
    assert generate(said, torch.tensor([[0], [1]]), 8).shape == (2, 9)


def test_a_seed_gives_the_same_text_and_the_model_and_other_random_numbers_are_left_alone():
    model, state, seen = small(dropout=0.5).train(), torch.get_rng_state(), []
    model.blocks[1].eval()
    model.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[1]))
    first, again, other = (generate(model, BEGIN, 6, generator=seeded(s)) for s in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)
    assert seen == 3 * [3, 1, 1, 1, 1, 1]  # with a cache each step looks at one token
    generate(model, BEGIN, 4, use_cache=False)
    assert seen[-4:] == [3, 4, 5, 6]
    first, again = (generate(model, BEGIN, 6, temperature=0) for _ in range(2))
    assert torch.equal(first, again)  # nothing dropped out
    assert model.training and model.blocks[0].attention.training
    assert not model.blocks[1].training and not model.blocks[1].attention.training
    assert all(parameter.grad is None for parameter in model.parameters())


def go(model=None, tokens=BEGIN, steps=2, **options):
    return generate(model or small(), tokens, steps, **options)


def of(readouts, causal=True):
    return TransformerModel.of_sizes(TaskSizes(11, 9, readouts, causal), 8, 2)


test_what_does_not_fit_is_refused = refusals({
    TypeError: {
        go: {
            "model": [lambda x: x], "steps": [2.0], "tokens": ["emma"], "temperature": ["hot"],
            "top_k": [0.9], "generator": [3], "use_cache": [[]],
        },
    },
    ValueError: {
        go: {
            "model": [of({"next": 11}, causal=False), of({"A": 11}), of({"next": 12})],
            "steps": [8, -1], "tokens": [torch.zeros(1, 10).long(), BEGIN + 9],
            "temperature": [-0.5, math.nan, math.inf], "top_k": [0, 12], "stop": [11, -1],
        },
    },
})  # fmt: skip


def test_how_many_there_are_is_told():
    for name, n, told in (("steps", 8, "7 after 3 .*8"), ("stop", 11, "10,"), ("top_k", 12, "11,")):
        with pytest.raises(ValueError, match=told):
            go(**{name: n})
    assert go(steps=7).shape == (2, 10)


def test_logits_that_are_not_finite_are_refused():
    for temperature, logit in ((0, math.nan), (1, math.nan), (0, math.inf), (1, math.inf)):
        with pytest.raises(ValueError, match=r"logits .*finite"):
            go(Constant([0.0, logit]), BEGIN * 0, temperature=temperature)
