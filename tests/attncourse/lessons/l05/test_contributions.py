"""The stream as the sum of what was written into it: sizes and shares are those of the tensors."""

import torch

from attncourse.lessons.l05 import figures


def test_shares_of_a_stream_sum_to_one_and_may_be_negative():
    words, against, across = torch.tensor([[[3.0, 0.0]], [[-1.0, 0.0]], [[0.0, 1.0]]])
    contributions = {"words": words, "against": against, "across": across}
    shares = figures.stream_shares(contributions)  # the sum is [2, 1], its square length 5
    torch.testing.assert_close(shares, torch.tensor([6, -2, 1]).double() / 5)


def test_contributions_are_drawn_with_their_size_and_the_stream_so_far():
    contributions = {"words": torch.full((2, 3), 3.0), "attention 1": torch.full((2, 3), -2.0)}
    left, right = figures.plot_contributions(contributions).axes
    assert [bar.get_width() for bar in left.patches] == [3, 2]
    assert list(left.lines[0].get_xdata()) == [3, 1]
    assert [bar.get_width() for bar in right.patches] == [3, -2]
