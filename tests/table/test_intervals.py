"""Intervals by laws that a reader can check by hand, and by how often they hold the truth."""

from math import atan, expm1, log1p, pi

import numpy as np
import pytest

from attnviz.table.intervals import (
    compare_pairs,
    compute_quantiles,
    correct_p_values,
    p_value,
    summarize,
    t_quantile,
    write_p_value,
)


@pytest.mark.parametrize(("degrees", "printed"), [(1, 12.706), (3, 3.182), (10, 2.228), (120, 1.980), (25_001, 1.960)])
def test_quantiles_are_those_of_printed_tables(degrees: int, printed: float) -> None:
    assert t_quantile(degrees) == pytest.approx(printed, abs=5e-4)


def test_ten_texts_by_hand() -> None:
    """Five 0s and five 2s: mean 1, standard deviation √(10/9), of the mean a third of it."""
    found = summarize(np.array([[0.0], [2.0]] * 5))
    assert found.error.tolist() == [pytest.approx(1 / 3)]
    assert (found.low[0], found.high[0]) == pytest.approx((1 - 2.262 / 3, 1 + 2.262 / 3), abs=1e-3)


@pytest.mark.parametrize(("n_texts", "least"), [(10, 0.94), (30, 0.94)])
@pytest.mark.parametrize("skewed", [False, True])
def test_it_holds_the_true_mean_about_95_times_in_100(n_texts: int, least: float, skewed: bool) -> None:
    """Of exponential numbers, as skewed as most measures, a little less often: 0.907 and 0.933 of 4,000."""
    noise = np.random.default_rng(2)
    values, mean = (noise.exponential(size=(n_texts, 4000)), 1) if skewed else (noise.normal(size=(n_texts, 4000)), 0)
    found = summarize(values)
    held = float(np.mean((found.low <= mean) & (mean <= found.high)))
    assert least - (0.05 if skewed else 0) <= held <= 0.96


@pytest.mark.parametrize("degrees", [1, 2, 9, 40, 799])
def test_a_p_value_is_what_lies_beyond_a_quantile(degrees: int) -> None:
    assert p_value(t_quantile(degrees, 0.95), degrees) == pytest.approx(0.05)
    assert p_value(-t_quantile(degrees, 0.99), degrees) == pytest.approx(0.01)
    assert p_value(0.0, degrees) == pytest.approx(1)


@pytest.mark.parametrize("t", [1e3, 1e5, 1e7])
def test_a_small_p_value_has_its_digits(t: float) -> None:
    """Of one degree of freedom it is 2/π · arctan(1/t), of two 1 - 1/√(1 + 2/t²), and of more it falls faster."""
    assert p_value(1e3 * t, 1) == pytest.approx(2 / pi * atan(1e-3 / t), rel=1e-4)
    assert p_value(t, 2) == pytest.approx(-expm1(-log1p(2 / t**2) / 2), rel=1e-4)
    assert p_value(15.0, 60) == pytest.approx(5.750808e-22, rel=1e-6)
    assert (write_p_value(p_value(15.0, 60)), write_p_value(p_value(400.0, 24_999))) == ("5.8e-22", "< 1e-300")


def test_holms_correction_by_hand() -> None:
    """Sorted .005 .01 .03 .04 times 4 3 2 1 gives .02 .03 .06 .04, and none may be smaller than the one before."""
    assert correct_p_values([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert correct_p_values([0.7, 0.9]) == [1.0, 1.0]


def test_a_column_is_summarised_over_the_texts_that_have_a_number() -> None:
    values = np.array([[0.0, np.nan, 1.0]] * 5 + [[2.0, 4.0, 1.0]] * 5)
    found = summarize(values)
    assert found.n.tolist() == [10, 5, 10]
    assert found.mean.tolist() == [1, 4, 1]
    assert np.isnan([*found.low[1:], *found.high[1:], *found.error[1:]]).all()  # of five texts, and of equal numbers
    assert found.low[0] < 1 < found.high[0]
    assert (found.smallest.tolist(), found.largest.tolist()) == ([0, 4, 1], [2, 4, 1])
    assert np.isnan(summarize(values[:, 1:2] * np.nan).mean).all()


@pytest.mark.parametrize("n_texts", [1, 10, 257])
def test_quantiles_are_numpys(n_texts: int) -> None:
    values = np.random.default_rng(0).normal(size=(n_texts, 5))
    values[: n_texts // 3, 2] = np.nan
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    found = compute_quantiles(values, shares)
    for column in range(5):
        known = values[~np.isnan(values[:, column]), column]
        assert found[:, column].tolist() == np.quantile(known, shares, method="inverted_cdf").tolist()
    assert np.isnan(compute_quantiles(values * np.nan, shares)).all()
    assert np.isnan(compute_quantiles(values[:0], shares)).all()


def test_a_difference_of_pairs_by_hand() -> None:
    """Texts differ by far more than the two things do: only pairing shows it."""
    texts = np.arange(12) * 10.0
    one, other = texts + 1, texts + np.tile([0.1, -0.1], 6)
    (found,) = compare_pairs({"one": one, "other": other, "third": texts}, [("one", "other")])
    assert found.n == 12
    assert found.value == pytest.approx(1.0)
    assert found.low > 0.9
    assert found.p_value < 1e-9
    assert np.isnan(compare_pairs({"one": one, "other": one})[0].p_value)
