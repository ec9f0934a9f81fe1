"""The model: what it computes, what may be asked of it, and its description, there and back."""

import copy
import json
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tools.modules import randomize
from tools.refusing import assert_named, refusals
from torch import nn

from attnlib import FeedForward, KVCache, LayerNorm, MultiHeadAttention, RMSNorm, TransformerBlock
from attnlib.model import TaskSizes, TransformerModel
from attnlib.positions import RotaryPositions, SinusoidalPositions

SIZES = TaskSizes(vocabulary_size=11, length=7, readouts={"A": 4, "B": 3})
TOKENS = torch.tensor([[1, 2, 3, 4, 5], [10, 0, 10, 0, 6]])


def small(**options):
    """A model of width 8 with 2 layers of 4 heads, in float64, whose parameters hide nothing."""
    options = {"d_model": 8, "num_heads": 4, "num_layers": 2, "dtype": torch.float64} | options
    return randomize(TransformerModel.of_sizes(options.pop("task", SIZES), **options))


def block(d=8, h=2, **options):
    return TransformerBlock.of_parts(MultiHeadAttention(d, h), **options)


def made(**changes):
    sizes = {"vocabulary_size": 11, "length": 7, "blocks": [block()], "readouts": {"A": 4}}
    return TransformerModel(**sizes | changes)


def test_where_training_begins():
    made = []
    for _ in range(2):
        torch.manual_seed(3)
        made.append(TransformerModel.of_sizes(SIZES, 512, 4, embedding_std=0.5))
    model, again = made
    torch.testing.assert_close(model.state_dict(), again.state_dict(), rtol=0, atol=0)
    usual = TransformerModel.of_sizes(SIZES, 512, 4).token_embedding.weight
    assert usual.std().item() == pytest.approx(0.02, rel=0.05)
    for embedding in (model.token_embedding, model.position_embedding):
        assert embedding.weight.std().item() == pytest.approx(0.5, rel=0.05)
        before = embedding.weight.clone()
        model.reset_parameters()
        assert not torch.equal(embedding.weight, before)
    for readout in (*model.readouts.values(), model.blocks[0].attention.W_q):
        bound = (6 / sum(readout.weight.shape)) ** 0.5  # Xavier-uniform
        assert 0.95 * bound < readout.weight.abs().max() <= bound


@given(st.data(), st.sampled_from(["pre", "post", None]), st.booleans())
def test_it_is_its_parts_one_after_the_other(data, norm_position, causal):
    draw = lambda *values: data.draw(st.sampled_from(values))  # noqa: E731
    layers, h, B, T = draw(1, 2, 3), 4, draw(0, 1, 2), draw(1, 5, 7)
    model = small(
        task=SIZES._replace(causal=causal), norm_position=norm_position, d_ff=draw(None, 5),
        bias=draw(True, False), norm=draw(LayerNorm, RMSNorm), readout_bias=draw(True, False),
        positions=draw("learned", "sinusoidal", None), num_layers=layers,
    )  # fmt: skip
    tokens, key_mask = torch.randint(11, (B, T)), draw(None, torch.rand(B, T) > 0.3)
    masks = draw(
        None, torch.rand(layers, h), [None, *torch.rand(layers - 1, h)], torch.rand(layers, B, h)
    )
    x = model.token_embedding.weight[tokens]
    x = x if model.position_embedding is None else model.position_embedding(x)
    wanted = []
    for i, layer in enumerate(model.blocks):
        limits = {"key_mask": key_mask, "head_mask": None if masks is None else masks[i]}
        x, weights = layer(x, causal=causal, need_weights=True, **limits)
        wanted.append(weights)
    x = model.final_norm(x) if norm_position == "pre" else x
    options = {"key_mask": key_mask, "head_masks": masks}
    answers = model(tokens, need_weights=True, **options)
    assert list(answers.logits) == ["A", "B"] and model(tokens, **options).weights is None
    torch.testing.assert_close(answers.weights, wanted)
    learned = [model.token_embedding.weight, model.blocks[0].attention.W_v.weight]
    for name, readout in model.readouts.items():
        logits = x @ readout.weight.T + (0 if readout.bias is None else readout.bias)
        torch.testing.assert_close(answers.logits[name], logits)
        ours, theirs = (
            torch.autograd.grad(found.square().sum(), learned, retain_graph=True)
            for found in (answers.logits[name], logits)
        )
        torch.testing.assert_close(ours, theirs)


