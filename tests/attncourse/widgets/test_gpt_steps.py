"""GptSteps' Python side: its code, its state, its traits, its refusals."""

import re
from functools import partial

import pytest
import torch
import traitlets
from torch import nn

from attncourse.tasks import names
from attncourse.widgets import GptSteps
from attncourse.widgets.gpt_steps.code import LINES
from attnlib import LayerNorm, RMSNorm
from attnlib.model import GPT, TaskSizes, TransformerModel

BARE = partial(RMSNorm, gain=False)


def gpt(*sizes, seed=0, **options):
    """A GPT all of whose numbers are random, biases and gains too."""
    torch.manual_seed(seed)
    model = GPT(*sizes, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.7)
    return model


MODELS = {
    "microgpt": gpt(27, 16, 16, 4, norm=BARE, activation="relu"),
    "the course's": gpt(27, 12, 6, 3, d_ff=10),
    "as GPT-2": gpt(27, 9, 8, 2, d_ff=20, tied=True, bias=True, activation="gelu_tanh"),
    "RMSNorm": gpt(27, 7, 10, 5, d_ff=3, norm=RMSNorm),
    "no bias": gpt(27, 5, 4, 1, d_ff=7, norm=partial(LayerNorm, bias=False, eps=0.1)),
}


def program(widget):
    """The functions and the loop, which tells the chances at the end of each turn."""
    return "\n".join([widget.helpers, *widget.code, "    told.append(chances)"])


def as_lists(model):
    """The weights by the names that they have in the code."""
    state = {name: x.tolist() for name, x in model.double().state_dict().items()}
    called = {"tokens": "token_embedding.weight", "places": "position_embedding.weight"}
    for kind, part in (("W", "weight"), ("b", "bias")):
        called |= {f"{kind}_{one}": f"blocks.0.attention.W_{one}.{part}" for one in "qkvo"}
        called |= {f"{kind}_{one}": f"blocks.0.feed_forward.W_{one}.{part}" for one in "12"}
        called[f"{kind}_next"] = f"readouts.next.{part}"
    norms = ("blocks.0.norm_1", "blocks.0.norm_2", "final_norm")
    for i, norm in enumerate(norms, start=1):
        called |= {f"{part}_{i}": f"{norm}.{part}" for part in ("gain", "bias")}
    called = {name: state[key] for name, key in called.items() if key in state}
    return {"W_next": called["tokens"]} | called


@pytest.mark.parametrize("case", MODELS)
def test_the_code_runs_and_computes_what_the_model_computes(case):
    model = MODELS[case]
    widget = GptSteps(model, ["emma"])
    assert len(widget.code) == len(LINES) == 25
    ids, told = names.read("emma").ids, []
    exec(program(widget), as_lists(model) | {"name": list(ids), "told": told})
    with torch.no_grad():
        chances = model.double()(torch.tensor([ids])).logits["next"][0].softmax(-1)
    torch.testing.assert_close(torch.tensor(told, dtype=torch.float64), chances)


def test_the_code_is_short_enough_to_be_read():
    for model in MODELS.values():
        assert max(map(len, GptSteps(model, ["emma"]).code)) <= 64


def test_the_loop_of_microgpt():
    widget = GptSteps(MODELS["microgpt"])
    assert widget.code[:10] == [
        "keys, values = [], []",
        "for pos, token in enumerate(name):",
        "    x = add(tokens[token], places[pos])",
        "    a = rmsnorm(x)",
        "    q = linear(a, W_q)",
        "    k = linear(a, W_k)",
        "    v = linear(a, W_v)",
        "    keys.append(k)",
        "    values.append(v)",
        "    joined = []",
    ]
    assert widget.code[LINES.index("own")] == "        own = slice(4 * head, 4 * head + 4)"
    assert "relu" in widget.helpers and "erf" not in widget.helpers


def test_state_holds_the_weights_as_float32_bytes():
    model = gpt(27, 5, 4, 2, dtype=torch.bfloat16)
    widget = GptSteps(model, ["Emma", "bob"], origin="random")
    flat = torch.cat([x.flatten() for x in model.state_dict().values()]).float()
    found = torch.frombuffer(bytearray(widget.get_state()["weights"]), dtype=torch.float32)
    assert torch.equal(found, flat)
    assert (widget.names, widget.name, widget.origin) == (["emma", "bob"], "emma", "random")
    assert (widget.token, widget.line, widget.head) == (0, "cache", 0)
    assert (widget.vocabulary, widget.boundary) == ("abcdefghijklmnopqrstuvwxyz.", ".")
    assert widget.spec == model.spec()
    assert repr(widget) == "GptSteps('emma', token 0, head 0, at cache)"


def test_the_largest_model_makes_a_small_state():
    model, letters = gpt(40, 99, 32, 8, d_ff=256), map(chr, range(40, 80))
    widget = GptSteps(model, ["A" * 15], vocabulary=letters, boundary="O")
    assert len(widget.weights) < 120_000


def test_another_vocabulary_may_have_capitals_and_another_boundary():
    widget = GptSteps(gpt(4, 6, 2, 1), ["AaB"], vocabulary="aAb|", boundary="|")
    assert widget.name == "Aab"  # no capital B there


