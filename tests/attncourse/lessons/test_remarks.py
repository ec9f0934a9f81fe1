"""What is said of wrong numbers and tensors without knowing how they came about."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attncourse.checking.functions import check_function
from attncourse.checking.mistakes import Mistake
from attncourse.checking.number_hints import remark, remark_on
from attncourse.checking.on_page import Numbers
from attncourse.checking.tensor_hints import relation


@pytest.mark.parametrize(
    ("ours", "right", "words"),
    [
        ([600], [300], "2 times too large"),
        ([64], [1], ""),  # 1, 2 and 3 are in too many relations
        ([2], [0], ""),
        ([0.5], [0.125], ""),  # so are small parts
        ([0.8, 0.2], [0.4, 0.1], "2 times"),
        ([800], [8], "100 times too large: what"),
        ([8 * 1024], [8], "1,024 times too large: is it in the right unit"),
        ([8.388608], [8.0], "1,024 bytes"),
        ([0.125], [8.0], "one divided by"),
        ([0.5714], [3 / 7], "1 minus"),
        ([9], [8], "is 1 too large"),
        ([299, 8], [300, 9], "is 1 too small"),
        ([-0.5], [0.5], "sign"),
        ([0.43], [0.4286], "rounded?"),
        ([0.44], [0.4286], ""),
        ([25, 50, 25], [0.25, 0.5, 0.25], "percent"),
        ([0.5, 0.5, 0.5], [0.25, 0.5, 0.25], "should sum to 1"),
        ([2, 4], [1.5, 3], "the same factor"),
        ([2, 5], [1.5, 3], ""),
        ([2, 0.5, 0.7], [2, 0.5, 0.3], "Only number 3"),
        ([0.25, 0.75, 0], [0.75, 0.25, 0], "the wrong order"),
        ([0, 0.5], [0, 0.25], "number 2"),
        ([6737], [6738.4], ""),  # near, as rounded numbers in a relation are
    ],
)
def test_a_remark_says_the_relation_and_nothing_where_it_may_be_chance(ours, right, words):
    said = remark(ours, right, {})
    assert words in said if words else said == ""


def test_another_row_s_numbers_are_known_and_only_whole_numbers_are_1_too_large():
    assert "“Tokens”" in remark([432], [256], {"Tokens": [432], "Places": [256]})
    assert remark([1], [256], {"Tokens": [1]}) == ""
    assert remark([432], [256], {"": [432]}) == ""  # a row without a name
    assert "1 too large" in remark([9], [8], {"Sum": [18]})
    assert remark([9], [8], {"Sum": [2.25]}) == ""


FACTORS = st.sampled_from([2, 3, 7, 64, 100, 1000, 1024**2, 1.024, 1.024**3]) | st.floats(1e-3, 1e3)


@given(
    st.floats(0.02, 5000) | st.integers(1, 5000), FACTORS, st.booleans(), st.floats(0.998, 1.002)
)
def test_a_remark_is_true(right, factor, is_less, nearly):
    ours = nearly * (right / factor if is_less else right * factor)
    said = remark([ours], [right], {})
    if not said:
        return
    ratio = max(ours / right, right / ours)
    if "times" in said:
        times = int(said.split(" times")[0].removeprefix("This is ").replace(",", ""))
        assert math.isclose(ratio, times, rel_tol=1e-3)
        assert ("large" in said) == (ours > right)
    elif "divided" in said:
        assert math.isclose(ours * right, 1, rel_tol=1e-3)
    elif "minus" in said:
        assert math.isclose(ours + right, 1, rel_tol=1e-3)
    elif "rounded?" in said:
        assert abs(ours - right) <= 0.051 and round(100 * ours) == pytest.approx(100 * ours)
    elif "1 too" in said:
        assert ours - right == (1 if "large" in said else -1)
    else:
        assert "1,024" in said and ratio < 1.08


def test_the_first_row_that_is_far_off_is_remarked_on():
    page = Numbers([300.0, 8.0, 9.0], {"a": ["x"], "b": ["y", "z"]}, 0.1, rows_apart=True)
    for answer, words in (
        ([300.5, 16, 18], "2 times"),  # the first row is nearly right
        ([150, 16, 18], "2 times too small"),
        ([300, 8, 9], ""),
        ([300, 9, 8], "“b”: These are the right numbers, in the wrong order"),
        ([300, 8], ""),
        ([math.inf, 8, 9], ""),
        ("300", ""),
    ):
        said = remark_on(answer, page)
        assert words in said if words else said == ""
    in_rows = Numbers([[1, 2], [3, 4], [5, 6]], list("abcdef"))
    assert remark_on([[1, 2, 3], [4, 5, 7]], in_rows) == ""  # the shape is wrong


X = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))


def with_slice(x, index, value):
    x = x.clone()
    x[index] = value
    return x


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: x.transpose(0, 2), "axes 0 and 2 are exchanged"),
        (lambda x: x.permute(1, 2, 0), "in the order [1, 2, 0]"),
        (lambda x: x.flatten(), "only the shape"),
        (lambda x: x.mean(1), "lost an axis"),
        (lambda x: x[None].expand(2, 3, 4, 5), "an axis too many"),
        (lambda x: x[0, 0], "axes in front"),
        (lambda x: torch.cat([x, x], 1), "2 times too long"),
        (lambda x: x.sum(1, keepdim=True), "of length 1"),
        (lambda x: -x, "the other sign"),
        (lambda x: x / math.log(2), "ln 2"),
        (lambda x: x.exp(), "a power of e"),
        (lambda x: 1 / x, "turned around"),
        (lambda x: 1 - x, "taken from 1"),
        (lambda x: x * (1 + x.mean()), "times what was wanted, in other cases another"),
        (lambda x: x.roll(1, 1), "one place too late along axis 1"),
        (lambda x: x.roll(-1, 2), "one place too early along axis 2"),
        (lambda x: with_slice(x, (slice(None), 2), 7.0), "Only `[:, 2, :]` is wrong"),
        (lambda x: with_slice(x + 7, (slice(None), 0), x[:, 0]), "Only `[:, 0, :]` is right"),
        (lambda x: x.flatten()[torch.arange(60).roll(7)].view(3, 4, 5), "in other places"),
        (lambda x: x + x.sin() * x.roll(1, 0), ""),
        (lambda x: torch.zeros_like(x), "are 0"),
    ],
)
def test_a_relation_between_tensors_is_said(change, words):
    said = relation([(change(x), x) for x in (X, 2 * X.flip(0) + 1)], 1e-5)
    assert words in said if words else said == ""


def test_what_holds_in_one_case_alone_or_of_rows_that_are_alike_tells_nothing():
    x = torch.tensor(3.0)
    assert relation([(2 * x, x), (x + 6, x + 1)], 1e-5) == ""
    assert relation([(0 * x, x / x)] * 2, 1e-5) == ""  # 0 for 1 is more than a logarithm
    assert "it is 2 times" in relation([(2 * x, x), (2 * x + 2, x + 1)], 1e-5)
    x = torch.randn(1, 5).expand(4, 5)
    assert relation([(x + torch.arange(1, 6), x)], 1e-5) == ""


def test_rows_of_shares_are_too_much_alike_or_too_far_apart():
    scores = [X, X.exp()]
    for factor, words in ((0.5, "much alike"), (2, "far apart"), (-1, "")):
        said = relation([((factor * s).softmax(-1), s.softmax(-1)) for s in scores], 1e-5)
        assert words in said if words else "softmax" not in said
    hidden = scores[0].masked_fill(X > 1, -math.inf).softmax(-1)  # a 0 is no matter of scores
    assert "alike" not in relation([(scores[0].softmax(-1), hidden)] * 2, 1e-5)


def scaled(q, k, n):
    return q @ k.T * n


def blind(x):
    return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)


SQUARE = [(torch.randn(3, 3), torch.randn(3, 3), n) for n in (2, 4)]
OBLONG = [(torch.randn(3, 5), torch.randn(4, 5), 2)]
HEATED = [(torch.randn(3), at) for at in (0.5, 3.0)]
ROWS = [(torch.randn(3, 4),), (torch.randn(4, 5),)]
ZERO = [(torch.tensor([1.0, 2.0]),), (torch.tensor([0.0, 3.0]),)]
MISTAKES = [
    Mistake(lambda x: x / x, "own hint"),
    Mistake(lambda x: x / 0, "another's"),
    Mistake(lambda x, gain: x.exp() * gain, "own hint"),
]


def gained(x, gain):
    return x * gain


GAINED = [(torch.randn(3, 4), torch.randn(4)), (torch.randn(2, 5), torch.randn(5))]
FRONTS = [(torch.randn(3, 4),), (torch.randn(2, 3, 4),), (torch.randn(2, 2, 3, 4),)]
COUNTED = [(torch.randn(3, 4), n) for n in (0, 2, 3)]


def sets_an_argument(q, k, n):
    n = 9
    return blind(torch.stack([row @ k.T * n for row in q]))


def sets_an_argument_of_long_ones(q, k, n):
    if len(q) > 9:
        n = 9
    return blind(q @ k.T) * n


@pytest.mark.parametrize(
    ("right", "cases", "answer", "words"),
    [
        # results, counted
        (torch.clone, ROWS, lambda x: (x, x + 1), "Number 1 of them is right"),
        (torch.clone, ROWS, lambda x: x if x.numel() < 13 else x.T, "(1 of 2 cases are right.)"),
        (lambda x: (x, x.exp()), ROWS, lambda x: (x.exp(), x), "another order"),
        (lambda x: (x, x.exp()), ROWS, lambda x: [x], "Right so far: a."),
        # what an argument was taken for
        (scaled, SQUARE, lambda q, k, n: q @ q.T * n, "use `q` in place of `k`"),
        (scaled, SQUARE, lambda q, k, n: k @ q.T * n, "`q` and `k` in each other's place"),
        (scaled, SQUARE, lambda q, k, n: q @ k * n, "the transpose of `k` in"),
        (scaled, SQUARE, lambda q, k, n: q @ k.T * (n + 1), "use `n` + 1 in place"),
        (scaled, SQUARE, lambda q, k, n: n * q.sum(1, True).expand(3, 3), "use ones in place"),
        (scaled, SQUARE, lambda q, k, n: blind(q @ k.T * n), "off by"),
        # sizes that don't fit
        (scaled, OBLONG, lambda q, k, n: q @ k, "5 may come from axis 1 of argument 1 or axis 1"),
        (scaled, OBLONG, lambda q, k, n: q[:, 0] + torch.zeros(n), "2 may come from argument 3"),
        (scaled, OBLONG, lambda q, k, n: q + torch.zeros(9), "of length 1?|"),
        # a mistake is known by its numbers, however it guards against a division by 0
        (torch.sin, ZERO, lambda x: (x / x).nan_to_num(), "own hint"),
        (torch.sin, ZERO, lambda x: torch.full_like(x, math.nan), "nan"),
        (lambda x, at: x * at, HEATED, lambda x, at: x * at**2, "the square of `at` in"),
        (lambda x, at: x * at, HEATED, lambda x, at: x / 1.0 + 0 * at, "use 1 in place of `at`"),
        # arguments that are never read, or set before they are
        (scaled, SQUARE, lambda q, k, n: 9 * blind(q @ k.T), "never uses `n`.|"),
        (scaled, SQUARE, sets_an_argument, "never uses `n`.|"),
        (scaled, SQUARE, sets_an_argument_of_long_ones, "2.|"),
        # two things at once: a mistake, and what an argument was taken for
        (gained, GAINED, lambda x, gain: x.exp(), "own hint Your function also seems to use ones"),
        # nothing where one of several may be it, where less explains as much, where all is 0
        (scaled, SQUARE, lambda q, k, n: -q @ k.T * n, "wanted, with the other sign"),
        (lambda x, g: (-x).exp() * g, GAINED, lambda x, g: x.exp() / g, "turned around"),
        (lambda x, gain: (x, x * gain), GAINED, lambda x, gain: (x, 0 * x), "never uses `gain`.|"),
        # where it is right
        (lambda x: x.mT, FRONTS, lambda x: x.transpose(0, 1), "Right where `x` has 2 axes"),
        (torch.add, COUNTED, lambda x, n: x + n**2, "Right where `n` is 0"),
        # the output that tells most
        (lambda x: (x, x.exp()), ROWS, lambda x: (x.sin(), -x.exp()), "the other sign"),
        # no numbers
        (lambda x: bool(x[0, 0] > 0), ROWS, lambda x: "yes", "True or False, not a str"),
        (torch.clone, ROWS, lambda x: (row for row in x), "numbers, not a generator"),
        # True too seldom, too often
        (lambda x: x > 0, ROWS, lambda x: (x > 0) & (x < x.max()), "seldom: where it says True"),
        (lambda x: x > 0, ROWS, lambda x: (x > 0) | (x == x.min()), "often: where it says False"),
        (lambda x: x > 0, ROWS, lambda x: x.relu(), "are 0 only"),  # numbers are no booleans
    ],
)
def test_what_is_wrong_with_a_function_is_said(right, cases, answer, words):
    checked = check_function(answer, right, cases, MISTAKES, output_names=["a", "b"], praise="")
    assert not checked and words in f"{checked.message}|"


def test_a_few_numbers_are_no_sign_of_what_an_argument_was_taken_for():
    cases = [(torch.tensor([3.0, n]),) for n in (2.0, 1.0)]
    checked = check_function(lambda x: 0 * x[0], torch.max, cases, output_names=["it"], praise="")
    assert "seems" not in checked.message


def test_a_mistake_that_raises_is_known_by_what_it_says():
    of_this = {"reference": torch.clone, "cases": [(torch.ones(2, 3),)], "output_names": ["it"]}
    mistakes = [Mistake(lambda x: x @ x, "own hint")]
    for answer, is_known in ((lambda x: x @ x + 1, True), (lambda x: x @ torch.ones(7, 2), False)):
        checked = check_function(answer, mistakes=mistakes, praise="", **of_this)
        assert (checked.message == "own hint") == is_known
