"""BuildABlock's Python side: its state, its traits, its refusals."""

import numpy as np
import pytest
import torch
from tools.refusing import assert_refused, refusals

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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_state_holds_every_number_as_float64(dtype):
    measurements = measured(runs=4, dtype=dtype)
    measurements[PRE]["gradient"][0, :2] = torch.tensor([3e-38, 3e38], dtype=dtype)
    measurements[PRE]["cosine"][0, 0] = 1 + 1e-7  # by rounding
    widget = BuildABlock(DEPTHS, measurements, panels=PANELS, origin="random, seed 0")
    assert (widget.residual, widget.norm_position, widget.depth) == (False, None, 2)  # the plainest
    state = widget.get_state()
    assert (state["depths"], state["runs"], state["origin"]) == (DEPTHS, 4, "random, seed 0")
    assert state["variants"] == [[False, None], [True, "pre"]]
    assert state["panels"] == [["gradient", "size"], ["cosine", "cosine"]]
    values = torch.from_numpy(np.frombuffer(state["values"], "<f8").copy()).view(2, 2, 3, 4)
    for v, variant in enumerate(measurements):
        for p, panel in enumerate(PANELS):
            assert torch.equal(values[v, p], measurements[variant][panel].double())


def change(panel, value):
    return measured() | {PRE: measured()[PRE] | {panel: value}}


def built(depths=DEPTHS, measurements=None, panels=PANELS, **options):
    given = measured() if measurements is None else measurements
    return BuildABlock(depths, given, panels=panels, **options)


NAN = torch.tensor([[0.5, torch.nan]] * 3)


test_bad_input_is_refused_by_name = refusals(
    {
        TypeError: {
            built: {
                "measurements": [change("gradient", [1.0]), change("gradient", NAN.long())],
                "panels": [["gradient"]], "origin": [0], "signal": [0],
            },
        },
        ValueError: {
            built: {
                "depths": [[2], [12, 2], [2, 2]],
                "measurements": [
                    {}, [1], {PRE: {"cosine": 1}},
                    *(change("gradient", torch.ones(size)) for size in [(2, 2), (3,), (3, 0)]),
                    change("cosine", torch.ones(3, 5)), change("cosine", NAN),
                    change("gradient", torch.full((3, 2), torch.inf)),
                    change("gradient", torch.zeros(3, 2)),
                    change("cosine", torch.full((3, 2), -1.5)),
                ],
                "panels": [{}, {"gradient": "log"}],
            },
        },
    }
)  # fmt: skip


@pytest.mark.parametrize("key", ["pre-norm", (True, "both"), (1, "pre")])
def test_a_wiring_that_isnt_one_is_refused(key):
    assert_refused(lambda: built(measurements={key: {}}), ["keys", repr(key)], TypeError)


@pytest.mark.parametrize(("error", "depths"), [(ValueError, [0, 2]), (TypeError, [2, 2.5])])
def test_a_depth_is_a_count(error, depths):
    assert_refused(lambda: built(depths), ["depth"], error)
