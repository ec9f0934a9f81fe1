"""Models in the browser: a page with the engine alone, and what one says to it from Python."""

from contextlib import nullcontext

import torch

from attncourse.interventions import attention_knockout
from attncourse.tasks import Sentence
from attncourse.widgets import _browser_code


def page_source() -> str:
    """A page that loads the engine and shows nothing."""
    scripts = (
        _browser_code.shared_script(),
        _browser_code.lab_script(),
        _browser_code.own_script(_browser_code.ENGINE / "sampling.js"),
    )
    tags = "".join(f"<script>{script}</script>" for script in scripts)
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Engine</title>{tags}'


def flat(tensors) -> dict[str, list[float]]:
    """Named tensors as named lists of numbers, row by row."""
    return {name: tensor.flatten().tolist() for name, tensor in tensors.items()}


def as_told(sentence: Sentence):
    """A sentence as the browser's objects have it."""
    partners = {
        name: {str(place): partner for place, partner in pairs.items()}
        for name, pairs in sentence.partners.items()
    }
    answers = {name: list(answers) for name, answers in sentence.answers.items()}
    words, ids = list(sentence.words), list(sentence.ids)
    return {"words": words, "ids": ids, "answers": answers, "partners": partners}


def forbidding(model, batch, forbidden):
    """Let no word look at its partner, where and in the relation that a browser is told."""
    if forbidden is None:
        return nullcontext()
    partners = batch.partners[forbidden["relation"]]
    looks = partners[:, :, None] == torch.arange(partners.shape[1])
    heads = None if forbidden["head"] is None else [forbidden["head"]]
    return attention_knockout(model, looks, layer=forbidden["layer"], heads=heads)
