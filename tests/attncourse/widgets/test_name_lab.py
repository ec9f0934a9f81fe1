"""NameLab's Python side: its state, its traits, its refusals."""

import pytest
from tools.refusing import refusals

from attncourse.tasks import names
from attncourse.training import RECIPES, held_out_sentences
from attncourse.widgets import NameLab
from attnlib.model import TransformerModel

RECIPE = RECIPES["names"]


def test_it_trains_what_the_recipe_trains_and_shows_what_is_given():
    state = NameLab().get_state()
    (block,) = state["spec"]["blocks"]
    for count in state["counts"]:
        block |= {"num_heads": count, "num_kv_heads": count}
        sizes = {**RECIPE.model, "num_heads": count}
        assert state["spec"] == TransformerModel.of_sizes(RECIPE.task, **sizes).spec()
    assert state["recipe"] == RECIPE.as_json()
    assert state["num_heads"] == RECIPE.model["num_heads"]
    widget = NameLab(2, seed=7, beginning="Tol", temperature=0, top_k=5)
    assert (widget.num_heads, widget.seed, widget.trained, widget.draw) == (2, 7, False, 0)
    assert (widget.beginning, widget.temperature, widget.top_k) == ("tol", 0, 5)


def test_guesses_are_of_the_names_that_the_browser_is_asked_about():
    widget = NameLab()
    first = held_out_sentences(RECIPE)[: widget.held_out]
    texts = [names.spelled(one.ids) for one in first]
    floor = -sum(map(names.log_probability, texts)) / sum(len(text) + 1 for text in texts)
    guesses = widget.guesses
    assert list(guesses) == ["uniform", "unigram", "bigram", "floor"]
    assert guesses["floor"] == pytest.approx(floor)  # of the others test_baselines.py asks
    assert 3.2 > guesses["unigram"] > 2.9 > 2.3 > guesses["bigram"] > 2.1


test_bad_input_is_refused_by_name = refusals({
    TypeError: {
        NameLab: {
            "num_heads": [2.0], "seed": ["1"], "top_k": [2.5], "temperature": ["1"],
            "beginning": [3],
        },
    },
    ValueError: {
        NameLab: {
            "num_heads": [5], "seed": [1000], "top_k": [0, 28], "temperature": [-0.1, 2.1],
            "beginning": ["a b", "a" * 16],
        },
    },
})  # fmt: skip
