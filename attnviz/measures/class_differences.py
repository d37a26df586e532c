"""What differs between texts of different classes, head by head. Knows arrays.

Shares of attention go with the length of a text, and classes may be of unlike lengths. A slope over the log of the
length does not take that away: texts of 5 and of 25 tokens that differ in nothing else differ beyond chance in many
measures. So texts are held against texts of about their length (strata; Cochran 1968, doi:10.2307/2528036), and those
without a text of another class beside them count for nothing. Within a stratum each number is taken without its slope.
Texts of two classes are no pairs, so that means are compared (Welch 1947). A text that stands several times is to be
given once: its copies are no further evidence.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from attnviz.records import TINY
from attnviz.table.intervals import MAX_DEGREES, MIN_TEXTS, correct_p_values, p_value, t_quantile

MAX_CLASSES = 20
STRATA = 4  # of lengths, from a number of tokens to its double: those of one differ by less than a fifth
ROUNDING = 2e-6  # of the largest number of a column, and of 1: what varies by less is not told apart

Values = Float64[np.ndarray, "text column"]
PerText = Float64[np.ndarray, " text"]
Strata = Int64[np.ndarray, " text"]


@dataclass(frozen=True)
class ClassSizes:
    """How many texts each class has, by its label in order, and how many have one of another class of their length."""

    sizes: dict[int, int]
    n_matched: int = 0

    @classmethod
    def count(cls, labels: PerText, strata: Strata) -> "ClassSizes":
        """Count texts by label; NaN for those without one."""
        known = ~np.isnan(labels)
        groups, counts = np.unique(
            np.stack([strata[known], labels[known].astype(np.int64)]), axis=1, return_counts=True
        )
        shared = np.isin(groups[0], [stratum for stratum in np.unique(groups[0]) if (groups[0] == stratum).sum() > 1])
        sizes = {label: int(counts[groups[1] == label].sum()) for label in np.unique(groups[1]).tolist()}
        return cls(sizes, int(counts[shared].sum()))


def find_strata(lengths: PerText) -> Strata:
    """Return about which length each text has, from its number of tokens."""
    return np.asarray(np.floor(STRATA * np.log2(lengths)), dtype=np.int64)


def compare_classes(values: Values, labels: PerText, strata: Strata, classes: ClassSizes) -> Iterator[dict[str, Any]]:
    """Yield how each class differs from the others together, of two classes the last from the first, a row per column.

    "change" is how much larger the column's number is in the texts of the class than in the other ones that have one,
    with its standard "error", "degrees" of Student's t and "half" of its 95 % interval. "p_value" is not corrected yet.

    Nothing of more than MAX_CLASSES, nor where fewer than 10 texts of either side have others of about their length.
    """
    known, found = ~np.isnan(labels), [*classes.sizes]
    if 2 <= len(found) <= MAX_CLASSES:
        for label in found[1:] if len(found) == 2 else found:
            yield from _compare(values[known], labels[known] == label, strata[known], label)


def correct_differences(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Correct p-values for all that was tested (Holm 1979), and sort by them: the surest differences first."""
    corrected = correct_p_values([row["p_value"] for row in found])
    whole = [{**row, "p_value": p} for row, p in zip(found, corrected, strict=True)]
    return sorted(whole, key=lambda row: (row["p_value"], -abs(row["change"] / row["error"])))


def _compare(values: Values, is_own: np.ndarray, strata: Strata, label: int) -> Iterator[dict[str, Any]]:
    """Yield what a class differs by from the others.

    Least squares with a constant for each stratum, each text with a spread of its own, since short texts have more of
    it (HC2; MacKinnon & White 1985, doi:10.1016/0304-4076(85)90158-7): of one stratum Welch's test. All columns are
    worked out at once by sums over groups, which are the texts of one side and one stratum: [side, stratum, column].
    """
    places = np.unique(strata, return_inverse=True)[1]
    shape = (2, places.max(initial=0) + 1)
    groups = np.zeros((shape[0] * shape[1], len(values)))
    groups[np.where(is_own, 0, shape[1]) + places, np.arange(len(values))] = 1.0
    there = ~np.isnan(values)
    filled = np.where(there, values - np.where(there, values, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1), 0.0)
    counts = (groups @ there).reshape(*shape, -1)
    known = (counts > 0).all(axis=0)
    n = np.where(known, counts, 1.0)
    means = (groups @ filled).reshape(n.shape) / n
    off_group = np.where(there, filled - groups.T @ means.reshape(len(groups), -1), 0.0)
    within, both = (groups @ off_group**2).reshape(n.shape) / n, n.sum(axis=0)
    weights = np.where(known, n.prod(axis=0) / both, 0.0)
    total = np.maximum(weights.sum(axis=0), TINY)
    apart = means[0] - means[1]
    change = (weights * apart).sum(axis=0) / total
    off_mean = n[::-1] / both  # how far either side is from the mean of its stratum, as a share of the difference
    between = (off_mean * (apart - change)) ** 2
    least = (ROUNDING * np.abs(np.where(there, values, 0.0)).max(axis=0, initial=1.0)) ** 2
    varies = (known & (np.maximum(within, between) > least)).any(axis=(0, 1))
    residuals = n * (np.maximum(within, least) + between)
    leverages = 1 / both + off_mean**2 / total
    squares = np.where(known, off_mean**2 * residuals / np.maximum(1 - leverages, TINY), 0.0) / total**2
    square = squares.sum(axis=(0, 1))
    freedom = square**2 / np.maximum((squares**2 / np.maximum(n - 1, 0.5)).sum(axis=(0, 1)), TINY)
    enough = (np.where(known, n, 0.0).sum(axis=1) >= MIN_TEXTS).all(axis=0)
    for place in np.flatnonzero(enough & varies).tolist():  # of equal numbers nothing can be tested
        degrees = max(1, min(MAX_DEGREES, int(freedom[place])))
        error, apart_by = sqrt(square[place]), float(change[place])
        said = {"change": apart_by, "error": error, "degrees": degrees, "half": error * t_quantile(degrees)}
        yield {"class": label, "column": place, **said, "p_value": p_value(apart_by / error, degrees)}
