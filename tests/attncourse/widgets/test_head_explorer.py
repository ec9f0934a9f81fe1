"""HeadExplorer's Python side: its state, its traits, its refusals."""

import pytest
import torch
from tools.refusing import assert_named, assert_refused, refusals

from attncourse.widgets import HeadExplorer
from attncourse.widgets.head_explorer.sources import HeadSource
from attnlib import MultiHeadAttention, scaled_dot_product_attention, split_heads
from attnlib.positions import RotaryPositions

TOKENS = ["The", "cat", "sat", "down"]
DOG = "The dog saw the dog".split()


def explorer(T=4, d=12, **options):
    return HeadExplorer(["a"] * T, torch.randn(T, d), torch.randn(T, d), **options)


def assert_shows(widget, module, x, **options):
    """Fail unless a widget's queries and keys give the weights that a module has on x."""
    parts = (
        torch.frombuffer(bytearray(part), dtype=torch.float32) for part in (widget.q, widget.k)
    )
    q, k = (split_heads(part.view(1, 4, widget.d), widget.num_heads) for part in parts)
    _, weights = scaled_dot_product_attention(q, k, k, **options)
    _, expected = module(x[None], need_weights=True, **options)
    torch.testing.assert_close(weights, expected, atol=1e-6, rtol=0)


def test_from_module_holds_the_queries_and_keys_of_the_module():
    module = MultiHeadAttention(24, 6)
    torch.nn.init.normal_(module.W_q.bias)
    x = torch.randn(1, 4, 24)
    widget = HeadExplorer.from_module(module, x, TOKENS, causal=True, origin="random")
    assert (widget.num_heads, widget.causal, widget.origin) == (6, True, "random")
    assert_shows(widget, module, x[0], causal=True)


Q = torch.ones(4, 8)


def given(tokens=TOKENS, q=Q, k=Q, **options):
    return HeadExplorer(tokens, q, k, **options)


def of_module(module=None, x=Q):
    return HeadExplorer.from_module(module or MultiHeadAttention(8, 2), x, TOKENS)


def of_sources(sources):
    return HeadExplorer.of_sources(DOG, sources)


def test_grouped_heads_and_rotary_positions_are_refused_with_a_way_that_shows_them():
    x = torch.randn(4, 16)
    module = MultiHeadAttention(16, 4, num_kv_heads=2)
    way = "k.unflatten(-1, (2, -1)).repeat_interleave(2, dim=1).flatten(1)"
    assert_refused(lambda: of_module(module, x), ["num_kv_heads=2 and num_heads=4", way])
    k = eval(way, {"k": module.W_k(x)})
    assert_shows(HeadExplorer(TOKENS, module.W_q(x), k, num_heads=4), module, x)
    turning = MultiHeadAttention(16, 4, rotary=RotaryPositions())
    assert_refused(lambda: of_module(turning, x), ["rotary", "num_heads=4", "module.rotary"])
    heads = (turning.rotary(split_heads(W(x)[None], 4)) for W in (turning.W_q, turning.W_k))
    q, k = (part.transpose(1, 2).flatten(2)[0] for part in heads)
    assert_shows(HeadExplorer(TOKENS, q, k, num_heads=4), turning, x)


def random_source(name="random", T=5, d=8, **options):
    return HeadSource(name, torch.randn(T, d), torch.randn(T, d), **options)


def ruled(tokens=DOG, **options):
    return HeadSource.by_rules(tokens, **options)


def test_hand_built_heads_look_as_strongly_as_they_say():
    own = ruled()
    q, k = (split_heads(part[None], 3) for part in (own.q, own.k))
    _, weights = scaled_dot_product_attention(q, k, k)
    previous, same, first = weights[0]
    strong = torch.e**5 / (torch.e**5 + torch.tensor(4.0))
    assert previous[4, 3] == pytest.approx(strong) and first[0, 0] == pytest.approx(strong)
    assert (same > 0.4).tolist() == [[a.lower() == b.lower() for b in DOG] for a in DOG]
    torch.testing.assert_close(previous[0], torch.full((5,), 0.2))  # nobody is before it


def test_moves_of_python_and_the_browser_keep_head_count_and_places_in_range():
    widget = HeadExplorer.of_sources(DOG, [ruled(), random_source(d=10)])
    widget.sentence, widget.token, widget.head, widget.pinned = [*"abcdefg"], 6, 2, 1
    widget.source = 1  # whose tokens are fewer, and whose width isn't cut in three
    assert (widget.num_heads, widget.head, widget.pinned, widget.token) == (2, 1, 1, 4)
    widget.num_heads = 1
    assert (widget.head, widget.pinned) == (0, -1)
    widget.set_state({"source": 0, "num_heads": 12, "head": 11})  # all at once
    assert (widget.source, widget.num_heads, widget.head) == (0, 12, 11)


def source(num_heads=4, **options):
    return of_sources([random_source(num_heads=num_heads, **options)])


def by_rules(tokens=DOG, rules=("same word",)):
    return of_sources([ruled(tokens, rules=rules)])


test_bad_input_is_refused_by_name = refusals({
    TypeError: {
        given: {
            "tokens": ["a cat"], "q": [Q.tolist()], "k": [Q.long()], "num_heads": [2.0],
            "causal": [Q], "origin": [0],
        },
        of_module: {"module": [torch.nn.MultiheadAttention(8, 2)], "x": [Q.double()]},
        of_sources: {"sources": [[Q]]},
    },
    ValueError: {
        given: {
            "tokens": [[]], "q": [Q[:3], Q[None], Q / 0, Q[:, :0]],
            "k": [Q[:3], Q[:, :4], Q.double() * 1e300],
            "num_heads": [0], "token": [4, "cat dog"],
        },
        of_module: {"x": [Q[:, :4], Q.expand(2, 4, 8)]},
        of_sources: {"sources": [[], [random_source()] * 2, [ruled(list("abcde"))]]},
        source: {"heads": [["first"]]},
        by_rules: {"rules": [["next"], ["same word"] * 2, []], "tokens": [["a"] * 17]},
    },
})  # fmt: skip


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: given(num_heads=3), ["num_heads=3", "[1, 2, 4, 8]"]),
        (lambda: HeadExplorer([*"aba"], Q[:3], Q[:3], token="a"), ["token", "[0, 2]"]),
        (lambda: of_module(MultiHeadAttention(8, 2, kdim=6)), ["kdim=6 and d_model=8"]),
        (lambda: explorer(513, 1), ["tokens", "512", "513", "plot_long_heads"]),
        (lambda: explorer(363, 256), ["T=363 and d=256", "362"]),
    ],
)
def test_what_does_not_fit_together_or_into_a_page_is_refused_with_its_numbers(call, words):
    assert_refused(call, words, ValueError)
    assert explorer(362, 256).T == 362  # the most


def test_what_is_left_out_is_chosen_but_for_the_heads_of_a_training():
    for token, place in ((None, 4), (1, 1), ("saw", 2)):
        assert HeadExplorer.of_sources(DOG, [ruled()], token=token).token == place
    for d, num_heads in ((64, 4), (6, 3), (7, 1)):
        assert explorer(d=d).num_heads == num_heads
    assert_named(ValueError, "num_heads", lambda: source(None, origin="trained (seed 0)"))
    told = source(origin="GPT-2").sources[0]
    assert (told["num_heads"], told["causal"]) == (4, False)
