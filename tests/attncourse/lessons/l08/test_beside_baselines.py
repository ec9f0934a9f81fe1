"""Scores are drawn as dots, one per seed, beside a bar at the baseline."""

import torch
from tools.figure_reading import legend

from attncourse.lessons.l08 import figures

SCORES = {"verb>subject": torch.tensor([0.9, 0.8]), "verb>object": torch.tensor([0.95, 0.2, 0.3])}
BASELINES = [0.6, 0.25]


def test_each_line_has_a_dot_per_seed_and_a_bar_at_its_baseline():
    (ax,) = figures.plot_beside_baselines(SCORES, BASELINES).axes
    assert [label.get_text() for label in ax.get_yticklabels()] == list(SCORES)
    lines = iter(ax.lines)
    for place, (scores, baseline) in enumerate(zip(SCORES.values(), BASELINES, strict=True)):
        dots, bar = next(lines), next(lines)
        torch.testing.assert_close(torch.tensor(dots.get_xdata()), scores.double())
        assert set(dots.get_ydata()) == {place}
        assert set(bar.get_xdata()) == {baseline}
        low, high = bar.get_ydata()
        assert low < place < high
    bottom, top = ax.get_ylim()
    assert bottom > top  # the first line stands on top
    marks = {text: mark.get_marker() for text, mark in legend(ax.figure).items()}
    assert marks == {"best head, a dot per seed": "o", "best fixed offset": "None"}
