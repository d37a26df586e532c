"""What differs between texts of different classes, head by head, as sums that merge to the same bits. Knows arrays.

Shares of attention go with the length of a text, and classes may be of unlike lengths. A slope over the log of the
length does not take that away: texts of 5 and of 25 tokens that differ in nothing else differ beyond chance in many
measures. So texts are held against texts of about their length (strata; Cochran 1968, doi:10.2307/2528036), and those
without a text of another class beside them count for nothing. Within a stratum each number is taken without its slope,
which is known before the first text is summed. Texts of two classes are no pairs, so that means are compared (Welch
1947).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from attnviz.measures.summaries import UNIT, Bounds
from attnviz.numbers.intervals import MAX_DEGREES, MIN_TEXTS, correct_p_values, p_value, t_quantile
from attnviz.records import TINY

MAX_CLASSES = 20
STRATA = 4  # of lengths, from a number of tokens to its double: those of one differ by less than a fifth
ROUNDING = 4 / UNIT  # of a variance: below it nothing is told apart


@dataclass(frozen=True, eq=False)
class ClassSums:
    """By group and column: how many texts have a number there, its sum and that of its square, as whole numbers.

    A group are the texts of one class and about one length.
    """

    groups: tuple[tuple[int, int], ...] = ()  # label and stratum, in order; texts without a label are in none
    counts: Int64[np.ndarray, "group column"] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    sums: Int64[np.ndarray, "group power column"] = field(default_factory=lambda: np.zeros((0, 2, 0), np.int64))

    @property
    def sizes(self) -> dict[int, int]:
        """How many texts each class has, by its label in order: some measures are of fewer."""
        found: dict[int, int] = {}
        for (label, _), n in zip(self.groups, self._count_texts(), strict=True):
            found[label] = found.get(label, 0) + n
        return found

    @property
    def n_matched(self) -> int:
        """How many texts have one of another class of about their length."""
        strata = [stratum for _, stratum in self.groups]
        return sum(n for stratum, n in zip(strata, self._count_texts(), strict=True) if strata.count(stratum) > 1)

    def _count_texts(self) -> list[int]:
        return [int(n) for n in self.counts.max(axis=1, initial=0)]


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
    adjusted: Float64[np.ndarray, "text column"],
    bounds: Bounds,
    labels: Sequence[int | None],
    lengths: Sequence[int],
) -> ClassSums:
    """Sum the numbers of some texts by their classes and lengths in tokens."""
    strata = np.floor(STRATA * np.log2(lengths)).astype(int).tolist()
    places: dict[tuple[int, int], list[int]] = {}
    for place, (label, stratum) in enumerate(zip(labels, strata, strict=True)):
        if label is not None:
            places.setdefault((label, stratum), []).append(place)
    shares = np.clip((adjusted - bounds[0]) / (bounds[1] - bounds[0]), 0.0, 1.0)
    there = ~np.isnan(shares)
    whole = np.rint(np.where(there, np.stack([shares, shares * shares]), 0.0) * UNIT).astype(np.int64)
    groups, n_columns = tuple(sorted(places)), adjusted.shape[1]
    counts, sums = np.zeros((len(groups), n_columns), np.int64), np.zeros((len(groups), 2, n_columns), np.int64)
    for row, group in enumerate(groups):
        counts[row], sums[row] = there[places[group]].sum(axis=0), whole[:, places[group]].sum(axis=1)
    return ClassSums(groups, counts, sums)


def merge_classes(parts: Sequence[ClassSums]) -> ClassSums:
    """Return the sums of the texts of all parts, whatever their order."""
    parts = [part for part in parts if part.groups]
    if not parts:
        return ClassSums()
    groups = sorted({group for part in parts for group in part.groups})
    rows, n_columns = {group: row for row, group in enumerate(groups)}, parts[0].counts.shape[1]
    counts, sums = np.zeros((len(groups), n_columns), np.int64), np.zeros((len(groups), 2, n_columns), np.int64)
    for part in parts:
        at = [rows[group] for group in part.groups]
        counts[at] += part.counts
        sums[at] += part.sums
    return ClassSums(tuple(groups), counts, sums)


def compare_classes(classes: ClassSums, bounds: Bounds, columns: Sequence[int]) -> list[ClassDifference]:
    """Hold each class against the others together, of two classes the last against the first; the surest first.

    Nothing of more than MAX_CLASSES, nor where fewer than 10 texts of either side have others of about their length.
    """
    labels = [*classes.sizes]
    if not 2 <= len(labels) <= MAX_CLASSES:
        return []
    compared = labels[1:] if len(labels) == 2 else labels
    found = [each for label in compared for each in _compare(classes, bounds, columns, label)]
    corrected = correct_p_values([each.p_value for each in found])
    whole = [each._replace(p_value=p) for each, p in zip(found, corrected, strict=True)]
    return sorted(whole, key=lambda each: (each.p_value, -abs(each.change / each.error), each.column))


def _compare(classes: ClassSums, bounds: Bounds, columns: Sequence[int], label: int) -> Iterator[ClassDifference]:
    """Yield what a class differs by from the others, with p-values that are not corrected yet.

    Least squares with a constant for each stratum, each text with a spread of its own, since short texts have more of
    it (HC2; MacKinnon & White 1985, doi:10.1016/0304-4076(85)90158-7): of one stratum Welch's test.
    """
    strata = sorted({stratum for _, stratum in classes.groups})
    counts = np.zeros((2, len(strata), len(columns)))  # of the class, and of the others
    sums = np.zeros((2, 2, len(strata), len(columns)))  # power before side
    for row, (of, stratum) in enumerate(classes.groups):
        side, at = int(of != label), strata.index(stratum)
        counts[side, at] += classes.counts[row, columns]
        sums[:, side, at] += classes.sums[row][:, columns] / UNIT
    known = (counts > 0).all(axis=0)
    n = np.where(known, counts, 1.0)
    means, both = sums[0] / n, n.sum(axis=0)
    weights = np.where(known, n.prod(axis=0) / both, 0.0)
    total = np.maximum(weights.sum(axis=0), TINY)
    apart = means[0] - means[1]
    change = (weights * apart).sum(axis=0) / total
    off_mean = n[::-1] / both  # how far either side is from the mean of its stratum, as a share of the difference
    within, between = sums[1] / n - means**2, (off_mean * (apart - change)) ** 2
    varies = (known & (np.maximum(within, between) > ROUNDING)).any(axis=(0, 1))
    residuals = n * (np.maximum(within, ROUNDING) + between)
    leverages = 1 / both + off_mean**2 / total
    squares = np.where(known, off_mean**2 * residuals / np.maximum(1 - leverages, TINY), 0.0) / total**2
    square = squares.sum(axis=(0, 1))
    freedom = square**2 / np.maximum((squares**2 / np.maximum(n - 1, 0.5)).sum(axis=(0, 1)), TINY)
    enough = (np.where(known, n, 0.0).sum(axis=1) >= MIN_TEXTS).all(axis=0)
    for place in np.flatnonzero(enough & varies).tolist():  # of equal numbers nothing can be tested
        degrees, width = max(1, min(MAX_DEGREES, int(freedom[place]))), float(np.ptp(bounds[:, columns[place]]))
        error, apart_by = sqrt(square[place]), float(change[place])
        p = p_value(apart_by / error, degrees)
        yield ClassDifference(label, columns[place], width * apart_by, width * error, degrees, p)
