"""An atlas scores what was built into heads, whole maps or block by block."""

import math
from functools import partial

import pytest
import torch
from tools.refusing import refusals

from attncourse import atlas
from attncourse.atlas import _layer_scores
from attncourse.tokens import BytePairTokenizer
from attnlib import patterns
from attnlib.heatmap import attention_heatmap
from attnlib.model import GPT, TaskSizes, TransformerModel

IDS = [7, 3, 5, 3, 8, 7, 3, 5, 2, 8, 7, 3]
T = len(IDS)


def at(columns):
    """One map [T, T] whose row i looks at columns[i] alone."""
    return torch.eye(len(columns))[columns]


def built(ids):
    """Two layers of three hand-built heads, that look to the left only.

    Where a head finds nothing, it rests on the first token.
    """
    tokens = ids[0]
    T = len(tokens)
    places = torch.arange(T)
    earlier = (tokens[:, None] == tokens[None]).tril(-1)
    resting = ~earlier.any(-1, keepdim=True)
    first = at([0] * T)
    same = torch.where(resting, first, earlier / earlier.sum(-1, keepdim=True).clamp_min(1))
    after = earlier.float().roll(1, 1)
    after = torch.where(resting, first, after / after.sum(-1, keepdim=True).clamp_min(1))
    evenly = torch.ones(T, T).tril() / (places + 1)[:, None]
    previous, third = (at((places - back).clamp_min(0)) for back in (1, 3))
    yield torch.stack([previous, first, evenly])[None]
    yield torch.stack([same, after, third])[None]


def book_of(model=built, texts=(IDS,), **options):
    return atlas.from_model(model, texts, progress=False, **options)


BEST = {  # layer, head, score and baseline
    "previous token": (0, 0, 1, 1),
    "first token": (0, 1, 1, 1 / (T - 1)),
    "same token": (1, 0, 1, 6 / 7),
    "induction": (1, 1, 1, 6 / 7),
    "best offset": (0, 0, 1, sum(1 / n for n in range(2, T + 1)) / (T - 1)),
}


def test_what_was_built_in_is_found():
    book = book_of()
    assert book.causal and list(book.scores) == [*BEST, "entropy"]
    for pattern, expected in BEST.items():
        [best] = book.best(pattern, 1)
        found = (best.layer, best.head, best.score, best.baseline)
        assert found == pytest.approx(expected) and best.spread == 0
    assert book.best("entropy", 1)[0].score == 0 == book.scores["entropy"].mean[0, 1]
    evenly = sum(math.log(n) for n in range(1, T + 1)) / T
    assert book.best("entropy", 1)[0].baseline == pytest.approx(evenly)
    rules = {pattern: scores.rule for pattern, scores in book.scores.items()}
    assert rules["previous token"].endswith(" -1") and rules["same token"].endswith(" -5")
    scores = book.scores["best offset"]
    assert scores.offsets[0, 0] == -1 and scores.offsets[1, 2] == -3
    assert scores.mean[1, 2] == pytest.approx(1)
    evenly = sum(1 / (i + 1) for i in range(3, T)) / (T - 3)
    assert scores.baseline[1, 2] == pytest.approx(evenly)


def random_maps(T, causal, seed=0):
    """Return the weights [1, h, T, T] of two layers."""
    scores = 3 * torch.randn(2, 1, 3, T, T, generator=torch.Generator().manual_seed(seed))
    if causal:
        scores = scores.masked_fill(~torch.ones(T, T).tril().bool(), -math.inf)
    return list(scores.softmax(-1))


def several(texts, causal):
    """Return random maps for each of some texts by their lengths, and a model that has them."""
    maps = {len(text): random_maps(len(text), causal, seed) for seed, text in enumerate(texts)}
    return maps, lambda ids: maps[ids.shape[1]]


TEXTS = [IDS, [1, 2, 1, 4, 2, 1], list(range(20, 29)) * 2]


@pytest.mark.parametrize(("at_once", "causal"), [(1, True), (10**6, False)])
def test_scores_are_those_of_patterns(monkeypatch, at_once, causal):
    monkeypatch.setattr(_layer_scores, "AT_ONCE", at_once)
    maps, model = several(TEXTS, causal)
    book = book_of(model, TEXTS)
    assert book.causal == causal
    for pattern, score in {
        "previous token": lambda w, ids: patterns.previous_token_score(w),
        "first token": lambda w, ids: patterns.relation_mass(
            w, torch.tensor([-1] + [0] * (len(ids) - 1))
        ),
        "same token": lambda w, ids: patterns.same_token_score(w, ids, causal=causal),
        "induction": lambda w, ids: patterns.induction_score(w, ids),
    }.items():
        each = [
            [score(layer[0], torch.tensor(text)) for layer in maps[len(text)]] for text in TEXTS
        ]
        found = torch.stack([torch.stack([scores.heads for scores in text]) for text in each])
        torch.testing.assert_close(book.scores[pattern].mean, found.mean(0))
        torch.testing.assert_close(book.scores[pattern].spread, found.std(0))
        baseline = sum(text[0].baseline for text in each) / 3
        assert (book.scores[pattern].baseline - baseline).abs().max() < 1e-12
        assert book.scores[pattern].rows == sum(text[0].rows for text in each)
    entropies = [[patterns.entropy(layer[0]) for layer in maps[len(text)]] for text in TEXTS]
    found = torch.stack([torch.stack(text) for text in entropies])
    torch.testing.assert_close(book.scores["entropy"].mean, found.mean(0))


