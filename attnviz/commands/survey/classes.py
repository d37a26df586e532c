"""What differs between texts of different classes, head by head, as sums that merge to the same bits. Knows arrays.

Shares of attention go with the length of a text, and classes may be of unlike lengths. So each number is taken without
its slope over the log of the length, which is known before the first text is summed: differences are of texts of one
length. Texts of two classes are no pairs, so that means of texts are held against each other (Welch 1947).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from attnviz.measures.intervals import MAX_DEGREES, MIN_TEXTS, correct_p_values, p_value, t_quantile
from attnviz.measures.summaries import UNIT

MAX_CLASSES = 20
Bounds = Float64[np.ndarray, "2 column"]


@dataclass(frozen=True, eq=False)
class ClassSums:
    """By class and column: how many texts have a number there, its sum and that of its square, as whole numbers."""

    labels: tuple[int, ...] = ()  # in order; texts without one are in no class
    counts: Int64[np.ndarray, "class column"] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    sums: Int64[np.ndarray, "class power column"] = field(default_factory=lambda: np.zeros((0, 2, 0), np.int64))

    @property
    def sizes(self) -> list[int]:
        """How many texts each class has: some measures are of fewer."""
        return [int(counts.max(initial=0)) for counts in self.counts]


class ClassDifference(NamedTuple):
    """How much larger a column's number is in the texts of a class than in the other ones that have a class."""

    label: int
    column: int
    change: float
    error: float  # its standard error
    degrees: int  # of Student's t
    p_value: float  # corrected for all that are tested (Holm 1979)

    @property
    def half(self) -> float:
        """Half of the 95 % interval of the change."""
        return self.error * t_quantile(self.degrees)


def widen_bounds(bounds: Bounds, slopes: Float64[np.ndarray, " column"], max_tokens: int) -> Bounds:
    """Return between which numbers a number lies without its slope, whatever the length of its text."""
    most = slopes * np.log(max(2, max_tokens))
    return np.stack([bounds[0] - np.maximum(most, 0.0), bounds[1] - np.minimum(most, 0.0)])


def sum_classes(
    adjusted: Float64[np.ndarray, "text column"], bounds: Bounds, labels: Sequence[int | None]
) -> ClassSums:
    """Sum the numbers of some texts by their classes."""
    known = sorted({label for label in labels if label is not None})
    shares = np.clip((adjusted - bounds[0]) / (bounds[1] - bounds[0]), 0.0, 1.0)
    there = ~np.isnan(shares)
    whole = np.rint(np.where(there, np.stack([shares, shares * shares]), 0.0) * UNIT).astype(np.int64)
    of_classes = [[place for place, label in enumerate(labels) if label == each] for each in known]
    n_columns = adjusted.shape[1]
    counts, sums = np.zeros((len(known), n_columns), np.int64), np.zeros((len(known), 2, n_columns), np.int64)
    for place, texts in enumerate(of_classes):
        counts[place], sums[place] = there[texts].sum(axis=0), whole[:, texts].sum(axis=1)
    return ClassSums(tuple(known), counts, sums)


def merge_classes(parts: Sequence[ClassSums]) -> ClassSums:
    """Return the sums of the texts of all parts, whatever their order."""
    parts = [part for part in parts if part.labels]
    if not parts:
        return ClassSums()
    labels = sorted({label for part in parts for label in part.labels})
    n_columns = parts[0].counts.shape[1]
    counts, sums = np.zeros((len(labels), n_columns), np.int64), np.zeros((len(labels), 2, n_columns), np.int64)
    for part in parts:
        at = [labels.index(label) for label in part.labels]
        counts[at] += part.counts
        sums[at] += part.sums
    return ClassSums(tuple(labels), counts, sums)


def compare_classes(classes: ClassSums, bounds: Bounds, columns: Sequence[int]) -> list[ClassDifference]:
    """Hold each class against the others together, of two classes the last against the first; the surest first.

    Nothing of more than MAX_CLASSES, nor of classes with fewer than 10 texts.
    """
    if not 2 <= len(classes.labels) <= MAX_CLASSES:
        return []
    places = [1] if len(classes.labels) == 2 else range(len(classes.labels))
    found = [each for place in places for each in _compare(classes, bounds, columns, place)]
    corrected = correct_p_values([each.p_value for each in found])
    whole = [each._replace(p_value=p) for each, p in zip(found, corrected, strict=True)]
    return sorted(whole, key=lambda each: (each.p_value, -abs(each.change / each.error), each.column))


def _compare(classes: ClassSums, bounds: Bounds, columns: Sequence[int], place: int) -> Iterator[ClassDifference]:
    """Yield what a class differs by from the others, with p-values that are not corrected yet."""
    others = [other for other in range(len(classes.labels)) if other != place]
    widths = bounds[1] - bounds[0]
    for column in columns:
        one, other = (
            _describe(classes.counts[of, column].sum(), classes.sums[of, :, column].sum(axis=0))
            for of in ([place], others)
        )
        (n, mean, variance), (n_others, mean_others, variance_others) = one, other
        if min(n, n_others) < MIN_TEXTS:
            continue
        error = sqrt(variance / n + variance_others / n_others)
        if error == 0:  # all numbers are the same in both, so that nothing can be tested
            continue
        degrees = error**4 / ((variance / n) ** 2 / (n - 1) + (variance_others / n_others) ** 2 / (n_others - 1))
        whole, apart, width = max(1, min(MAX_DEGREES, int(degrees))), mean - mean_others, float(widths[column])
        p = p_value(apart / error, whole)
        yield ClassDifference(classes.labels[place], column, width * apart, width * error, whole, p)


def _describe(n: np.int64, sums: Int64[np.ndarray, " power"]) -> tuple[int, float, float]:
    """Return how many there are, their mean and their variance, all as shares of the bounds."""
    count, (total, square) = int(n), (int(each) for each in sums)
    if count < 2:
        return count, 0.0, 0.0
    variance = max(count * square * UNIT - total * total, 0) / (count * (count - 1) * UNIT * UNIT)
    return count, total / (count * UNIT), variance
