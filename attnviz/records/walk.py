"""One walk over the weights of a record: a block of rows at a time, and what is known of each row. Knows numpy.

A text of 16,000 tokens has two billion weights in eight heads. They do not fit into memory, and a pass over what lies
in memory costs more than an exponential. So a block of rows is worked out, all that any measure wants of it is summed
up while the processor's cache still holds it, and the next block is written over it. Three things decide how:

* A block has about 2¹⁸ weights: two arrays of them fill a cache of 2 MiB, and fewer are more calls of numpy's.
* Sums are taken in float32 over 512 keys, and of those sums in float64. To add a number to a sum that is 1,000 times as
  large loses three of its seven digits: the entropy of 16,000 keys would be off by 6e-6, in stretches it is by 1e-6.
* Entropies come of the logarithms that weights were worked out from: with e the exponentials of a row, of scores s less
  the largest of them, and Z = Σ e, it is ln Z - Σ e s / Z. The exponentials are never divided by Z: what comes of a row
  is, which is a few numbers instead of thousands.

Of very many numbers torch takes the sums and exponentials, on the cores that there are for them. It is loaded only
where there are so many that it pays.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import isqrt
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float32, Float64, Int, Shaped
from numpy.typing import NDArray

KEYS_AT_ONCE = 2**9  # summing more in float32 loses digits
# Loading torch takes a second or two; per number it saves half of numpy's 1.4 to 2.7 ns.
MIN_NUMBERS_FOR_TORCH = 2**28


def count_cores() -> int:
    """Count the cores that this process may use, which may be fewer than the machine has."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def choose_exponential(n_numbers: int) -> Callable[[NDArray[np.float32], NDArray[np.float32]], object]:
    """Return a function that writes exp of its first argument to its second.

    The choice depends only on how many numbers there will be, so that equal records have equal bits.
    """
    if n_numbers < MIN_NUMBERS_FOR_TORCH:
        return np.exp
    import torch

    def exp(of: Float32[np.ndarray, "*cell"], out: Float32[np.ndarray, "*cell"]) -> None:
        torch.exp(torch.from_numpy(of), out=torch.from_numpy(out))

    return exp


def dot(
    rows: Float32[np.ndarray, "*heads query key"], others: Float32[np.ndarray, "*#heads query key"]
) -> Float64[np.ndarray, "*heads query"]:
    """Sum each row times another over keys, in float32 a stretch at a time: the sum of very many loses digits."""
    if rows.shape[-1] <= KEYS_AT_ONCE:
        return np.asarray(np.vecdot(rows, others), dtype=np.float64)
    (whole, rest), (of_whole, of_rest) = _split_stretches(rows), _split_stretches(others)
    found = np.vecdot(whole, of_whole).sum(axis=-1, dtype=np.float64)
    return np.asarray(found + np.vecdot(rest, of_rest))


def sum_rows(rows: Float32[np.ndarray, "*heads query key"]) -> Float64[np.ndarray, "*heads query"]:
    """Sum each row over keys, a stretch at a time: exact enough that a share is never above 1."""
    if rows.shape[-1] < KEYS_AT_ONCE:
        return np.asarray(rows.sum(axis=-1, dtype=np.float64))
    whole, rest = _split_stretches(rows)
    ones = np.ones(KEYS_AT_ONCE, dtype=np.float32)
    found = np.vecdot(whole, ones).sum(axis=-1, dtype=np.float64)
    return np.asarray(found + rest.sum(axis=-1))


def _split_stretches(
    rows: Float32[np.ndarray, "*heads query key"],
) -> tuple[Float32[np.ndarray, "*heads query stretch keys"], Float32[np.ndarray, "*heads query rest"]]:
    """Split the keys into stretches of KEYS_AT_ONCE and those that are left, without a copy."""
    n_whole = rows.shape[-1] // KEYS_AT_ONCE
    whole, rest = rows[..., : n_whole * KEYS_AT_ONCE], rows[..., n_whole * KEYS_AT_ONCE :]
    return whole.reshape(*rows.shape[:-1], n_whole, KEYS_AT_ONCE), rest


ROW_SUM_TOLERANCE = 1e-3
CELLS_AT_ONCE = 2**18
MIN_ROWS = 64  # of a block, however long: multiplying fewer takes longer
MAX_THREADS = 4
CELLS_PER_THREAD = 2**26  # one thread is as fast for fewer
TINY = float(np.finfo(np.float32).tiny)  # ln of it is finite, so that 0 ln 0 comes out as 0

