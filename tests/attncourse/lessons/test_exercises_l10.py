"""What the checks of lesson L10 do beyond what every check does."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attncourse.lessons import l10
from attncourse.lessons.l10.fusing import Products, fused_layer
from attncourse.lessons.l10.maps import BYTES, HEADS, LAYERS, TOKENS
from attncourse.lessons.l10.maps import RIGHT as MEMORY
from attncourse.lessons.l10.measurements import RIGHT as CAUSES
from attncourse.lessons.l10.merging import RIGHT as MERGED
from attncourse.lessons.l10.remembering import next_row
from attncourse.lessons.l10.sizes import BYTES as BYTES_OF_A_NUMBER
from attncourse.lessons.l10.sizes import MODELS, cache_size, numbers_per_token
from attnlib import KVCache, MultiHeadAttention, scaled_dot_product_attention


def fuse_by_calling(W_q, W_k, W_v):
    """A function instead of a layer: one product as well."""
    matrix = torch.cat([W.weight for W in (W_q, W_k, W_v)]).T
    biases = [W.bias for W in (W_q, W_k, W_v) if W.bias is not None]
    return lambda x: x @ matrix + (torch.cat(biases) if biases else 0)


def attend_backwards(scores, values, block):
    """Last block first, with log-sum-exps instead of sums."""
    total, output = torch.full((len(scores), 1), -math.inf), torch.zeros(len(scores), 3)
    for start in reversed(range(0, scores.shape[1], block)):
        part = scores[:, start : start + block]
        top = part.amax(-1, keepdim=True).nan_to_num(neginf=0)
        own = (part - top).exp().sum(-1, keepdim=True).log() + top
        both = torch.logaddexp(total, own)
        measure = both.nan_to_num(neginf=0)
        mixed = (part - measure).exp() @ values[start : start + block]
        output, total = output * (total - measure).exp() + mixed, both
    return output


def attend_by_softmaxes_of_blocks(scores, values, block):
    """A softmax of each block, which weighs as much as its log-sum-exp says."""
    total, output = torch.full((len(scores), 1), -math.inf), torch.zeros(len(scores), 3)
    for part, own in zip(scores.split(block, 1), values.split(block), strict=True):
        of_block = part.logsumexp(-1, keepdim=True)
        both = torch.logaddexp(total, of_block)
        measure = both.nan_to_num(neginf=0)
        mixed = part.softmax(-1).nan_to_num(0) @ own
        output = output * (total - measure).exp() + mixed * (of_block - measure).exp()
        total = both
    return output


def attend_without_an_axis_of_one(scores, values, block):
    """The largest score and the sum as [T_q], the scores of a block as [block, T_q]."""
    top = torch.full((len(scores),), -math.inf)
    total, mix = torch.zeros_like(top), torch.zeros(3, len(scores))
    for part, own in zip(scores.T.split(block), values.split(block), strict=True):
        higher = torch.maximum(top, part.max(0).values)
        measure = higher.masked_fill(higher.isinf(), 0)
        old, new = (top - measure).exp(), (part - measure).exp()
        total, mix, top = old * total + new.sum(0), old * mix + own.T @ new, higher
    return (mix / total.masked_fill(total == 0, 1)).T


def next_by_fused(x, W_q, W_k, W_v, keys, values):
    keys, values = torch.cat((keys, x @ W_k)), torch.cat((values, x @ W_v))
    q, k, v = (part[None, None] for part in (x @ W_q, keys, values))
    return [F.scaled_dot_product_attention(q, k, v)[0, 0], keys, values]


def grouped_as_rows(q, k, v):
    rows = q.unflatten(1, (k.shape[1], -1)).flatten(2, 3)  # [B, g, h / g T, d_k]
    return scaled_dot_product_attention(rows, k, v)[0].reshape(q.shape)


def test_solutions_may_be_written_in_other_ways():
    assert l10.fuse(fuse_by_calling)
    assert l10.map_memory([[8], [72], [36]])
    assert l10.merged_block((9 / 4, 18, 8))
    assert l10.online_softmax(attend_backwards)
    assert l10.online_softmax(attend_by_softmaxes_of_blocks)
    assert l10.online_softmax(attend_without_an_axis_of_one)
    assert l10.next_token(next_by_fused)
    assert l10.grouped(grouped_as_rows)
    assert l10.grouped(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True))
    assert l10.cache_bytes(lambda model, tokens: float(cache_size(model, tokens)))
    assert l10.explained(dict(reversed(CAUSES.items())))


# --- the numbers that are asked for -----------------------------------------------------------


def test_memory_of_maps_is_that_of_tensors():
    one = torch.empty(TOKENS, TOKENS, dtype=torch.bfloat16, device="meta")
    assert one.element_size() == BYTES
    everything, row = LAYERS * HEADS * one.nbytes, LAYERS * HEADS * one[:1].nbytes
    assert MEMORY.tolist() == [one.nbytes / 2**20, everything / 2**30, row / 2**20]


def test_the_merged_block_is_a_softmax_over_both():
    scores = torch.tensor([0.0, math.log(0.5), math.log(2), 0.0])  # sum 1.5 in the first block
    values = torch.tensor([4.0, 4.0, 9.0, 12.0])  # mix 6
    exponentials = (scores - math.log(2)).exp()
    found = exponentials.sum(), exponentials @ values, scores.softmax(-1) @ values
    torch.testing.assert_close(torch.stack(found).double(), MERGED, atol=1e-5, rtol=0)


def test_caches_of_real_models_are_those_of_their_papers():
    kib = {name: cache_size(model, 1) / 1024 for name, model in MODELS.items()}
    assert kib == {
        "GPT-2 small": 36, "GPT-3 175B": 4608, "Llama 2 7B": 512, "Llama 2 70B": 320,
        "DeepSeek-V2": 67.5,
    }  # fmt: skip
    assert numbers_per_token(MODELS["DeepSeek-V2"]) == 34_560
    assert cache_size(MODELS["Llama 2 70B"], 4096) == 1.25 * 2**30


def test_a_cache_s_size_is_that_of_the_module_s():
    module, cache = MultiHeadAttention(24, 6, num_kv_heads=3), KVCache()
    module(torch.randn(1, 7, 24), causal=True, cache=cache)
    model = {"layers": 1, "heads": 6, "kv_heads": 3, "d_k": 4}
    held = cache.keys.numel() + cache.values.numel()
    assert cache_size(model, 7) == BYTES_OF_A_NUMBER * held


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([4, 72, 36], "This is half"),
        ([8, 0.75, 36], "This is one layer"),
        ([8, 72, 2], "One new query has a single row"),
        ([8, 70, 36], "All maps: 96 layers"),
    ],
)
def test_the_first_wrong_row_of_memory_is_told(numbers, words):
    assert words in l10.map_memory(numbers).message


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([3, 18, 8], "The sum: the old one"),
        ([2.25, 21, 8], "The mix: the old one"),
        ([2.25, 18, 7], "The output: the mix divided"),
    ],
)
def test_the_first_wrong_number_of_a_merged_block_is_told(numbers, words):
    assert words in l10.merged_block(numbers).message


# --- what a function does beside being right ----------------------------------------------------


def test_products_are_counted():
    layers, x = [nn.Linear(5, 5) for _ in range(3)], torch.randn(2, 7, 5)
    with torch.no_grad(), Products() as three:
        for layer in layers:
            layer(x)
    with torch.no_grad(), Products() as one:
        fused_layer(*layers)(x)
    assert (three.count, one.count) == (3, 1)


def test_three_products_are_not_one():
    def as_function(*layers):
        return lambda x: torch.cat([layer(x) for layer in layers], dim=-1)

    assert "still computes three products" in l10.fuse(as_function).message


def test_what_is_no_layer_is_told():
    assert "a layer was wanted" in l10.fuse(lambda *layers: layers[0].weight).message


def online(scores, values, block, width=None):
    """Right, with exponentials of as many keys at a time as `width` says."""
    parts = zip(scores.split(block, 1), values.split(block), strict=True)
    top, total, mix = torch.full((len(scores), 1), -math.inf), 0.0, 0.0
    for part, own in parts:
        higher = torch.maximum(top, part.amax(-1, keepdim=True))
        measure = higher.nan_to_num(neginf=0)
        old, new = (top - measure).exp(), torch.exp(part - measure)
        total, mix, top = old * total + new.sum(-1, keepdim=True), old * mix + new @ own, higher
    return mix / total.clamp(min=1e-30)


def test_a_softmax_that_takes_the_whole_row_is_told_though_its_numbers_are_right():
    def whole(scores, values, block):
        return online(scores, values, scores.shape[1])

    assert l10.online_softmax(online)
    assert "exponentials of a whole row" in l10.online_softmax(whole).message


def test_asking_the_whole_row_beforehand_is_told():
    def whole_logsumexp(scores, values, block):
        total = scores.logsumexp(-1, keepdim=True).nan_to_num(neginf=0)
        parts = zip(scores.split(block, 1), values.split(block), strict=True)
        return sum((part - total).exp() @ own for part, own in parts)

    message = l10.online_softmax(whole_logsumexp).message
    assert "you ask the whole row for its largest" in message


def attend_row_by_row(scores, values, block):
    """Each row through all of its blocks, key by key within them."""
    rows = []
    for row in scores:
        top, total, mix = torch.tensor(-math.inf), torch.tensor(0.0), torch.zeros(3)
        for part, own in zip(row.split(block), values.split(block), strict=True):
            higher = torch.max(top, part.max())
            measure = higher if higher.isfinite() else torch.tensor(0.0)
            old = torch.exp(top - measure)
            total, mix = total * old, mix * old
            for score, value in zip(part, own, strict=True):
                weight = math.e ** (score - measure)
                total, mix = total + weight, mix + weight * value
            top = higher
        rows.append(mix / total if total > 0 else mix)
    return torch.stack(rows)


def test_going_through_the_scores_beforehand_is_told():
    def sum_first(scores, values, block):
        top, total = torch.full((len(scores), 1), -math.inf), 0.0
        for start in range(0, len(values), block):
            part = scores[:, start : start + block]
            higher = torch.maximum(top, part.amax(-1, keepdim=True))
            measure = higher.nan_to_num(neginf=0)
            total = total * (top - measure).exp() + (part - measure).exp().sum(-1, keepdim=True)
            top = higher
        mix = torch.zeros(len(scores), values.shape[1])
        for start in range(0, len(values), block):
            keys = slice(start, start + block)
            mix = mix + (scores[:, keys] - measure).exp() @ values[keys]
        return mix / total.masked_fill(total == 0, 1)

    assert "before you touch the first value" in l10.online_softmax(sum_first).message
    assert l10.online_softmax(attend_row_by_row)


def test_scores_measured_against_the_block_before_are_told():
    def against_the_old(scores, values, block):
        top, total, mix = torch.full((len(scores), 1), -math.inf), 0.0, 0.0
        for part, own in zip(scores.split(block, 1), values.split(block), strict=True):
            new = (part - top).exp()
            total, mix = total + new.sum(-1, keepdim=True), mix + new @ own
            top = torch.maximum(top, part.amax(-1, keepdim=True))
        return mix / total

    assert (
        "Everything is nan, from the first block on" in l10.online_softmax(against_the_old).message
    )


def test_a_mistake_is_told_though_rows_that_may_look_nowhere_are_forgotten():
    def nothing_rescaled(scores, values, block):
        top, total, mix = torch.full((len(scores), 1), -math.inf), 0.0, 0.0
        for part, own in zip(scores.split(block, 1), values.split(block), strict=True):
            top = torch.maximum(top, part.amax(-1, keepdim=True))
            new = (part - top).exp()
            total, mix = total + new.sum(-1, keepdim=True), mix + new @ own
        return mix / total

    assert (
        "added up so far is measured against the old"
        in l10.online_softmax(nothing_rescaled).message
    )


def test_a_block_more_than_is_asked_for_is_too_wide():
    def two_at_a_time(scores, values, block):
        return online(scores, values, 2 * block)

    assert "exponentials of a whole row" in l10.online_softmax(two_at_a_time).message


def test_a_row_that_may_look_nowhere_is_asked_for():
    def careless(scores, values, block):
        return online(scores, values, block).masked_fill(
            scores.isneginf().all(-1, keepdim=True), math.nan
        )

    assert "isn't a number" in l10.online_softmax(careless).message


@pytest.mark.parametrize("results", [1, 2, 4])
def test_a_step_returns_output_keys_and_values(results):
    def step(*arguments):
        return (next_row()(*arguments) * 2)[:results]

    verdict = l10.next_token(step)
    assert not verdict
    assert f"output, keys and values, but {results} came" in verdict.message


def test_a_step_that_is_right_only_for_some_lengths_does_not_pass():
    def window(x, W_q, W_k, W_v, keys, values):
        output, keys, values = next_row()(x, W_q, W_k, W_v, keys, values)
        return output, keys[-8:], values[-8:]

    assert not l10.next_token(window)


def test_a_model_may_be_used_up_while_its_cache_is_sized():
    def by_popping(model, tokens):
        each = model.pop("code", 0) + model.pop("rotary", 0)
        each = each or 2 * model.pop("kv_heads") * model.pop("d_k")
        return 2 * tokens * model.pop("layers") * each

    assert l10.cache_bytes(by_popping)


def test_a_wrong_size_is_told_with_its_model():
    def one_more(model, tokens):
        return cache_size(model, tokens) + 10**6

    message = l10.cache_bytes(one_more).message
    assert message == (
        "The number of bytes is off by 1e+06 when called with {'layers': 12, 'heads': 12, "
        "'kv_heads': 12, 'd_k': 64}, 1000."
    )
    assert "should be a number, not a str" in l10.cache_bytes(lambda *_: "36 KiB").message


@pytest.mark.parametrize("g", [1, 2, 3, 6])
def test_grouped_attention_is_the_module_s(g):
    torch.manual_seed(0)
    module, x = MultiHeadAttention(12, 6, num_kv_heads=g), torch.randn(2, 5, 12)
    q, k, v = (
        W(x).unflatten(2, (-1, 2)).transpose(1, 2) for W in (module.W_q, module.W_k, module.W_v)
    )
    heads = grouped_as_rows(q, k, v)
    torch.testing.assert_close(module.W_o(heads.transpose(1, 2).flatten(2)), module(x)[0])


def test_a_wrong_cause_is_told_by_its_measurement():
    words = {"loop": "The loop", "fused": "The fused", "shared": "Shared keys", "late": "Late"}
    for name, begin in words.items():
        wrong = "maps" if CAUSES[name] == "calls" else "calls"
        message = l10.explained(CAUSES | {name: wrong}).message
        assert message.startswith(begin) or "With 16 tokens a map" in message
