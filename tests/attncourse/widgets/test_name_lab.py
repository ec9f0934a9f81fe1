"""NameLab's Python side: its state, its traits, its refusals."""

import re

import pytest
import traitlets

from attncourse.tasks import names
from attncourse.training import RECIPES, held_out_sentences
from attncourse.widgets import NameLab
from attnlib.model import TransformerModel

RECIPE = RECIPES["names"]


def test_it_trains_what_the_recipe_trains():
    state = NameLab().get_state()
    (block,) = state["spec"]["blocks"]
    for count in state["counts"]:
        block |= {"num_heads": count, "num_kv_heads": count}
        sizes = {**RECIPE.model, "num_heads": count}
        assert state["spec"] == TransformerModel.of_sizes(RECIPE.task, **sizes).spec()
    assert state["recipe"] == RECIPE.as_json()
    assert NameLab().num_heads == RECIPE.model["num_heads"]


def test_guesses_are_of_the_names_that_the_browser_is_asked_about():
    widget = NameLab()
    first = held_out_sentences(RECIPE)[: widget.held_out]
    texts = [names.spelled(one.ids) for one in first]
    tokens = sum(len(text) + 1 for text in texts)
    floor = -sum(map(names.log_probability, texts)) / tokens
    guesses = widget.guesses
    assert list(guesses) == ["uniform", "unigram", "bigram", "floor"]
    assert guesses["uniform"] == pytest.approx(3.2958, abs=1e-4)
    assert guesses["floor"] == pytest.approx(floor)
    assert 3.2 > guesses["unigram"] > 2.9 > 2.3 > guesses["bigram"] > 2.1
    assert NameLab().guesses is not guesses


def test_what_is_given_is_shown():
    widget = NameLab(2, seed=7, beginning="Tol", temperature=0, top_k=5)
    assert (widget.num_heads, widget.seed, widget.trained, widget.draw) == (2, 7, False, 0)
    assert (widget.beginning, widget.temperature, widget.top_k) == ("tol", 0, 5)
    assert repr(widget) == "NameLab(2 heads, seed 7, not trained, beginning='tol')"
    widget.trained, widget.num_heads, widget.beginning = True, 1, ""
    assert repr(widget) == "NameLab(1 head, seed 7, trained, beginning='')"


@pytest.mark.parametrize(
    ("trait", "value", "message"),
    [
        ("num_heads", 3, "num_heads must be one of [1, 2, 4, 8], got 3"),
        ("seed", 1000, "seed must be from 0 to 999, got 1000"),
        ("draw", -1, "draw must be from 0 to 999, got -1"),
        ("top_k", 0, "top_k must be from 1 to 27, got 0"),
        ("top_k", 28, "top_k must be from 1 to 27, got 28"),
        ("temperature", 2.1, "temperature must be from 0 to 2, got 2.1"),
        ("temperature", float("nan"), "temperature must be from 0 to 2, got nan"),
        ("beginning", "jürgen", "text must hold letters from a to z, got 'ü' in 'jürgen'"),
        ("beginning", "a" * 16, "text must have 1 to 15 letters, got 16"),
    ],
)
def test_what_no_reader_could_choose_is_refused(trait, value, message):
    widget = NameLab()
    before = getattr(widget, trait)
    with pytest.raises(traitlets.TraitError, match=re.escape(message)):
        setattr(widget, trait, value)
    assert getattr(widget, trait) == before


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"num_heads": 2.0}, TypeError),
        ({"num_heads": 5}, traitlets.TraitError),
        ({"seed": "1"}, TypeError),
        ({"top_k": 2.5}, TypeError),
        ({"temperature": "1"}, TypeError),
        ({"temperature": -0.1}, traitlets.TraitError),
        ({"beginning": 3}, TypeError),
        ({"beginning": "a b"}, traitlets.TraitError),
    ],
)
def test_wrong_arguments_are_refused(options, error):
    with pytest.raises(error, match=next(iter(options))):
        NameLab(**options)


def test_what_is_trained_stays_as_it_is():
    widget = NameLab()
    for name in ("spec", "recipe", "guesses", "counts", "held_out"):
        with pytest.raises(traitlets.TraitError, match=name):
            setattr(widget, name, getattr(widget, name))
