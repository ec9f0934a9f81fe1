"""HeadExplorer's Python side: its state, its traits, its refusals."""

import subprocess
import sys

import numpy as np
import pytest
import torch
import traitlets

from attncourse.widgets import HeadExplorer
from attncourse.widgets.head_explorer.sources import HeadSource
from attnlib import MultiHeadAttention, scaled_dot_product_attention, split_heads
from attnlib.positions import RotaryPositions

TOKENS = ["The", "cat", "sat", "down"]


def explorer(T=4, d=12, **options):
    tokens = [f"t{i}" for i in range(T)]
    return HeadExplorer(tokens, torch.randn(T, d), torch.randn(T, d), **options)


def decoded(widget, name):
    """The tensor [T, d] that the browser reads from the widget's state, in float64."""
    numbers = np.frombuffer(widget.get_state()[name], dtype="<f4").reshape(widget.T, widget.d)
    return torch.from_numpy(numbers.astype(np.float64))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_state_holds_the_tensors_as_float32_bytes(dtype):
    q, k = torch.randn(4, 12, dtype=dtype), torch.randn(12, 4, dtype=dtype).T
    widget = HeadExplorer(TOKENS, q, k)
    assert widget.tokens == TOKENS
    assert (widget.T, widget.d) == (4, 12)
    assert len(widget.q) == 4 * 12 * 4
    assert torch.equal(decoded(widget, "q"), q.float().double())
    assert torch.equal(decoded(widget, "k"), k.float().double())


def test_tensors_that_carry_gradients_are_welcome():
    HeadExplorer(TOKENS, torch.randn(4, 8, requires_grad=True), torch.randn(4, 8))


@pytest.mark.parametrize(("d", "num_heads"), [(64, 4), (6, 3), (10, 2), (7, 1), (1, 1)])
def test_the_head_count_at_the_start_divides_d(d, num_heads):
    assert explorer(d=d).num_heads == num_heads


@pytest.mark.parametrize("batch", [(), (1,)])
@pytest.mark.parametrize("causal", [False, True])
def test_from_module_holds_the_queries_and_keys_of_the_module(batch, causal):
    module = MultiHeadAttention(24, 6)
    torch.nn.init.normal_(module.W_q.bias)
    x = torch.randn(*batch, 4, 24)
    widget = HeadExplorer.from_module(module, x, TOKENS, causal=causal, origin="random")
    assert (widget.num_heads, widget.causal, widget.origin) == (6, causal, "random")
    q, k = (split_heads(decoded(widget, name)[None], 6) for name in ("q", "k"))
    _, weights = scaled_dot_product_attention(q, k, k, causal=causal)
    _, expected = module(x.view(1, 4, 24), causal=causal, need_weights=True)
    torch.testing.assert_close(weights, expected.double(), atol=1e-6, rtol=0)


def test_what_a_reader_moves_is_observable():
    widget = explorer(num_heads=4)
    seen = []
    widget.observe(lambda change: seen.append((change["name"], change["new"])))
    widget.num_heads, widget.causal, widget.head = 6, True, 5
    assert seen == [("num_heads", 6), ("causal", True), ("head", 5)]
    assert {"num_heads", "causal", "head"} <= set(widget.keys)  # synced with the browser


def test_the_enlarged_head_exists_after_a_smaller_head_count():
    widget = explorer(num_heads=12)
    widget.head = 11
    widget.num_heads = 2
    assert widget.head == 1


def test_a_move_in_the_browser_may_change_head_count_and_head_at_once():
    widget = explorer(num_heads=2)
    widget.set_state({"head": 11, "num_heads": 12})
    assert (widget.num_heads, widget.head) == (12, 11)


@pytest.mark.parametrize("name", ["tokens", "q", "k", "T", "d", "origin"])
def test_what_describes_the_tensors_is_fixed(name):
    widget = explorer()
    with pytest.raises(traitlets.TraitError, match="read-only"):
        setattr(widget, name, getattr(widget, name))


def test_repr_is_short_and_the_same_in_each_run():
    assert repr(explorer(num_heads=3)) == "HeadExplorer(4 tokens, d=12, num_heads=3)"


Q = torch.ones(4, 8)
BATCH = Q.expand(2, 4, 8)
NAN, INFINITE, TOO_LARGE = Q.clone(), Q.clone(), Q.double()
NAN[2, 3], INFINITE[1, 0], TOO_LARGE[0, 0] = torch.nan, torch.inf, 1e300


