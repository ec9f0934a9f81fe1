"""Models in the browser: a page with the engine alone, and what one says to it from Python."""

import random
from contextlib import contextmanager

import torch

from attncourse.tasks import Sentence
from attncourse.widgets import _browser_code
from attnlib.model import TransformerModel

NORMS = {
    "LayerNorm": {"kind": "LayerNorm", "eps": 1e-5, "bias": True},
    "RMSNorm": {"kind": "RMSNorm", "eps": 1e-6},
}

RECIPE = {
    "steps": 20, "batch": 8, "lr": 4e-3, "betas": [0.9, 0.98], "weight_decay": 0.01, "warmup": 5,
    "falls_at": 0.6, "ends_at": 0.02, "held_out": 5,
}  # fmt: skip


def page_source() -> str:
    """A page that loads the engine and shows nothing."""
    scripts = (
        _browser_code.shared_script(),
        _browser_code.lab_script(),
        _browser_code.own_script(_browser_code.ENGINE / "sampling.js"),
    )
    tags = "".join(f"<script>{script}</script>" for script in scripts)
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Engine</title>{tags}'


def block_spec(num_heads=2, d_ff=None, norm_position="pre", **changes):
    """A block as `TransformerModel.spec()` describes it, with other values where they are given."""
    norms = 0 if norm_position is None else 1 + (d_ff is not None)
    return {
        "num_heads": num_heads,
        "num_kv_heads": num_heads,
        "bias": False,
        "attention_dropout": 0.0,
        "feed_forward": None if d_ff is None else {"d_ff": d_ff, "bias": True},
        "norm_position": norm_position,
        "norms": [NORMS["LayerNorm"]] * norms,
        "residual": True,
        "dropout": 0.0,
    } | changes


def model_spec(blocks=(), **changes):
    """A model as it describes itself."""
    return {
        "vocabulary_size": 11,
        "length": 7,
        "d_model": 8,
        "causal": False,
        "blocks": list(blocks),
        "final_norm": NORMS["LayerNorm"],
        "readouts": {"A": 5, "B": 3},
        "readout_bias": False,
    } | changes


def build(spec, spread=0.4) -> TransformerModel:
    """The model in float64, with parameters that hide nothing and are float32 numbers, too.

    They lie around those that a new model has, so far that none is 0 or 1.
    """
    model = TransformerModel.of_spec(spec, dtype=torch.float64)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=spread).copy_(parameter.float())
    return model


@contextmanager
def forbidding(model, batch, forbidden):
    """Let no word look at its partner, in the relation and by the heads that a browser is told."""

    def forbid(attention, args, options):
        partners = batch.partners[forbidden["relation"]]
        looks = partners[:, None, :, None] == torch.arange(partners.shape[1])
        heads = torch.arange(attention.num_heads)
        own = heads == (heads if forbidden["head"] is None else forbidden["head"])
        return args, options | {"mask": ~(looks & own[:, None, None])}

    hooks = [
        block.attention.register_forward_pre_hook(forbid, with_kwargs=True)
        for layer, block in enumerate(model.blocks)
        if forbidden and forbidden.get("layer", layer) == layer
    ]
    yield
    for hook in hooks:
        hook.remove()


def flat(tensors) -> dict[str, list[float]]:
    """Named tensors as named lists of numbers, row by row."""
    return {name: tensor.flatten().tolist() for name, tensor in tensors.items()}


def sentences_of(spec, lengths, rng) -> list[Sentence]:
    """Sentences of these lengths; half of the answers are due, half of the words have a partner."""

    def answer(size):
        return rng.choice([None, rng.randrange(size)])

    def sentence(T):
        ids = [rng.randrange(spec["vocabulary_size"]) for _ in range(T)]
        answers = {
            name: [answer(size) for _ in range(T)] for name, size in spec["readouts"].items()
        }
        pairs = {word: rng.randrange(T) for word in range(T) if rng.random() < 0.5}
        return Sentence([*map(str, ids)], ids, answers, {"to": pairs})

    return [sentence(T) for T in lengths]


def as_told(sentence: Sentence):
    """A sentence as the browser's objects have it."""
    partners = {
        name: {str(place): partner for place, partner in pairs.items()}
        for name, pairs in sentence.partners.items()
    }
    answers = {name: list(answers) for name, answers in sentence.answers.items()}
    words, ids = list(sentence.words), list(sentence.ids)
    return {"words": words, "ids": ids, "answers": answers, "partners": partners}


SMALL = model_spec([block_spec(2, 6)] * 2)


def start_message(**changes):
    """A training of the small model that a worker can start."""
    lengths = [1 + i % 7 for i in range(40)]
    sentences = [*map(as_told, sentences_of(SMALL, lengths, random.Random(0)))]
    return {
        "spec": SMALL,
        "recipe": RECIPE,
        "task": {"name": "given", "sentences": sentences, "heldOut": sentences[:5]},
        "weights": flat(build(SMALL).state_dict()),
        "reports": {"losses": 6, "evaluation": 8, "maps": 20, "shown": sentences[6]},
    } | changes
