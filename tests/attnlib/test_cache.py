"""A cache gives exactly the full pass, chunk by chunk, and is never left half changed."""

import copy
import pickle
from random import Random

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tools.copying import CopiedNumbers
from tools.modules import F64, make_module

from attndoctor import museum
from attnlib import KVCache, causal_mask, padding_mask


def close(a, b):
    return torch.allclose(a, b, atol=1e-12, rtol=0)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.booleans(), st.data())
def test_chunk_by_chunk_is_the_full_pass(chunks, padded, data):
    T, B = sum(chunks), 2
    module = make_module(12, 6, num_kv_heads=data.draw(st.sampled_from([1, 2, 3, 6])))
    x, bias = torch.randn(B, T, 12, dtype=F64), torch.randn(1, 6, T, T, dtype=F64)
    # Padding on the left, as in batched generation: the first rows may look nowhere.
    key_mask = padding_mask(torch.randint(0, T + 1, (B,)), T).flip(1) if padded else None
    full = module(x, causal=True, key_mask=key_mask, score_bias=bias, need_weights=True)
    cache, seen = KVCache(), 0
    for chunk in x.split(chunks, 1):
        past, seen = seen, seen + chunk.shape[1]
        limits = {
            "causal": True,
            "key_mask": None if key_mask is None else key_mask[:, :seen],
            "score_bias": bias[:, :, past:seen, :seen],
        }
        parts = module.contributions(chunk, cache=cache, **limits)
        assert len(cache) == past, "contributions must leave the cache as it was"
        before = copy.copy(cache)
        output, weights = module(chunk, cache=cache, need_weights=True, **limits)
        fused, _ = module(chunk, cache=before, **limits)
        assert len(cache) == len(before) == seen
        assert close(output, full[0][:, past:seen]) and close(fused, output)
        assert close(weights, full[1][:, :, past:seen, :seen])
        assert close(parts.sum(1) + module.W_o.bias, output)


def test_causal_stands_at_the_end_of_the_keys():
    # PyTorch's own is_causal counts from the start, so the first new token would see one key.
    module, cache = make_module(4, 2), KVCache()
    x = torch.randn(1, 5, 4, dtype=F64)
    module(x[:, :3], causal=True, cache=cache)
    _, weights = module(x[:, 3:], causal=True, cache=cache, need_weights=True)
    assert torch.equal(weights[0, 0] > 0, causal_mask(2, past=3))


def test_without_causal_a_chunk_sees_all_so_far():
    module, cache, x = make_module(4, 2), KVCache(), torch.randn(1, 5, 4, dtype=F64)
    module(x[:, :3], cache=cache)
    output, _ = module(x[:, 3:], cache=cache)
    assert close(output, module(x[:, 3:], x)[0])


def test_grouped_heads_make_it_small():
    cache = KVCache()
    make_module(12, 6, num_kv_heads=2)(torch.randn(3, 5, 12, dtype=F64), cache=cache)
    assert cache.keys.shape == cache.values.shape == (3, 2, 5, 2)
    assert repr(cache) == "KVCache(keys [3, 2, 5, 2])" and repr(KVCache()) == "KVCache(empty)"


def test_beams_can_be_reordered():
    module, x = make_module(4, 2), torch.randn(3, 5, 4, dtype=F64)
    cache, order = KVCache(), torch.tensor([2, 2, 0])
    module(x[:, :4], causal=True, cache=cache)
    cache.select(order)
    output, _ = module(x[order][:, 4:], causal=True, cache=cache)
    assert close(output, module(x[order], causal=True)[0][:, 4:])


@pytest.mark.parametrize(
    ("samples", "error", "words"),
    [
        ([0, 1], TypeError, "samples must be a torch.Tensor, got list"),
        (torch.tensor([True, False]), TypeError, r"samples must be whole numbers .*bool"),
        (torch.tensor([0.0]), TypeError, r"samples must be whole numbers .*float32"),
        (torch.tensor(1), ValueError, r"samples must have shape \[B'\], got \[\]"),
        (torch.tensor([2]), IndexError, "out of"),
    ],
)
def test_what_is_no_choice_of_samples_is_refused(samples, error, words):
    module, cache = make_module(8, 2), KVCache()
    module(torch.randn(2, 3, 8, dtype=F64), cache=cache)
    with pytest.raises(error, match=words):
        cache.select(samples)
    assert cache.keys.shape[0] == cache.values.shape[0] == 2