@pytest.mark.parametrize(
    ("error", "message", "arguments", "options"),
    [
        (TypeError, r"tokens .* did you forget .split", ("a cat", Q, Q), {}),
        (TypeError, r"tokens .* got int at position 1", (["a", 1, "b", "c"], Q, Q), {}),
        (ValueError, r"tokens must hold at least one", ([], Q[:0], Q[:0]), {}),
        (ValueError, r"q .* one row a token, got shape \[4, 8\] and 3", (TOKENS[:3], Q, Q), {}),
        (ValueError, r"k .* one row a token, got shape \[3, 8\] and 4", (TOKENS, Q, Q[:3]), {}),
        (ValueError, r"k must have the shape of q", (TOKENS, Q, Q[:, :4]), {}),
        (ValueError, r"q must have shape \[T, d\], got \[1, 4, 8\]", (TOKENS, Q[None], Q), {}),
        (ValueError, r"k must have shape \[T, d\], got \[8\]", (TOKENS, Q, Q[0]), {}),
        (ValueError, r"q .* at least one number", (TOKENS, Q[:, :0], Q[:, :0]), {}),
        (TypeError, r"q must be a torch.Tensor, got list", (TOKENS, Q.tolist(), Q), {}),
        (TypeError, r"k must hold floating point numbers", (TOKENS, Q, Q.long()), {}),
        (TypeError, r"q must be dense numbers, got .*sparse_coo", (TOKENS, Q.to_sparse(), Q), {}),
        (TypeError, r"k must hold numbers, got .* meta", (TOKENS, Q, Q.to("meta")), {}),
        (ValueError, r"q must be finite .* nan at \[2, 3\]", (TOKENS, NAN, Q), {}),
        (ValueError, r"k must be finite .* inf at \[1, 0\]", (TOKENS, Q, INFINITE), {}),
        (ValueError, r"k must be finite .* 1e\+300", (TOKENS, Q, TOO_LARGE), {}),
        (
            ValueError,
            r"num_heads=3.*one of \[1, 2, 4, 8\]",
            (TOKENS, Q, Q),
            {"num_heads": 3},
        ),
        (ValueError, r"num_heads must be at least 1, got 0", (TOKENS, Q, Q), {"num_heads": 0}),
        (TypeError, r"num_heads must be an int, got float", (TOKENS, Q, Q), {"num_heads": 2.0}),
        (TypeError, r"causal must be True or False, got Tensor", (TOKENS, Q, Q), {"causal": Q}),
        (TypeError, r"origin must be a string, got int", (TOKENS, Q, Q), {"origin": 0}),
    ],
)
def test_bad_input_is_refused_in_words(error, message, arguments, options):
    with pytest.raises(error, match=message):
        HeadExplorer(*arguments, **options)


@pytest.mark.parametrize(
    ("error", "message", "module", "x"),
    [
        (TypeError, "module must be an attnlib", torch.nn.MultiheadAttention(8, 2), Q),
        (ValueError, r"x must have shape \[T, 8\]", MultiHeadAttention(8, 2), Q[:, :4]),
        (
            ValueError,
            r"got \[2, 4, 8\]: .* one sequence",
            MultiHeadAttention(8, 2),
            Q.expand(2, 4, 8),
        ),
        (TypeError, "x must have the dtype of", MultiHeadAttention(8, 2), Q.double()),
        (TypeError, "x must hold floating point", MultiHeadAttention(8, 2), Q.long()),
    ],
)
def test_from_module_refuses_in_words(error, message, module, x):
    with pytest.raises(error, match=message):
        HeadExplorer.from_module(module, x, TOKENS)


def test_grouped_heads_are_refused_with_a_way_that_shows_them():
    module, x = MultiHeadAttention(16, 4, num_kv_heads=2), torch.randn(4, 16)
    with pytest.raises(ValueError, match="num_kv_heads=2 and num_heads=4") as caught:
        HeadExplorer.from_module(module, x, TOKENS)
    assert "k.unflatten(-1, (2, -1)).repeat_interleave(2, dim=1).flatten(1)" in str(caught.value)
    k = module.W_k(x).unflatten(-1, (2, -1)).repeat_interleave(2, dim=1).flatten(1)
    widget = HeadExplorer(TOKENS, module.W_q(x), k, num_heads=4)
    q, k = (split_heads(decoded(widget, name)[None], 4) for name in ("q", "k"))
    _, expected = module(x[None], need_weights=True)
    _, weights = scaled_dot_product_attention(q, k, k)
    torch.testing.assert_close(weights, expected.double(), atol=1e-6, rtol=0)


