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
    ("error", "message", "options"),
    [
        (TypeError, "num_heads must be an int", {"num_heads": 2.0}),
        (ValueError, "num_heads must be one of [1, 2, 4, 8], got 5", {"num_heads": 5}),
        (TypeError, "seed must be an int", {"seed": "1"}),
        (ValueError, "seed must be from 0 to 999, got 1000", {"seed": 1000}),
        (TypeError, "top_k must be an int", {"top_k": 2.5}),
        (ValueError, "top_k must be from 1 to 27, got 0", {"top_k": 0}),
        (ValueError, "top_k must be from 1 to 27, got 28", {"top_k": 28}),
        (TypeError, "temperature must be a number", {"temperature": "1"}),
        (ValueError, "temperature must be from 0 to 2, got -0.1", {"temperature": -0.1}),
        (ValueError, "temperature must be from 0 to 2, got nan", {"temperature": float("nan")}),
        (TypeError, "beginning must be a string", {"beginning": 3}),
        (ValueError, "beginning: text must hold letters from a to z", {"beginning": "a b"}),
        (ValueError, "text must have 1 to 15 letters, got 16", {"beginning": "a" * 16}),
    ],
)
def test_bad_input_is_refused_in_words(error, message, options):
    with pytest.raises(error, match=re.escape(message)):
        NameLab(**options)


def test_what_is_trained_stays_as_it_is():
    widget = NameLab()
    for name in ("spec", "recipe", "guesses", "counts", "held_out"):
        with pytest.raises(traitlets.TraitError, match=name):
            setattr(widget, name, getattr(widget, name))
