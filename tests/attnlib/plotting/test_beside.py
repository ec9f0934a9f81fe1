"""A right map beside a broken one: as attention if both are, as plain numbers otherwise."""

import math

import pytest
import torch
from tools.figure_reading import drawn, images, panels, ticks, titles

from attnlib import causal_mask
from attnlib.plotting import plot_beside


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda w: w * torch.tensor([[1.0], [0], [1]]), ""),  # a row that may look nowhere
        (lambda w: w.bfloat16(), "1.00"),  # judged as finely as the right one
        (lambda w: w * torch.tensor([[0.5], [1.0], [2.0]]), "0.50 ... 2.00"),
        (lambda w: w.masked_fill(torch.eye(3).bool(), torch.nan), "3 of 3 rows NaN"),
        (lambda w: w[:2] / w[:2].sum(-1, keepdim=True) * 2, "2.00"),
        (lambda w: w - 0.5, "-0.50"),
    ],
)
def test_plain_numbers_stand_below_what_their_rows_sum_to(change, said):
    right = torch.rand(3, 3).softmax(-1)
    broken = change(right)
    figure = plot_beside(right, broken, list("abc"))
    one, other = titles(figure)
    if said:
        assert one.startswith("right") and "1.00" in one
        assert other.startswith("broken") and (said in other or said == "1.00")
    else:
        assert (one, other) == ("right", "broken")
    for image, numbers in zip(images(figure), (right, broken), strict=True):
        assert (image.get_clim() == (0, 1)) == (not said)
        blank = numbers.isnan() if said else (numbers == 0).all(-1, keepdim=True)
        wanted = numbers.double().masked_fill(blank, -1)
        torch.testing.assert_close(drawn(image), wanted, rtol=0, atol=0, check_dtype=False)


def test_a_mask_leaves_blank_what_it_forbids_unless_it_has_weight():
    mask = causal_mask(3)
    right = torch.ones(3, 3).masked_fill(~mask, -math.inf).softmax(-1)
    broken = right.clone()
    broken[1] = torch.tensor([0.25, 0.25, 0.5])  # peeks
    first, second = images(plot_beside(right, broken, mask=mask))
    torch.testing.assert_close(drawn(first).float(), right.masked_fill(~mask, -1))
    mask[1] = True
    torch.testing.assert_close(drawn(second).float(), broken.masked_fill(~mask, -1))
    with pytest.raises(ValueError, match=r"^mask forbids a look"):
        plot_beside(broken, right, mask=causal_mask(3))


@pytest.mark.parametrize("factor", [1, 2])
def test_tokens_stand_at_the_sides_that_have_as_many(factor):
    for shape, sides in (((2, 3), ([], list("abc"))), ((3, 2), (list("abc"), []))):
        right, broken = torch.rand(2, *shape).softmax(-1)
        ax = panels(plot_beside(right, factor * broken, list("abc")))[0]
        assert (ticks(ax.yaxis), [name for name in ticks(ax.xaxis) if name]) == sides
