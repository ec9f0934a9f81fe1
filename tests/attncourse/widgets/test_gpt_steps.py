"""GptSteps' Python side: its code, its state, its refusals."""

import copy

import pytest
import torch
from tools.refusing import assert_refused, refusals
from tools.small_gpts import MODELS, gpt

from attncourse.tasks import names
from attncourse.widgets import GptSteps
from attncourse.widgets.gpt_steps.code import LINES
from attnlib import RMSNorm
from attnlib.model import TaskSizes, TransformerModel


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
    model = copy.deepcopy(MODELS[case])
    widget = GptSteps(model, ["emma"])
    assert len(widget.code) == len(LINES) == 25
    assert max(map(len, widget.code)) <= 64  # short enough to be read
    ids, told = names.read("emma").ids, []
    exec(program(widget), as_lists(model) | {"name": list(ids), "told": told})
    with torch.no_grad():
        chances = model.double()(torch.tensor([ids])).logits["next"][0].softmax(-1)
    torch.testing.assert_close(torch.tensor(told, dtype=torch.float64), chances)


def test_names_are_read_in_the_models_letters():
    widget = GptSteps(gpt(27, 5, 4, 2, dtype=torch.bfloat16), ["Emma", "bob"])
    assert (widget.names, widget.name) == (["emma", "bob"], "emma")
    widget = GptSteps(gpt(4, 6, 2, 1), ["AaB"], vocabulary="aAb|", boundary="|")
    assert widget.name == "Aab"  # no capital B there


def changed(change):
    """A GPT in which something was changed after it had been made."""
    model = gpt(27, 6, 4, 2)
    with torch.no_grad():
        change(model)
    return model


def other(norm_position="pre", **sizes):
    """A model that is made as GPT makes one, with other choices."""
    sizes = TaskSizes(27, 6, **{"readouts": {"next": 27}, "causal": True} | sizes)
    return TransformerModel.of_sizes(sizes, 4, 2, d_ff=8, norm_position=norm_position)


REFUSED = {
    "blocks.0": changed(lambda model: model.blocks[0].register_forward_hook(lambda *_: None)),
    "norms=": changed(lambda model: setattr(model, "final_norm", RMSNorm(4))),
    "token_embedding.weight": changed(
        lambda model: model.token_embedding.weight[3, 1].fill_(torch.nan)
    ),
    "norm_position='pre', got 'post'": other(norm_position="post"),
    "causal=True, got False": other(causal=False),
    "readouts={'next': 27}, got {'tag': 5}": other(readouts={"tag": 5}),
    "one block, got 2": gpt(27, 6, 4, 2, 2),
    "num_kv_heads=2, got 1": gpt(27, 6, 4, 2, num_kv_heads=1),
    "d_ff=0": gpt(27, 6, 4, 2, d_ff=0),
    "d_model of at most 32": gpt(27, 6, 36, 2),
    "length=1": gpt(27, 1, 4, 2),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_the_loop_cannot_do_is_refused_by_name(words):
    assert_refused(lambda: GptSteps(REFUSED[words], ["a"]), [words])


def of_four(vocabulary="abc.", names=("a",), **options):
    return GptSteps(gpt(4, 6, 2, 1), names, vocabulary=vocabulary, **options)


test_bad_input_is_refused_by_name = refusals({
    TypeError: {of_four: {"vocabulary": [4], "boundary": [3], "names": ["ab"], "origin": [1]}},
    ValueError: {
        of_four: {
            "vocabulary": [None, "abc", "abb.", ["a", "b", "ch", "."]],
            "boundary": ["|"], "names": [[]],
        },
    },
})  # fmt: skip


def test_a_letter_that_the_model_has_not_is_named():
    assert_refused(lambda: of_four(names=["a", "bd"]), ["name", "'d'", "'bd'"])
