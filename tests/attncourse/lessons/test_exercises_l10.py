"""Checks of L10: right answers in other words, what is nearly right, and the numbers asked for."""

import math
from functools import partial

import torch
import torch.nn.functional as F
from tools.verdicts import PASSES, verdicts
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from attncourse.lessons import l10
from attncourse.lessons.l10.batches import INTENSITIES, OF_MACHINE
from attncourse.lessons.l10.by_hand import BYTES, HEADS, LAYERS, MEMORY, MERGED, TOKENS
from attncourse.lessons.l10.fusing import Products, fused_layer
from attncourse.lessons.l10.sizes import MODELS, cache_size, numbers_per_token


def fuse_by_calling(W_q, W_k, W_v):
    """A function instead of a layer: one product as well."""
    matrix = torch.cat([W.weight for W in (W_q, W_k, W_v)]).T
    bias = 0 if W_q.bias is None else torch.cat([W.bias for W in (W_q, W_k, W_v)])
    return lambda x: x @ matrix + bias


def next_by_fused(x, W_q, W_k, W_v, keys, values):
    keys, values = torch.cat((keys, x @ W_k)), torch.cat((values, x @ W_v))
    return [F.scaled_dot_product_attention(x @ W_q, keys, values), keys, values]


def by_popping(model, tokens):
    """Uses the model up while its cache is sized."""
    each = model.pop("code", 0) + model.pop("rotary", 0)
    each = each or 2 * model.pop("kv_heads") * model.pop("d_k")
    return 2 * tokens * model.pop("layers") * each


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


def attend_with_what_came_before(scores, values, block, begin=lambda scores, values, block: None):
    """Takes the largest score of the old one and the block's; sums with a column of ones."""
    begin(scores, values, block)
    top, mix = torch.full((len(scores), 1), -math.inf), torch.zeros(len(scores), 4)
    for part, own in zip(scores.split(block, 1), values.split(block), strict=True):
        new = torch.cat([top, part], 1).amax(1, keepdim=True)
        measure = new.nan_to_num(neginf=0)
        factor, top = (top - measure).exp(), new
        mix = factor * mix + (part - measure).exp() @ F.pad(own, (0, 1), value=1)
    return mix[:, :3] / mix[:, 3:].masked_fill(mix[:, 3:] == 0, 1)


def look_at_all(scores, values, block):
    """Touches the values, and then all scores."""
    return values.sum(), [part.amax() for part in scores.split(block, 1)]


test_answers = verdicts(
    {
        l10.fuse: {PASSES: [fuse_by_calling], "a layer was": [lambda *layers: layers[0].weight]},
        l10.map_memory: {PASSES: [[[8], [72], [36]]], "a single row": [[8, 72, 2]]},
        l10.next_token: {PASSES: [next_by_fused]},
        l10.grouped: {
            PASSES: [lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True)]
        },
        l10.online_softmax: {
            PASSES: [attend_by_softmaxes_of_blocks, attend_with_what_came_before],
            "read twice": [partial(attend_with_what_came_before, begin=look_at_all)],
        },
        l10.cache_bytes: {
            PASSES: [lambda model, tokens: float(cache_size(model, tokens)), by_popping],
            "when called with {'layers': 12, ": [
                lambda model, tokens: cache_size(model, tokens) + 10**6
            ],
        },
    }
)


def test_memory_of_maps_is_that_of_tensors():
    one = torch.empty(TOKENS, TOKENS, dtype=torch.bfloat16, device="meta")
    assert one.element_size() == BYTES
    everything, row = LAYERS * HEADS * one.nbytes, LAYERS * HEADS * one[:1].nbytes
    assert MEMORY.tolist() == [one.nbytes / 2**20, everything / 2**30, row / 2**20]


def operations_per_byte(rows, fetched):
    with FlopCounterMode(display=False) as counter:
        torch.matmul(rows, fetched)
    return counter.get_total_flops() / fetched.nbytes


def test_intensities_are_those_of_products():
    matrix = torch.randn(16, 24).bfloat16()
    of_one = operations_per_byte(torch.randn(1, 16).bfloat16(), matrix)
    of_batch = operations_per_byte(torch.randn(OF_MACHINE, 16).bfloat16(), matrix)
    assert (of_one, of_batch) == (INTENSITIES[0], OF_MACHINE) and INTENSITIES[1] == OF_MACHINE
    for texts, found in ((1, INTENSITIES[2]), (100, INTENSITIES[3])):  # keys of 8 heads, 50 tokens
        keys, queries = torch.randn(texts, 8, 16, 50).bfloat16(), torch.randn(texts, 8, 8, 16)
        assert operations_per_byte(queries.bfloat16(), keys) == found


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
        "PaLM 540B": 118, "DeepSeek-V2": 67.5,
    }  # fmt: skip
    assert numbers_per_token(MODELS["DeepSeek-V2"]) == 34_560
    assert cache_size(MODELS["Llama 2 70B"], 4096) == 1.25 * 2**30


def test_products_are_counted():
    layers, x = [nn.Linear(5, 5) for _ in range(3)], torch.randn(2, 7, 5)
    with torch.no_grad(), Products() as three:
        for layer in layers:
            layer(x)
    fused = fused_layer(*layers)
    with torch.no_grad(), Products() as one:
        fused(x)
    assert (three.count, one.count) == (3, 1)
