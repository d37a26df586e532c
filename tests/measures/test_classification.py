"""Scores of a classifier by laws that a reader can check by hand, then for any answers at all."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.measures.classification import (
    accuracy,
    calibration_error,
    confusion_matrix,
    draw_calibrated_error,
    find_occurring_labels,
    log_loss,
    macro_f1,
)

NONE = np.array([], dtype=np.int64)


def labels(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def right(number: int, of: int) -> tuple[np.ndarray, np.ndarray]:
    """Gold and predicted labels, alike in the first `number`."""
    return np.zeros(of, dtype=np.int64), (np.arange(of) >= number).astype(np.int64)


# Confusion and F1


def test_confusion_by_hand() -> None:
    counts = confusion_matrix(labels(0, 0, 0, 1, 2), labels(0, 1, 1, 1, 0), 4)
    assert counts.tolist() == [[1, 2, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert confusion_matrix(NONE, NONE, 2).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(("gold", "predicted"), [(-1, 0), (0, -1), (2, 0), (0, 2)])
def test_a_label_that_is_not_there_is_not_counted_as_another(gold: int, predicted: int) -> None:
    with pytest.raises(AssertionError, match="not there"):
        confusion_matrix(labels(gold), labels(predicted), 2)


def test_a_label_that_is_only_predicted_counts() -> None:
    counts = confusion_matrix(labels(0, 0), labels(0, 1), 2)
    assert find_occurring_labels(counts).tolist() == [True, True]
    assert macro_f1(counts) == pytest.approx((2 / 3 + 0) / 2)


# Accuracy


@given(st.integers(1, 200), st.data())
def test_the_ends_of_the_interval_are_as_far_off_as_wilson_says(n: int, data: st.DataObject) -> None:
    """An end p is where the value lies 1.96 standard errors away, the error being that of p."""
    number = data.draw(st.integers(0, n))
    found = accuracy(*right(number, of=n))
    assert found.value == number / n
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert (found.low == 0, found.high == 1) == (number == 0, number == n)
    for end in (found.low, found.high):
        assert abs(found.value - end) == pytest.approx(1.959964 * sqrt(end * (1 - end) / n), abs=1e-6)


# Calibration


def test_calibration_by_hand() -> None:
    """Three texts at 0.9 of which one is right, one at 0.6 that is right: gaps of 0.9 - 1/3 and 1 - 0.6."""
    probability, correct = np.array([0.9, 0.6, 0.9, 0.9]), np.array([True, True, False, False])
    assert calibration_error(probability, correct) == pytest.approx((3 * (0.9 - 1 / 3) + 0.4) / 4)
    assert calibration_error(probability, correct, n_bins=1) == pytest.approx(3.3 / 4 - 0.5)


def test_error_of_a_calibrated_model_by_hand() -> None:
    """One text of confidence 0.75: an error of 0.25 in three of four draws, and of 0.75 in the others."""
    mean, bound = draw_calibrated_error(np.array([0.75]))
    assert mean == pytest.approx((3 * 0.25 + 0.75) / 4, abs=0.05)
    assert bound == 0.75


def test_fifteen_bins_unless_said_otherwise() -> None:
    """0.6 and 0.65 lie in two bins of fifteen and in one of ten: only there does one's luck make up for the other's."""
    probability, correct = np.array([0.6, 0.65]), np.array([True, False])
    assert calibration_error(probability, correct) == calibration_error(probability, correct, 15)
    assert calibration_error(probability, correct) == pytest.approx((0.4 + 0.65) / 2)


@pytest.mark.parametrize("n_bins", [3, 10, 15, 49])
def test_an_edge_belongs_to_the_bin_below(n_bins: int) -> None:
    """Bin b holds b/n < confidence ≤ (b + 1)/n, for a confidence as it is written: 0.2 is 3/15, 0.3 is 3/10."""
    for edge in np.arange(1, n_bins) / n_bins:
        for other, error in ((edge - 1e-9, abs(0.5 - edge)), (edge + 1e-9, 0.5)):  # in one bin, in two
            found = calibration_error(np.array([edge, other]), np.array([True, False]), n_bins)
            assert found == pytest.approx(error, abs=1e-8)


def test_probabilities_of_float32_may_pass_1() -> None:
    beyond = np.array([1.0000001], dtype=np.float32)
    assert calibration_error(beyond, np.array([True]), 3) == pytest.approx(0, abs=1e-6)


# Log loss


def test_log_loss_by_hand() -> None:
    assert str(log_loss(np.eye(2), labels(0, 1))) == "0.0"  # not -0
    assert log_loss(np.array([[0.5, 0.5], [0.25, 0.75]]), labels(0, 1)) == pytest.approx((log(2) + log(4 / 3)) / 2)


def test_certain_and_wrong_costs_36_nats() -> None:
    wrong = np.array([[1, 0]], dtype=np.float32)
    assert log_loss(wrong, labels(1)) == pytest.approx(36.04, abs=0.01)
    assert log_loss(np.array([[1, 1e-300]]), labels(1)) == log_loss(wrong, labels(1))
    assert log_loss(np.array([[1.0000001, 0]], dtype=np.float32), labels(0)) == 0


def test_log_loss_keeps_its_precision_in_float32() -> None:
    probabilities = np.full((3000, 2), 0.1, dtype=np.float32)
    assert log_loss(probabilities, np.zeros(3000, dtype=np.int64)) == pytest.approx(-log(np.float32(0.1)), abs=1e-12)
