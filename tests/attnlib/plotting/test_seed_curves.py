"""Curves show every seed and the seeds' median."""

import pytest
import torch

from attnlib import palette, plotting


def test_curves_show_every_seed_and_join_their_medians():
    values = torch.tensor([[1.0, 2.0, 9.0], [4.0, 3.0, 5.0]])
    figure = plotting.plot_seed_curves([2, 6], {"size": {"pre": values}}, x_label="depth")
    median, *seeds = figure.axes[0].lines
    assert median.get_ydata().tolist() == [2, 4]
    assert [seed.get_ydata().tolist() for seed in seeds] == values.T.tolist()


def test_only_the_named_panels_are_logarithmic():
    panels = {"loss": {"a": torch.ones(2, 1)}, "cosine": {"a": torch.ones(2, 1)}}
    figure = plotting.plot_seed_curves([1, 2], panels, x_label="depth", log=["loss"])
    assert [ax.get_yscale() for ax in figure.axes] == ["log", "linear"]
    with pytest.raises(ValueError, match=r"log must hold titles of panels, got \['los'\]"):
        plotting.plot_seed_curves([1, 2], panels, x_label="depth", log=["los"])


def test_curves_of_the_wrong_shape_are_refused():
    with pytest.raises(
        ValueError, match=r"\['pre'\] must have shape \[len\(x\)=2, .* got \[3, 2\]"
    ):
        plotting.plot_seed_curves([2, 6], {"size": {"pre": torch.ones(3, 2)}}, x_label="depth")


def test_curves_use_the_palette_alone():
    figure = plotting.plot_seed_curves([1], {"a": {"b": torch.ones(1, 2)}}, x_label="x")
    assert {line.get_color() for line in figure.axes[0].lines} <= set(palette.HEAD_COLORS)


def test_few_points_stand_on_a_logarithmic_axis_and_so_above_0():
    panels = {"loss": {"a": torch.ones(3, 2)}}
    with pytest.raises(ValueError, match=r"x must be above 0 with at most 8 points, .* got 0"):
        plotting.plot_seed_curves([0, 1, 2], panels, x_label="step")
    figure = plotting.plot_seed_curves(range(9), {"loss": {"a": torch.ones(9, 2)}}, x_label="step")
    assert figure.axes[0].get_xscale() == "linear"


def test_points_that_count_stand_evenly_apart():
    panels = {"loss": {"a": torch.ones(3, 2)}}
    figures = {
        even: plotting.plot_seed_curves([1, 2, 3], panels, x_label="part", even=even)
        for even in (False, True)
    }
    assert [figures[even].axes[0].get_xscale() for even in (False, True)] == ["log", "linear"]
    from_0 = plotting.plot_seed_curves([0, 1, 2], panels, x_label="part", even=True)
    assert [label.get_text() for label in from_0.axes[0].get_xticklabels()] == ["0", "1", "2"]
