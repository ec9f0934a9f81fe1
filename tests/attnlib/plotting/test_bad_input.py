"""Every figure refuses what it can't draw, with an error that names the argument.

A figure is found by its name, `plot_...`; its good call is in tests/tools/figure_examples.py.
"""

import inspect
import re
from typing import get_args

import pytest
import torch
from tools.figure_examples import EXAMPLES
from tools.figures import FIGURES
from torch import Tensor, nn

from attnlib import TransformerBlock


def draw(name, changes):
    """Draw a figure wholly, as a page would, with some arguments changed."""
    figure = FIGURES[name](**EXAMPLES[name].arguments | changes)
    figure.draw_without_rendering()
    return figure


def wrong_values(value, optional):
    """What must be refused in the place of a good value: kind -> something wrong."""
    kind = next(kind for kind in WRONG if isinstance(value, kind))
    wrong = WRONG[kind]
    wrong = wrong(value) if callable(wrong) else wrong
    return wrong if optional else {**wrong, "None": None}


def wrong_tensors(value):
    wrong = {
        "a list": value.tolist(), "an array": value.numpy(), "0-D": value.flatten()[-1],
        "6-D": value[(None,) * (6 - value.dim())], "no row": value[:0],
        "no column": value[..., :0], "complex": value.to(torch.complex64),
        "sparse": value.to_sparse(), "without numbers": value.to("meta"),
    }  # fmt: skip
    if value.dtype == torch.bool:
        wrong["a mask of numbers"] = value.float()
    if value.is_floating_point():
        for kind, number in (("NaN", torch.nan), ("infinity", torch.inf), ("beyond float32", 1e39)):
            wrong[kind] = value.double().index_fill(-1, torch.tensor(0), number)
    return wrong


def wrong_mappings(value):
    title, item = next(iter(value.items()))
    return {
        "empty": {}, "its items": list(value.items()), "a number as title": {3: item},
        **{kind: {**value, title: wrong} for kind, wrong in wrong_values(item, False).items()},
    }  # fmt: skip


def wrong_lists(value):
    first = next(item for item in value if item is not None)
    wrong = {"a number": 3, "a text": "cba"[: len(value)], "objects": [object() for _ in value]}
    if isinstance(first, Tensor):
        wrong["no tensor"] = []
        return wrong | {k: [bad, *value[1:]] for k, bad in wrong_values(first, False).items()}
    if isinstance(first, str):
        wrong["numbers"] = list(range(len(value)))
    else:
        wrong |= {"flags": [True for _ in value], "below 0": [-1 for _ in value]}
    return wrong | {"one too few": value[:-1], "one too many": [*value, first]}


WRONG = {
    Tensor: wrong_tensors,
    dict: wrong_mappings,
    list: wrong_lists,
    bool: {"a number": 1},
    int: {"0": 0, "below 0": -1, "a flag": True, "half": 1.5, "a text": "2"},
    float: {"0": 0.0, "below 0": -1, "NaN": torch.nan, "infinity": torch.inf, "a text": "1"},
    str: {"a number": 3, "a list": ["text"]},
    range: {"a list": [0, 1], "empty": range(0), "steps": range(0, 6, 2), "below 0": range(-1, 5)},
    TransformerBlock: {"another module": nn.Linear(2, 2)},
}


@pytest.mark.parametrize("name", FIGURES)
def test_what_cannot_be_drawn_is_refused_by_name(name):
    assert name in EXAMPLES, f"tests/tools/figure_examples.py lacks a good call of {name}"
    parameters, example = inspect.signature(FIGURES[name]).parameters, EXAMPLES[name]
    missing = sorted(set(parameters) - set(example.arguments))
    assert not missing, f"the example of {name} in tests/tools/figure_examples.py lacks {missing}"
    assert draw(name, {}).axes
    for argument, value in example.arguments.items():
        optional = type(None) in get_args(parameters[argument].annotation)
        misfits = {f"misfit {i}": bad for i, bad in enumerate(example.misfits.get(argument, []))}
        for kind, bad in (wrong_values(value, optional) | misfits).items():
            if kind in example.drawn.get(argument, []):
                assert draw(name, {argument: bad}).axes
                continue
            try:
                draw(name, {argument: bad})
            except (TypeError, ValueError) as error:
                assert re.search(rf"\b{argument}\b", str(error)), f"{argument}, {kind}: {error}"
            else:
                pytest.fail(f"{argument}, {kind}: drawn")
