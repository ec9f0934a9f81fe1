"""A GPT: its sizes, where it begins, its options, and pieces that are answered as the whole."""

import copy
import io
import math
import pickle
from functools import partial
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tools.modules import randomize
from tools.refusing import refusals

from attnlib import KVCache, LayerNorm, RMSNorm
from attnlib.model import GPT, TransformerModel

MICROGPT = {"norm": partial(RMSNorm, gain=False), "activation": "relu"}
GPT2 = {"tied": True, "bias": True, "activation": "gelu_tanh"}
TOKENS = torch.tensor([[1, 2, 3, 4, 5], [10, 0, 10, 0, 6]])
OPTIONS = [
    {}, GPT2, MICROGPT, {"positions": "rotary"}, {"positions": "sinusoidal"}, {"positions": None},
    {"num_kv_heads": 1}, {"d_ff": 0}, {"norm": RMSNorm, "bias": True},
]  # fmt: skip


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def small(**options):
    """A GPT of width 8 with 2 layers of 4 heads, in float64, whose parameters hide nothing."""
    return randomize(GPT(11, 7, 8, 4, 2, **{"dtype": torch.float64} | options))


def test_famous_sizes():
    for sizes, options, parameters in (
        ((27, 16, 16, 4, 1), MICROGPT, 4_192),
        ((50_257, 1024, 1600, 25, 48), GPT2, 1_557_611_200),  # GPT-2 XL
    ):
        assert count(GPT(*sizes, **options, device="meta")) == parameters


def test_what_each_option_takes_or_adds():
    V, length, d, layers = 11, 7, 8, 2
    whole = count(small())
    assert whole - count(small(tied=True)) == V * d
    for positions in ("rotary", "sinusoidal", None):
        assert whole - count(small(positions=positions)) == length * d
    assert whole - count(small(d_ff=0)) == layers * (8 * d**2 + 2 * d)  # two matrices, a norm
    assert whole - count(small(num_kv_heads=1)) == layers * 2 * (d**2 - d * d // 4)
    assert count(small(bias=True)) - whole == layers * (4 * d + 4 * d + d)
    assert whole - count(small(norm=RMSNorm)) == 5 * d  # norms without a bias


def test_it_is_a_causal_model_of_pre_norm_blocks():
    model = small()
    assert type(model) is TransformerModel and model.causal and list(model.readouts) == ["next"]
    assert [block.norm_position for block in model.blocks] == ["pre", "pre"]
    assert [block.feed_forward.d_ff for block in model.blocks] == [32, 32]
    assert [block.dropout for block in small(dropout=0.5).blocks] == [0.5, 0.5]
    assert type(model.final_norm) is LayerNorm


@pytest.mark.parametrize("tied", [False, True])
def test_at_first_every_token_is_nearly_as_likely(tied):
    model = GPT(27, 16, 16, 4, tied=tied)
    for weight in (model.token_embedding.weight, model.readouts["next"].weight):
        assert weight.std().item() == pytest.approx(0.02, rel=0.1)
    losses = -model(torch.randint(27, (20, 16))).logits["next"].log_softmax(-1)
    assert losses.mean().item() == pytest.approx(math.log(27), abs=0.02)


def test_positions_tell_the_order_of_what_went_before():
    """In one layer: with several, a token's place shows in how many it can look at."""
    for positions in ("learned", "sinusoidal", "rotary", None):
        model = GPT(11, 7, 8, 4, positions=positions, std=0.5, dtype=torch.float64)
        one, other = model(torch.tensor([[3, 4, 5, 6], [4, 3, 5, 6]])).logits["next"][:, -1]
        assert torch.allclose(one, other, atol=1e-12) == (positions is None)


@pytest.mark.parametrize("options", [{}, GPT2], ids=["untied", "tied"])
def test_it_is_copied_pickled_saved_and_loaded(options):
    model = small(**options)
    wanted = model(TOKENS).logits["next"]
    stored = io.BytesIO()
    torch.save(model.state_dict(), stored)
    stored.seek(0)
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), small(**options)]
    others[2].load_state_dict(torch.load(stored, weights_only=True))
    others.append(TransformerModel.of_spec(model.spec(), device="meta"))
    others[3].load_state_dict(copy.deepcopy(model.state_dict()), assign=True)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    for other in others:
        assert torch.equal(other(TOKENS).logits["next"], wanted)
        assert count(other) == count(model)


def test_a_tied_readout_is_the_embedding():
    model = small(tied=True)
    assert [*model.state_dict()].count("token_embedding.weight") == 1
    assert not any("readouts" in name for name in model.state_dict())
    x = model.final_norm(torch.randn(2, 3, 8, dtype=torch.float64))
    wanted = x @ model.token_embedding.weight.T
    torch.testing.assert_close(model.readouts["next"](x), wanted)
    model(TOKENS).logits["next"].sum().backward()
    assert model.token_embedding.weight.grad[7].any()  # no token 7 came in: it was read out alone
    moved = model.float()
    assert moved.readouts["next"].weight.dtype == torch.float32
    assert moved(TOKENS).logits["next"].dtype == torch.float32


@given(st.data())
def test_pieces_are_answered_as_the_whole_is(data):
    options = data.draw(st.sampled_from(OPTIONS))
    B, T = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 7))
    cuts = data.draw(st.sets(st.integers(1, max(1, T - 1)), max_size=T - 1))
    model, tokens = small(**options), torch.randint(11, (B, T))
    key_mask = data.draw(st.none() | st.just(torch.rand(B, T) > 0.3))
    caches, found = [KVCache() for _ in model.blocks], []
    with torch.set_grad_enabled(data.draw(st.booleans())):
        whole = model(tokens, key_mask=key_mask, need_weights=True)
        for start, stop in pairwise(sorted({0, T, *cuts})):
            limits = {} if key_mask is None else {"key_mask": key_mask[:, :stop]}
            piece = model(tokens[:, start:stop], caches=caches, need_weights=True, **limits)
            found.append(piece.logits["next"])
            wanted = [weights[:, :, start:stop, :stop] for weights in whole.weights]
            torch.testing.assert_close(piece.weights, wanted)
    assert [len(cache) for cache in caches] == [T, T]
    torch.testing.assert_close(torch.cat(found, dim=1), whole.logits["next"])


def test_refused_tokens_and_uneven_caches_change_nothing():
    model, caches = small(), [KVCache(), KVCache()]
    model(TOKENS, caches=caches)
    for tokens in (TOKENS[:, :3], TOKENS[:, :1] + 11, TOKENS[:1, :1]):
        with pytest.raises(ValueError, match=r"^(tokens .* (1 to 2 |0 to 10,)|cache must)"):
            model(tokens, caches=caches)
        assert [len(cache) for cache in caches] == [5, 5]
    caches[1].clear()  # as a call leaves them that failed midway
    with pytest.raises(ValueError, match=r"^caches .*\[5, 0\]"):
        model(TOKENS[:, :1], caches=caches)


# All else is refused by what it is handed on to.
test_a_width_that_is_none_is_refused = refusals({
    TypeError: {partial(GPT, 11, 7, num_heads=4): {"d_model": ["8"]}},
    ValueError: {partial(GPT, 11, 7, num_heads=4): {"d_model": [0]}},
})  # fmt: skip
