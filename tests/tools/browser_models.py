"""Models in the browser: a page with the engine alone, and what one says to it from Python."""

from contextlib import contextmanager

import torch

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
def forbidding(model, partners, head):
    """Let no word look at its partner, [B, T], with one head of each layer or with all (None)."""
    looks = partners[:, :, None] == torch.arange(partners.shape[1])
    h = model.blocks[0].attention.num_heads
    heads = torch.arange(h) == (torch.arange(h) if head is None else head)
    mask = ~(looks[:, None] & heads[:, None, None])

    def forbid(_, args, options):
        return args, options | {"mask": mask}

    hooks = [
        block.attention.register_forward_pre_hook(forbid, with_kwargs=True)
        for block in model.blocks
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@torch.no_grad()
def round_to_grid(model):
    """Round a model's parameters as a repeatable training does, half to even, written otherwise."""
    for parameter in model.parameters():
        parameter.copy_((parameter * 2**20).round() / 2**20)


def flat(tensors) -> dict[str, list[float]]:
    """Named tensors as named lists of numbers, row by row."""
    return {name: tensor.flatten().tolist() for name, tensor in tensors.items()}


def sentences_of(spec, lengths, seed=0):
    """Sentences of these lengths; half of the answers are due."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(T, number):
        return torch.randint(number, (T,), generator=generator).tolist()

    def answers(T, number):
        return [i if due else None for i, due in zip(drawn(T, number), drawn(T, 2), strict=True)]

    return [
        {
            "ids": drawn(T, spec["vocabulary_size"]),
            "answers": {name: answers(T, number) for name, number in spec["readouts"].items()},
        }
        for T in lengths
    ]


def padded(sentences):
    """Tokens, key mask and answers as tensors [B, T]."""
    T = max(len(sentence["ids"]) for sentence in sentences)

    def filled(rows, other):
        rows = [[other if value is None else value for value in row] for row in rows]
        return torch.tensor([row + [other] * (T - len(row)) for row in rows])

    tokens = filled([sentence["ids"] for sentence in sentences], 0)
    key_mask = filled([[True] * len(sentence["ids"]) for sentence in sentences], False)
    answers = {
        name: filled([sentence["answers"][name] for sentence in sentences], -1)
        for name in sentences[0]["answers"]
    }
    return tokens, key_mask, answers


SMALL = model_spec([block_spec(2, 6)] * 2)


def start_message(**changes):
    """A training of the small model that a worker can start."""
    sentences = sentences_of(SMALL, [1 + i % 7 for i in range(40)])
    return {
        "spec": SMALL,
        "recipe": RECIPE,
        "task": {"name": "given", "sentences": sentences, "heldOut": sentences[:5]},
        "weights": flat(build(SMALL).state_dict()),
        "reports": {"losses": 6, "evaluation": 8, "maps": 20, "shown": sentences[6]},
    } | changes
