"""Intervals by laws that a reader can check by hand, and by how often they hold the truth."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.measures.bootstrap import intervals


def test_texts_that_are_all_alike_leave_no_doubt() -> None:
    low, high = intervals(np.full((7, 2), [3.0, -1.0]))
    assert low == pytest.approx([3.0, -1.0])
    assert high == pytest.approx([3.0, -1.0])


def test_two_texts_by_hand() -> None:
    """Of two texts a resample holds the first twice, both or the second twice: a quarter, a half, a quarter."""
    low, high = intervals(np.array([[0.0], [1.0]]))
    assert (low[0], high[0]) == (0.0, 1.0)


def test_many_texts_come_near_to_the_normal_interval() -> None:
    values = np.random.default_rng(1).normal(5, 2, size=(400, 1))
    low, high = intervals(values)
    half = 1.96 * float(values.std()) / 20
    assert low[0] == pytest.approx(values.mean() - half, abs=0.15 * half)
    assert high[0] == pytest.approx(values.mean() + half, abs=0.15 * half)


def test_it_holds_the_true_mean_about_95_times_in_100() -> None:
    generator = np.random.default_rng(2)
    held = 0
    for _ in range(200):
        low, high = intervals(generator.exponential(1.0, size=(60, 1)))
        held += int(low[0] <= 1.0 <= high[0])
    assert 178 <= held <= 198  # the percentile interval of skewed numbers holds it a little too rarely


def test_numbers_of_a_text_stay_together() -> None:
    """The second column is the first and 10: so are its bounds, which separate draws would not give exactly."""
    values = np.random.default_rng(3).normal(size=(30, 1))
    low, high = intervals(np.concatenate([values, values + 10], axis=1))
    assert low[1] - low[0] == pytest.approx(10, abs=1e-12)
    assert high[1] - high[0] == pytest.approx(10, abs=1e-12)


def test_the_same_seed_gives_the_same_bits() -> None:
    values = np.random.default_rng(4).normal(size=(30, 3))
    assert np.array_equal(intervals(values), intervals(values))
    assert not np.array_equal(intervals(values), intervals(values, seed=1))
