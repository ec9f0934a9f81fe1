"""A cache's memory, copies and errors. That chunks give one pass: test_attention."""

import copy
import pickle
from random import Random

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tools.modules import F64, make_module
from torch import nn

from attnlib import KVCache

OWNER = nn.Identity()
MODES = torch.no_grad, torch.enable_grad, torch.inference_mode


def close(a, b):
    return torch.allclose(a, b, atol=1e-12, rtol=0)


def unpickled(thing):
    return pickle.loads(pickle.dumps(thing))


def add(cache, keys, values=None, owner=OWNER):
    """Have a cache remember keys and values as a module does."""
    cache.keep(owner, *cache.joined(owner, keys, keys if values is None else values))


def fail(*_):
    raise RuntimeError("out of memory")


STEPS = ("step", "contributions", "refused", "failed", "branch", "deep copy", "pickled", "select")
HISTORIES = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 2), st.integers(1, 3)))


@settings(max_examples=40)
@given(HISTORIES, st.randoms())
@example([("step", 0, 1), ("step", 0, 1), ("contributions", 0, 1), ("step", 1, 1)], Random(0))
@example([("step", 0, 1), ("step", 0, 1), ("failed", 0, 1), ("step", 1, 1)], Random(0))
def test_whatever_happens_between_steps(history, random):
    """Branches, errors and looks ahead in any order and any mode give what a full pass gives."""
    module = make_module(8, 4, num_kv_heads=2)
    caches, handed_out = [(KVCache(), torch.randn(2, 0, 8, dtype=F64))], []
    for what, mode, tokens in [("step", 0, 2), *history, ("step", 0, 1), ("step", 0, 1)]:
        at = random.randrange(len(caches))
        cache, seen = caches[at]
        x = torch.randn(len(seen), tokens, 8, dtype=F64)
        with MODES[mode]():
            if what == "step":
                output, _ = module(x, causal=True, cache=cache)
                caches[at] = cache, torch.cat([seen, x], 1)
                assert close(output, module(caches[at][1], causal=True)[0][:, -tokens:])
                handed_out.append((cache.keys, cache.keys.clone()))
                handed_out.append((cache.values, cache.values.clone()))
            elif what == "contributions":
                module.contributions(x, cache=cache)
            elif what == "refused":
                with pytest.raises(ValueError, match=r"^mask "):
                    module(x, mask=torch.ones(99, 99, dtype=torch.bool), cache=cache)
            elif what == "failed":
                part = random.choice([module.W_q, module.W_k, module.W_v, module.W_o])
                hook = part.register_forward_pre_hook(fail)
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
        for other, tokens_seen in caches:
            assert len(other) == tokens_seen.shape[1]
            other._owner = other._owner and module  # what was unpickled knows a copy of the module
        assert all(torch.equal(now, then) for now, then in handed_out)


def test_grouped_heads_make_it_small_and_cleared_it_serves_another_module():
    cache, x = KVCache(), torch.randn(3, 5, 12, dtype=F64)
    assert (len(cache), cache.keys, cache.values, repr(cache)) == (0, None, None, "KVCache(empty)")
    make_module(12, 6, num_kv_heads=2)(x, cache=cache)
    assert cache.keys.shape == cache.values.shape == (3, 2, 5, 2)
    assert "[3, 2, 5, 2]" in repr(cache)
    cache.select(torch.tensor([2, 2]))
    assert cache.keys.shape == cache.values.shape == (2, 2, 5, 2)
    cache.clear()
    cache.select(torch.tensor([0]))
    other = make_module(12, 1)
    assert close(other(x, cache=cache)[0], other(x)[0])


def test_the_caller_s_memory_may_be_used_again():
    cache, given = KVCache(), torch.zeros(1, 1, 1, 2)
    add(cache, given)
    given.fill_(1)
    assert not cache.keys.any() and not cache.values.any()


@torch.no_grad()
def test_a_pair_is_pickled_in_any_order_and_copied_module_first():
    module, x, cache = make_module(8, 2), torch.randn(1, 3, 8, dtype=F64), KVCache()
    module(x[:, :2], causal=True, cache=cache)
    pair = (module, cache)
    for one, past in (unpickled(pair), unpickled(pair[::-1])[::-1], copy.deepcopy(pair), pair):
        output, _ = one(x[:, 2:], causal=True, cache=copy.deepcopy(past))
        assert close(output, module(x, causal=True)[0][:, 2:])
    past, one = copy.deepcopy(pair[::-1])
    assert past.values.data_ptr() != cache.values.data_ptr()
    with pytest.raises(ValueError, match=r"^cache "):
        one(x[:, 2:], causal=True, cache=past)


OTHER = {"keys": torch.ones(2, 2, 1, 4).double(), "values": torch.ones(2, 2, 1, 4).double()}


@pytest.mark.parametrize(
    ("error", "named", "changes"),
    [
        (ValueError, "cache", {"owner": nn.Identity()}),
        (ValueError, "of 2 in the cache", dict.fromkeys(OTHER, torch.ones(1, 2, 1, 4))),
        *((ValueError, "3, 4. in the cache", {n: torch.ones(2, 1, 1, 4)}) for n in OTHER),  # heads
        *((ValueError, "cache", {name: torch.ones(2, 2, 1, 3)}) for name in OTHER),  # widths
        *((TypeError, f"{name} in cache", {name: other}) for name, other in OTHER.items()),
    ],
)
def test_what_does_not_go_on_from_it_is_refused(error, named, changes):
    cache = KVCache()
    add(cache, torch.randn(2, 2, 3, 4))
    keys, one = cache.keys, torch.randn(2, 2, 1, 4)
    with pytest.raises(error, match=named):
        add(cache, **{"keys": one, "values": one} | changes)
    assert cache.keys is keys and len(cache) == 3


def test_what_is_no_choice_of_samples_is_refused():
    cache = KVCache()
    add(cache, torch.randn(2, 2, 3, 4))
    for samples, error in (
        ([0, 1], TypeError), (torch.tensor([True, False]), TypeError), (torch.zeros(1), TypeError),
        (torch.tensor(1), ValueError), (torch.tensor([[1]]), ValueError),
        (torch.tensor([2]), IndexError),
    ):  # fmt: skip
        with pytest.raises(error, match=r"^samples |out of"):
            cache.select(samples)
    assert len(cache.keys) == len(cache.values) == 2