def test_cleared_it_serves_another_module_and_batch():
    cache, x = KVCache(), torch.randn(3, 3, 4, dtype=F64)
    make_module(4, 2)(x[:1], cache=cache)
    cache.clear()
    other = make_module(4, 1)
    assert len(cache) == 0 and cache.keys is None
    assert close(other(x, cache=cache)[0], other(x)[0])


def copied_in(tokens: int) -> float:
    """Return how often each remembered number is copied while tokens come one by one."""
    keys, cache, owner = torch.randn(2, 3, tokens, 4), KVCache(), torch.nn.Identity()
    with torch.no_grad(), CopiedNumbers() as copied:
        for one in keys.split(1, -2):
            cache.keep(owner, *cache.joined(owner, one, one))
    assert torch.equal(cache.keys, keys) and torch.equal(cache.values, keys)
    return copied.count / (2 * keys.numel())


def test_the_past_is_copied_a_few_times_however_long_it_is():
    assert [copied_in(tokens) <= 4 for tokens in (2, 30, 300, 1200)] == [True] * 4


@torch.no_grad()
def test_spare_memory_is_a_third_at_most():
    keys, cache, owner = torch.randn(1, 1, 500, 4), KVCache(), torch.nn.Identity()
    for one in keys.split(1, -2):
        cache.keep(owner, *cache.joined(owner, one.clone(), one.clone()))
        held = cache.keys.untyped_storage().nbytes() / cache.keys.element_size()
        assert cache.keys.numel() >= held * 2 / 3 - 4


@torch.no_grad()
def test_what_was_handed_out_never_changes():
    owner, cache, x = torch.nn.Identity(), KVCache(), torch.randn(9, 1, 2, 3, 4)
    for one in x[:4]:
        cache.keep(owner, *cache.joined(owner, one, one))
    branch, held = copy.copy(cache), [(cache.keys, cache.keys.clone())]
    for one in x[4:7]:  # nobody keeps these
        found, _ = cache.joined(owner, one, one)
        held.append((found, found.clone()))
    for owned, one in ((branch, x[7]), (cache, x[8])):
        owned.keep(owner, *owned.joined(owner, one, one))
        held.append((owned.keys, torch.cat([*x[:4], one], -2)))
    assert all(torch.equal(found, expected) for found, expected in held)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad])
def test_the_caller_s_memory_may_be_used_again(mode):
    """Keys are the tokens themselves where nothing projects them."""
    module, x, cache = make_module(8, 2), torch.randn(2, 4, 8, dtype=F64), KVCache()
    module.W_k, module.W_v = torch.nn.Identity(), torch.nn.Identity()
    token, outputs = torch.empty(2, 1, 8, dtype=F64), []
    with mode():
        for one in x.split(1, 1):
            outputs.append(module(token.copy_(one), causal=True, cache=cache)[0].detach())
    assert close(torch.cat(outputs, 1), module(x, causal=True)[0])


STEPS = ("step", "contributions", "refused", "failed", "branch", "deep copy", "pickled", "select")


HISTORIES = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 2), st.integers(1, 3)))


