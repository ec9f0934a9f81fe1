"""Four contents lie on a line or span a plane, whatever space they come from."""

import torch

from attncourse.lessons.l09 import figures

LABELS = ["3 and 3", "3 and 7", "7 and 3", "7 and 7"]
LINE = torch.tensor([0.0, 0.25, 0.75, 1.0])


def points_of(figure):
    """Return the points of each panel as [4, 2]."""
    return [
        torch.tensor(line.get_xydata())
        for ax in figure.axes
        for line in ax.lines
        if line.get_marker() == "o"
    ]


def test_points_of_a_line_lie_level_in_their_order():
    torch.manual_seed(0)
    points = torch.randn(5) + LINE[:, None] * torch.randn(5)  # [4, 5]
    (drawn,) = points_of(figures.plot_contents({"one": points}, LABELS))
    torch.testing.assert_close(drawn[:, 0], LINE.double(), atol=1e-5, rtol=0)
    assert not drawn[:, 1].any()


def test_points_of_a_plane_keep_their_shape():
    torch.manual_seed(0)
    plane, _ = torch.linalg.qr(torch.randn(6, 2))
    flat = torch.tensor([[0.0, 0.0], [0.5, 0.4], [0.5, -0.4], [1.0, 0.0]])
    (drawn,) = points_of(figures.plot_contents({"two": 3 + 2 * flat @ plane.T}, LABELS))
    torch.testing.assert_close(drawn, flat.double(), atol=1e-5, rtol=0)


def test_each_point_has_its_label():
    figure = figures.plot_contents({"one": torch.eye(4)}, LABELS)
    texts = [text for text in figure.axes[0].texts if text.get_text()]
    assert [text.get_text() for text in texts] == LABELS
    places = torch.tensor([text.xy for text in texts], dtype=torch.float64)
    torch.testing.assert_close(places, *points_of(figure))
