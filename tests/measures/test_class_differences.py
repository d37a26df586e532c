"""What differs between classes of texts, held against plain loops."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.measures.class_differences import ClassSizes, compare_classes, correct_differences, find_strata
from attnviz.table.intervals import t_quantile

BOUNDS = np.array([[0.0, 0.0], [10.0, 1.0]])


def compare(values: np.ndarray, labels: Sequence[int | None], lengths: Sequence[int]) -> list[SimpleNamespace]:
    """Compare classes over texts of these lengths, with corrected p-values."""
    known, strata = np.array(labels, float), find_strata(np.array(lengths, float))
    found = compare_classes(values, known, strata, ClassSizes.count(known, strata))
    return [SimpleNamespace(**row, label=row["class"]) for row in correct_differences([*found])]


def made(n: int, change: float) -> tuple[np.ndarray, list[int | None]]:
    """Numbers of `n` texts of either class and of some without one; the first column of class 1 is larger."""
    draws = np.random.default_rng(0)
    values = draws.uniform(0.2, 0.8, (2 * n + 5, 2)) * (BOUNDS[1] - BOUNDS[0])
    labels = [place % 2 for place in range(2 * n)]
    values[1 : 2 * n : 2, 0] += change
    return values, [*labels, *[None] * 5]


def test_a_difference_is_that_of_a_plain_loop_with_its_interval() -> None:
    values, labels = made(40, 2.0)
    found = compare(values, labels, [8] * len(labels))
    first = found[0]
    one, other = (values[[label == each for label in labels], 0] for each in (1, 0))
    error = np.sqrt(one.var(ddof=1) / 40 + other.var(ddof=1) / 40)
    assert (first.label, first.column) == (1, 0)
    assert first.change == pytest.approx(one.mean() - other.mean(), abs=1e-9)
    assert first.half == pytest.approx(error * t_quantile(first.degrees), rel=1e-6)
    assert 70 <= first.degrees <= 78
    assert first.p_value < 1e-3 < 0.05 < found[1].p_value


def test_texts_are_counted_by_class_and_those_of_a_length_that_another_class_has() -> None:
    labels = np.array([0, 0, 1, np.nan, 1, 0])
    found = ClassSizes.count(labels, np.array([3, 3, 3, 3, 9, 7]))
    assert (found.sizes, found.n_matched) == ({0: 3, 1: 2}, 3)
    assert ClassSizes.count(np.full(3, np.nan), np.zeros(3, int)) == ClassSizes({})


def test_numbers_that_a_text_lacks_are_left_out_of_their_column() -> None:
    values, labels = made(40, 2.0)
    values[::3, 0] = np.nan
    kept = ~np.isnan(values[:, 0])
    found = {each.column: each for each in compare(values, labels, [8] * 85)}
    alone = compare(values[kept], [labels[at] for at in np.flatnonzero(kept)], [8] * kept.sum())
    assert found[0].change == pytest.approx(next(each for each in alone if each.column == 0).change)
    assert found[0].error == pytest.approx(next(each for each in alone if each.column == 0).error)


def test_few_texts_or_one_class_are_not_tested() -> None:
    values, labels = made(9, 5.0)
    assert compare(values, labels, [8] * len(labels)) == []
    values, labels = made(20, 5.0)
    assert compare(values, [0] * len(labels), [8] * len(labels)) == []


def test_three_classes_are_each_held_against_the_others() -> None:
    values, _ = made(30, 0.0)
    labels = [place % 3 for place in range(len(values))]
    values[2::3, 1] = 0.95 - 0.001 * np.arange(len(values[2::3]))
    found = compare(values, labels, [8] * len(labels))
    assert len(found) == 6
    assert (found[0].label, found[0].column) == (2, 1)


def lengths_and_labels(n: int, shift: float) -> tuple[list[int], list[int]]:
    """Lengths of `n` texts, those of class 1 shorter, by draws."""
    labels = [place % 2 for place in range(n)]
    logs = np.random.default_rng(2).normal(3.2, 0.5, n) - shift * np.array(labels)
    return np.exp(logs).clip(4, 60).round().astype(int).tolist(), labels


def test_a_difference_over_several_lengths_is_that_of_least_squares() -> None:
    """With a column for each stratum and the errors of HC2, worked out with whole matrices."""
    lengths, labels = lengths_and_labels(120, 0.5)
    values = np.random.default_rng(4).uniform(0.2, 0.8, (120, 2)) * BOUNDS[1] * np.array(lengths)[:, None] / 60
    found = next(each for each in compare(values, labels, lengths) if each.column == 0)
    strata = (4 * np.log2(lengths)).astype(int)
    matched = [len({labels[n] for n in np.flatnonzero(strata == stratum)}) == 2 for stratum in strata]
    design = np.column_stack([labels, strata[:, None] == np.unique(strata[matched])])[matched].astype(float)
    inverse = np.linalg.inv(design.T @ design)
    fitted = inverse @ design.T @ values[matched, 0]
    leverages = np.einsum("ti,ij,tj->t", design, inverse, design)
    spread = (values[matched, 0] - design @ fitted) ** 2 / (1 - leverages)
    errors = inverse @ (design.T * spread) @ design @ inverse
    assert found.change == pytest.approx(fitted[0], abs=1e-9)
    assert found.error == pytest.approx(np.sqrt(errors[0, 0]), rel=1e-6)
    assert found.degrees < sum(matched) - design.shape[1]
    sizes = ClassSizes.count(np.array(labels, float), find_strata(np.array(lengths, float)))
    assert sizes.n_matched == sum(matched) < 120


def test_classes_without_texts_of_one_length_are_not_compared() -> None:
    values, labels = made(40, 2.0)
    assert compare(values, labels, [100 if label else 8 for label in labels]) == []


def test_what_differs_by_less_than_rounding_is_no_difference() -> None:
    """A share of 1e-9 of texts of one class, and of 2e-9 of the others, over many lengths."""
    lengths, labels = lengths_and_labels(200, 0.0)
    values = (1 + np.array(labels) + np.random.default_rng(5).uniform(0, 0.1, 200))[:, None] * [1e-8, 1e-9]
    assert compare(values, labels, lengths) == []


def test_copies_of_two_texts_are_no_difference() -> None:
    assert compare(np.tile([[1 / 3, 0.1], [5.0, 0.9]], (50, 1)), [0, 1] * 50, [8] * 100) == []


@pytest.mark.parametrize("kind", ["by length", "rare class"])
def test_labels_that_say_nothing_give_a_difference_in_one_study_of_twenty(kind: str) -> None:
    """Of 200 studies of skewed numbers that go with the length, with heads that go together."""
    draws, n_false = np.random.default_rng(6), 0
    for _ in range(200):
        lengths = np.exp(draws.normal(4, 0.6, 120)).round().clip(5, 400)
        shared = draws.gamma(2.0, 1.0, (120, 1))
        values = 30 / lengths[:, None] + 0.02 * shared * draws.gamma(2.0, 1.0, (120, 12))
        chance: Any = {"by length": 1 / (1 + np.exp((lengths - 55) / 20)), "rare class": 0.12}[kind]
        labels = (draws.uniform(size=120) < chance).astype(int).tolist()
        n_false += any(each.p_value < 0.05 for each in compare(values, labels, lengths.tolist()))
    assert n_false <= 17  # of 10 expected; 18 come by chance in one of a hundred runs