@settings(max_examples=40)
@given(HISTORIES, st.randoms())
@example([("step", 0, 1), ("step", 0, 1), ("contributions", 0, 1), ("step", 1, 1)], Random(0))
@example([("step", 0, 1), ("step", 0, 1), ("failed", 0, 1), ("step", 1, 1)], Random(0))
def test_whatever_happens_between_steps(history, random):
    """Branches, errors and looks ahead in any order and any mode give what a full pass gives."""
    module = make_module(8, 4, num_kv_heads=2)
    modes = torch.no_grad, torch.enable_grad, torch.inference_mode
    caches, handed_out = [(KVCache(), torch.randn(2, 0, 8, dtype=F64))], []

    def fail(*_):
        raise RuntimeError("out of memory")

    for what, mode, tokens in [("step", 0, 2), *history, ("step", 0, 1), ("step", 0, 1)]:
        at = random.randrange(len(caches))
        cache, seen = caches[at]
        x = torch.randn(len(seen), tokens, 8, dtype=F64)
        with modes[mode]():
            if what == "step":
                output, _ = module(x, causal=True, cache=cache)
                caches[at] = cache, torch.cat([seen, x], 1)
                expected = module(caches[at][1], causal=True)[0][:, -tokens:]
                assert close(output, expected)
                handed_out.append((cache.keys, cache.keys.clone(), cache.values.clone()))
            elif what == "contributions":
                module.contributions(x, cache=cache)
            elif what == "refused":
                with pytest.raises(ValueError, match="mask"):
                    module(x, mask=torch.ones(99, 99, dtype=torch.bool), cache=cache)
            elif what == "failed":
                hook = module.W_o.register_forward_pre_hook(fail)
                with pytest.raises(RuntimeError, match="out of memory"):
                    module(x, cache=cache)
                hook.remove()
            elif what == "select":
                samples = torch.tensor([1, 0])
                cache.select(samples)
                caches[at] = cache, seen[samples]
            else:
                copies = {"branch": copy.copy, "deep copy": copy.deepcopy, "pickled": unpickled}
                caches.append((copies[what](cache), seen))
        for other, _ in caches:  # what was unpickled knows a copy of the module
            other._owner = other._owner and module
        assert all(torch.equal(keys, then) for keys, then, _ in handed_out)


def unpickled(cache):
    return pickle.loads(pickle.dumps(cache))


def held_by(cache):
    """Return how many numbers a cache keeps memory for, as multiples of its keys and values."""
    rooms = [] if cache._room is None else [cache._room.keys, cache._room.values]
    storages = {x.untyped_storage().data_ptr(): x for x in (cache.keys, cache.values, *rooms)}
    held = sum(x.untyped_storage().nbytes() / x.element_size() for x in storages.values())
    return held / (2 * cache.keys.numel())


@torch.no_grad()
def test_looking_ahead_takes_no_memory():
    module, x, cache = make_module(8, 2), torch.randn(1, 90, 8, dtype=F64), KVCache()
    module(x, causal=True, cache=cache)
    before = held_by(cache)
    module.contributions(x[:, :1], causal=True, cache=cache)
    assert held_by(cache) == before
    module(x[:, :1], causal=True, cache=cache)
    with torch.enable_grad():
        module(x[:, :1], causal=True, cache=cache)
    assert held_by(cache) == 1


@torch.no_grad()
@torch.no_grad()
@pytest.mark.parametrize("cache_first", [True, False])
def test_a_pair_is_pickled_in_any_order_and_copied_module_first(cache_first):
    module, x = make_module(8, 2), torch.randn(1, 3, 8, dtype=F64)
    cache = KVCache()
    module(x[:, :2], causal=True, cache=cache)
    pair = (cache, module) if cache_first else (module, cache)
    expected = module(x, causal=True)[0][:, 2:]

    def go_on(one, other):
        cache, module = (one, other) if cache_first else (other, one)
        return module(x[:, 2:], causal=True, cache=cache)[0]

    assert close(go_on(*unpickled(pair)), expected)
    if cache_first:
        with pytest.raises(ValueError, match=r"copy or pickle the pair \(module, cache\)"):
            go_on(*copy.deepcopy(pair))
    else:
        assert close(go_on(*copy.deepcopy(pair)), expected)


def test_spare_memory_is_not_pickled():
    keys, cache, owner = torch.randn(1, 1, 4000, 4), KVCache(), torch.nn.Identity()
    for some in keys.split(3000, -2):
        cache.keep(owner, *cache.joined(owner, some, some))
    assert len(pickle.dumps(cache)) < 1.1 * 2 * keys.numel() * keys.element_size()


def test_a_graph_that_holds_keys_outlives_the_next_tokens():
    module, x, cache = make_module(8, 2), torch.randn(1, 6, 8, dtype=F64), KVCache()
    probe = torch.ones(4, dtype=F64, requires_grad=True)
    with torch.no_grad():
        for token in x[:, :4].split(1, 1):
            module(token, cache=cache)
    keys = cache.keys.clone()
    read = (cache.keys * probe).sum()
    with torch.no_grad():
        module(x[:, 4:5], cache=cache)
    read.backward()
    assert close(probe.grad, keys.sum((0, 1, 2)))


