"""Logs stand side by side: every seed is drawn, and no curve lies on another log's."""

import pytest
import torch

from attncourse.lessons.l05 import figures
from attnlib.plotting.page import TEXT_WIDTH, phone_copy

SAME = torch.tensor([[2.0, 2.0, 3.0], [1.0, 4.0, 2.0]])
LOGS = {name: {"loss": SAME, "size": 10**SAME} for name in ("A", "B")}


def test_every_log_has_panels_of_its_own_with_each_seed_and_the_median():
    figure = figures.plot_logs(LOGS)
    assert len(figure.axes) == 4
    for ax in figure.axes[:2]:
        *seeds, median = ax.lines
        assert [seed.get_ydata().tolist() for seed in seeds] == SAME.T.tolist()
        assert median.get_ydata().tolist() == [2, 2]


def test_logs_stand_in_columns_and_measurements_in_lines_of_one_scale():
    figure = figures.plot_logs(LOGS, log=["size"])
    loss_a, loss_b, size_a, size_b = figure.axes
    assert [loss_a.get_title(), loss_b.get_title()] == ["A", "B"]
    assert [loss_a.get_ylabel(), size_a.get_ylabel()] == ["loss", "size"]
    assert [ax.get_yscale() for ax in figure.axes] == ["linear", "linear", "log", "log"]
    assert size_a.get_ylim() == size_b.get_ylim() == (10, 1e4)


@pytest.mark.parametrize(("count", "least"), [(1, 0.3), (3, 0.9), (6, 0.9)])
def test_logs_fill_a_page_and_fit_a_phone(count, least):
    figure = figures.plot_logs({str(i): LOGS["A"] for i in range(count)})
    assert least * TEXT_WIDTH < figure.get_figwidth() <= TEXT_WIDTH
    narrow = phone_copy(figure)
    assert count > 3 or (narrow or figure).get_figwidth() <= 3.15  # a page that is 360 px wide


@pytest.mark.parametrize(("low", "high"), [(1e-9, 1e6), (2.0, 3.0), (10.0, 10.0)])
def test_a_logarithmic_axis_has_a_few_numbers_all_powers_of_ten(low, high):
    figure = figures.plot_logs({"A": {"size": torch.tensor([[low], [high]])}}, log=["size"])
    (ax,) = figure.axes
    numbers = torch.tensor(ax.get_yticks()).log10()
    assert 2 <= len(numbers) <= 5
    torch.testing.assert_close(numbers, numbers.round())
    assert ax.get_ylim()[0] <= low <= high <= ax.get_ylim()[1]
    assert ax.get_ylim()[0] < ax.get_ylim()[1]
    assert len(ax.yaxis.get_minorticklocs()) == 0
