"""HeadLab's Python side: its state, its traits, its refusals."""

import re

import pytest
import traitlets

from attnlib.model import TransformerModel
from attnlib.relations import concord
from attnlib.training import RECIPES
from attnlib.widgets import HeadLab


def test_it_trains_what_the_recipe_trains():
    recipe = RECIPES["concord"]
    state = HeadLab().get_state()
    (block,) = state["spec"]["blocks"]
    for count in state["counts"]:
        block |= {"num_heads": count, "num_kv_heads": count}
        sizes = {**recipe.model, "num_heads": count}
        assert state["spec"] == TransformerModel.of_sizes(recipe.task, **sizes).spec()
    assert state["recipe"] == recipe.as_json()


def test_at_the_start_nothing_is_trained_or_muted():
    widget = HeadLab()
    assert (widget.num_heads, widget.seed, widget.trained) == (1, 0, False)
    assert (widget.head, widget.muted) == (0, [])
    assert str(concord.read(widget.sentence)) == widget.sentence


def test_what_is_given_is_shown():
    widget = HeadLab(4, seed=7, sentence="A king saw the nun", muted=[2, 0, 2])
    assert (widget.num_heads, widget.seed) == (4, 7)
    assert widget.sentence == "a king saw the nun ."
    assert widget.muted == [0, 2]
    assert repr(widget) == "HeadLab(4 heads, seed 7, not trained, muted=[0, 2])"
    widget.trained = True
    assert "not" not in repr(widget)


@pytest.mark.parametrize(
    ("trait", "value", "message"),
    [
        ("num_heads", 3, "num_heads must be one of [1, 2, 4, 8, 16], got 3"),
        ("seed", 1000, "seed must be from 0 to 999, got 1000"),
        ("seed", -1, "seed must be from 0 to 999, got -1"),
        ("sentence", "the zebra saw a king", "got 'zebra' as word 2; there may stand"),
        ("sentence", "the king saw", "got its end behind 'the king saw'"),
        ("head", 16, "head must name heads from 0 to 15 (0-based), got 16"),
        ("muted", [0, -1], "muted must name heads from 0 to 15 (0-based), got -1"),
    ],
)
def test_what_no_reader_could_choose_is_refused(trait, value, message):
    widget = HeadLab()
    before = getattr(widget, trait)
    with pytest.raises(traitlets.TraitError, match=re.escape(message)):
        setattr(widget, trait, value)
    assert getattr(widget, trait) == before


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"num_heads": 2.0}, TypeError),
        ({"seed": "1"}, TypeError),
        ({"num_heads": 5}, traitlets.TraitError),
        ({"sentence": "no king"}, traitlets.TraitError),
        ({"sentence": 3}, traitlets.TraitError),
        ({"muted": [16]}, traitlets.TraitError),
    ],
)
def test_wrong_arguments_are_refused(options, error):
    with pytest.raises(error, match=next(iter(options))):
        HeadLab(**options)


def test_what_is_trained_stays_as_it_is():
    widget = HeadLab()
    for name in ("spec", "recipe", "counts", "held_out"):
        with pytest.raises(traitlets.TraitError, match=name):
            setattr(widget, name, getattr(widget, name))