@torch.no_grad()
@pytest.mark.filterwarnings("ignore:There is a performance drop")  # PyTorch's kernel
def test_under_vmap_it_may_have_been_filled_outside():
    module, x, cache = make_module(8, 2), torch.randn(5, 4, 8, dtype=F64), KVCache()
    prefix = torch.randn(1, 3, 8, dtype=F64)
    for token in prefix.split(1, 1):
        module(token, causal=True, cache=cache)
    whole = module(torch.cat([prefix.expand(5, -1, -1), x], 1), causal=True)[0][:, 3:]

    def output(one):
        return module(one[None], causal=True, cache=copy.copy(cache))[0][0]

    def sum_of_contributions(one):
        return module.contributions(one[None], causal=True, cache=cache)[0].sum(0)

    assert close(torch.func.vmap(output)(x), whole)
    assert close(torch.func.vmap(sum_of_contributions)(x) + module.W_o.bias, whole)


@pytest.mark.parametrize("later", [torch.no_grad, torch.enable_grad, torch.inference_mode])
@pytest.mark.parametrize("first", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_filled_in_one_mode_it_serves_in_another(first, later):
    module, x, cache = make_module(8, 2), torch.randn(2, 9, 8, dtype=F64), KVCache()
    with first():
        for chunk in x[:, :5].split(2, 1):
            module(chunk, causal=True, cache=cache)
    with later():
        output = [module(chunk, causal=True, cache=cache)[0] for chunk in x[:, 5:].split(1, 1)]
    assert close(torch.cat(output, 1), module(x, causal=True)[0][:, 5:])


def test_gradients_of_a_chunk_survive_the_next_chunks():
    module, x, cache = make_module(4, 2), torch.randn(1, 7, 4, dtype=F64), KVCache()
    module.W_k.requires_grad_(False)  # then keys need no gradient, but the queries' pass uses them
    module.W_v.requires_grad_(False)
    output = [module(chunk, causal=True, cache=cache)[0] for chunk in x.split(1, 1)][3]
    with torch.no_grad():
        module(x[:, :3], cache=cache)
    output.sum().backward()
    found = module.W_q.weight.grad.clone()
    module.zero_grad()
    module(x, causal=True)[0][:, 3].sum().backward()
    assert close(found, module.W_q.weight.grad)


def test_gradients_flow_through_it():
    module, x = make_module(4, 2), torch.randn(1, 4, 4, dtype=F64)

    def in_chunks(x):
        cache = KVCache()
        return torch.cat([module(c, causal=True, cache=cache)[0] for c in x.split(2, 1)], 1)

    gradients = []
    for run in (in_chunks, lambda x: module(x, causal=True)[0]):
        leaf = x.clone().requires_grad_()
        run(leaf).pow(2).sum().backward()
        gradients.append(leaf.grad)
    assert close(*gradients)


def test_a_failing_last_projection_leaves_it_as_it_was():
    module, x, cache = make_module(8, 2), torch.randn(1, 3, 8, dtype=F64), KVCache()
    module(x, cache=cache)

    def fail(*_):
        raise RuntimeError("out of memory")

    module.W_o.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        module(x, cache=cache)
    assert len(cache) == 3


def test_a_deep_copy_serves_the_same_module_or_the_copy_beside_it():
    module, x, cache = make_module(8, 2), torch.randn(1, 3, 8, dtype=F64), KVCache()
    module(x, cache=cache)
    other = copy.deepcopy(cache)
    both = copy.deepcopy((module, cache))
    expected = module(x, cache=cache)[0]
    assert torch.equal(module(x, cache=other)[0], expected)
    assert torch.equal(both[0](x, cache=both[1])[0], expected)
    assert len(other) == len(cache) == 6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_it_speaks_the_dtype_in_which_it_was_filled(dtype):
    module, x, cache = make_module(8, 2), torch.randn(1, 3, 8), KVCache()
    module(x.double(), cache=cache)
    with pytest.raises(TypeError, match="dtype of the keys in cache"):
        module.to(dtype)(x.to(dtype), cache=cache)
    assert len(cache) == 3


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad])
def test_it_speaks_of_the_heads_with_which_it_was_filled(mode):
    module, x, cache = make_module(8, 2), torch.randn(1, 3, 8, dtype=F64), KVCache()
    module(x, cache=cache)
    module.num_kv_heads = 1
    module.W_k, module.W_v = (torch.nn.Linear(8, 4, dtype=F64) for _ in range(2))
    with mode(), pytest.raises(ValueError, match=r"cache .* got \[1, 2, 3, 4\] .* \[1, 1, 3, 4\]"):
        module(x, cache=cache)
    assert len(cache) == 3


