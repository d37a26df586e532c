"""Intervals by laws that a reader can check by hand, and by how often they hold the truth."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.measures.intervals import MIN_TEXTS, compute_intervals, correct_p_values, p_value, t_quantile


@pytest.mark.parametrize(
    ("degrees", "printed"),
    [
        (1, 12.706),
        (2, 4.303),
        (3, 3.182),
        (4, 2.776),
        (9, 2.262),
        (10, 2.228),
        (29, 2.045),
        (120, 1.980),
        (25_001, 1.960),
    ],
)
def test_quantiles_are_those_of_printed_tables(degrees: int, printed: float) -> None:
    assert t_quantile(degrees) == pytest.approx(printed, abs=5e-4)


def test_ten_texts_by_hand() -> None:
    """Five 0s and five 2s: mean 1, standard deviation √(10/9), of the mean a third of it."""
    (low,), (high,) = compute_intervals(np.array([[0.0], [2.0]] * 5))
    assert (low, high) == pytest.approx((1 - 2.262 / 3, 1 + 2.262 / 3), abs=1e-3)


def test_numbers_that_do_not_vary_have_none() -> None:
    low, high = compute_intervals(np.column_stack([np.full(MIN_TEXTS, 0.1), np.arange(MIN_TEXTS)]))
    assert np.isnan([low[0], high[0]]).all()
    assert low[1] < 4.5 < high[1]


@pytest.mark.parametrize(("n_texts", "least"), [(10, 0.94), (30, 0.94)])
@pytest.mark.parametrize("skewed", [False, True])
def test_it_holds_the_true_mean_about_95_times_in_100(n_texts: int, least: float, skewed: bool) -> None:
    """Of exponential numbers, as skewed as most measures, a little less often: 0.907 and 0.933 of 4,000."""
    noise = np.random.default_rng(2)
    values, mean = (noise.exponential(size=(n_texts, 4000)), 1) if skewed else (noise.normal(size=(n_texts, 4000)), 0)
    low, high = compute_intervals(values)
    held = float(np.mean((low <= mean) & (mean <= high)))
    assert least - (0.05 if skewed else 0) <= held <= 0.96


@pytest.mark.parametrize("degrees", [1, 2, 9, 40, 799])
def test_a_p_value_is_what_lies_beyond_a_quantile(degrees: int) -> None:
    assert p_value(t_quantile(degrees, 0.95), degrees) == pytest.approx(0.05)
    assert p_value(-t_quantile(degrees, 0.99), degrees) == pytest.approx(0.01)
    assert p_value(0.0, degrees) == 1


def test_holms_correction_by_hand() -> None:
    """Sorted .005 .01 .03 .04 times 4 3 2 1 gives .02 .03 .06 .04, and none may be smaller than the one before."""
    assert correct_p_values([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert correct_p_values([0.7, 0.9]) == [1.0, 1.0]
