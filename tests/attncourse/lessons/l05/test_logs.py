"""Logs stand side by side: every seed is drawn, and no curve lies on another log's."""

import pytest
import torch

from attncourse.lessons.l05 import figures

SAME = torch.tensor([[2.0, 2.0, 3.0], [1.0, 4.0, 2.0]])
LOGS = {name: {"loss": SAME, "size": 10**SAME} for name in ("A", "B")}


def test_logs_stand_in_columns_and_measurements_in_lines_of_one_scale():
    figure = figures.plot_logs(LOGS, log=["size"])
    loss_a, loss_b, size_a, size_b = figure.axes
    assert [loss_a.get_title(), loss_b.get_title()] == ["A", "B"]
    assert [loss_a.get_ylabel(), size_a.get_ylabel()] == ["loss", "size"]
    assert [ax.get_yscale() for ax in figure.axes] == ["linear", "linear", "log", "log"]
    assert size_a.get_ylim() == size_b.get_ylim() == (10, 1e4)
    for ax in (loss_a, loss_b):
        *seeds, median = ax.lines
        assert [seed.get_ydata().tolist() for seed in seeds] == SAME.T.tolist()
        assert median.get_ydata().tolist() == [2, 2]


@pytest.mark.parametrize(("low", "high"), [(1e-9, 1e6), (2.0, 3.0), (10.0, 10.0)])
def test_a_logarithmic_axis_has_a_few_numbers_all_powers_of_ten(low, high):
    figure = figures.plot_logs({"A": {"size": torch.tensor([[low], [high]])}}, log=["size"])
    (ax,) = figure.axes
    numbers = torch.tensor(ax.get_yticks()).log10()
    assert 2 <= len(numbers) <= 5
    torch.testing.assert_close(numbers, numbers.round())
    bottom, top = ax.get_ylim()
    assert bottom <= low <= high <= top and bottom < top
    assert len(ax.yaxis.get_minorticklocs()) == 0
