"""Checks of L03: what is right passes in whatever form it comes, and odd answers get their hint."""

from fractions import Fraction

import pytest
import torch
import torch.nn.functional as F

from attnlib.exercises import l03


def test_row_as_fractions_or_tensor():
    row = [Fraction(1, 8), Fraction(2, 8), Fraction(5, 8), 20]
    assert l03.softmax_row([float(x) for x in row])
    assert l03.softmax_row(torch.tensor([0.125, 0.25, 0.625, 20]))
    assert "sum" in l03.softmax_row([0.2, 0.3, 0.5, 19]).message  # wrong in no usual way


def by_hand(Q, K, V, mask=None):
    """Attention for any axes in front, one number at a time."""
    front = Q.shape[:-2]
    weights = Q.new_zeros(*front, Q.shape[-2], K.shape[-2])
    for at in torch.cartesian_prod(*(torch.arange(n) for n in (*front, Q.shape[-2]))).view(
        -1, len(front) + 1
    ):
        *f, i = at.tolist()
        f = tuple(f)
        scores = (K[f] @ Q[f][i]) / Q.shape[-1] ** 0.5
        seen = torch.ones(len(scores), dtype=torch.bool) if mask is None else mask[i]
        if seen.any():
            weights[(*f, i)][seen] = scores[seen].softmax(0)
    return torch.einsum("...qk,...kd->...qd", weights, V), weights


def fused(Q, K, V, mask=None):
    """PyTorch's own function, which also gives zeros where nothing may be seen."""
    eye = torch.eye(K.shape[-2]).expand(*K.shape[:-2], -1, -1)
    output = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
    return output, F.scaled_dot_product_attention(Q, K, eye, attn_mask=mask)


@pytest.mark.parametrize("function", [by_hand, fused])
def test_attention_in_other_words_passes(function):
    verdict = l03.attention(function)
    assert verdict, verdict


def test_attention_that_is_wrong_twice_hears_about_the_formula_first():
    def unscaled_and_inverted(Q, K, V, mask=None):
        scores = Q @ K.mT
        if mask is not None:
            scores = scores.masked_fill(mask, -torch.inf)
        return scores.softmax(-1) @ V, scores.softmax(-1)

    assert "scale is missing" in l03.attention(unscaled_and_inverted).message


def test_an_error_of_another_kind_is_not_taken_for_a_forgotten_transpose():
    def slip(Q, K, V, mask=None):
        return Q.view(-1, 1000003)  # a RuntimeError, as a forgotten transpose gives

    assert "raised RuntimeError" in l03.attention(slip).message


def test_attention_that_changes_its_input_is_told_so():
    def in_place(Q, K, V, mask=None):
        Q /= Q.shape[-1] ** 0.5
        weights = (Q @ K.mT).softmax(-1)
        return weights @ V, weights

    assert "argument number 1 in place" in l03.attention(in_place).message


def test_any_query_that_copies_passes():
    assert l03.copying_query([0, 0, 20, 0])
    assert l03.copying_query(torch.tensor([[10.0, -10, 10, -10]]))
    assert not l03.copying_query([torch.inf, 0, 0, 0])


def test_stable_softmax_in_other_words_passes():
    assert l03.stable_softmax(lambda s: (s - s.logsumexp(-1, keepdim=True)).exp())
    assert l03.stable_softmax(lambda s: torch.softmax(s, -1))


def test_unreachable_in_other_words_passes():
    def farther_than_the_farthest(V):
        direction = V[0] - V.mean(0)
        return V.mean(0) + 2 * (V @ direction).max() * direction.abs().sign() * 1e3, direction

    def beyond_the_farthest(V):
        direction = torch.ones(V.shape[1])
        farthest = V[(V @ direction).argmax()]
        return (farthest + direction).tolist(), direction.tolist()

    assert l03.unreachable(beyond_the_farthest)
    assert not l03.unreachable(farther_than_the_farthest)


def test_equivariance_in_other_words_passes():
    def with_matrices(layer, x):
        shuffles = [torch.eye(len(x))[torch.randperm(len(x))] for _ in range(5)]
        return max((layer(P @ x) - P @ layer(x)).abs().max().item() for P in shuffles) < 1e-3

    assert l03.is_equivariant(with_matrices)
