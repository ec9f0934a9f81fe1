"""A mistake in calling is an error with the line that mends it, and never a diagnosis."""

import pytest
import torch
from tools.broken_attentions import Plain, scaled_by
from torch import nn

from attndoctor import CallError, diagnose
from attndoctor.museum import SteppedAttention, named
from attndoctor.museum.visitors import MultiHeadedAttention
from attnlib import MultiHeadAttention


class Returning(Plain):
    """Returns what a test wants."""

    def __init__(self, d_model, num_heads, change):
        super().__init__(d_model, num_heads)
        self.change = change

    def forward(self, query):
        return self.change(*self.attend(query))


def returning(change):
    return lambda d_model, num_heads: Returning(d_model, num_heads, change)


def stepped(**steps):
    return lambda d_model, num_heads: SteppedAttention(d_model, num_heads, steps=steps)


class NeedsPositions(Plain):
    def forward(self, x, freqs_cis):
        return self.attend(x)


class NeedsTheImage(Plain):
    def forward(self, x, H, W):
        return self.attend(x)


class NeedsLengths(Plain):
    def forward(self, query_sequences, key_value_sequences, key_value_sequence_lengths):
        return self.attend(query_sequences)


class NeedsNothing(Plain):
    def forward(self):
        return None


class NeedsSomethingElse(Plain):
    def __init__(self, d_model, num_heads, flavor):
        super().__init__(d_model, num_heads)


class NeedsAConfigAndMore(Plain):
    def __init__(self, config, vis):
        super().__init__(config.hidden_size, config.num_heads)


class Refuses(Plain):
    def __init__(self, d_model, num_heads):
        assert d_model % 64 == 0, "d_model must be divisible by 64"


class RefusesSilently(Plain):
    def __init__(self, d_model, num_heads):
        raise AssertionError


class ForgetsSuper(nn.Module):
    def __init__(self, d_model, num_heads):
        self.W_q = nn.Linear(d_model, d_model)


class NoModule:
    def __init__(self, d_model, num_heads):
        pass


class OneHead(nn.Module):
    def __init__(self, d_model, names=("q", "k", "v", "out")):
        super().__init__()
        for name in names:
            self.add_module(name, nn.Linear(d_model, d_model))

    def forward(self, x):
        W_q, W_k, W_v, W_o = self.children()
        return W_o(attention(W_q(x), W_k(x), W_v(x)))


