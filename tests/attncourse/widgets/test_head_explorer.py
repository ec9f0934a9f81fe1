"""HeadExplorer's Python side: its state, its traits, its refusals."""

import numpy as np
import pytest
import torch
from tools.refusing import assert_named, assert_refused, refusals

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
    q, k = torch.randn(4, 12, dtype=dtype, requires_grad=True), torch.randn(12, 4, dtype=dtype).T
    widget = HeadExplorer(TOKENS, q, k)
    assert widget.tokens == TOKENS
    assert (widget.T, widget.d) == (4, 12)
    assert len(widget.q) == 4 * 12 * 4
    assert torch.equal(decoded(widget, "q"), q.float().double())
    assert torch.equal(decoded(widget, "k"), k.float().double())


@pytest.mark.parametrize(("d", "num_heads"), [(64, 4), (6, 3), (10, 2), (7, 1), (1, 1)])
def test_the_head_count_at_the_start_divides_d(d, num_heads):
    assert explorer(d=d).num_heads == num_heads


def assert_shows(widget, module, x, **options):
    """Fail unless a widget's queries and keys give the weights that a module has on x."""
    q, k = (split_heads(decoded(widget, name)[None], widget.num_heads) for name in "qk")
    _, weights = scaled_dot_product_attention(q, k, k, **options)
    _, expected = module(x[None], need_weights=True, **options)
    torch.testing.assert_close(weights, expected.double(), atol=1e-6, rtol=0)


@pytest.mark.parametrize(("batch", "causal"), [((), False), ((1,), True)])
def test_from_module_holds_the_queries_and_keys_of_the_module(batch, causal):
    module = MultiHeadAttention(24, 6)
    torch.nn.init.normal_(module.W_q.bias)
    x = torch.randn(*batch, 4, 24)
    widget = HeadExplorer.from_module(module, x, TOKENS, causal=causal, origin="random")
    assert (widget.num_heads, widget.causal, widget.origin) == (6, causal, "random")
    assert_shows(widget, module, x.view(4, 24), causal=causal)


def test_a_move_in_the_browser_may_change_head_count_and_head_at_once():
    widget = explorer(num_heads=2)
    widget.set_state({"head": 11, "num_heads": 12})
    assert (widget.num_heads, widget.head) == (12, 11)


Q = torch.ones(4, 8)
NAN, INFINITE, TOO_LARGE = Q.clone(), Q.clone(), Q.double()
NAN[2, 3], INFINITE[1, 0], TOO_LARGE[0, 0] = torch.nan, torch.inf, 1e300


def given(tokens=TOKENS, q=Q, k=Q, **options):
    return HeadExplorer(tokens, q, k, **options)


def of_module(module=None, x=Q):
    return HeadExplorer.from_module(module or MultiHeadAttention(8, 2), x, TOKENS)


def of_sources(sources):
    return HeadExplorer.of_sources(DOG, sources)


def test_grouped_heads_are_refused_with_a_way_that_shows_them():
    module, x = MultiHeadAttention(16, 4, num_kv_heads=2), torch.randn(4, 16)
    way = "k.unflatten(-1, (2, -1)).repeat_interleave(2, dim=1).flatten(1)"
    assert_refused(lambda: of_module(module, x), ["num_kv_heads=2 and num_heads=4", way])
    k = eval(way, {"k": module.W_k(x)})
    assert_shows(HeadExplorer(TOKENS, module.W_q(x), k, num_heads=4), module, x)


def test_rotary_positions_are_refused_with_a_way_that_shows_them():
    module, x = MultiHeadAttention(16, 4, rotary=RotaryPositions()), torch.randn(4, 16)
    assert_refused(lambda: of_module(module, x), ["rotary", "num_heads=4", "module.rotary"])
    q, k = (split_heads(W(x)[None], 4) for W in (module.W_q, module.W_k))
    q, k = (module.rotary(part).transpose(1, 2).flatten(2)[0].detach() for part in (q, k))
    assert_shows(HeadExplorer(TOKENS, q, k, num_heads=4), module, x)