def test_rotary_positions_are_refused_with_a_way_that_shows_them():
    module, x = MultiHeadAttention(16, 4, rotary=RotaryPositions()), torch.randn(4, 16)
    with pytest.raises(ValueError, match=r"module must have no rotary .* num_heads=4") as caught:
        HeadExplorer.from_module(module, x, TOKENS)
    assert "module.rotary" in str(caught.value)
    q, k = (split_heads(W(x)[None], 4) for W in (module.W_q, module.W_k))
    q, k = (module.rotary(part).transpose(1, 2).flatten(2)[0].detach() for part in (q, k))
    widget = HeadExplorer(TOKENS, q, k, num_heads=4)
    q, k = (split_heads(decoded(widget, name)[None], 4) for name in ("q", "k"))
    _, expected = module(x[None], need_weights=True)
    _, weights = scaled_dot_product_attention(q, k, k)
    torch.testing.assert_close(weights, expected.double(), atol=1e-6, rtol=0)


def test_keys_of_another_width_than_x_are_refused():
    module = MultiHeadAttention(8, 2, kdim=6)
    with pytest.raises(ValueError, match="kdim=6 and d_model=8"):
        HeadExplorer.from_module(module, Q, TOKENS)


@pytest.mark.parametrize(("T", "d"), [(512, 64), (362, 256), (209, 768), (1, 2**18)])
def test_the_largest_that_is_promised_is_taken(T, d):
    assert explorer(T=T, d=d).T == T


@pytest.mark.parametrize(
    ("T", "d", "message"),
    [
        (513, 1, r"tokens must be at most 512, got 513: .* plot_long_heads"),
        (363, 256, r"T \* T \* d .* T=363 and d=256: .* 362 tokens are the most"),
        (210, 768, r"T=210 and d=768: .* 209 tokens are the most"),
        (2, 2**18, r"q and k \[T=2, d=262144\] must hold at most 524,288 numbers"),
        (4096, 768, r"at most 524,288 numbers, got 6,291,456: .* 2.8 MB"),
    ],
)
def test_what_would_weigh_a_page_down_is_refused(T, d, message):
    with pytest.raises(ValueError, match=message):
        explorer(T=T, d=d)


def test_importing_attnlib_leaves_anywidget_alone():
    check = "import attnlib, sys; sys.exit('anywidget' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0


DOG = "The dog saw the dog".split()


def random_source(name="random", T=5, d=8, **options):
    return HeadSource(name, torch.randn(T, d), torch.randn(T, d), **options)


def ruled(tokens=DOG, **options):
    return HeadSource.by_rules(tokens, **options)


def test_hand_built_heads_look_where_their_rules_say():
    source = ruled()
    q, k = (split_heads(part[None], 3) for part in (source.q, source.k))
    _, weights = scaled_dot_product_attention(q, k, k)
    previous, same, first = weights[0]
    assert previous[1:].argmax(1).tolist() == [0, 1, 2, 3]
    torch.testing.assert_close(previous[0], torch.full((5,), 0.2))  # nobody is before it
    assert (same > 0.4).tolist() == [[a.lower() == b.lower() for b in DOG] for a in DOG]
    assert (first.argmax(1) == 0).all()
    torch.testing.assert_close(first[0, 0], torch.e**5 / (torch.e**5 + torch.tensor(4.0)))


def test_sources_stand_one_after_the_other():
    one, two = random_source(d=8, origin="random (seed 0)"), ruled()
    widget = HeadExplorer.of_sources(DOG, [one, two], causal=True)
    assert (widget.source, widget.num_heads, widget.causal, widget.token) == (0, 4, True, 4)
    assert (widget.d, widget.origin) == (8, "random (seed 0)")
    for state, parts in ((widget.q, (one.q, two.q)), (widget.k, (one.k, two.k))):
        numbers = torch.from_numpy(np.frombuffer(state, "<f4").copy())
        assert torch.equal(numbers, torch.cat([part.flatten() for part in parts]))
    assert widget.sources[1] == {
        "name": "hand-built",
        "origin": "hand-built",
        "d": 48,
        "num_heads": 3,
        "heads": ["previous token", "same word", "first token"],
        "rules": True,
        "causal": None,
    }


