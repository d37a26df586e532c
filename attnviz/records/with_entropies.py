"""Records that a model makes to be measured at once. Knows numpy and records, and that torch is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float32, Float64, Int

from attnviz.arithmetic import Logarithm, quick_logarithm, quick_total
from attnviz.errors import InvalidRecord
from attnviz.records import AttentionMaps
from attnviz.records.walk import Heads, Queries, SummedRows
from attnviz.shapes import PerQuery

CELLS_AT_ONCE = 2**20  # 4 MiB
SLACK = 1e-3  # nats beyond those of attention that is spread evenly
NEARLY = 1e-6  # how far from 1 a row sums that float32 has rounded


@dataclass(frozen=True, eq=False, repr=False)
class MapsWithEntropies(AttentionMaps):
    """A record whose model worked out the entropies of its rows, from scores that are gone now.

    Measures of it take a third of the time, and agree to 1e-6 with those of a record without. It is not kept: to read
    one from a file would measure it otherwise. Raises InvalidRecord for entropies that no such rows have.
    """

    entropies: PerQuery = field(kw_only=True)  # nats
    _given: np.ndarray = field(init=False)  # the weights, writeable: numpy's argmax copies what is not
    _sums: dict[int, Float64[np.ndarray, "head query"]] = field(init=False, default_factory=dict)  # of layers' rows
    _leasts: dict[int, float] = field(init=False, default_factory=dict)  # weights of layers

    has_entropies = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "_given", self.weights)
        super().__post_init__()
        found = self.entropies
        if found.shape != self.weights.shape[:3]:
            raise InvalidRecord(f"entropies have shape {found.shape}, expected {self.weights.shape[:3]}")
        if not ((found >= 0) & (found <= np.log(len(self.keys)) + SLACK)).all():  # so that NaN is wrong, too
            raise InvalidRecord(f"entropies lie outside 0 to ln {len(self.keys)}")

    @property
    def heads_at_once(self) -> Sequence[Heads]:
        """Several of a short text: each step takes as long to begin as to go over ten thousand weights."""
        step = max(1, CELLS_AT_ONCE // (len(self.queries) * len(self.keys)))
        return [slice(start, min(start + step, self.n_heads)) for start in range(0, self.n_heads, step)]

    def summed(self, layer: int, heads: Heads, several: Iterable[Queries]) -> Iterator[SummedRows]:
        """`rows` of several stretches of queries with their sums and entropies."""
        for queries in several:
            rows, sums = self._given[layer][heads, queries], self._sums[layer][heads, queries]
            yield SummedRows(rows, sums, self.entropies[layer][heads, queries].astype(np.float64))

    def _row_sums(self, layer: int) -> Float64[np.ndarray, "head query"]:
        if layer not in self._sums:  # products in float32, which take a third of the time
            rows = self.weights[layer].reshape(-1, len(self.keys))
            self._sums[layer] = quick_total(rows).reshape(self.n_heads, -1)
        return self._sums[layer]

    def _least(self, layer: int) -> float:
        self._leasts[layer] = super()._least(layer)
        return self._leasts[layer]

    def is_dense(self, layer: int) -> bool:
        """See `AttentionMaps.is_dense`."""
        return self._leasts[layer] > 0 and bool(np.abs(self._sums[layer] - 1).max() <= NEARLY)

    def around(
        self, layer: int, queries: Int[np.ndarray, " query"], reach: int
    ) -> Float32[np.ndarray, "head query offset"]:
        """As `AttentionMaps.around`; of queries that stand together a stretch of each row is copied, which takes a
        tenth of the time of looking up each weight.
        """
        first, stop, n_keys = int(queries[0]), int(queries[-1]) + 1, len(self.keys)
        begin, end = max(first, reach), min(stop, n_keys - reach)  # whose keys are all there
        of_layer = self._given[layer]
        if stop - first != len(queries) or begin >= end or not of_layer.flags.c_contiguous:
            return super().around(layer, queries, reach)
        found = np.empty((self.n_heads, len(queries), 2 * reach + 1), dtype=np.float32)
        of_head, of_query, of_key = of_layer.strides
        shape, strides = (self.n_heads, end - begin, 2 * reach + 1), (of_head, of_query + of_key, of_key)
        from_first = of_layer[:, begin:, begin - reach :]
        found[:, begin - first : end - first] = np.lib.stride_tricks.as_strided(from_first, shape, strides)
        for few in (slice(first, begin), slice(end, stop)):
            found[:, few.start - first : few.stop - first] = super().around(layer, np.arange(n_keys)[few], reach)
        return found

    @property
    def logarithm(self) -> Logarithm:
        """What measures take logarithms of very many weights with."""
        return quick_logarithm()
