"""QueryCompass's Python side: its state, its traits, its refusals."""

import math

import numpy as np
import pytest
import torch
import traitlets

from attncourse.widgets import QueryCompass

KEYS = torch.tensor([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])
VALUES = torch.tensor([[0.0, 0.0], [4.0, 1.0], [1.0, 3.0]])


def test_state_holds_the_points_as_float32_bytes():
    widget = QueryCompass(KEYS.double(), VALUES.T.contiguous().T, labels=list("abc"))
    assert (widget.T, widget.labels) == (3, ["a", "b", "c"])
    for state, given in ((widget.k, KEYS), (widget.v, VALUES)):
        assert np.array_equal(np.frombuffer(state, "<f4").reshape(3, 2), given.numpy())


@pytest.mark.parametrize("query", [(-0.25, 3), [-0.25, 3.0], torch.tensor([-0.25, 3.0])])
def test_a_query_is_two_numbers_of_any_kind(query):
    assert QueryCompass(KEYS, VALUES, query=query).query == [-0.25, 3.0]


def test_without_a_query_it_is_the_first_key():
    assert QueryCompass(KEYS, VALUES).query == [1.0, 0.0]


def test_what_a_reader_moves_is_observable():
    widget = QueryCompass(KEYS, VALUES)
    seen = []
    widget.observe(lambda change: seen.append((change["name"], change["new"])))
    widget.query, widget.temperature = [0.5, -2], 0.1
    assert seen == [("query", [0.5, -2.0]), ("temperature", 0.1)]
    assert {"query", "temperature"} <= set(widget.keys)  # synced with the browser


@pytest.mark.parametrize("details", ["no", 1, None])
def test_details_are_shown_or_not(details):
    assert QueryCompass(KEYS, VALUES).details
    assert not QueryCompass(KEYS, VALUES, details=False).details
    with pytest.raises(TypeError, match="details must be True or False"):
        QueryCompass(KEYS, VALUES, details=details)


@pytest.mark.parametrize(
    ("error", "name", "value"),
    [
        (ValueError, "query", [1.0]),
        (ValueError, "query", [1.0, 2.0, 3.0]),
        (ValueError, "query", [math.nan, 0.0]),
        (ValueError, "query", [0.0, -math.inf]),
        (TypeError, "query", ["1", "2"]),
        (ValueError, "temperature", 0.0),
        (ValueError, "temperature", -1.0),
        (ValueError, "temperature", math.nan),
        (ValueError, "temperature", math.inf),
        (TypeError, "temperature", "1"),
    ],
)
def test_impossible_values_are_refused(error, name, value):
    with pytest.raises(error, match=name):
        QueryCompass(KEYS, VALUES, **{name: value})


@pytest.mark.parametrize("name", ["k", "v", "T", "labels", "origin"])
def test_keys_and_values_are_fixed(name):
    widget = QueryCompass(KEYS, VALUES)
    with pytest.raises(traitlets.TraitError, match="read-only"):
        setattr(widget, name, getattr(widget, name))


def test_repr_is_short_and_the_same_in_each_run():
    widget = QueryCompass(KEYS, VALUES)
    assert repr(widget) == "QueryCompass(3 keys, query=[1.0, 0.0], temperature=1)"


@pytest.mark.parametrize(
    ("error", "message", "arguments", "options"),
    [
        (TypeError, r"keys must be a torch.Tensor, got list", (KEYS.tolist(), VALUES), {}),
        (TypeError, r"values must hold floating point", (KEYS, VALUES.long()), {}),
        (
            ValueError,
            r"keys must be points in the plane \[T, 2\], got \[2, 3\]",
            (KEYS.T, KEYS),
            {},
        ),
        (ValueError, r"values must be points .* got \[1, 3, 2\]", (KEYS, VALUES[None]), {}),
        (ValueError, r"keys must be 2 to 8 points, got 1", (KEYS[:1], VALUES[:1]), {}),
        (ValueError, r"keys must be 2 to 8 points, got 9", (KEYS.repeat(3, 1), VALUES), {}),
        (ValueError, r"values must be one for each of the 3 keys, got 2", (KEYS, VALUES[:2]), {}),
        (ValueError, r"keys must be finite", (KEYS / 0, VALUES), {}),
        (TypeError, r"labels .* did you forget .split", (KEYS, VALUES), {"labels": "a b c"}),
        (
            ValueError,
            r"labels must be one for each .* got 2",
            (KEYS, VALUES),
            {"labels": ["a", "b"]},
        ),
        (TypeError, r"origin must be a string", (KEYS, VALUES), {"origin": None}),
        (TypeError, r"query must be a list, got int", (KEYS, VALUES), {"query": 3}),
        (TypeError, r"query must be a list, got float", (KEYS, VALUES), {"query": KEYS[0, 0]}),
        (TypeError, r"query must hold numbers", (KEYS, VALUES), {"query": KEYS[0].to("meta")}),
        (TypeError, r"values must be dense numbers", (KEYS, VALUES.to_sparse()), {}),
    ],
)
def test_bad_input_is_refused_in_words(error, message, arguments, options):
    with pytest.raises(error, match=message):
        QueryCompass(*arguments, **options)