@pytest.mark.parametrize(
    ("T", "d", "words"),
    [
        (513, 1, ["tokens", "512", "513", "plot_long_heads"]),
        (363, 256, ["T=363 and d=256", "362"]),
        (2, 2**18, ["q and k [T=2, d=262144]", "524,288"]),
    ],
)
def test_what_would_weigh_a_page_down_is_refused_and_a_token_less_is_not(T, d, words):
    assert_refused(lambda: explorer(T=T, d=d), words, ValueError)
    assert explorer(T=T - 1, d=d).T == T - 1


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
        "name": "hand-built", "origin": "hand-built", "d": 48, "num_heads": 3,
        "heads": ["previous token", "same word", "first token"], "rules": True, "causal": None,
    }  # fmt: skip


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


def source(num_heads=4, **options):
    return of_sources([random_source(num_heads=num_heads, **options)])


def by_rules(tokens=DOG, rules=("same word",)):
    return of_sources([ruled(tokens, rules=rules)])


test_bad_input_is_refused_by_name = refusals(
    {
        TypeError: {
            given: {
                "tokens": ["a cat", ["a", 1, "b", "c"]], "q": [Q.tolist(), Q.to_sparse()],
                "k": [Q.long(), Q.to("meta")], "num_heads": [2.0], "causal": [Q], "origin": [0],
            },
            of_module: {
                "module": [torch.nn.MultiheadAttention(8, 2)], "x": [Q.double(), Q.long()],
            },
            of_sources: {"sources": [random_source("one"), [Q]]},
            source: {"origin": [3]},
        },
        ValueError: {
            given: {
                "tokens": [[]], "q": [Q[:3], Q[None], NAN, Q[:, :0]],
                "k": [Q[:3], Q[:, :4], Q[0], INFINITE, TOO_LARGE],
                "num_heads": [0], "token": [4, "cat dog"],
            },
            of_module: {"x": [Q[:, :4], Q.expand(2, 4, 8)]},
            of_sources: {"sources": [
                [], [random_source("one"), random_source("one")], [ruled(list("abcde"))],
            ]},
            source: {"heads": [["first"]]},
            by_rules: {"rules": [["next"], ["same word"] * 2, []], "tokens": [["a"] * 17]},
        },
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: given(num_heads=3), ["num_heads=3", "[1, 2, 4, 8]"]),
        (lambda: source(num_heads=3), ["num_heads=3"]),
        (lambda: source(T=4), ["q", "one row a token", "5"]),
        (lambda: HeadExplorer([*"aba"], Q[:3], Q[:3], token="a"), ["token", "[0, 2]"]),
        (lambda: of_module(MultiHeadAttention(8, 2, kdim=6)), ["kdim=6 and d_model=8"]),
        (  # sources share the room of a page
            lambda: HeadExplorer.of_sources(
                ["a"] * 256, [random_source(name, T=256, d=520) for name in "ab"]
            ),
            ["524,288", "532,480"],
        ),
    ],
)
def test_what_does_not_fit_together_is_refused_with_its_numbers(call, words):
    assert_refused(call, words, ValueError)


@pytest.mark.parametrize(("token", "place"), [(None, 4), (1, 1), ("saw", 2), ("the", 3)])
def test_the_token_at_the_start_is_given_by_its_place_or_by_itself(token, place):
    assert HeadExplorer.of_sources(DOG, [ruled()], token=token).token == place


def test_an_origin_that_claims_a_training_needs_its_number_of_heads():
    assert_named(ValueError, "num_heads", lambda: source(None, origin="trained (seed 0)"))
    told = HeadExplorer.of_sources(DOG, [random_source(origin="GPT-2", num_heads=4)]).sources[0]
    assert (told["num_heads"], told["causal"]) == (4, False)


def test_the_summary_says_where_the_weights_come_from():
    sources = [random_source(num_heads=4, origin="trained (seed 1)"), ruled()]
    widget = HeadExplorer.of_sources(DOG, sources)
    assert "trained (seed 1)" in widget.summary
    widget.num_heads = 2
    assert "4 trained heads" in widget.summary
    widget.source = 1
    assert "hand-built" in widget.summary
