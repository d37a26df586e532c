"""One head by its factors: a tile of weights is worked out, and summed up while the cache holds it. Knows numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int

from attnviz.arithmetic import exponential
from attnviz.errors import InvalidRecord
from attnviz.records.walk import KEYS_AT_ONCE, ROW_SUM_TOLERANCE, ByDistance, Queries, WalkedRows, WeightTile

STRETCH = 2**9  # keys that are summed in float32, a part of KEYS_AT_ONCE: the sum of more loses digits
N_SAMPLED = 2**8  # keys whose scores say about where those of all lie
EXACT = 3e-7  # how far from 1 a row may sum as it is: float32 rounds a log-sum-exp of 40 by 2e-6, of 100 by 4e-6
NONE = np.float32(-1e30)  # the logarithm of 0, and finite: 0 ln 0 is 0
HIGHEST = 40  # the largest logarithm of an exponential, in units: a sum of them still has room
FEW, MANY = 1e-30, 1e30  # between them float32 holds the sum of a row, and all that counts in it


class Head(NamedTuple):
    """What the weights of one head are worked out from."""

    query: Float32[np.ndarray, "query d_head"]  # times the scale
    key: Float32[np.ndarray, "one_more key"]  # and a row of ones
    added: ByDistance | None  # to each score; NONE: not allowed
    attendable_keys: Bool[np.ndarray, " key"] | None
    n_numbers: int  # weights of all heads: they decide how exponentials are worked out, see `exponential`

    def in_units(self, places: Int[np.ndarray, " query"], unit: float) -> Float32[np.ndarray, "query one_more"]:
        """Some queries as `logarithms` wants them, with room for what is added to each row."""
        query = np.empty((len(places), len(self.key)), dtype=np.float32)
        np.multiply(self.query[places], np.float64(unit), out=query[:, :-1])
        return query

    def logarithms(
        self,
        query: Float32[np.ndarray, "query one_more"],
        less: Float64[np.ndarray, " query"],
        unit: float,
        queries: Queries,
        keys: slice,
        out: Float32[np.ndarray, "query key"],
    ) -> Float64[np.ndarray, " query"] | None:
        """Scores on some keys, and `less` of each row, in units. None, and nothing, where all of them are forbidden.

        Where all that is added is one number, as it is far from the diagonal, it joins what the row has. To add that to
        each score would round all of them: returned is what exponentials of the row are to be multiplied by instead,
        and added no more than keeps them within float32.
        """
        alike = None if self.added is None else self.added.alike(queries, keys)
        if alike == NONE:
            return None
        exact = less + unit * (alike or 0)
        query[:, -1] = np.where(exact > 0, exact, np.minimum(exact + HIGHEST, 0))
        np.matmul(query, self.key[:, keys], out=out)
        if self.added is not None and alike is None:
            _add(self.added, unit, queries, keys, out)
        if self.attendable_keys is not None:
            out[:, ~self.attendable_keys[keys]] = NONE
        return np.asarray(np.exp((exact - query[:, -1]) / unit))


def _add(added: ByDistance, unit: float, queries: Queries, keys: slice, to: Float32[np.ndarray, "query key"]) -> None:
    """What is added to each score, in units. Far from the diagonal it is one number on either side."""
    unlike = added.around(queries, keys)
    for places, number in ((slice(unlike.start), added.line[0]), (slice(unlike.stop, None), added.line[-1])):
        to[:, places] += unit * number
    to[:, unlike] += unit * added.matrix[queries, keys.start + unlike.start : keys.start + unlike.stop]


class Walk:
    """Goes over rows of one head, in memory that is taken once: to take it anew costs as much as to fill it.

    Without a log-sum-exp it is found on the way: scores are taken less about their largest, and each row is multiplied
    by what it then lacks.
    """

    def __init__(self, head: Head, log_sum_exp: Float32[np.ndarray, " query"], *, known: bool) -> None:
        self._head, self._log_sum_exp, self._known = head, log_sum_exp, known
        self._exp, self._unit = exponential(head.n_numbers)
        n_keys = head.key.shape[1]
        self._keys = [slice(start, min(start + KEYS_AT_ONCE, n_keys)) for start in range(0, n_keys, KEYS_AT_ONCE)]
        self._widths = [-(-(keys.stop - keys.start) // STRETCH) * STRETCH for keys in self._keys]
        self._n_rows = 0
        self._tiles: list[Float32[np.ndarray, "query wide"]] = []
        self._logs = np.empty(0, dtype=np.float32)

    def rows(self, queries: Queries) -> WalkedRows:
        """What is found of some queries. Its tiles are overwritten by the next walk.

        Raises InvalidRecord where rows are no distribution.
        """
        places = np.arange(len(self._head.query))[queries]
        self._take_memory(len(places))
        if self._known:
            found = self._found(places, queries, -self._log_sum_exp[places].astype(np.float64))
        else:
            found = self._sum_up(places, queries)
        factors = to_sum_1(found.sums)
        return found if factors is None else found.times(factors)

    def _take_memory(self, n_rows: int) -> None:
        if n_rows > self._n_rows:
            self._n_rows = n_rows
            self._tiles = [np.empty((n_rows, width), dtype=np.float32) for width in self._widths]
            self._logs = np.empty(n_rows * max(self._widths), dtype=np.float32)

    def _sum_up(self, places: Int[np.ndarray, " query"], queries: Queries) -> WalkedRows:
        """With the log-sum-exp of these rows, which is written down."""
        step = max(1, len(self._head.key[0]) // N_SAMPLED)
        for every in dict.fromkeys((step, 1)):
            less = -self._largest(places, every).astype(np.float64)
            with np.errstate(over="ignore", invalid="ignore"):  # then the largest of all has to be known
                found = self._found(places, queries, less)
            if (np.abs(less) < -NONE / 2).all() and ((found.sums > FEW) & (found.sums < MANY)).all():
                break
        else:
            raise InvalidRecord("a query that attends to nothing", hint="Each row is a distribution.")
        sums = found.sums + self._lost_of_peaks(places, found, less)
        exact = np.log(sums) - less
        self._log_sum_exp[places] = exact
        return found.times(np.exp(exact - self._log_sum_exp[places]) / sums)

    def _lost_of_peaks(
        self, places: Int[np.ndarray, " query"], found: WalkedRows, less: Float64[np.ndarray, " query"]
    ) -> Float64[np.ndarray, " query"]:
        """What float32 takes from the largest exponential of each row. What it takes from others evens out."""
        query, key, added, _, _ = self._head
        keys = found.peak_keys
        scores = np.vecdot(query[places].astype(np.float64), key[:-1, keys].T.astype(np.float64))
        if added is not None:
            scores += added.of(places, keys)
        return np.asarray(np.exp(scores + less) - found.peaks)

    def _largest(self, places: Int[np.ndarray, " query"], step: int) -> Float32[np.ndarray, " query"]:
        """The largest score of each query on every `step`-th key and on its own."""
        query, key, added, attendable_keys, _ = self._head
        some, own = np.arange(0, key.shape[1], step), np.minimum(places, key.shape[1] - 1)
        scores = np.concatenate(
            [query[places] @ key[:-1, some], np.vecdot(query[places], key[:-1, own].T)[:, None]], axis=1
        )
        looked_up = np.concatenate([np.broadcast_to(some, (len(places), len(some))), own[:, None]], axis=1)
        if added is not None:
            scores += added.of(places[:, None], looked_up)
        if attendable_keys is not None:
            scores[~attendable_keys[looked_up]] = NONE
        return np.asarray(scores.max(axis=1))

    def _found(
        self, places: Int[np.ndarray, " query"], queries: Queries, less: Float64[np.ndarray, " query"]
    ) -> WalkedRows:
        """Of exponentials of the scores, `less` added to each row."""
        query, n_rows = self._head.in_units(places, self._unit), len(places)
        less = less * self._unit
        ones, ramp = np.ones(STRETCH, dtype=np.float32), np.arange(STRETCH, dtype=np.float32)
        sums, ramps = (np.zeros((n_rows, sum(self._widths) // STRETCH), dtype=np.float32) for _ in range(2))
        entropies, highest = np.zeros(n_rows), np.full(sums.shape, -1.0)
        walked: dict[int, Float64[np.ndarray, " query"]] = {}
        for place, keys in enumerate(self._keys):
            logs, weights = self._logs[: n_rows * self._widths[place]].reshape(n_rows, -1), self._tiles[place][:n_rows]
            n_keys = keys.stop - keys.start
            factors = self._head.logarithms(query, less, self._unit, queries, keys, logs[:, :n_keys])
            if factors is None:
                continue
            logs[:, n_keys:] = NONE
            self._exp(logs, weights)
            walked[place] = factors
            stretches = slice(keys.start // STRETCH, keys.start // STRETCH + self._widths[place] // STRETCH)
            in_stretches = weights.reshape(-1, STRETCH)
            of_tile = (in_stretches @ ones).reshape(n_rows, -1)
            sums[:, stretches] = of_tile * factors[:, None]
            ramps[:, stretches] = (in_stretches @ ramp).reshape(n_rows, -1) * factors[:, None]
            informed = np.vecdot(logs.reshape(-1, STRETCH), in_stretches).reshape(n_rows, -1).sum(axis=1, dtype=float)
            entropies -= factors * (informed / self._unit + np.log(factors) * of_tile.sum(axis=1))
            highest[:, stretches] = in_stretches.max(axis=1).reshape(n_rows, -1) * factors[:, None]
        best = highest.argmax(axis=1)
        return WalkedRows(
            sums=sums.sum(axis=1, dtype=np.float64),
            entropies=entropies,
            peaks=highest.max(axis=1),
            peak_keys=self._peak_keys(best),
            distances=self._distances(places, sums, ramps, walked),
            tiles=[self._tile(place, factors) for place, factors in walked.items()],
        )

    def _peak_keys(self, best: Int[np.ndarray, " query"]) -> Int[np.ndarray, " query"]:
        """The key with the largest weight, where it is known in which stretch that is."""
        place, stretch = np.divmod(best, KEYS_AT_ONCE // STRETCH)
        found = best * STRETCH
        for tile in np.unique(place):
            rows = np.flatnonzero(place == tile)
            in_stretches = self._tiles[tile].reshape(len(self._tiles[tile]), -1, STRETCH)
            found[rows] += in_stretches[rows, stretch[rows]].argmax(axis=1)
        return found

    def _tile(self, place: int, factors: Float64[np.ndarray, " query"]) -> WeightTile:
        keys = self._keys[place]
        return WeightTile(keys, self._tiles[place][: len(factors), : keys.stop - keys.start], factors)

    def _distances(
        self,
        places: Int[np.ndarray, " query"],
        sums: Float32[np.ndarray, "query stretch"],
        ramps: Float32[np.ndarray, "query stretch"],
        walked: Mapping[int, Float64[np.ndarray, " query"]],
    ) -> Float64[np.ndarray, " query"]:
        """Σ w |j - i|: on stretches of keys to one side of all queries, of their sums and of Σ w (j - first) alone."""
        starts = np.arange(sums.shape[1]) * STRETCH
        side = np.sign((starts >= places.max()) * 1.0 - (starts + STRETCH - 1 <= places.min()))
        found = np.asarray((ramps + sums.astype(np.float64) * (starts - places[:, None])) @ side)
        for stretch in np.flatnonzero(side == 0):
            tile, first = divmod(int(starts[stretch]), KEYS_AT_ONCE)
            if tile in walked:
                keys = np.arange(starts[stretch], starts[stretch] + STRETCH, dtype=np.float32)
                apart = np.subtract(keys, places[:, None].astype(np.float32))
                weights = self._tiles[tile][: len(places), first : first + STRETCH]
                found += np.vecdot(weights, np.abs(apart, out=apart)) * walked[tile]
        return found


def to_sum_1(sums: Float64[np.ndarray, " query"]) -> Float64[np.ndarray, " query"] | None:
    """What rows are multiplied by that do not sum to 1 as they are; None where all do.

    Raises InvalidRecord where one is no distribution.
    """
    apart = np.abs(sums - 1)
    if not apart.max() <= ROW_SUM_TOLERANCE:
        raise InvalidRecord("its rows do not sum to 1", hint="q, k and log-sum-exp do not fit.")
    wrong = apart > EXACT
    return 1 / np.where(wrong, sums, 1) if wrong.any() else None
