"""What the weights of a layer are worked out from, where they are too many to hold. Knows numpy."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from types import NoneType
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int

from attnviz.errors import InvalidRecord
from attnviz.records import walk
from attnviz.records.walk import Queries, WalkedRows, spread_by_distance

PRODUCTS_AT_ONCE = 2**19  # of q and k: products this small take a third of the time where d_head is small
N_PROBES = 16  # queries of each head whose rows are checked when a record is made or read
MAX_SCORE = 1e4  # no model gives a larger score
MASKED_SCORE = np.float32(-1e30)  # finite, so that 0 times it is 0

Window = tuple[int | None, int | None]  # how many keys before a query it sees, and how many behind; None: all
EVERYWHERE: Window = (None, None)
CAUSAL: Window = (None, 0)


class Block(NamedTuple):
    """Weights of some queries of a head on the keys that any of them may attend to, each row still to be divided."""

    queries: Queries
    keys: slice
    weights: Float32[np.ndarray, "query key"]  # e to the scores less the largest of the row
    logs: Float32[np.ndarray, "query key"]  # logarithms of the weights
    best: Int[np.ndarray, " query"]  # where in the block the largest is
    largest: Float64[np.ndarray, " query"]  # the largest score of each row, in nats


@dataclass(frozen=True, eq=False)
class Factors:
    """One layer: A[h, i, j] = exp(scale · q[h, i] · k[g, j] + bias[h, j - i] - log_sum_exp[h, i]).

    g is the group of heads that share keys, h · groups // heads. `bias` has a number for each distance from -D to D,
    of one head or of all; keys farther away have that of the farthest. What may be attended to is not a matrix, either:
    the keys in the `window` around each query, but for those that no query may attend to.

    Where the log-sum-exp is not given, it is found by the first walk over all weights: `sums` has it in either case.
    Raises InvalidRecord where sizes do not fit, or a number is none.
    """

    query: Float32[np.ndarray, "_head _query _d_head"]
    key: Float32[np.ndarray, "_group _key _d_head"]
    log_sum_exp: Float32[np.ndarray, "_head _query"] | None
    scale: float
    bias: Float32[np.ndarray, "_biased _distance"] | None = None
    window: Window = EVERYWHERE
    attendable_keys: Bool[np.ndarray, " _key"] | None = None  # None: every key; padding is none of them
    _sums: Float32[np.ndarray, "_head _query"] = field(init=False)  # NaN until a walk has computed it

    def __post_init__(self) -> None:
        sums = self.log_sum_exp
        axes = [None if of is None else of.ndim for of in (self.query, self.key, sums, self.bias)]
        if axes[:2] != [3, 3] or not {*axes[2:]} <= {2, None}:
            raise InvalidRecord(f"q, k, log-sum-exp and bias have {axes} axes", hint="Expected 3, 3, 2 and 2.")
        n_heads, n_queries, d_head = self.query.shape
        n_groups = self.key.shape[0]
        biased = (1, 1) if self.bias is None else self.bias.shape
        fits = self.key.shape[2] == d_head and (sums is None or sums.shape == (n_heads, n_queries))
        if not fits or 0 in self.query.shape or 0 in self.key.shape or n_heads % n_groups:
            shapes = self.query.shape, self.key.shape, None if sums is None else sums.shape
            raise InvalidRecord(f"q, k and log-sum-exp of shapes {shapes} do not fit one another")
        if biased[0] not in (1, n_heads) or biased[1] % 2 == 0:
            raise InvalidRecord(
                f"bias has shape {biased}, expected 1 or {n_heads} heads and an odd number of distances"
            )
        numbers = (each for each in (self.query * self.scale, self.key, sums, self.bias) if each is not None)
        if not all((np.abs(each) <= MAX_SCORE).all() for each in numbers):  # written so that NaN is wrong too
            raise InvalidRecord("q, k, log-sum-exp or bias hold values that are not finite")
        if any(type(reach) not in (int, NoneType) or (reach or 0) < 0 for reach in self.window):
            hint = "Each side is None or an integer of at least 0."
            raise InvalidRecord(f"window {self.window} is invalid", hint=hint)
        keys = self.attendable_keys
        if keys is not None and (keys.shape != self.key.shape[1:2] or keys.dtype != np.bool_):
            raise InvalidRecord(f"attendable_keys are {keys.dtype} of shape {keys.shape}, not a bool for each key")
        found = np.full((n_heads, n_queries), np.nan, dtype=np.float32) if sums is None else sums
        object.__setattr__(self, "_sums", found)

    @property
    def sums(self) -> Float32[np.ndarray, "head query"]:
        """Return the log-sum-exp of each row."""
        n_queries, n_keys = self.query.shape[1], self.key.shape[1]
        missing = [head for head, of_head in enumerate(self._sums) if np.isnan(of_head).any()]
        if missing:
            several = list(walk.split_queries(np.arange(n_queries), self.span))
            walk.walk_each(lambda head: deque(self.walk(head, several), maxlen=0), missing, n_queries * n_keys)
        return self._sums

    @property
    def span(self) -> int:
        """Return how many keys a query may attend to at most."""
        n_keys = self.key.shape[1]
        back, forward = (n_keys if reach is None else reach for reach in self.window)
        return int(min(n_keys, back + 1 + forward))

    def _spread_biases(self, head: int) -> Float32[np.ndarray, " distance"]:
        """Return what is added to a score at each distance."""
        if self.bias is None:
            return np.zeros(len(self._distances), dtype=np.float32)
        farthest = self.bias.shape[1] // 2
        return np.asarray(self.bias[head % len(self.bias), np.clip(self._distances, -farthest, farthest) + farthest])

    @property
    def keys_mask(self) -> Bool[np.ndarray, " key"]:
        """Return which keys any query may attend to, written out."""
        return np.ones(self.key.shape[1], dtype=bool) if self.attendable_keys is None else self.attendable_keys

    @property
    def _distances(self) -> Int[np.ndarray, " distance"]:
        """Return all distances that there are from a query to a key."""
        return np.arange(1 - self.query.shape[1], self.key.shape[1])

    @property
    def _within(self) -> Bool[np.ndarray, " distance"]:
        """Return which distances the window lets through."""
        distances = self._distances
        back, forward = (len(distances) if reach is None else reach for reach in self.window)
        return np.asarray((distances >= -back) & (distances <= forward))

    def read_allowed(self, queries: Queries) -> Bool[np.ndarray, "query key"]:
        """Return which keys some queries may attend to."""
        allowed = spread_by_distance(self._within, self.query.shape[1])[queries]
        return allowed if self.attendable_keys is None else allowed & self.attendable_keys

    @cached_property
    def _keys(self) -> Float32[np.ndarray, "group d_head key"]:
        """Return the keys transposed, as matrix products want them."""
        return np.ascontiguousarray(self.key.swapaxes(1, 2))

    def select_keys(self, head: int) -> Float32[np.ndarray, "key d_head"]:
        """Return the keys of a head, which it may share with others."""
        return np.asarray(self.key[head * len(self.key) // len(self.query)])

    def walk(self, head: int, several: Iterable[Queries]) -> Iterator[WalkedRows]:
        """Walk over one head; see `AttentionMaps.walk`. Raises InvalidRecord where rows are no distribution."""
        distances = spread_by_distance(np.abs(self._distances).astype(np.float32), self.query.shape[1])
        for block in self._blocks(head, several):
            apart = distances[block.queries, block.keys]
            found = walk.read_logarithms(block.weights, block.logs, block.best, apart, block.keys)
            sums = self._check_sums(head, block, found.totals)
            if self.log_sum_exp is None:
                self._sums[head, block.queries] = sums
            yield found._replace(sums=np.ones_like(sums))

    def rows(self, head: int, queries: Queries) -> Float32[np.ndarray, "query key"]:
        """Return the weights of some queries. Raises InvalidRecord where they are no distribution."""
        places = np.arange(self.query.shape[1])[queries]
        found = np.zeros((len(places), self.key.shape[1]), dtype=np.float32)
        step = walk.count_block_rows(self.span)
        several = (places[start : start + step] for start in range(0, len(places), step))
        for part, block in zip(range(0, len(places), step), self._blocks(head, several), strict=True):
            sums = walk.sum_rows(block.weights)
            self._check_sums(head, block, sums)
            shares = (1 / sums).astype(np.float32)[:, None]
            np.multiply(block.weights, shares, out=found[part : part + step, block.keys])
        return found

    def _blocks(self, head: int, several: Iterable[Queries]) -> Iterator[Block]:
        """Yield blocks of some queries, each in the memory of the one before: taking it anew takes as long as filling
        it.
        """
        n_heads, n_queries, _ = self.query.shape
        exp = walk.choose_exponential(n_heads * n_queries * self.key.shape[1])
        query, key = self.query[head] * np.float32(self.scale), self._keys[head * len(self.key) // n_heads]
        bias = None if self.bias is None else spread_by_distance(self._spread_biases(head), n_queries)
        hidden = spread_by_distance(np.where(self._within, np.float32(0), MASKED_SCORE), n_queries)
        room = np.empty((2, 0), dtype=np.float32)
        for queries in several:
            of_rows, (keys, edges) = query[queries], self._find_reached(queries)
            shape = len(of_rows), keys.stop - keys.start
            if room.shape[1] < shape[0] * shape[1]:
                room = np.empty((2, shape[0] * shape[1]), dtype=np.float32)
            logs, weights = (each[: shape[0] * shape[1]].reshape(shape) for each in room)
            step = max(1, PRODUCTS_AT_ONCE // of_rows.size)
            for start in range(0, shape[1], step):
                np.matmul(of_rows, key[:, keys][:, start : start + step], out=logs[:, start : start + step])
            if bias is not None:
                logs += bias[queries, keys]
            for edge in edges:
                logs[:, edge.start - keys.start : edge.stop - keys.start] += hidden[queries, edge]
            if self.attendable_keys is not None:
                logs[:, ~self.attendable_keys[keys]] = MASKED_SCORE
            best = logs.argmax(axis=1)
            largest = logs[np.arange(len(logs)), best]
            if (largest < MASKED_SCORE / 2).any():
                raise InvalidRecord("a query attends to nothing", hint="The weights of each query have to sum to 1.")
            exp(np.subtract(logs, largest[:, None], out=logs), weights)
            yield Block(queries, keys, weights, logs, best, largest.astype(np.float64))

    def _find_reached(self, queries: Queries) -> tuple[slice, tuple[slice, slice]]:
        """Return the keys that the window lets any of these queries see, and those of them on either side that it hides
        from some.
        """
        n_queries, n_keys = self.query.shape[1], self.key.shape[1]
        if isinstance(queries, slice):
            low, high = range(n_queries)[queries][0], range(n_queries)[queries][-1]
        else:
            low, high = int(queries.min()), int(queries.max())
        back, forward = (n_queries + n_keys if reach is None else reach for reach in self.window)
        start = min(max(low - back, 0), n_keys - 1)
        stop = max(min(high + forward + 1, n_keys), start + 1)
        before, behind = (min(max(key, start), stop) for key in (high - back, low + forward + 1))
        return slice(start, stop), (slice(start, before), slice(behind, stop))

    def _check_sums(
        self, head: int, block: Block, sums: Float64[np.ndarray, " query"]
    ) -> Float64[np.ndarray, " query"]:
        """Return the log-sum-exp of rows. Raises InvalidRecord where the record was given another."""
        found = np.asarray(block.largest + np.log(sums))
        if self.log_sum_exp is not None:
            apart = np.abs(found - self.log_sum_exp[head, block.queries])
            if not apart.max() <= walk.ROW_SUM_TOLERANCE:  # written so that NaN is wrong too
                raise InvalidRecord("rows do not sum to 1", hint="q, k and log-sum-exp do not fit one another.")
        return found

    def cells(
        self, head: int, queries: Int[np.ndarray, " cell"], keys: Int[np.ndarray, " cell"]
    ) -> Float32[np.ndarray, " cell"]:
        """Return the weights of single pairs of a query and a key, worked out in float64 and rounded once: logarithms
        are small only in the end.
        """
        sides = self.query[head, queries], self.select_keys(head)[keys]
        products = np.einsum("cd,cd->c", *sides, dtype=np.float64)
        places = keys - queries + self.query.shape[1] - 1
        logs = products * self.scale - self.sums[head, queries] + self._spread_biases(head)[places]
        allowed = self._within[places] & self.keys_mask[keys]
        return np.asarray(np.exp(np.where(allowed, logs, MASKED_SCORE).astype(np.float32)))
