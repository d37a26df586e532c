"""Summaries of numbers that can be merged in any order, to the same bits. Knows arrays, and not what they are of.

A sum of floating-point numbers depends on the order of its terms. Here each number is brought to 0 to 1 by its column's
bounds and rounded to a multiple of 2⁻⁴⁰, which is exact to 1e-12, and sums are whole numbers. What else is kept of a
column does not depend on the order either: its smallest and largest number, counts of fixed bins, the texts with the
largest and smallest numbers, and the texts with the smallest hashes, which are a random sample (bottom-k; Cohen &
Kaplan 2007, doi:10.1145/1281100.1281133).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64, Shaped, UInt64

from attnviz.errors import TooLarge

UNIT = 2**40  # that 1 is of
MAX_TEXTS = 2**23 - 1  # the sum of as many numbers of 0 to 1 fits into 63 bits
N_BINS = 128
MAX_BIN_SHARE = 0.1  # of the range of a column's numbers: wider bins have no quantiles
N_EXTREMES = 10  # texts kept on either side of each column
N_SAMPLED = 256  # texts
NO_TEXT = np.int64(2**63 - 1)

Values = Float64[np.ndarray, "text column"]
Bounds = Float64[np.ndarray, "2 column"]


@dataclass(frozen=True, eq=False)
class Summary:
    """Of some texts, each with a number per column, or NaN for none. Texts are known by their numbers, no two alike.

    `sums` are whole multiples of 2⁻⁴⁰, of the numbers brought to 0 to 1 and of their squares. `extremes` are the
    largest ranks and the negatives of the smallest, each with its text and the number that the text has.
    """

    n_texts: int
    sums: Int64[np.ndarray, "power column"]
    ranges: Float64[np.ndarray, "2 column"]  # the smallest and the largest number
    bins: Int64[np.ndarray, "column bin"]
    extremes: Float64[np.ndarray, "2 place column"]
    extreme_texts: Int64[np.ndarray, "2 place column"]
    extreme_values: Float64[np.ndarray, "2 place column"]
    hashes: UInt64[np.ndarray, " sample"]
    sampled_texts: Int64[np.ndarray, " sample"]
    sample: Float64[np.ndarray, "sample column"]

    @classmethod
    def from_texts(
        cls,
        values: Values,
        bounds: Bounds,
        texts: Int64[np.ndarray, " text"],
        hashes: UInt64[np.ndarray, " text"],
        ranks: Values | None = None,
    ) -> Summary:
        """Summarise some texts, or none. A column's numbers lie within its bounds, but for rounding.

        `ranks` are what texts are extreme by, their numbers unless given. Raises TooLarge for more than MAX_TEXTS.
        """
        _check_number(len(values))
        values = values + 0.0  # no -0, which is as small as 0 and has other bits
        ranks = values if ranks is None else ranks + 0.0
        there = ~np.isnan(values)
        shares = np.where(there, np.clip((values - bounds[0]) / (bounds[1] - bounds[0]), 0.0, 1.0), 0.0)
        places = np.minimum((shares * N_BINS).astype(np.int64), N_BINS - 1)
        n_columns = values.shape[1]
        bins = np.bincount((places + N_BINS * np.arange(n_columns))[there], minlength=N_BINS * n_columns)
        signed = np.where(there, np.stack([ranks, -ranks]), -np.inf)
        numbers = np.broadcast_to(np.where(there, texts[:, None], NO_TEXT), signed.shape)
        order = np.lexsort((texts, hashes))[:N_SAMPLED]
        extremes, extreme_texts, extreme_values = _largest(signed, numbers, np.stack([values, values]))
        return cls(
            n_texts=len(values),
            sums=np.rint(np.stack([shares, shares * shares]) * UNIT).astype(np.int64).sum(axis=1),
            ranges=np.stack([np.fmin.reduce(values, initial=np.inf), np.fmax.reduce(values, initial=-np.inf)]),
            bins=bins.reshape(n_columns, N_BINS).astype(np.int64),
            extremes=extremes,
            extreme_texts=extreme_texts,
            extreme_values=extreme_values,
            hashes=hashes[order],
            sampled_texts=texts[order],
            sample=values[order],
        )

    @property
    def texts(self) -> frozenset[int]:
        """Those that are named: the extreme ones."""
        return frozenset(self.extreme_texts[self.extreme_texts != NO_TEXT].tolist())

    @property
    def counts(self) -> Int64[np.ndarray, " column"]:
        """How many texts have a number in each column."""
        return np.asarray(self.bins.sum(axis=1))

    def means(self, bounds: Bounds) -> Float64[np.ndarray, " column"]:
        """Return the mean of each column over the texts that have a number there; NaN where none has."""
        return np.asarray(bounds[0] + (bounds[1] - bounds[0]) * self._mean_shares())

    def deviations(self, bounds: Bounds) -> Float64[np.ndarray, " column"]:
        """Return the standard deviation of each column, of a sample, to 1e-6 of its bounds; NaN of one text.

        Numbers within a range r are never farther than r / 2 from their mean: so that of equal ones is exactly 0.
        """
        variances = np.full(self.sums.shape[1], np.nan)
        for column, (n, total, square) in enumerate(zip(self.counts.tolist(), *self.sums.tolist(), strict=True)):
            if n > 1:  # in whole numbers, which are as long as they need to be
                variances[column] = max(n * square * UNIT - total * total, 0) / (n * (n - 1) * UNIT * UNIT)
        with np.errstate(divide="ignore", invalid="ignore"):
            most = (self.ranges[1] - self.ranges[0]) / 2 * np.sqrt(self.counts / (self.counts - 1))
        return np.asarray(np.minimum((bounds[1] - bounds[0]) * np.sqrt(variances), most))

    def quantiles(self, shares: Sequence[float], bounds: Bounds) -> Float64[np.ndarray, "share column"]:
        """Of each column. Where all texts are in the sample exactly: the smallest number that at least such a share of
        them does not exceed; else within 1/128 of its bounds: the middle of the bin that this lies in, within the
        smallest and largest number. NaN where no text has a number, and where a bin is wider than a tenth of the range
        of the numbers: most of them are then in one bin, whose middle says nothing.
        """
        counts = self.counts
        ranks = np.ceil(np.asarray(shares)[:, None] * counts).clip(1, np.maximum(counts, 1))
        if 0 < self.n_texts == len(self.sample):
            return np.asarray(np.take_along_axis(np.sort(self.sample, axis=0), ranks.astype(np.int64) - 1, axis=0))
        below = self.bins.cumsum(axis=1)
        places = np.stack([(below < rank[:, None]).sum(axis=1) for rank in ranks])
        middles = bounds[0] + (bounds[1] - bounds[0]) * (places + 0.5) / N_BINS
        spread, width = self.ranges[1] - self.ranges[0], (bounds[1] - bounds[0]) / N_BINS
        known = (spread == 0) | (width <= MAX_BIN_SHARE * spread)
        return np.where(known, np.clip(middles, self.ranges[0], self.ranges[1]), np.nan)

    def _mean_shares(self) -> Float64[np.ndarray, " column"]:
        totals = zip(self.sums[0].tolist(), self.counts.tolist(), strict=True)
        return np.array([total / (n * UNIT) if n else np.nan for total, n in totals])


def merge_summaries(parts: Sequence[Summary]) -> Summary:
    """Return the summary of the texts of all parts, whatever their order. No text may be in two of them.

    Raises TooLarge for more than MAX_TEXTS.
    """
    by_field = {field.name: [getattr(part, field.name) for part in parts] for field in fields(Summary)}
    _check_number(sum(by_field["n_texts"]))
    ranges = np.stack(by_field["ranges"])
    hashes, texts = (np.concatenate(by_field[name]) for name in ("hashes", "sampled_texts"))
    order = np.lexsort((texts, hashes))[:N_SAMPLED]
    names = ("extremes", "extreme_texts", "extreme_values")
    extremes, extreme_texts, extreme_values = _largest(*(np.concatenate(by_field[name], axis=1) for name in names))
    return Summary(
        n_texts=sum(by_field["n_texts"]),
        sums=reduce(np.add, by_field["sums"]),
        ranges=np.stack([ranges[:, 0].min(axis=0), ranges[:, 1].max(axis=0)]),
        bins=reduce(np.add, by_field["bins"]),
        extremes=extremes,
        extreme_texts=extreme_texts,
        extreme_values=extreme_values,
        hashes=hashes[order],
        sampled_texts=texts[order],
        sample=np.concatenate(by_field["sample"])[order],
    )


def _check_number(n_texts: int) -> None:
    if n_texts > MAX_TEXTS:
        raise TooLarge(
            f"{n_texts:,} texts are more than the {MAX_TEXTS:,} that are summed", hint="Survey a part of them."
        )


def _largest(
    ranks: Float64[np.ndarray, "2 text column"],
    texts: Int64[np.ndarray, "2 text column"],
    values: Float64[np.ndarray, "2 text column"],
) -> tuple[
    Float64[np.ndarray, "2 place column"], Int64[np.ndarray, "2 place column"], Float64[np.ndarray, "2 place column"]
]:
    """Return the largest ranks of each column, of equal ones the first texts, and their values; padded if too few."""
    largest, of_texts, of_values = keep_largest(ranks, (texts,), (values,), (np.nan,), N_EXTREMES)
    return largest, of_texts, np.where(of_texts == NO_TEXT, np.nan, of_values)


def keep_largest(
    ranks: Float64[np.ndarray, "side item column"],
    numbers: Sequence[Int64[np.ndarray, "side item column"]],
    others: Sequence[Shaped[np.ndarray, "side item column ..."]],
    fills: Sequence[int | float],
    n: int,
) -> list[Any]:
    """Return the `n` largest ranks of each column, of equal ones those of the smallest numbers; and what they are of.

    Where there are too few, ranks are padded with -inf, numbers with NO_TEXT, and others with their `fills`.
    """
    order = np.lexsort((*numbers[::-1], -ranks), axis=1)[:, :n]
    paddings: tuple[Any, ...] = (-np.inf, *(NO_TEXT for _ in numbers), *fills)
    found = []
    for of, padding in zip((ranks, *numbers, *others), paddings, strict=True):
        deeper = of.ndim - order.ndim
        kept = np.take_along_axis(of, order.reshape(order.shape + (1,) * deeper), axis=1)
        missing = ((0, 0), (0, n - order.shape[1]), *((0, 0),) * (of.ndim - 2))
        found.append(np.pad(kept, missing, constant_values=padding))
    return found
