"""One good call of every figure, and arguments that don't fit the others.

What must be refused whatever the figure (no tensor, no number in it, a label too few, ...) is
derived from the good call; see tests/attnlib/plotting/test_bad_input.py.
"""

from dataclasses import dataclass, field
from typing import Any

import torch

from attnlib import TransformerBlock, causal_mask


@dataclass(frozen=True)
class Example:
    """A good call of one figure.

    Attributes:
        arguments: a good value for every parameter.
        misfits: parameter -> values of the right kind that don't fit the other arguments.
        drawn: parameter -> kinds of wrong values that this figure draws all the same.
    """

    arguments: dict[str, Any]
    misfits: dict[str, list[Any]] = field(default_factory=dict)
    drawn: dict[str, list[str]] = field(default_factory=dict)


def numbers(*shape: int) -> torch.Tensor:
    """Return numbers above 0, the same for the same shape, none of them whole."""
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).view(shape) / 7.5


HEADS, SEEDS, LAYERS = ["one", "two"], ["a", "b", "c"], [numbers(4, 3), numbers(4, 3)]
EYE, POSITIONS = torch.eye(3), torch.arange(15).view(3, 5)

EXAMPLES = {
    "plot_beside": Example(
        {"right": EYE, "broken": numbers(3, 3), "tokens": SEEDS, "mask": causal_mask(3)},
        {"mask": [causal_mask(2), ~causal_mask(3)[:2]]},
        drawn={"right": ["NaN"], "broken": ["NaN"]},
    ),
    "plot_heads": Example(
        {
            "weights": torch.eye(3, 4).repeat(2, 1, 1), "mask": torch.ones(3, 4).bool(),
            "tokens": SEEDS, "key_tokens": list("abcd"), "titles": HEADS, "colors_of": [3, None],
            "numbers": True, "columns": 2,
        },
        {
            "mask": [causal_mask(3), torch.eye(3, 4).logical_not()],
            "weights": [
                torch.ones(2, 3, 4) / 3, -torch.eye(3, 4), torch.eye(3, 4).repeat(2, 2, 1, 1),
                torch.eye(3, 4).index_fill(1, torch.tensor(3), 0.9),
            ],
            "columns": [25],
        },
    ),
    "plot_long_heads": Example(
        {"maps": EYE.repeat(2, 1, 1), "rows": range(6), "keys": range(6), "titles": HEADS,
         "colors_of": [3, None], "causal": True},
        {"rows": [range(2)], "keys": [range(4)],
         "maps": [numbers(3, 3), EYE - 1, EYE / 20, EYE.flip(0)]},
    ),
    "plot_matrices": Example(
        {"matrices": {"X": numbers(3, 5), "Y": -numbers(3, 5)}, "row_labels": SEEDS,
         "column_labels": list("abcde"), "numbers": "{:.1f}", "columns": 2, "limit": 3.0},
        {"columns": [9], "numbers": ["{:d}", "{1}", "{name}", "{", "{:.1f} {}"],
         "matrices": [{"X": numbers(3, 2000), "Y": numbers(2, 5)}]},
        drawn={"matrices": ["NaN"]},
    ),
    "plot_model": Example(
        {"highlighted": ["norm", "residual"]},
        {"highlighted": ["head", ["norms"]]},
        drawn={"highlighted": ["one too few", "one too many"]},  # one of them alone, and one twice
    ),
    "plot_seed_curves": Example(
        {"x": [1, 2.5], "panels": {"c": {"a": numbers(2, 3), "b": numbers(2, 1)}},
         "x_label": "depth", "log": ["c"], "linear_x": False, "columns": 2},
        {
            "x": [[1, 2, 3], [0, 1], [1, torch.nan], [1, torch.inf]], "log": [["los"]],
            "panels": [
                {"c": {"a": numbers(3, 2)}},
                {"c": {"a": numbers(2, 3)}} | {str(i): {"a": numbers(2, 1)} for i in range(24)},
                {"c": {"a": EYE[:2], "b": EYE[:2]}},  # 0 on a logarithmic axis
                {"c": dict.fromkeys("ab", numbers(2, 1)), "d": dict.fromkeys("ba", numbers(2, 1))},
            ],
            "columns": [7],
        },
        drawn={
            "panels": ["NaN", "infinity", "beyond float32"],
            "log": ["one too few", "one too many"],  # none, and one of them twice
        },
    ),
    # lesson 3
    "plot_lookups": Example(
        {"queries": numbers(2, 2), "keys": numbers(3, 2), "values": -numbers(3, 2),
         "titles": HEADS},
        {name: [numbers(3, 3), numbers(2, 1)] for name in ("queries", "keys")}
        | {"values": [numbers(2, 2), numbers(3, 3)]},
    ),
    "plot_stages": Example(
        {"x": numbers(3, 4), "w_q": numbers(4, 2), "w_k": numbers(4, 2), "w_v": numbers(4, 5),
         "tokens": SEEDS},
        {"w_q": [numbers(3, 2)], "w_k": [numbers(3, 2), numbers(4, 3)], "w_v": [numbers(5, 4)]},
    ),
    # lesson 4
    "plot_flow": Example(
        {"x": numbers(3, 4), "w_q": numbers(4, 4), "w_k": numbers(4, 4), "w_v": numbers(4, 4),
         "w_o": numbers(4, 4), "num_heads": 2, "tokens": SEEDS},
        {name: [numbers(3, 4), numbers(4, 3)] for name in ("w_q", "w_k", "w_v", "w_o")}
        | {"num_heads": [3, 8]},
    ),
    "plot_origin": Example(
        {"panels": {"x": [POSITIONS.float()], "cut": list(POSITIONS.split([2, 3], dim=1))},
         "tokens": SEEDS, "titles": HEADS},
        {"panels": [{"x": [matrix]} for matrix in (numbers(3, 5), POSITIONS + 1, POSITIONS - 1)]},
    ),
    "plot_sensitivity": Example(
        {"maps": {"real": numbers(2, 6), "sliced": EYE}},
        {"maps": [{"real": -EYE}, {"real": 0 * EYE}]},
    ),
    # lesson 5
    "plot_blocks": Example({"blocks": {"pre": TransformerBlock(4, 2)}}),
    "plot_contributions": Example(
        {"contributions": {"words": numbers(3, 4), "attention": -numbers(3, 4) / 2}},
        {"contributions": [{"a": EYE, "b": -EYE}, {"a": numbers(2, 3), "b": numbers(3, 2)}]},
    ),
    "plot_logs": Example(
        {"logs": {"A": {"c": numbers(4, 3)}, "B": {"c": numbers(4, 2)}},
         "x_label": "step", "log": ["c"]},
        {
            "logs": [
                {"A": {"c": numbers(4, 3)}, "B": {"c": numbers(3, 3)}},
                {"A": {"c": numbers(4, 3)}, "B": {"c": numbers(4, 3), "size": numbers(4, 3)}},
                {"A": {"c": numbers(4, 3) - 1 / 7.5}},
                {str(i): {"c": numbers(4, 3)} for i in range(7)},
            ],
            "log": [["los"]],
        },
        drawn={"log": ["one too few", "one too many"]},  # none, and one of them twice
    ),
    # lesson 8
    "plot_beside_baselines": Example(
        {"scores": {"a>b": numbers(4) / 9, "b>c": numbers(2) / 9}, "baselines": [0.5, 0.25]},
        {"scores": [{"a>b": numbers(9), "b>c": numbers(2)}], "baselines": [[0.5, 1.5]]},
    ),
    "plot_head_atlas": Example(
        {"panels": {"one": numbers(3, 4) / 9, "two": numbers(3, 2) / 9}, "rows": SEEDS,
         "meaning": "mass", "columns": 2},
        {"panels": [{"one": numbers(2, 4) / 9}, {"one": -numbers(3, 4)}], "columns": [7]},
    ),
    # lesson 9
    "plot_budgets": Example(
        {"models": {"small": {"tables": 30, "blocks": 70}, "large": {"tables": 5, "blocks": 95}}},
        {"models": [{"small": {"tables": 0}}, {"small": {"tables": 1}, "large": {"blocks": 1}}]},
        drawn={"models": ["0"]},  # a part that one of the models lacks
    ),
    "plot_contents": Example(
        {"panels": {"one": numbers(4, 3), "two": torch.eye(4)}, "labels": list("abcd")},
        {"panels": [{"one": numbers(3, 4)}, {"one": torch.ones(4, 2)}]},
    ),
    "plot_directions": Example(
        {"weights": torch.tensor([[0.4, 0], [0, 0.4], [0.4, 0.5]]), "labels": SEEDS},
        {"weights": [EYE - 0.5, numbers(3, 2), torch.zeros(3, 2), EYE[:, :2], numbers(3, 3) / 9,
            torch.tensor([[0.4, 0], [0, 0.4], [0.2, 0.2]]), torch.full((3, 2), 0.3),
            torch.tensor([[0.1, 0.15], [0.2, 0.3], [0, 0.1]]), numbers(3, 2) / 4,
        ]},
    ),
    # lesson 10
    "plot_cache_sizes": Example(
        {"models": {"small": {"kept": 36, "whole": 70}, "large": {"kept": 5, "whole": 95}}},
        {"models": [{"small": {"kept": 0}}, {"small": {"kept": 1}, "large": {"whole": 1}}]},
    ),
    "plot_head_shards": Example(
        {"num_heads": 8, "devices": 2}, {"devices": [3, 16], "num_heads": [7, 500]}
    ),
    # lesson 11
    "plot_packed_heads": Example(
        {"c_attn": numbers(6, 18) - 7, "c_proj": -numbers(6, 6), "num_heads": 3},
        {"c_attn": [numbers(18, 6), numbers(6, 6)], "c_proj": [numbers(5, 5)], "num_heads": [4]},
    ),
    "plot_token_walk": Example(
        {"weights": torch.eye(3, 4), "adds": -numbers(3), "labels": SEEDS, "tokens": list("abcd")},
        {"weights": [numbers(3, 4), -torch.eye(3, 4)], "adds": [numbers(4)]},
    ),
}  # fmt: skip
