"""The laws of exact summaries: merging knows no order, and what is read out is what a plain loop gives."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attnviz.errors import TooLarge
from attnviz.measures.summaries import (
    MAX_TEXTS,
    N_BINS,
    N_EXTREMES,
    N_SAMPLED,
    NO_TEXT,
    UNIT,
    Summary,
    merge_summaries,
)

BOUNDS = np.array([[0.0, -1.0, 1.0], [1.0, 1.0, 512.0]])
# .75 stands for a text without a number
SHARES = st.one_of(st.sampled_from([0.0, -0.0, 0.5, 0.75, 1.0, 1 / 3, 1e-300]), st.floats(0, 1))


def summary(shares: np.ndarray, first: int = 0) -> Summary:
    values = np.where(shares == 0.75, np.nan, BOUNDS[0] + shares * (BOUNDS[1] - BOUNDS[0]))
    texts = np.arange(first, first + len(shares))
    return Summary.from_texts(values, BOUNDS, texts, (texts * 2654435761 % 997).astype(np.uint64))


def content(of: Summary) -> list[bytes]:
    return [value.tobytes() if isinstance(value, np.ndarray) else bytes(value) for value in vars(of).values()]


@given(arrays(np.float64, st.tuples(st.integers(0, 40), st.just(3)), elements=SHARES), st.data())
def test_parts_merge_in_any_order_and_grouping_to_the_same_bits(shares: np.ndarray, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(shares)), max_size=4)))
    parts = [summary(shares[start:end], start) for start, end in zip([0, *cuts], [*cuts, len(shares)], strict=True)]
    shuffled = data.draw(st.permutations(parts))
    whole = content(summary(shares))
    assert content(merge_summaries(shuffled)) == whole
    assert content(reduce(lambda one, other: merge_summaries([one, other]), shuffled)) == whole


@pytest.mark.parametrize("n_texts", [1, 5, N_SAMPLED])
def test_quantiles_of_texts_that_are_all_in_the_sample_are_exact(n_texts: int) -> None:
    shares = np.random.default_rng(0).random((n_texts, 3)) ** 9  # most in one bin
    shares[n_texts // 2 + 1 :, 2] = 0.75
    values = np.where(shares == 0.75, np.nan, BOUNDS[0] + shares * (BOUNDS[1] - BOUNDS[0]))
    found = merge_summaries([summary(shares[1::2], 500), summary(shares[::2])]).quantiles((0.05, 0.5, 0.95), BOUNDS)
    expected = np.nanquantile(values, (0.05, 0.5, 0.95), axis=0, method="inverted_cdf")
    np.testing.assert_array_equal(found, expected)
    assert np.isnan(summary(np.full((2, 3), 0.75)).quantiles([0.5], BOUNDS)).all()


def test_many_texts_keep_the_extremes_and_the_smallest_hashes() -> None:
    shares = np.random.default_rng(1).random((1_000, 3))
    halves = merge_summaries([summary(shares[500:], 500), summary(shares[:500])])
    assert content(halves) == content(summary(shares))
    values = BOUNDS[0] + shares * (BOUNDS[1] - BOUNDS[0])
    np.testing.assert_array_equal(halves.extreme_texts[0], np.argsort(-values, axis=0)[:N_EXTREMES])
    np.testing.assert_array_equal(halves.extreme_texts[1], np.argsort(values, axis=0)[:N_EXTREMES])
    assert len(halves.hashes) == N_SAMPLED
    assert halves.hashes.max() <= np.sort(np.arange(1_000) * 2654435761 % 997)[N_SAMPLED]
    np.testing.assert_array_equal(halves.sample, values[halves.sampled_texts])


def test_numbers_are_those_of_a_plain_loop() -> None:
    shares = np.random.default_rng(0).beta(0.3, 2.0, (700, 3))
    values = BOUNDS[0] + shares * (BOUNDS[1] - BOUNDS[0])
    merged = merge_summaries([summary(shares[start : start + 70], start) for start in range(0, 700, 70)])
    plain = [0.0, 0.0, 0.0]
    for row in values:
        plain = [so_far + value for so_far, value in zip(plain, row, strict=True)]
    np.testing.assert_allclose(merged.means(BOUNDS), np.array(plain) / 700, atol=1e-9)
    np.testing.assert_allclose(merged.deviations(BOUNDS), values.std(axis=0, ddof=1), rtol=1e-9)
    exact = np.quantile(values, (0.05, 0.5, 0.95), axis=0, method="inverted_cdf")
    apart = np.abs(merged.quantiles((0.05, 0.5, 0.95), BOUNDS) - exact) / (BOUNDS[1] - BOUNDS[0])
    assert apart.max() <= 1 / N_BINS


def test_numbers_that_lie_in_one_bin_have_no_quantiles() -> None:
    """A share of 3e-6 in the mean had all five at 2.7e-5; of equal numbers, all are that number."""
    shares = np.stack([np.random.default_rng(0).beta(1, 9, 400) / 8_000, np.full(400, 0.3), np.full(400, 0.75)], axis=1)
    found = summary(shares).quantiles((0.05, 0.5, 0.95), BOUNDS)
    assert np.isnan(found[:, 0]).all()
    np.testing.assert_array_equal(found[:, 1], BOUNDS[0, 1] + 0.3 * 2.0)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_means_and_deviations_are_within_their_digits(numbers: list[float]) -> None:
    shares = np.array(numbers)[:, None]
    texts, bounds = np.arange(len(shares)), np.array([[0.0], [1.0]])
    found = Summary.from_texts(shares, bounds, texts, texts.astype(np.uint64))
    assert found.means(bounds)[0] == pytest.approx(shares.mean(), abs=1e-12)
    assert found.deviations(bounds)[0] == pytest.approx(shares.std(ddof=1), abs=1e-6)


def test_texts_that_are_alike_have_no_deviation() -> None:
    """The squares of 1/3 and 0.1, rounded, are not those of what they were rounded to."""
    alike = summary(np.tile([[1 / 3, 0.1, 0.7]], (9, 1)))
    assert alike.deviations(BOUNDS).tolist() == [0, 0, 0]
    assert merge_summaries([alike, summary(np.array([[0.9, 0.1, 0.7]]), 9)]).deviations(BOUNDS)[0] > 0.1


def test_more_texts_than_a_sum_holds_are_refused() -> None:
    most = replace(summary(np.ones((1, 3))), n_texts=MAX_TEXTS, sums=np.full((2, 3), MAX_TEXTS * UNIT))
    assert merge_summaries([most]).sums.tolist() == [[MAX_TEXTS * UNIT] * 3] * 2  # it fits
    with pytest.raises(TooLarge, match="8,388,608 texts are more than the 8,388,607"):
        merge_summaries([most, summary(np.ones((1, 3)), MAX_TEXTS)])


def test_one_text_has_no_deviation_and_the_rest_is_filled_up() -> None:
    one = summary(np.array([[0.25, 0.5, 0.8]]))
    assert np.isnan(one.deviations(BOUNDS)).all()
    assert one.texts == {0}
    np.testing.assert_allclose(one.means(BOUNDS), [0.25, 0.0, 409.8], rtol=1e-12)


def test_a_text_without_a_number_counts_in_no_column_but_its_own() -> None:
    shares = np.array([[0.1, 0.75, 0.75], [0.2, 0.6, 0.75], [0.3, 0.4, 0.75]])
    found = merge_summaries([summary(shares[:1]), summary(shares[1:], 1)])
    assert found.counts.tolist() == [3, 2, 0]
    np.testing.assert_allclose(found.means(BOUNDS), [0.2, 0.0, np.nan], atol=1e-12)
    np.testing.assert_allclose(found.deviations(BOUNDS), [0.1, np.sqrt(0.08), np.nan])
    np.testing.assert_allclose(found.quantiles([0.5], BOUNDS)[0, :2], [0.2, -0.2], atol=1 / N_BINS)
    assert found.ranges[:, :2].tolist() == [[0.1, pytest.approx(-0.2)], [0.3, pytest.approx(0.2)]]
    assert found.extreme_texts[0, :3].T.tolist() == [[2, 1, 0], [1, 2, NO_TEXT], [NO_TEXT] * 3]