Queries = slice | Int[np.ndarray, " query"]  # a slice copies nothing
Heads = int | slice  # several together, where blocks are short
OneOrMore = TypeVar("OneOrMore", int, Heads)


class WalkedRows(NamedTuple):
    """Some queries of one head or several, on the keys that any of them may attend to, and what is known of rows that
    sum to exactly 1. The weights are overwritten by the next block.
    """

    keys: slice
    weights: Float32[np.ndarray, "*heads query key"]  # each row times any number
    totals: Float64[np.ndarray, "*heads query"]  # what they sum to
    entropies: Float64[np.ndarray, "*heads query"]  # nats
    peaks: Float64[np.ndarray, "*heads query"]
    peak_keys: Int[np.ndarray, "*heads query"]  # of equal ones the first
    distances: Float64[np.ndarray, "*heads query"]  # Σ w |j - i|
    sums: Float64[np.ndarray, "*heads query"]  # of rows as the record gives them, nearly 1

    def sum_received(self) -> Float32[np.ndarray, "*heads key"]:
        """Return the sum over queries of what each key gets of rows that sum to 1."""
        # Sums over queries are a product of one row with the block. Dividing each row by its total goes into that row:
        # the weights are read once and none is written.
        return np.asarray(((1 / self.totals).astype(np.float32)[..., None, :] @ self.weights)[..., 0, :])

    def rows(self) -> Float32[np.ndarray, "*heads query key"]:
        """Return the weights as the record gives them. They are scaled in place: ask for them once, and last."""
        factors = (self.sums / self.totals).astype(np.float32)[..., None]
        return self.weights if (factors == 1).all() else np.multiply(self.weights, factors, out=self.weights)


def read_logarithms(
    weights: Float32[np.ndarray, "*heads query key"],
    logs: Float32[np.ndarray, "*heads query key"],
    best: Int[np.ndarray, "*heads query"],
    distances: Float32[np.ndarray, "query key"],
    keys: slice,
) -> WalkedRows:
    """Describe a block of weights given their logarithms in nats, finite also where a weight is 0.

    `best` is the place of the largest weight in each row, `distances` how far each key is from each query.
    """
    # All that is asked of a row is taken here, while the block lies in the cache, and divided by the total of the row
    # at the end. Rounding may leave the entropy of a row with one weight a little below 0, hence the maximum.
    totals = sum_rows(weights)
    return WalkedRows(
        keys=keys,
        weights=weights,
        totals=totals,
        entropies=np.maximum(np.log(totals) - dot(logs, weights) / totals, 0.0),
        peaks=np.take_along_axis(weights, best[..., None], axis=-1)[..., 0] / totals,
        peak_keys=best + keys.start,
        distances=dot(weights, distances) / totals,
        sums=totals,
    )


def spread_by_distance(line: Shaped[np.ndarray, " distance"], n_queries: int) -> Shaped[np.ndarray, "query key"]:
    """Return the matrix that has one number for each distance, as a view of the line.

    The line goes from the last query and the first key to the first query and the last key; each row of the matrix is
    the one before it, one place further on.
    """
    # A window of the line is a row of the matrix; its windows in reverse are the rows in order. Nothing is copied.
    return np.lib.stride_tricks.sliding_window_view(line, len(line) - n_queries + 1)[::-1]


def count_block_rows(n_keys: int) -> int:
    """Return how many rows of so many keys a block has; for a narrow window it is about as high as wide."""
    return max(MIN_ROWS, min(CELLS_AT_ONCE // n_keys, isqrt(CELLS_AT_ONCE)))


def split_queries(queries: Int[np.ndarray, " query"], n_keys: int) -> Iterator[Queries]:
    """Yield some queries in rising order a block at a time, each of so many keys; as slices where possible."""
    step = count_block_rows(n_keys)
    for start in range(0, len(queries), step):
        several = queries[start : start + step]
        first, last = int(several[0]), int(several[-1])
        yield slice(first, last + 1) if last - first + 1 == len(several) else several


def walk_each(walk: Callable[[OneOrMore], object], several: Sequence[OneOrMore], n_cells: int) -> None:
    """Walk over `several` heads of so many weights each; in a long text a few at a time, as numpy lets threads run.

    Not more than there are cores: they would only take the caches from each other.
    """
    n_threads = min(MAX_THREADS, count_cores(), len(several) * n_cells // CELLS_PER_THREAD)
    if n_threads > 1:
        with ThreadPoolExecutor(n_threads) as threads:
            list(threads.map(walk, several))
    else:
        for heads in several:
            walk(heads)