def attention(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v


class OtherNames(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.eins, self.zwei, self.drei = (nn.Linear(d_model, d_model) for _ in range(3))

    def forward(self, x):
        return x


class Nameless(OtherNames):
    """A module that doesn't say how many heads it has."""


def two_layers(d_model, num_heads):
    return nn.Sequential(Plain(d_model, num_heads), Plain(d_model, num_heads))


CALLS = {
    "no output": (returning(lambda output, weights: None), ["got NoneType", "returns="]),
    "three values": (returning(lambda output, weights: (output, weights, weights)),
        ["got 3 values (Tensor, Tensor, Tensor)", "returns=lambda result: (result[0], result[1])"]),
    "a dict": (returning(lambda output, weights: {"output": output}), ["got dict", "returns="]),
    "the other order": (returning(lambda output, weights: (weights, output)),
        ["[2, 3, 7, 7] and [2, 7, 30]", "(result[1], result[0])"]),
    "a cache as weights": (returning(lambda output, weights: (output, (output, output))),
        ["the weights must be a torch.Tensor, got tuple", "returns=lambda result: result[0]"]),
    "a list of weights": (stepped(report=list), ["the weights must be a torch.Tensor, got list"]),
    "boolean weights": (stepped(report=lambda weights: weights > 0),
        ["the weights must hold floating point numbers"]),
    "sparse weights": (stepped(report=lambda weights: weights.to_sparse()),
        ["the weights must be dense numbers"]),
    "an unknown argument": (NeedsPositions, ["'freqs_cis'", "arguments={'freqs_cis': ...}"]),
    "two unknown arguments": (NeedsTheImage, ["'H' and 'W'", "arguments={'H': ..., 'W': ...}"]),
    "lengths": (NeedsLengths, ["needs 'key_value_sequences' and 'key_value_sequence_lengths'"]),
    "a config and more": (NeedsAConfigAndMore, ["needs 'vis'", "(..., vis=...))"]),
    "no tokens": (NeedsNothing, ["forward of NeedsNothing must take tokens"]),
    "an unknown size": (NeedsSomethingElse, ["'flavor'", "diagnose(lambda d_model, num_heads:"]),
    "a refusal": (Refuses, ["d_model=30", "AssertionError: d_model must be divisible by 64",
        "hand in a built module"]),
    "a silent refusal": (RefusesSilently, ["raised AssertionError. If it wants"]),
    "no super().__init__()": (ForgetsSuper, ["write super().__init__() on the first line"]),
    "another class": (NoModule, ["NoModule must build a torch.nn.Module", "a class of modules"]),
    "one head": (OneHead, ["OneHead takes d_model but no number of heads", "num_heads=..."]),
    "a function": (attention, ["attention takes queries, keys and values itself"]),
    "a method": (
        Plain(8, 2).split,
        ["split takes 'x' and no sizes", "hand in the nn.Module that it belongs to"],
    ),
    "one unknown argument": (lambda y: y, ["takes 'y' and no sizes"]),
    "other sizes": (lambda d_model, num_heads: Plain(48, 4),
        ["at d_model=30 and num_heads=3", "W_q.weight [48, 48]"]),
    "no numbers": (nn.MultiheadAttention(16, 4, device="meta"), ["on the device meta"]),
    "no module": (lambda d_model, num_heads: 7, ["must build a torch.nn.Module, got int"]),
    "other names": (OtherNames, ["eins.weight", "pass load="]),
    "several attentions": (two_layers, ["0.W_q.weight", "pass load="]),
    "no number of heads": (Nameless(30, 3), ["num_heads of this Nameless", "num_heads=..."]),
    "no widths": (nn.ReLU, ["ReLU"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_mistake_in_calling_is_told_with_what_mends_it(name):
    candidate, words = CALLS[name]
    with pytest.raises(CallError) as error:
        diagnose(candidate)
    assert isinstance(error.value, TypeError) and isinstance(error.value, ValueError)
    for word in words:
        assert word in str(error.value)


ARGUMENTS_THAT_DO_NOT_FIT = {
    "arguments": ({"flavor": 1}, ["what forward of Plain takes (", "got 'flavor'"]),
    "returns": (lambda result: result["output"], ["got 2 values", "raised TypeError"]),
}


@pytest.mark.parametrize("option", ARGUMENTS_THAT_DO_NOT_FIT)
def test_an_option_that_does_not_fit_the_forward_is_told(option):
    value, words = ARGUMENTS_THAT_DO_NOT_FIT[option]
    with pytest.raises(CallError, match=f"^{option} must ") as error:
        diagnose(Plain, **{option: value})
    for word in words:
        assert word in str(error.value)


OPTIONS = {
    "candidate": (7, {}, TypeError, "got int"),
    "causal": (Plain, {"causal": True}, ValueError, "'always', 'when asked', got True"),
    "mask": (Plain, {"mask": "drop"}, ValueError, "'keep', 'hide', 'add', got 'drop'"),
    "mask_shape": (Plain, {"mask_shape": "[T]"}, ValueError, "one of .* got '\\[T\\]'"),
    "qkv": (Plain, {"qkv": "rows"}, ValueError, "'blocks', 'heads', 'interleaved'"),
    "bias": (Plain, {"bias": 1}, TypeError, "True or False, got int"),
    "batch_first": (Plain, {"batch_first": "yes"}, TypeError, "True or False, got str"),
    "out_projection": (Plain, {"out_projection": None}, TypeError, "True or False"),
    "num_heads": (Plain(30, 3), {"num_heads": 0}, ValueError, "at least 1, got 0"),
    "num_heads of": (Plain, {"num_heads": 3}, ValueError, "left out where candidate builds .* 3"),
    "mask that isn't there": (
        Plain,
        {"mask": "add"},
        CallError,
        r"got 'add', but forward\(query, key, value\) has no argument called mask or attn_mask",
    ),
    "mask_shape of no mask": (Plain, {"mask_shape": "[T, T]"}, CallError, "leave it out"),
    "qkv apart": (Plain, {"qkv": "heads"}, CallError, "this Plain has none: leave it out"),
    "arguments": (Plain, {"arguments": [1]}, TypeError, "a dict .* got list"),
    "load": (Plain, {"load": "W_q"}, TypeError, "a function, got str"),
    "scale": (Plain, {"scale": 0}, ValueError, "a number above 0, .* got 0"),
    "scale of d_k": (Plain, {"scale": lambda d_k: -d_k}, ValueError, "got -10"),
    "scale as": (Plain, {"scale": "1"}, TypeError, "must be a number, got str"),
    "returns": (Plain, {"returns": 0}, TypeError, "a function, got int"),
    "edges": (Plain, {"edges": 1}, TypeError, "True or False, got int"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_does_not_fit_is_refused(name):
    candidate, options, kind, words = OPTIONS[name]
    with pytest.raises(kind, match=words) as error:
        diagnose(candidate, **options)
    assert name.split()[0] in str(error.value)


def test_what_the_errors_advise_helps():
    assert diagnose(CALLS["three values"][0], returns=lambda result: result[:2])
    assert diagnose(CALLS["the other order"][0], returns=lambda result: (result[1], result[0]))
    assert diagnose(NeedsPositions, arguments={"freqs_cis": None})
    assert diagnose(lambda d_model, num_heads: NeedsSomethingElse(d_model, num_heads, "sour"))
    assert diagnose(OneHead(16), num_heads=1)


def test_a_built_module_with_names_of_its_own_is_loaded_as_told():
    def load(module, reference):
        for mine, name in zip(module.children(), ("W_q", "W_k", "W_v", "W_o"), strict=True):
            mine.load_state_dict(reference.get_submodule(name).state_dict())

    assert diagnose(OneHead(16, ("eins", "zwei", "drei", "vier")), num_heads=1, load=load)


def test_what_a_constructor_swallows_is_not_asked():
    """**kwargs take num_kv_heads and dropout, and need not do anything with them."""

    class Swallows(Plain):
        def __init__(self, d_model, num_heads, **kwargs):
            super().__init__(d_model, num_heads)

    diagnosis = diagnose(Swallows)
    assert diagnosis and {"grouped heads", "training with dropout"} <= set(diagnosis.untried)


def test_dropout_that_is_not_told_is_turned_off():
    class Drops(Plain):
        def weigh(self, scores, allowed):
            return torch.dropout(super().weigh(scores, allowed), self.p, self.training)

    class Set(Drops):
        p = 0.0

        def __init__(self, d_model, num_heads):
            super().__init__(d_model, num_heads)
            self.p = 0.1

    class Fixed(Drops):
        p = 0.1

    assert "Not tested in train()" not in diagnose(Set).message
    diagnosis = diagnose(Fixed)
    assert diagnosis and "Not tested in train()" in diagnosis.message


def test_an_error_inside_of_a_candidate_is_its_own():
    """A TypeError of broken code, which is called rightly, is no mistake in calling."""

    class Fails(Plain):
        def scores(self, q, k):
            return q @ k.mT / self.d_k() ** 0.5

    diagnosis = diagnose(Fails)
    assert diagnosis.heading == "Broken."
    assert "raises TypeError: 'int' object is not callable" in diagnosis.message


def test_names_of_exhibits_are_checked():
    with pytest.raises(ValueError, match="'no scale'"):
        named("no scales")
    with pytest.raises(TypeError, match="name must be a string, got list"):
        named(["no scale"])


# --- a built module is left as it was ------------------------------------------------------------


def test_a_built_module_is_asked_as_a_copy():
    module = MultiHeadedAttention(4, 48).train()
    x = torch.randn(2, 3, 48)
    module(x, x, x)  # it keeps its weights, which are part of a graph
    before = {name: numbers.clone() for name, numbers in module.state_dict().items()}
    diagnosis = diagnose(module)
    assert diagnosis and "Tested at one size only: d_model=48, num_heads=4" in diagnosis.message
    assert module.training and module.dropout.p == 0.1
    assert all(torch.equal(before[name], now) for name, now in module.state_dict().items())
    assert all(parameter.grad is None for parameter in module.parameters())


def copy_some(*names):
    def load(module, reference):
        for name in names:
            module.get_submodule(name).load_state_dict(reference.get_submodule(name).state_dict())

    return load


def test_what_load_leaves_is_told():
    with pytest.raises(CallError, match=r"changed none of W_q.weight, .*: copy in place"):
        diagnose(Plain, load=lambda module, reference: None)
    diagnosis = diagnose(Plain, load=copy_some("W_q", "W_k", "W_v"))
    assert diagnosis.heading == "This can't be asked." and not diagnosis.exhibits
    assert "load left W_o.weight, W_o.bias as before" in diagnosis.message
    assert diagnose(Plain, load=copy_some("W_q", "W_k", "W_v", "W_o"))


def test_a_built_module_of_any_dtype_and_grouping():
    assert diagnose(MultiHeadAttention(48, 4, num_kv_heads=2, dtype=torch.float64))
    assert diagnose(MultiHeadAttention(48, 4, bias=False).half())


def test_the_number_of_heads_can_be_said():
    module = Plain(30, 3)
    del module.num_heads
    module.split = lambda x: x.unflatten(-1, (3, -1)).transpose(1, 2)
    assert diagnose(module, num_heads=3)
    assert not diagnose(module, num_heads=5)


def test_what_a_wide_module_is_not_asked_is_told():
    wide = scaled_by(lambda T, **_: T - 1)(264, 3)  # which no scale is
    diagnosis = diagnose(wide)
    assert (
        not diagnosis and "Two bugs at once are looked for up to d_model=256" in diagnosis.message
    )