def test_another_source_keeps_the_head_count_if_it_divides_and_all_places_in_range():
    widget = HeadExplorer.of_sources(DOG, [ruled(), random_source(d=10)])
    widget.sentence, widget.token, widget.head, widget.pinned = [*"abcdefg"], 6, 2, 1
    widget.source = 1
    state = (widget.num_heads, widget.head, widget.pinned, widget.token)
    assert state == (2, 1, 1, 4)
    widget.num_heads = 1
    assert (widget.head, widget.pinned) == (0, -1)
    widget.set_state({"source": 0, "num_heads": 3})
    assert (widget.source, widget.num_heads) == (0, 3)


@pytest.mark.parametrize(
    ("error", "message", "sources"),
    [
        (TypeError, "sources must be a list", lambda: random_source()),
        (TypeError, "sources must be HeadSources, got Tensor", lambda: [Q]),
        (ValueError, "at least one HeadSource, got none", lambda: []),
        (ValueError, "differ in their names", lambda: [random_source(), random_source()]),
        (ValueError, r"q .* one row a token, got .* 5", lambda: [random_source(T=4)]),
        (ValueError, "num_heads=3", lambda: [random_source(num_heads=3)]),
        (ValueError, "heads must name all 4 heads, got 1", lambda: [
            random_source(heads=["first"], num_heads=4)
        ]),
        (TypeError, "origin must be a string", lambda: [random_source(origin=3)]),
        (ValueError, "by rules from the explorer's tokens", lambda: [ruled(list("abcde"))]),
        (ValueError, "rules must be of .* got 'next'", lambda: [ruled(rules=["next"])]),
        (ValueError, "rules must each come once", lambda: [ruled(rules=["same word"] * 2)]),
        (ValueError, "rules must hold at least one", lambda: [ruled(rules=[])]),
        (ValueError, "tokens must be at most 16", lambda: [ruled(["a"] * 17)]),
    ],
)  # fmt: skip
def test_bad_sources_are_refused_in_words(error, message, sources):
    with pytest.raises(error, match=message):
        HeadExplorer.of_sources(DOG, sources())


def test_sources_share_the_room_of_a_page():
    halves = [random_source(name, T=256, d=520) for name in "ab"]
    with pytest.raises(ValueError, match="at most 524,288 numbers, got 532,480"):
        HeadExplorer.of_sources(["a"] * 256, halves)


@pytest.mark.parametrize(("token", "place"), [(None, 4), (1, 1), ("saw", 2), ("the", 3)])
def test_the_token_at_the_start_is_given_by_its_place_or_by_itself(token, place):
    assert HeadExplorer.of_sources(DOG, [ruled()], token=token).token == place


@pytest.mark.parametrize(
    ("error", "token", "message"),
    [
        (ValueError, "cat", "token must stand once in tokens, got 'cat', which isn't among them"),
        (ValueError, "a", r"got 'a', which stands at \[0, 2\]: give its place"),
        (ValueError, 3, "token must be from 0 to 2"),
    ],
)
def test_a_token_that_cannot_be_the_start_is_refused_in_words(error, token, message):
    with pytest.raises(error, match=message):
        HeadExplorer([*"aba"], Q[:3], Q[:3], token=token)


def test_an_origin_that_claims_a_training_needs_its_number_of_heads():
    with pytest.raises(ValueError, match="num_heads must be given where origin claims a training"):
        HeadExplorer.of_sources(DOG, [random_source(origin="trained (seed 0)", num_heads=None)])
    told = HeadExplorer.of_sources(DOG, [random_source(origin="GPT-2", num_heads=4)]).sources[0]
    assert (told["num_heads"], told["causal"]) == (4, False)


def test_the_summary_says_where_the_first_weights_come_from_and_follows_the_tab():
    sources = [random_source(num_heads=4, origin="trained (seed 1)"), ruled()]
    widget = HeadExplorer.of_sources(DOG, sources)
    assert widget.summary.endswith("Weights: trained (seed 1).")
    widget.num_heads = 2
    assert "Cut anew from 4 trained heads" in widget.summary
    widget.source = 1
    assert widget.summary.endswith("Weights: hand-built.")
