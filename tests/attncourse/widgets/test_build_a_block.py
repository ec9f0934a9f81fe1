"""BuildABlock's Python side: its state, its traits, its refusals."""

import numpy as np
import pytest
import torch
import traitlets

from attncourse.widgets import BuildABlock

DEPTHS = [2, 12, 48]
PANELS = {"gradient": "size", "cosine": "cosine"}
NEITHER, PRE = (False, None), (True, "pre")


def measured(variants=(NEITHER, PRE), runs=2, dtype=torch.float64):
    return {
        variant: {
            "gradient": 10 ** torch.empty(3, runs, dtype=dtype).uniform_(-20, 20),
            "cosine": torch.rand(3, runs, dtype=dtype),
            "something else": torch.zeros(1),
        }
        for variant in variants
    }


def block(measurements=None, **options):
    return BuildABlock(DEPTHS, measurements or measured(), panels=PANELS, **options)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_state_holds_every_number_as_float64(dtype):
    measurements = measured(runs=4, dtype=dtype)
    measurements[PRE]["gradient"][0, 0] = 3e-38
    widget = block(measurements, origin="random, seed 0")
    state = widget.get_state()
    assert (state["depths"], state["runs"], state["origin"]) == (DEPTHS, 4, "random, seed 0")
    assert state["variants"] == [[False, None], [True, "pre"]]
    assert state["panels"] == [["gradient", "size"], ["cosine", "cosine"]]
    values = torch.from_numpy(np.frombuffer(state["values"], "<f8").copy()).view(2, 2, 3, 4)
    for v, variant in enumerate(measurements):
        for p, panel in enumerate(PANELS):
            assert torch.equal(values[v, p], measurements[variant][panel].double())


def test_sizes_that_no_float32_can_hold_survive():
    measurements = measured([NEITHER])
    measurements[NEITHER]["gradient"] = torch.tensor([[1e-300, 1e300]] * 3, dtype=torch.float64)
    values = np.frombuffer(block(measurements).values, "<f8")
    assert values[:6].tolist() == [1e-300, 1e300] * 3


def test_it_starts_with_the_plainest_block():
    widget = block()
    assert (widget.residual, widget.norm_position, widget.depth) == (False, None, 2)


def test_what_a_reader_moves_is_observable():
    widget = block()
    seen = []
    traits = ["residual", "norm_position", "depth"]
    widget.observe(lambda change: seen.append((change["name"], change["new"])), traits)
    widget.residual, widget.norm_position, widget.depth = True, "post", 48  # unmeasured: allowed
    assert seen == [("residual", True), ("norm_position", "post"), ("depth", 48)]
    assert set(traits) <= set(widget.keys)  # synced with the browser


@pytest.mark.parametrize("name", ["depths", "variants", "panels", "runs", "values", "origin"])
def test_what_was_measured_is_fixed(name):
    widget = block()
    with pytest.raises(traitlets.TraitError, match="read-only"):
        setattr(widget, name, getattr(widget, name))


def test_repr_is_short_and_the_same_in_each_run():
    expected = "BuildABlock(depths [2, 12, 48], 2 of 6 wirings measured, 2 runs each)"
    assert repr(block()) == expected


def test_a_cosine_may_exceed_1_by_rounding():
    measurements = measured()
    measurements[PRE]["cosine"][0, 0] = 1 + 1e-7
    block(measurements)


@pytest.mark.parametrize(
    ("error", "message", "depths"),
    [
        (ValueError, "depths must be at least two", [2]),
        (ValueError, "each larger than the last, got .*12, 2", [12, 2]),
        (ValueError, "each larger than the last", [2, 2]),
        (ValueError, "every depth must be at least 1", [0, 2]),
        (TypeError, "every depth must be an int, got float", [2, 2.5]),
    ],
)
def test_bad_depths_are_refused_in_words(error, message, depths):
    with pytest.raises(error, match=message):
        BuildABlock(depths, measured(), panels=PANELS)


def change(variant, panel, value):
    measurements = measured()
    measurements[variant] = measurements.get(variant, measurements[PRE]) | {panel: value}
    return measurements


NAN = torch.tensor([[0.5, torch.nan]] * 3)
NAME = r"measurements\[\(True, 'pre'\)\]"


@pytest.mark.parametrize(
    ("error", "message", "measurements"),
    [
        (ValueError, "at least one .*got {}", {}),
        (ValueError, "must map", [1]),
        (TypeError, r"keys .* got 'pre-norm'", {"pre-norm": {}}),
        (TypeError, r"keys .* got \(True, 'both'\)", {(True, "both"): {}}),
        (TypeError, r"keys .* got \(1, 'pre'\)", {(1, "pre"): {}}),
        (
            ValueError,
            f"{NAME}.'gradient'. is missing: there is only .'cosine'",
            {PRE: {"cosine": 1}},
        ),
        (TypeError, f"{NAME}.'gradient'. must be a torch.Tensor", change(PRE, "gradient", [1.0])),
        (TypeError, "must hold floating point", change(PRE, "gradient", torch.ones(3, 2).long())),
        (ValueError, r"\[3, runs\].* got \[2, 2\]", change(PRE, "gradient", torch.ones(2, 2))),
        (ValueError, r"\[3, runs\].* got \[3\]", change(PRE, "gradient", torch.ones(3))),
        (ValueError, r"\[3, runs\].* got \[3, 0\]", change(PRE, "gradient", torch.ones(3, 0))),
        (ValueError, r"same number of runs .* \[2, 5\]", change(PRE, "cosine", torch.ones(3, 5))),
        (ValueError, f"{NAME}.'cosine'. must be finite", change(PRE, "cosine", NAN)),
        (ValueError, "finite.*float64", change(PRE, "gradient", torch.full((3, 2), torch.inf))),
        (ValueError, "above 0 .* got 0.0", change(PRE, "gradient", torch.zeros(3, 2))),
        (ValueError, "from -1 to 1, got 1.5", change(PRE, "cosine", torch.full((3, 2), -1.5))),
    ],
)
def test_bad_measurements_are_refused_in_words(error, message, measurements):
    with pytest.raises(error, match=message):
        BuildABlock(DEPTHS, measurements, panels=PANELS)


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (TypeError, "panels must map names to kinds, got list", {"panels": ["gradient"]}),
        (ValueError, "at least one measurement", {"panels": {}}),
        (ValueError, r"panels\['gradient'\] must be .* got 'log'", {"panels": {"gradient": "log"}}),
        (TypeError, "origin must be a string, got int", {"panels": PANELS, "origin": 0}),
        (TypeError, "signal must be True or False, got int", {"panels": PANELS, "signal": 0}),
    ],
)
def test_bad_options_are_refused_in_words(error, message, options):
    with pytest.raises(error, match=message):
        BuildABlock(DEPTHS, measured(), **options)