def test_python_sees_what_the_browser_changes():
    widget, seen = GptSteps(MODELS["microgpt"]), []
    widget.observe(
        lambda change: seen.append((change["name"], change["new"])),
        ["name", "token", "line", "head"],
    )
    widget.set_state({"line": "scores"})
    widget.set_state({"token": 3, "head": 2})
    widget.set_state({"name": "anna"})
    assert seen == [("line", "scores"), ("token", 3), ("head", 2), ("name", "anna")]


@pytest.mark.parametrize("name", ["weights", "code", "names", "vocabulary"])
def test_what_describes_the_model_is_fixed(name):
    widget = GptSteps(MODELS["the course's"])
    with pytest.raises(traitlets.TraitError, match="read-only"):
        setattr(widget, name, getattr(widget, name))


def with_parts(**options):
    """A GPT that is made as TransformerModel is, with other choices."""
    sizes = TaskSizes(27, 6, {"next": 27}, causal=True)
    return TransformerModel.of_sizes(sizes, 4, 2, **{"d_ff": 8} | options)


def hooked():
    model = gpt(27, 6, 4, 2)
    model.blocks[0].register_forward_hook(lambda *_: None)
    return model


def mixed_norms():
    model = gpt(27, 6, 4, 2)
    model.final_norm = RMSNorm(4)
    return model


def holding_nan():
    model = gpt(27, 6, 4, 2)
    with torch.no_grad():
        model.token_embedding.weight[3, 1] = torch.nan
    return model


ENCODER = TransformerModel.of_sizes(TaskSizes(27, 6, {"next": 27}), 4, 2, d_ff=8)
TAGGER = TransformerModel.of_sizes(TaskSizes(27, 6, {"tag": 5}, causal=True), 4, 2, d_ff=8)


class Subclass(TransformerModel):
    """Something that may compute something else."""


@pytest.mark.parametrize(
    ("error", "message", "model"),
    [
        (TypeError, "model must be an attnlib TransformerModel, got Linear", nn.Linear(2, 2)),
        (TypeError, "model can't be written down: blocks.0", hooked()),
        (ValueError, "model must have one block, got 2", gpt(27, 6, 4, 2, 2)),
        (ValueError, "no rotary positions", gpt(27, 6, 4, 2, positions="rotary")),
        (ValueError, "got 'sinusoidal'", gpt(27, 6, 4, 2, positions="sinusoidal")),
        (ValueError, "positions='learned', got None", gpt(27, 6, 4, 2, positions=None)),
        (ValueError, "num_kv_heads=2, got 1", gpt(27, 6, 4, 2, num_kv_heads=1)),
        (ValueError, "feed-forward network, got d_ff=0", gpt(27, 6, 4, 2, d_ff=0)),
        (ValueError, "norm_position='pre', got 'post'", with_parts(norm_position="post")),
        (ValueError, "causal=True, got False", ENCODER),
        (ValueError, "readouts={'next': 27}, got {'tag': 5}", TAGGER),
        (ValueError, "model must have norms=", mixed_norms()),
        (ValueError, "d_model of at most 32, got 36", gpt(27, 6, 36, 2)),
        (ValueError, "num_heads of at most 8, got 16", gpt(27, 6, 16, 16)),
        (ValueError, "d_ff of at most 32, got 33", gpt(27, 6, 4, 2, d_ff=33)),
        (ValueError, "vocabulary_size of at most 40, got 41", gpt(41, 6, 4, 2)),
        (ValueError, "2 tokens at least, got length=1", gpt(27, 1, 4, 2)),
        (ValueError, "token_embedding.weight must be finite", holding_nan()),
    ],
)  # fmt: skip
def test_what_the_loop_cannot_do_is_refused_in_words(error, message, model):
    with pytest.raises(error, match=re.escape(message)):
        GptSteps(model, ["a"])


def test_another_class_of_model_is_refused():
    model = gpt(27, 6, 4, 2)
    model.__class__ = Subclass
    with pytest.raises(TypeError, match="got Subclass: the loop walks"):
        GptSteps(model, ["a"])


SMALL = gpt(4, 6, 2, 1)


@pytest.mark.parametrize(
    ("error", "message", "model", "options"),
    [
        (ValueError, "vocabulary must say how the model's 4 tokens are written", SMALL, {}),
        (ValueError, "vocabulary must be 4 different characters", SMALL, {"vocabulary": "abc"}),
        (ValueError, "vocabulary must be 4 different characters", SMALL, {"vocabulary": "abb."}),
        (ValueError, "one per token", SMALL, {"vocabulary": ["a", "b", "ch", "."]}),
        (TypeError, "vocabulary must be a list", SMALL, {"vocabulary": 4}),
        (ValueError, "boundary must be the token before a name", SMALL, {"vocabulary": "abc|"}),
        (TypeError, "boundary must be a string", SMALL, {"vocabulary": "abc.", "boundary": 3}),
        (TypeError, "names must be a list of", SMALL, {"vocabulary": "abc.", "names": "ab"}),
        (ValueError, "names must hold at least one", SMALL, {"vocabulary": "abc.", "names": []}),
        (ValueError, "got 'd' in 'bd'", SMALL, {"vocabulary": "abc.", "names": ["a", "bd"]}),
        (TypeError, "origin must be a string, got int", MODELS["microgpt"], {"origin": 1}),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_in_words(error, message, model, options):
    with pytest.raises(error, match=re.escape(message)):
        GptSteps(model, **{"names": ["a"]} | options)
