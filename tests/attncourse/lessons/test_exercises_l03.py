"""Checks of L03: what is right passes in whatever form it comes, and odd answers get their hint."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from attncourse.lessons import l03


def test_row_as_fractions_or_tensor():
    row = [Fraction(1, 8), Fraction(2, 8), Fraction(5, 8), 20]
    assert l03.softmax_row([float(x) for x in row]) and l03.softmax_row(row)
    assert l03.softmax_row(torch.tensor([0.125, 0.25, 0.625, 20]))
    assert "sum" in l03.softmax_row([0.2, 0.3, 0.5, 19]).message  # wrong in no usual way


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([0.125, 0.25, 0.625, 19], "The weights are right, the output isn't"),
        ([1 / 30, 4 / 30, 25 / 30, 5], "raw dot products"),  # whatever the output is
        ([1, 2, 5, 20], "divide by their sum"),
        ([0.13, 0.25, 0.63, 20], "Very close"),
        ([0.1, 0.2, 0.7, 20], "step by step"),
    ],
)
def test_a_row_and_its_output_are_looked_at_apart(row, words):
    assert words in l03.softmax_row(row).message


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


def in_numpy(Q, K, V, mask=None):
    Q, K, V = (x.numpy() for x in (Q, K, V))
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    allowed = np.ones(scores.shape[-2:], bool) if mask is None else mask.numpy()
    largest = np.where(allowed, scores, -np.inf).max(-1, keepdims=True)
    powers = np.where(allowed, scores - np.where(np.isfinite(largest), largest, 0), -np.inf)
    exponentials = np.exp(powers)
    total = exponentials.sum(-1, keepdims=True)
    weights = exponentials / np.where(total > 0, total, 1)
    return weights @ V, weights


def with_bmm(Q, K, V, mask=None):
    q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (Q, K, V))
    scores = torch.baddbmm(torch.zeros(()), q, k.mT, alpha=q.shape[-1] ** -0.5)
    if mask is not None:
        scores = torch.where(mask, scores, torch.tensor(-1e9))
    weights = F.softmax(scores, dim=2)
    if mask is not None:
        weights = weights * mask.any(1)[:, None]
    front = Q.shape[:-2]
    return torch.bmm(weights, v).unflatten(0, (*front, 1)[: max(1, len(front))]).reshape(
        *front, Q.shape[-2], V.shape[-1]
    ), weights.reshape(*front, Q.shape[-2], K.shape[-2])


@pytest.mark.parametrize("function", [by_hand, fused, in_numpy, with_bmm])
def test_attention_in_other_words_passes(function):
    verdict = l03.attention(function)
    assert verdict, verdict


def sum_of(weights):
    return weights.sum(-1, keepdim=True)


@pytest.mark.parametrize(
    "share",
    [
        lambda weights: weights / (sum_of(weights) + 1e-9),
        lambda weights: weights / sum_of(weights).clamp(min=1e-6),
        lambda weights: F.normalize(weights, p=1, dim=-1),
        lambda weights: torch.where(sum_of(weights) > 0, weights / sum_of(weights), 0),
    ],
)
def test_masked_weights_that_are_shared_out_again_are_nearly_right(share):
    def renormalized(Q, K, V, mask=None):
        weights = (Q @ K.mT / Q.shape[-1] ** 0.5).softmax(-1)
        weights = weights if mask is None else share(weights * mask)
        return weights @ V, weights

    verdict = l03.attention(renormalized)
    assert not verdict and verdict.message.startswith("Nearly right"), verdict


@pytest.mark.parametrize("fill", [-10.0, -50.0, -300.0])
@pytest.mark.parametrize("add", [False, True])
def test_a_number_that_is_not_low_enough_is_refused(fill, add):
    def filled(Q, K, V, mask=None):
        scores = Q @ K.mT / Q.shape[-1] ** 0.5
        if mask is None:
            weights = scores.softmax(-1)
        else:
            scores = scores + fill * ~mask if add else scores.masked_fill(~mask, fill)
            weights = scores.softmax(-1) * mask.any(-1, keepdim=True)
        return weights @ V, weights

    verdict = l03.attention(filled)
    assert not verdict and ("low enough" in verdict.message or (add and fill == -10))


def test_exponentials_that_overflow_are_told():
    def by_exp(Q, K, V, mask=None):
        exponentials = (Q @ K.mT / Q.shape[-1] ** 0.5).exp()
        exponentials = exponentials if mask is None else exponentials * mask
        weights = (exponentials / sum_of(exponentials)).nan_to_num(0)
        return weights @ V, weights

    assert "exponentials are infinite or 0" in l03.attention(by_exp).message


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
    assert l03.copying_query([0, 0, 0, 20])
    assert l03.copying_query(torch.tensor([[-10.0, 10, -10, 10]]))
    assert not l03.copying_query([torch.inf, 0, 0, 0])


def test_stable_softmax_in_other_words_passes():
    assert l03.stable_softmax(lambda s: (s - s.logsumexp(-1, keepdim=True)).exp())


def sum_without_keepdim(s):
    exponentials = (s - s.max(-1, keepdim=True).values).exp()
    return exponentials / exponentials.sum(-1)


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (sum_without_keepdim, "keepdim=True"),
        (lambda s: (s - s.max(-1)).exp(), "`.values`"),
        (lambda s: s.log_softmax(-1).exp(), "torch's own"),
        (torch.nn.Softmax(-1), "torch's own"),
        (lambda s: F.softmin(-s, -1), "torch's own"),
        (lambda s: s + {}, "unsupported operand"),  # another TypeError keeps its own words
        (lambda s: s.view(-1, 1000003), "raised RuntimeError"),  # and another RuntimeError
    ],
)
def test_slips_with_stable_softmax_are_told_apart(function, word):
    assert word in l03.stable_softmax(function).message


def test_a_mask_filled_where_it_is_true_works_the_wrong_way_round():
    def inverted(Q, K, V, mask=None):
        scores = Q @ K.mT / Q.shape[-1] ** 0.5
        lowest = torch.finfo(scores.dtype).min
        weights = (scores if mask is None else scores.masked_fill(mask, lowest)).softmax(-1)
        return weights @ V, weights

    assert "wrong way round" in l03.attention(inverted).message


@pytest.mark.parametrize(
    ("target", "word"),
    [
        (lambda v: torch.full((v.shape[1],), 1e6), "the same for every V"),
        (lambda v: torch.full((v.shape[1],), 1e9), "the same for every V"),
        (lambda v: v.mean(0) + 1e6, "fixed way from the middle"),
        (lambda v: 2 * v.abs().max() * torch.ones(v.shape[1]), "Add a step of your own"),
        (lambda v: v.amax(0), "beyond *all* of them"),
        (lambda v: v.mean(0) + 10 * (1 + v.std()), "beyond *all* of them"),  # not with outliers
        (lambda v: v.amin(0) - 1, "points the wrong way"),
    ],
)
def test_a_target_that_some_values_reach_is_refused(target, word):
    assert word in l03.unreachable(lambda v: (target(v), torch.ones(v.shape[1]))).message


def test_a_function_that_fails_for_some_values_alone_is_told_so():
    def only_in_the_plane(V):
        return (V[0], V[0]) if V.shape[1] == 2 else V.reshape(7, 7)

    assert "raised RuntimeError" in l03.unreachable(only_in_the_plane).message


def test_unreachable_in_other_words_passes():
    def farther_than_the_farthest(V):
        direction = V[0] - V.mean(0)
        return V.mean(0) + 2 * (V @ direction).max() * direction.abs().sign() * 1e3, direction

    def beyond_the_farthest(V):
        direction = torch.ones(V.shape[1])
        farthest = V[(V @ direction).argmax()]
        return (farthest + direction).tolist(), direction.tolist()

    def below_the_lowest(V):
        return V.numpy().min(0) - 1, -np.ones(V.shape[1])

    def along_a_random_direction(V):
        direction = torch.randn(V.shape[1])
        return V[(V @ direction).argmax()] + direction, direction

    assert l03.unreachable(beyond_the_farthest)
    assert l03.unreachable(below_the_lowest)
    assert l03.unreachable(along_a_random_direction)
    assert not l03.unreachable(farther_than_the_farthest)


def test_equivariance_in_other_words_passes():
    def with_matrices(layer, x):
        shuffles = [torch.eye(len(x))[torch.randperm(len(x))] for _ in range(5)]
        return max((layer(P @ x) - P @ layer(x)).abs().max().item() for P in shuffles) < 1e-3

    def with_generators(layer, x):  # all shuffles are made of these two
        T = len(x)
        shuffles = [[1, 0, *range(2, T)], [*range(1, T), 0]]
        return all(torch.allclose(layer(x[p]), layer(x)[p], atol=1e-4) for p in shuffles)

    def all_at_once(layer, x):
        shuffles = torch.stack([torch.randperm(len(x)) for _ in range(6)])
        return torch.allclose(torch.vmap(layer)(x[shuffles]), layer(x)[shuffles], atol=1e-4)

    assert l03.is_equivariant(with_matrices)
    assert l03.is_equivariant(with_generators)
    assert l03.is_equivariant(all_at_once)


def test_one_shuffle_is_too_few_for_a_yes():
    def returns_too_soon(layer, x):
        for _ in range(10):
            shuffle = torch.randperm(len(x))
            if torch.allclose(layer(x[shuffle]), layer(x)[shuffle], atol=1e-4):
                return True
        return False

    def swaps_the_last(layer, x):
        swap = [*range(len(x) - 2), len(x) - 1, len(x) - 2]
        return torch.allclose(layer(x[swap]), layer(x)[swap], atol=1e-4)

    for function in (returns_too_soon, swaps_the_last):
        assert "after a single shuffle" in l03.is_equivariant(function).message


@pytest.mark.parametrize("places", [-1, 3])
def test_a_test_that_only_rolls_is_told_of_neighbors(places):
    def rolls(layer, x):
        return torch.allclose(layer(x.roll(places, 0)), layer(x).roll(places, 0), atol=1e-4)

    assert "Rolling keeps neighbors together" in l03.is_equivariant(rolls).message


def test_the_layer_is_named_that_a_test_takes_for_another():
    def knows_causal_layers(layer, x):
        last = x.clone()
        last[-1] += 1
        return not torch.allclose(layer(x)[:-1], layer(last)[:-1])

    message = l03.is_equivariant(knows_causal_layers).message
    assert "attention that adds a place" in message and "doesn't follow" in message


def test_scale_and_mask_may_change_places():
    assert l03.head_in_order(["project", "match", "scale", "mask", "softmax", "mix"])
    assert l03.head_in_order(("project", "match", "mask", "scale", "softmax", "mix"))


@pytest.mark.parametrize("order", [["project"], ["mix"] * 6, [[], "mix"], {"mix": 1}])
def test_what_is_no_order_of_the_steps_is_told_what_is_wanted(order):
    assert "is wanted" in l03.head_in_order(order).message


def test_each_wrong_order_of_the_steps_is_refused():
    orders = list(permutations(["project", "match", "scale", "mask", "softmax", "mix"]))
    assert sum(bool(l03.head_in_order(list(order))) for order in orders) == 2


def test_only_one_pair_of_causes_explains_the_map():
    causes = ["twice", "missing", "untrained", "digits"]
    right = [pair for pair in product(causes, repeat=2)
             if l03.odd_rows(dict(zip(("row 2", "row 5"), pair, strict=True)))]  # fmt: skip
    assert right == [("twice", "missing")]
    assert "A dictionary with these keys" in l03.odd_rows({"row 2": "twice"}).message
    assert "row 5: one of these" in l03.odd_rows({"row 2": "twice", "row 5": []}).message


def test_the_telling_run_is_chosen_by_its_name():
    assert l03.telling_run("louder")
    assert "'longer', 'louder'" in l03.telling_run("with the scale").message


def test_reach_as_a_tensor():
    assert l03.reach(torch.tensor([0, 5, 4, 6, 5]))
    assert "its two numbers, added" in l03.reach([0, 5, 4, 5, 5]).message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([0, 5, 5, 6, 5], "One of the values"),
        ([0, 5, 4, 5.5, 5], "the target isn't"),
        ([0, 5, 4, 6, 4.5], "The dot products are right"),
        ([0, 17**0.5, 10**0.5, 6, 5], "These are lengths"),
        ([0, 3.54, 2.83, 6, 5], "divided by the length of the direction"),
    ],
)
def test_each_part_of_reach_has_its_own_words(answer, words):
    assert words in l03.reach(answer).message


@pytest.mark.parametrize("bounds", [(-80.0, 80.0), (-20.0, 20.0), (None, 50.0)])
def test_clamped_scores_are_told_wherever_they_are_cut(bounds):
    def clamped(s):
        exponentials = s.clamp(*bounds).exp()
        return exponentials / exponentials.sum(-1, keepdim=True)

    assert "cut scores off" in l03.stable_softmax(clamped).message


def test_clamping_what_is_right_anyway_is_no_mistake():
    def clamped(s):
        exponentials = (s - s.amax(-1, keepdim=True)).clamp(max=0).exp()
        return exponentials / exponentials.sum(-1, keepdim=True)

    assert l03.stable_softmax(clamped)


def test_an_output_that_stays_in_its_place_is_told_from_one_shuffled_again():
    def unchanged(layer, x):
        return torch.allclose(layer(x[torch.randperm(len(x))]), layer(x), atol=1e-4)

    def again(layer, x):
        shuffle = torch.randperm(len(x))
        return torch.allclose(layer(x[shuffle])[shuffle], layer(x), atol=1e-4)

    for seed in (1, 2, 3, 4):
        torch.manual_seed(seed)
        assert "the output stays the same" in l03.is_equivariant(unchanged).message
        assert "same places once more" in l03.is_equivariant(again).message


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (["0,125", "0,25", "0,625", "20"], "without quotation marks"),
        (["1/8", "2/8", "5/8", "20"], "without quotation marks"),
        ([0, 125, 0, 25, 0, 625, 20], "write 0.25 with a point"),
        ([0.125, 0.25, ..., 20], "replace each ..."),
        ([0.125, 0.25, 0.625, torch.nan], "isn't a number"),
        ([torch.inf, 0.25, 0.625, 20], "infinite"),
        ([0.125 + 3j, 0.25, 0.625, 20], "complex"),
        (torch.tensor([0.125 + 3j, 0.25, 0.625, 20]), "can't be read"),
        ([], "The shape should be [4], but yours is [0]."),
    ],
)
def test_what_is_no_row_of_numbers_is_told_what_it_is(row, words):
    assert words in l03.softmax_row(row).message


def test_a_query_that_overflows_is_told_so():
    query = torch.tensor([0, 1e308, 0, 1e308], dtype=torch.float64)
    assert "overflow" in l03.copying_query(query).message