def test_only_blocks_that_normalize_their_input_need_a_norm_at_the_end():
    assert type(made().final_norm) is LayerNorm
    assert type(made(blocks=[block(norm_position="post")]).final_norm) is nn.Identity
    assert made(dtype=torch.bfloat16).final_norm.gain.dtype == torch.bfloat16
    for own in (nn.Identity(), RMSNorm(8)):
        assert made(final_norm=own).final_norm is own


@given(st.data())
def test_a_description_builds_the_same_model(data):
    draw = lambda *values: data.draw(st.sampled_from(values))  # noqa: E731
    blocks = []
    for _ in range(draw(1, 2, 3)):
        h, group, d, d_ff = draw(1, 2), draw(1, 2), 8, draw(None, 1, 5)
        turns = draw(None, RotaryPositions(), RotaryPositions(base=30.0, interleaved=False))
        attention = MultiHeadAttention(
            d, h * group, num_kv_heads=h, bias=draw(True, False), dropout=draw(0.0, 0.1),
            rotary=turns,
        )  # fmt: skip
        position = draw("pre", "post", None)
        activation = draw("gelu", "gelu_tanh", "relu")
        feed_forward = None
        if d_ff:
            feed_forward = FeedForward(d, d_ff, activation=activation, bias=draw(True, False))
        kinds = [LayerNorm(d, bias=False), LayerNorm(d, 1e-3), RMSNorm(d), RMSNorm(d, gain=False)]
        norms = data.draw(st.permutations(kinds))[: (2 if d_ff else 1) if position else 0]
        blocks.append(
            TransformerBlock.of_parts(
                attention, feed_forward, norms, norm_position=position,
                residual=draw(True, False), dropout=draw(0.0, 0.2),
            )
        )  # fmt: skip
    tied = draw(True, False)
    model = TransformerModel(
        11, 7, blocks, {"next": 11} if tied else {"A": 4}, causal=draw(True, False), tied=tied,
        readout_bias=not tied and draw(True, False), positions=draw("learned", "sinusoidal", None),
        final_norm=draw(None, nn.Identity(), RMSNorm(8)),
    ).eval()  # fmt: skip
    state = torch.get_rng_state()
    spec = json.loads(json.dumps(model.spec()))
    assert torch.equal(torch.get_rng_state(), state)  # nothing was drawn
    again = TransformerModel.of_spec(spec).eval()
    assert again.spec() == spec
    for mine, built in zip(model.blocks, again.blocks, strict=True):  # seen in training alone
        assert (built.dropout, built.attention.dropout) == (mine.dropout, mine.attention.dropout)
    again.load_state_dict(model.state_dict())
    torch.testing.assert_close(
        again(TOKENS, need_weights=True), model(TOKENS, need_weights=True), rtol=0, atol=0
    )


def heir(of, *sizes):
    """Return a part whose class is another, which may compute otherwise."""
    return type("Mine", (of,), {})(*sizes)


NOT_PLAIN = {  # the place of a part that no description can say -> what stands there
    "blocks.0": heir(TransformerBlock, 8, 4), "blocks.1.feed_forward": nn.Linear(8, 8),
    "blocks.0.attention.W_o": heir(nn.Linear, 8, 8), "readouts.A": heir(nn.Linear, 8, 4),
    "blocks.0.feed_forward.W_2": heir(nn.Linear, 6, 8),
    "blocks.0.attention.rotary": heir(RotaryPositions),
    "final_norm": nn.LayerNorm(8), "position_embedding": SinusoidalPositions(8, base=10.0),
    "blocks.0.attention.W_v": nn.Linear(8, 8),  # with a bias
    "more": nn.Linear(2, 2),
}  # fmt: skip


