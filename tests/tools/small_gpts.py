"""GPTs of one block all of whose numbers are random, biases and gains too."""

from functools import partial

import torch

from attnlib import LayerNorm, RMSNorm
from attnlib.model import GPT

BARE = partial(RMSNorm, gain=False)


def gpt(*sizes, seed=0, std=0.5, **options) -> GPT:
    """Return a GPT of these sizes."""
    generator = torch.Generator().manual_seed(seed)
    model = GPT(*sizes, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=std, generator=generator)
    return model


MODELS = {
    "microgpt": gpt(27, 16, 16, 4, norm=BARE, activation="relu"),
    "the course's": gpt(27, 12, 6, 3, d_ff=10, seed=1),
    "as GPT-2": gpt(27, 9, 8, 2, d_ff=20, tied=True, bias=True, activation="gelu_tanh", seed=2),
    "RMSNorm": gpt(27, 7, 10, 5, d_ff=3, norm=RMSNorm, seed=3),
    "no bias": gpt(27, 5, 4, 1, d_ff=7, norm=partial(LayerNorm, bias=False, eps=0.1), seed=4),
    "scores in the thousands": gpt(27, 6, 12, 4, d_ff=9, std=9.0, seed=5),
}
