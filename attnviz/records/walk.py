"""One walk over weights: what it gives, tile by tile, and in which steps it goes. Knows numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from jaxtyping import Float, Float32, Float64, Int, Shaped

from attnviz.arithmetic import cores, dot, total

ROW_SUM_TOLERANCE = 1e-3
CELLS_AT_ONCE = 2**17  # in float32, and as many beside them: a cache holds both, and steps are few
MAX_CELLS = 2**23  # of twice as many rows: 32 MiB in each thread
MIN_ROWS = 64  # of a stretch of queries, however long: to work out fewer takes longer
KEYS_AT_ONCE = 2**12  # of a tile: fewer are more steps, more do not stay in the cache
MAX_THREADS = 4
CELLS_PER_THREAD = 2**26  # fewer are walked over as soon by one
TINY = float(np.finfo(np.float32).tiny)  # ln of it is finite, so that 0 ln 0 comes out as 0


Queries = slice | Int[np.ndarray, " query"]  # a slice copies nothing
Heads = int | slice  # several together, where steps are short
OneOrMore = TypeVar("OneOrMore", int, Heads)


class SummedRows(NamedTuple):
    """Some queries of one head or several, and what one walk over their weights gives beside them."""

    rows: Float32[np.ndarray, "*heads query key"]
    sums: Float64[np.ndarray, "*heads query"]  # nearly 1
    entropies: Float64[np.ndarray, "*heads query"]  # -Σ w ln w of the weights as they are, in nats


def summed(several: Iterable[Float32[np.ndarray, "*heads query key"]]) -> Iterator[SummedRows]:
    """Rows of several stretches of queries with their sums and entropies."""
    logs, with_zeros = np.empty(0, dtype=np.float32), False  # memory that is taken once
    for rows in several:
        *shape, n_keys = rows.shape
        if logs.size < (n_logs := math.prod(shape) * min(n_keys, KEYS_AT_ONCE)):
            logs = np.empty(n_logs, dtype=np.float32)
        informed = _informed(rows, logs, TINY if with_zeros else 0.0)
        if not np.isfinite(informed).all():
            with_zeros = True  # so have others of this head, most likely
            informed = _informed(rows, logs, TINY)
        yield SummedRows(rows, total(rows), -informed)


def _informed(
    rows: Float32[np.ndarray, "*heads query key"], logs: Float32[np.ndarray, " room"], added: float
) -> Float64[np.ndarray, "*heads query"]:
    """Σ w ln (w + `added`) of each row, a stretch of keys at a time: the cache holds it. Not finite where a logarithm
    is that of 0; what is tiny changes nothing else.
    """
    found = np.zeros(rows.shape[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        for start in range(0, rows.shape[-1], KEYS_AT_ONCE):
            of_keys = rows[..., start : start + KEYS_AT_ONCE]
            part = logs[: of_keys.size].reshape(of_keys.shape)
            np.log(np.add(of_keys, added, out=part) if added else of_keys, out=part)
            found += dot(part, of_keys)
    return found


class Tile(Protocol):
    """The weights of some queries on a stretch of keys, to be read before the next rows are walked over."""

    @property
    def keys(self) -> slice:
        """Which they are."""

    def received(self, shares: Float64[np.ndarray, "*heads query"]) -> Float[np.ndarray, "*heads key"]:
        """The sum over queries of what each key gets, each row times its share."""

    def rows(self) -> Float32[np.ndarray, "*heads query key"]:
        """The weights themselves; to be asked once, and last."""

    def times(self, factors: Float64[np.ndarray, "*heads query"]) -> Tile:
        """The same of rows that are so many times as large."""


class WeightTile(NamedTuple):
    """Weights that lie there, each row still to be multiplied where there are factors."""

    keys: slice
    weights: Float32[np.ndarray, "*heads query key"]
    factors: Float64[np.ndarray, " query"] | None = None

    def received(self, shares: Float64[np.ndarray, "*heads query"]) -> Float32[np.ndarray, "*heads key"]:
        """See `Tile`."""
        times = (shares if self.factors is None else shares * self.factors).astype(np.float32)
        return np.asarray((times[..., None, :] @ self.weights)[..., 0, :])

    def rows(self) -> Float32[np.ndarray, "*heads query key"]:
        """See `Tile`; in place."""
        if self.factors is not None:
            multiply(self.weights, self.factors)
        return self.weights

    def times(self, factors: Float64[np.ndarray, " query"]) -> WeightTile:
        """See `Tile`."""
        return self._replace(factors=factors if self.factors is None else self.factors * factors)


class WalkedRows(NamedTuple):
    """What one walk over the weights of some queries of one head or several gives, of the weights as they are."""

    sums: Float64[np.ndarray, "*heads query"]  # nearly 1
    entropies: Float64[np.ndarray, "*heads query"]  # -Σ w ln w, in nats
    peaks: Float64[np.ndarray, "*heads query"]
    peak_keys: Int[np.ndarray, "*heads query"]  # of equal ones the first
    distances: Float64[np.ndarray, "*heads query"]  # Σ w |j - i|
    tiles: Sequence[Tile]  # all weights but those of keys that none of these queries may attend to

    def times(self, factors: Float64[np.ndarray, " query"]) -> WalkedRows:
        """The same of weights that are so many times as large."""
        sums = self.sums * factors
        return WalkedRows(
            sums=sums,
            entropies=self.entropies * factors - sums * np.log(factors),
            peaks=self.peaks * factors,
            peak_keys=self.peak_keys,
            distances=self.distances * factors,
            tiles=[tile.times(factors) for tile in self.tiles],
        )


@dataclass(frozen=True, eq=False)
class ByDistance:
    """One number for each distance, from the last query to the first key up to the first query to the last key."""

    line: Shaped[np.ndarray, " distance"]  # as many as queries and keys, less 1
    n_queries: int

    @property
    def matrix(self) -> Shaped[np.ndarray, "query key"]:
        """Of each pair, in the memory of the line: each row is the one before it, one place further on."""
        n_keys = len(self.line) - self.n_queries + 1
        return np.lib.stride_tricks.sliding_window_view(self.line, n_keys)[::-1]

    def of(self, queries: Int[np.ndarray, "*#cell"], keys: Int[np.ndarray, "*#cell"]) -> Shaped[np.ndarray, "*#cell"]:
        """Of some pairs, or of all of some queries and keys where the queries are a column."""
        return np.asarray(self.line[keys - queries + self.n_queries - 1])

    def alike(self, queries: slice | Int[np.ndarray, " query"], keys: slice) -> float | None:
        """The one that all these pairs have; None where there are several, or may be."""
        low, high = self._extent(queries)
        first, last = (int(each) + self.n_queries - 1 for each in (keys.start - high, keys.stop - 1 - low))
        begin, end = self._ends
        if last < begin:
            return float(self.line[0])
        return float(self.line[-1]) if first >= end else None

    def around(self, queries: slice | Int[np.ndarray, " query"], keys: slice) -> slice:
        """Of these keys, counted from the first of them, those that may be at distances whose numbers differ: before
        them all pairs have the first number of the line, behind them the last.
        """
        low, high = self._extent(queries)
        begin, end = self._ends
        first, stop = begin + low - self.n_queries + 1 - keys.start, end + high - self.n_queries + 1 - keys.start
        n_keys = keys.stop - keys.start
        return slice(min(max(first, 0), n_keys), min(max(stop, 0), n_keys))

    def _extent(self, queries: slice | Int[np.ndarray, " query"]) -> tuple[int, int]:
        """The first and the last of them."""
        if isinstance(queries, slice):
            several = range(self.n_queries)[queries]
            return several[0], several[-1]
        return int(queries.min()), int(queries.max())

    @cached_property
    def _ends(self) -> tuple[int, int]:
        """Up to where the line is as at its beginning, and from where it is as at its end."""
        begins, ends = self.line != self.line[0], self.line != self.line[-1]
        n = len(self.line)
        return int(begins.argmax()) if begins.any() else n, n - int(ends[::-1].argmax()) if ends.any() else 0


def multiply(weights: Float32[np.ndarray, "query key"], factors: Float64[np.ndarray, " query"]) -> None:
    """Each row, in place."""
    of_rows = factors.astype(np.float32)
    if (of_rows != 1).any():
        np.multiply(weights, of_rows[:, None], out=weights)


def stretches(queries: Int[np.ndarray, " query"], n_cells: int, *, walked: bool = True) -> Iterator[Queries]:
    """Some queries, of each of which there are so many cells, a few at a time, as slices where they stand together.

    Where they are `walked` over it is twice as many of a long text: only tiles have to stay in the cache. Of a very
    long one that takes too much memory.
    """
    step = max(MIN_ROWS, CELLS_AT_ONCE // n_cells, min(2 * MIN_ROWS, MAX_CELLS // n_cells) if walked else 0)
    for start in range(0, len(queries), step):
        several = queries[start : start + step]
        first, last = int(several[0]), int(several[-1])
        yield slice(first, last + 1) if last - first + 1 == len(several) else several


def for_each(walk: Callable[[OneOrMore], object], several: Sequence[OneOrMore], n_cells: int) -> None:
    """A walk over so many weights of each head; of a long text a few side by side, as numpy lets threads run.

    Not more than there are cores: they would only take the caches from each other.
    """
    n_threads = min(MAX_THREADS, cores(), len(several) * n_cells // CELLS_PER_THREAD)
    if n_threads > 1:
        with ThreadPoolExecutor(n_threads) as threads:
            list(threads.map(walk, several))
    else:
        for heads in several:
            walk(heads)