@torch.no_grad()
def test_values_stay_of_their_dtype():
    module, x, cache = make_module(8, 2), torch.randn(1, 3, 8, dtype=F64), KVCache()
    module(x, cache=cache)
    module.W_v.register_forward_hook(lambda _, inputs, output: output.float())
    with pytest.raises(TypeError, match=r"values in cache, got .*float32 and .*float64"):
        module(x, cache=cache)
    assert len(cache) == 3


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("other module", ["cache", "another module", "KVCache of its own"]),
        ("other batch", ["cache", "batch of 1", "2 in the query"]),
        ("short key mask", ["key_mask", "[B=1, T_k=5]", "[1, 2]"]),
        ("causal with other keys", ["causal", "T_q=2", "T_k=1"]),
    ],
)
def test_an_error_leaves_the_cache_as_it_was(name, words):
    module, x, cache = make_module(4, 2), torch.randn(1, 5, 4, dtype=F64), KVCache()
    module(x[:, :3], causal=True, cache=cache)
    keys = cache.keys
    calls = {
        "other module": lambda: make_module(4, 2)(x[:, 3:], cache=cache),
        "other batch": lambda: module(x[:, 3:].repeat(2, 1, 1), cache=cache),
        "short key mask": lambda: module(
            x[:, 3:], key_mask=torch.ones(1, 2, dtype=torch.bool), cache=cache
        ),
        "causal with other keys": lambda: module(x[:, 3:], x[:, :1], causal=True, cache=cache),
    }
    with pytest.raises(ValueError) as caught:
        calls[name]()
    assert all(word in str(caught.value) for word in words), caught.value
    assert len(cache) == 3 and cache.keys is keys


def fail(*_):
    raise RuntimeError("out of luck")


@pytest.mark.parametrize("make", [make_module, museum.named("no scale")], ids=["right", "exhibit"])
@pytest.mark.parametrize("part", ["W_q", "W_k", "W_v", "W_o"])
def test_a_part_that_fails_leaves_the_cache_as_it_was(make, part):
    """And the next call goes on from there."""
    module, x, cache = make(4, 2).double().eval(), torch.randn(1, 5, 4, dtype=F64), KVCache()
    with torch.no_grad():
        whole, _ = module(x, causal=True)
        module(x[:, :3], causal=True, cache=cache)
        keys = cache.keys
        hook = module.get_submodule(part).register_forward_pre_hook(fail)
        with pytest.raises(RuntimeError, match="out of luck"):
            module(x[:, 3:], causal=True, cache=cache)
        hook.remove()
        assert cache.keys is keys and len(cache) == 3
        again, _ = module(x[:, 3:], causal=True, cache=cache)
    torch.testing.assert_close(again, whole[:, 3:])


def test_what_fails_after_the_module_leaves_a_branch_behind():
    module, x, cache = make_module(4, 2).eval(), torch.randn(1, 5, 4, dtype=F64), KVCache()
    with torch.no_grad():
        module(x[:, :3], causal=True, cache=cache)
        hook = module.register_forward_hook(fail)
        branch = copy.copy(cache)
        with pytest.raises(RuntimeError, match="out of luck"):
            module(x[:, 3:], causal=True, cache=branch)
        hook.remove()
        assert len(branch) == 5 and len(cache) == 3
        again, _ = module(x[:, 3:], causal=True, cache=cache)
        whole, _ = module(x, causal=True)
    torch.testing.assert_close(again, whole[:, 3:])