def test_what_no_description_can_say_is_refused():
    for place, part in NOT_PLAIN.items():
        model = small(d_ff=6)
        parent, _, name = place.rpartition(".")
        setattr(model.get_submodule(parent), name, part)
        assert_named(TypeError, place, model.spec)
    with pytest.raises(TypeError, match=r"^the model .*Mine"):
        heir(TransformerModel, 11, 7, [block()], {"A": 2}).spec()
    model = small()
    hook = model.blocks[0].attention.register_forward_hook(print)
    with pytest.raises(TypeError, match=r"^blocks\.0\.attention .*hooks"):
        model.spec()
    hook.remove()
    model.blocks[0].attention.W_q.weight = model.blocks[1].attention.W_q.weight
    with pytest.raises(ValueError, match="shared"):
        model.spec()


def places(value, path=()):
    """Return the ways to all values of a description."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def with_value(spec, path, value):
    spec = copy.deepcopy(spec)
    inner = spec
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return spec


ALL_OTHER = {"positions": "sinusoidal", "activation": "relu", "norm": partial(RMSNorm, gain=False)}
DESCRIPTION, OTHER = small(d_ff=6).spec(), small(d_ff=6, **ALL_OTHER).spec()
OTHER["blocks"][1]["rotary"] = {"base": 30.0, "interleaved": False}


def test_a_damaged_description_is_refused_in_words():
    for wrong, named in (({**DESCRIPTION, "x": True}, "unknown: x"), ({"length": 7}, "have")):
        with pytest.raises(ValueError, match=rf"^spec must .*{named}"):
            TransformerModel.of_spec(wrong)
    with pytest.raises(TypeError, match=r"^spec must be"):
        TransformerModel.of_spec(None)
    for spec in (DESCRIPTION, OTHER):
        for path in list(places(spec))[1:]:
            for value in ("wrong", -1, [None], {"x": None}):
                with pytest.raises((TypeError, ValueError), match=r" must|divisible"):
                    TransformerModel.of_spec(with_value(spec, path, value))
                    pytest.fail(f"{path}: {value}")


def test_what_is_as_it_always_was_is_not_told():
    """So that what was saved before there was a choice can still be read."""
    assert not {"positions", "tied"} & {*DESCRIPTION}
    (block, _), norm = DESCRIPTION["blocks"], DESCRIPTION["final_norm"]
    assert "rotary" not in block and "activation" not in block["feed_forward"]
    assert "gain" not in norm and "gain" not in small(norm=RMSNorm).spec()["final_norm"]
    assert OTHER["positions"] == "sinusoidal" and OTHER["final_norm"]["gain"] is False


NEXT = TaskSizes(11, 7, {"next": 11}, causal=True)


def ask(tokens=TOKENS, **options):
    return small()(tokens, **options)


def ask_next(**options):
    return small(task=NEXT)(TOKENS, **options)


once, predicting = block(), partial(small, task=NEXT)
test_what_does_not_fit_is_refused = refusals({
    TypeError: {
        made: {
            "blocks": [once, [nn.Linear(8, 8)]], "readouts": [3], "final_norm": [LayerNorm],
            "causal": ["no"],
        },
        small: {"embedding_std": ["wide"], "d_ff": [8.0]}, predicting: {"tied": ["yes"]},
        ask: {"tokens": [["a"], TOKENS.float()], "head_masks": [1]},
        ask_next: {"caches": [[TOKENS, TOKENS]]},
    },
    ValueError: {
        made: {
            "vocabulary_size": [0], "length": [0], "positions": ["rotary"],
            "blocks": [[], [block(), block(6)], [once, block(), once]],
            "readouts": [{}, {"A": 0}, {"a.b": 2}, {"": 2}, {1: 2}, {"keys": 2}],
        },
        small: {
            "embedding_std": [-1.0], "readout_std": [-0.1], "num_layers": [0], "tied": [True],
            "positions": ["rope"],
        },
        partial(predicting, readout_bias=True): {"tied": [True]},
        ask: {
            "tokens": [
                TOKENS[0], torch.zeros(1, 8).long(), TOKENS[:, :0], TOKENS + 1, TOKENS - 1,
                TOKENS.to("meta"),
            ],
            "head_masks": [[torch.ones(4)], torch.ones(4)], "caches": [[KVCache(), KVCache()]],
            "key_mask": [torch.ones(2, 4).bool()],
        },
        ask_next: {"caches": [[KVCache()], [KVCache()] * 2]},
    },
})  # fmt: skip
