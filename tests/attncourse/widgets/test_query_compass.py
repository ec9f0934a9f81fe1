"""QueryCompass's Python side: its state, its traits, its refusals."""

import math

import torch
from tools.refusing import refusals

from attncourse.widgets import QueryCompass

KEYS = torch.tensor([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])
VALUES = torch.tensor([[0.0, 0.0], [4.0, 1.0], [1.0, 3.0]])


def test_a_query_is_two_numbers_of_any_kind_or_the_first_key():
    for query in ((1, 0), torch.tensor([1.0, 0.0]), None):
        assert QueryCompass(KEYS, VALUES, query=query).query == [1.0, 0.0]


def turned(keys=KEYS, values=VALUES, **options):
    return QueryCompass(keys, values, **options)


test_bad_input_is_refused_by_name = refusals({
    TypeError: {
        turned: {
            "keys": [KEYS.tolist()], "values": [VALUES.to_sparse()], "labels": ["a b c"],
            "origin": [None], "temperature": ["1"], "details": ["no"],
            "query": [3, KEYS[0].to("meta")], "goals": ["a"], "goal_weight": ["half"],
        },
    },
    ValueError: {
        turned: {
            "keys": [KEYS.T, KEYS[:1], KEYS.repeat(3, 1), KEYS / 0],
            "values": [VALUES[:2]], "labels": [["a", "b"]],
            "query": [[1.0, 2.0, 3.0], [math.nan, 0.0]], "temperature": [0.0, math.inf],
            "goals": [["a"]], "goal_weight": [-0.1, 1.0],
        },
    },
})  # fmt: skip
