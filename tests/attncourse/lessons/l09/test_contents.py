"""Four contents lie on a line or span a plane, whatever space they come from."""

import torch
from matplotlib.colors import to_hex
from tools.figure_reading import legend

from attncourse.lessons.l09 import figures

LABELS = ["3 and 3", "3 and 7", "7 and 3", "7 and 7"]


def test_points_of_a_line_lie_level_and_those_of_a_plane_keep_their_shape_and_label():
    line = torch.tensor([[0.0, 0.0], [0.25, 0.0], [0.75, 0.0], [1.0, 0.0]])
    flat = torch.tensor([[0.0, 0.0], [0.5, 0.4], [0.5, -0.4], [1.0, 0.0]])
    plane, _ = torch.linalg.qr(torch.randn(6, 2))
    points = {"one": torch.randn(5) + line[:, :1] * torch.randn(5), "two": 3 + 2 * flat @ plane.T}
    for ax, wanted in zip(figures.plot_contents(points, LABELS).axes, (line, flat), strict=True):
        (drawn,) = (dots for dots in ax.lines if dots.get_marker() == "o")
        drawn = torch.tensor(drawn.get_xydata())
        torch.testing.assert_close(drawn, wanted.double(), atol=1e-5, rtol=0)
        texts = [text for text in ax.texts if text.get_text()]
        assert [text.get_text() for text in texts] == LABELS
        places = torch.tensor([text.xy for text in texts], dtype=torch.float64)
        torch.testing.assert_close(places, drawn)
        arrows = [text for text in ax.texts if not text.get_text()]  # to the last content, and on
        ends = {to_hex(one.arrow_patch.get_edgecolor()): one.xy for one in arrows}
        color = to_hex(legend(ax.figure)["raise both"].get_color())
        assert ends[color] == tuple(drawn[3].tolist())
    assert len(figures.plot_contents({"alone": points["one"]}, LABELS).axes) == 1