def test_a_short_text_has_fewer_offsets():
    texts = [IDS, IDS[:4]]
    maps, model = several(texts, causal=False)
    scores = book_of(model, texts).scores["best offset"]

    def by_offset(n, reach):
        offsets = range(-reach, reach + 1)
        weights = torch.cat(maps[n]).double()  # [L, h, n, n]
        return torch.stack([weights.diagonal(o, -2, -1).mean(-1) for o in offsets], -1)

    long, short = by_offset(T, 6), by_offset(4, 2)
    mean = long.clone()
    mean[..., 4:9] = (long[..., 4:9] + short) / 2
    torch.testing.assert_close(scores.mean, mean.amax(-1))
    assert torch.equal(scores.offsets, mean.argmax(-1) - 6)


def test_a_pattern_that_no_text_has_is_left_out():
    texts = [[1, 2, 3, 4], [5, 6, 7, 8, 9]]
    book = book_of(texts=texts)
    assert list(book.scores) == ["previous token", "first token", "best offset", "entropy"]
    with pytest.raises(ValueError, match="got 'induction': no text has a token twice"):
        book.best("induction")
    assert book_of(texts=[*texts, IDS]).scores["induction"].texts == 1


@pytest.mark.parametrize("at_once", [1, 10**6])
def test_maps_are_those_of_heatmap_in_half_precision_too(monkeypatch, at_once):
    monkeypatch.setattr(_layer_scores, "AT_ONCE", at_once)
    q, k = torch.randn(2, 1, 3, 150, 8)
    weights = (q @ k.mT / math.sqrt(8)).softmax(-1)
    ids = [list(range(150))]
    book = book_of(lambda ids: [weights, weights.flip(1)], ids)
    expected = attention_heatmap(q, k, grid=64)[0]
    assert book.maps.shape == (2, 3, 50, 50)
    torch.testing.assert_close(book.maps[0], expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(book.maps[1], expected.flip(0), atol=1e-6, rtol=0)
    half = book_of(lambda ids: [weights.bfloat16()], ids).maps
    torch.testing.assert_close(half.sum(-1), torch.ones(1, 3, 50), atol=1e-6, rtol=0)
    torch.testing.assert_close(half[0], expected, atol=4e-3, rtol=0)


def test_the_keys_most_looked_at():
    maps, model = several(TEXTS, causal=True)
    book = book_of(model, TEXTS, shown=0)
    weights = torch.stack(maps[T])[:, 0]
    expected, keys = weights.topk(8, -1)
    torch.testing.assert_close(book.top_weights, expected)
    assert torch.equal(book.top_keys, keys.int().masked_fill(expected == 0, -1))
    assert (book.top_keys[:, :, 2, 3:] == -1).all()  # the third token may look at three


def test_rows_that_may_look_nowhere_count_as_nothing():
    weights = torch.eye(4).roll(-1, 1)[None, None] * torch.tensor([0.0, 1, 1, 1])[:, None]
    book = book_of(lambda ids: [weights], [[1, 2, 1, 2]])
    assert book.maps[0, 0, 0].tolist() == [0, 0, 0, 0] and book.maps[0, 0, 1, 0] == 1
    assert book.top_keys[0, 0, 0].tolist() == [-1] * 4


def test_the_text_that_is_shown_and_what_its_tokens_are_called():
    book = book_of(texts=TEXTS, shown=1, tokenizer=[f"<{i}>" for i in range(30)])
    assert book.tokens == ("<1>", "<2>", "<1>", "<4>", "<2>", "<1>")
    assert book.maps.shape == (2, 3, 6, 6) and book.layer_names == ("layer 0", "layer 1")
    assert (book.name, book.library, book_of(name="mine").name) == ("built", None, "mine")
    tokenizer = BytePairTokenizer.train("banana bandana", num_merges=3)
    book = book_of(texts=["banana ban"], tokenizer=tokenizer)
    assert book.tokens == ("ban", "ana", " ", "ban")
    assert book_of(texts=[tokenizer.encode("banana ban")]).tokens == ("257", "258", "32", "257")


def decoder():
    return GPT(9, 15, 24, 4, 3, num_kv_heads=2, positions="rotary", dropout=0.5)


def encoder():
    sizes = TaskSizes(vocabulary_size=9, length=15, readouts={"class": 5})
    return TransformerModel.of_sizes(sizes, 24, 4, 3, d_ff=10, dropout=0.5)


@pytest.mark.parametrize("make", [decoder, encoder])
def test_models_of_attnlib(make):
    model = make()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    model.blocks[1].eval()
    book = book_of(model)
    assert book.causal == (make is decoder)
    assert model.training and not model.blocks[1].training
    weights = model.eval()(torch.tensor([IDS]), need_weights=True).weights
    same_books(book, book_of(lambda ids: weights))
    same_books(book, book_of(torch.compile(model, backend="eager")))
    assert book.layer_names[2] == "blocks.2.attention"
    with torch.no_grad():  # the first layer's values are at hand
        x = model.token_embedding(torch.tensor([IDS]))
        x = x if model.position_embedding is None else model.position_embedding(x)
        attention = model.blocks[0].attention
        values = attention.W_v(model.blocks[0].norm_1(x))[0]  # [T, h_kv d_k]
    norms = values.unflatten(-1, (-1, 6)).norm(dim=-1).T  # [h_kv, T]
    norms = norms.repeat_interleave(4 // attention.num_kv_heads, 0)
    torch.testing.assert_close(book.value_norms[0], norms)


def same_books(one, other, tolerance=1e-5):
    """Say that two atlases hold the same numbers."""
    assert list(one.scores) == list(other.scores) and one.causal == other.causal
    for pattern, scores in one.scores.items():
        for x in ("mean", "spread", "baseline"):
            a, b = getattr(scores, x), getattr(other.scores[pattern], x)
            torch.testing.assert_close(a, b, atol=tolerance, rtol=0)
    for x in ("maps", "top_weights"):
        torch.testing.assert_close(getattr(one, x), getattr(other, x), atol=tolerance, rtol=0)


def test_an_error_leaves_a_model_as_it_was():
    model = decoder()
    handle = model.blocks[1].register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        book_of(model)
    handle.remove()
    assert model.training
    attention = model.blocks[0].attention
    assert not attention._forward_hooks and not attention._forward_pre_hooks
    assert model(torch.tensor([IDS])).weights is None


class Attending(torch.nn.Dropout):
    """A model that isn't known here, which hands out weights one by one."""

    def forward(self, ids):
        for layer in random_maps(ids.shape[1], causal=True):
            yield super().forward(layer)


def test_a_module_is_asked_without_dropout_and_left_as_it_was():
    model = Attending()
    same_books(book_of(model), book_of(lambda ids: random_maps(T, causal=True)))
    assert model.training


def test_its_table_and_its_figure():
    book = book_of(texts=[IDS, IDS])
    first, *lines = repr(book).splitlines()
    rows = {line[:16].strip(): line[16:] for line in lines}
    assert all(part in first for part in ("built", "2 layers of 3", "causal"))
    assert rows["previous token"].split()[:3] == ["1.1", "1.00", "±0.00"]
    assert "2.3 1.00 ±0.00 at -3" in rows["best offset"]
    assert "22 rows" in rows["previous token"]
    assert "±" not in repr(book_of())  # of one text
    *tables, _ = book.figure().axes
    assert [ax.get_title() for ax in tables] == [*list(book.scores)[:-1], "entropy, share of even"]
    image = torch.tensor(tables[3].images[0].get_array().data)
    torch.testing.assert_close(image, book.scores["induction"].mean)
    assert [ax.get_title() for ax in book.figure(["induction"]).axes] == ["induction", ""]
    told = book.alt_text()
    assert "induction highest in layer 2, head 2, with 1.00" in told and "entropy lowest" in told


EYE = torch.eye(T)[None, None]
book = book_of()
REFUSED = {
    TypeError: {
        book_of: {
            "model": [3, lambda ids: torch.ones(1, 12, 3), lambda ids: 3],
            "texts": ["abc", 3, [[1.0, 2.0]], [object()], {"input_ids": [IDS]}],
            "tokenizer": ["gpt2", 3], "name": [3],
        },
        partial(book_of, texts=["a b"]): {"tokenizer": [None]},
        partial(atlas.from_model, built, [IDS]): {"progress": ["no"]},
        book.figure: {"patterns": ["entropy"]},
    },
    ValueError: {
        book_of: {
            "model": [lambda ids: [], lambda ids: [EYE, EYE.expand(1, 2, T, T)]],
            "texts": [[], [[3]], [[IDS]], [[1, -2]], IDS], "tokenizer": [["a", "b"]], "shown": [1],
        },
        partial(book_of, decoder()): {"texts": [[IDS * 2], [[3, 9]]]},
        partial(book_of, texts=[[1, 300]]): {"tokenizer": [BytePairTokenizer()]},
        book.best: {"pattern": ["previous"]},
        partial(book.best, "entropy"): {"n": [0]},
        book.figure: {"patterns": [[]]},
    },
}  # fmt: skip

test_what_does_not_fit_is_refused = refusals(REFUSED)


def test_of_what_a_model_returns_the_wrong_layer_is_named():
    for wrong in (None, EYE[..., :5, :5], EYE[:, :0], EYE * 0):
        with pytest.raises((TypeError, ValueError), match="layer 1"):
            book_of(lambda ids, wrong=wrong: [EYE, wrong])
