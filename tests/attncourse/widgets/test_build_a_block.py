"""BuildABlock's Python side: its state, its traits, its refusals."""

import torch
from tools.refusing import assert_refused, refusals

from attncourse.widgets import BuildABlock

DEPTHS = [2, 12, 48]
PANELS = {"gradient": "size", "cosine": "cosine"}
NEITHER, PRE = (False, None), (True, "pre")


def measured():
    return {
        variant: {
            "gradient": 10 ** torch.empty(3, 4).uniform_(-20, 20),
            "cosine": torch.rand(3, 4),
            "something else": torch.zeros(1),
        }
        for variant in (NEITHER, PRE)
    }


def test_state_holds_every_number_as_float64():
    measurements = measured()
    measurements[NEITHER]["gradient"] = torch.full((3, 4), 1e-46, dtype=torch.float64)
    measurements[PRE]["cosine"][0, 0] = 1 + 1e-7  # by rounding
    widget = BuildABlock(DEPTHS, measurements, panels=PANELS)
    assert (widget.residual, widget.norm_position, widget.depth) == (False, None, 2)  # the plainest
    values = torch.frombuffer(bytearray(widget.values), dtype=torch.float64).view(4, 3, 4)
    given = [of[panel].double() for of in measurements.values() for panel in PANELS]
    assert torch.equal(values, torch.stack(given))


def change(panel, value):
    return measured() | {PRE: measured()[PRE] | {panel: value}}


def built(depths=DEPTHS, measurements=None, panels=PANELS, **options):
    given = measured() if measurements is None else measurements
    return BuildABlock(depths, given, panels=panels, **options)


test_bad_input_is_refused_by_name = refusals({
    TypeError: {
        built: {
            "measurements": [change("gradient", [1.0])],
            "panels": [["gradient"]], "origin": [0], "signal": [0],
        },
    },
    ValueError: {
        built: {
            "depths": [[2], [12, 2]],
            "measurements": [
                {}, {PRE: {"cosine": 1}}, change("gradient", torch.ones(2, 4)),
                change("cosine", torch.ones(3, 5)), change("cosine", torch.full((3, 4), -1.5)),
                change("gradient", torch.full((3, 4), torch.inf)),
                change("gradient", torch.zeros(3, 4)),
            ],
            "panels": [{}, {"gradient": "log"}],
        },
    },
})  # fmt: skip


def test_a_wiring_that_isnt_one_is_refused():
    assert_refused(lambda: built(measurements={(1, "pre"): {}}), ["keys", "(1, 'pre')"], TypeError)
