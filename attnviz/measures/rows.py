"""The rows that count: what every measure walks over. Knows records, and no measure.

Maps too large to be drawn come of the same walk, a cell for each block of weights.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from math import isqrt
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float32, Float64, Int

from attnviz.errors import InvalidOption
from attnviz.records import TINY, AttentionMaps, holds_factors
from attnviz.records.part import TokenSelection
from attnviz.records.walk import Queries, split_queries, walk_each
from attnviz.shapes import PerRow


class PooledMaps:
    """Maps of a layer too large to be drawn: a cell for each block of `size` × `size` weights, the last ones smaller.

    They are filled row by row. Then `mean` [head, row, column] is over the cells of a block where attention is allowed,
    and `allowed` [row, column] says where it is anywhere in one.
    """

    def __init__(self, maps: AttentionMaps, layer: int, size: int) -> None:
        self.size, self._sides = size, (len(maps.queries), len(maps.keys))
        self._starts = np.arange(0, len(maps.keys), size)
        shape = -(-len(maps.queries) // size), len(self._starts)
        self.mean = np.zeros((maps.n_heads, *shape), dtype=np.float32)
        self._n_allowed = np.zeros(shape, dtype=np.int64)
        if maps.allows_all(layer):
            self._n_allowed[:] = np.outer(*(np.diff([*range(0, side, size), side]) for side in self._sides))
            return
        for start in range(0, len(maps.queries), size):
            allowed = maps.read_allowed(layer, slice(start, start + size))
            of_key = len(allowed) if allowed.all() else allowed.sum(axis=0)  # all() takes a tenth of the time
            self._n_allowed[start // size] = np.add.reduceat(np.broadcast_to(of_key, len(maps.keys)), self._starts)

    def add(self, head: int, queries: Queries, keys: slice, weights: Float32[np.ndarray, "query key"]) -> None:
        """Add the weights of a stretch of queries of one head on some keys; the others get nothing."""
        rows = np.arange(self._sides[0])[queries] // self.size
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        padded = np.zeros((len(rows), len(self._starts) * self.size), dtype=np.float32)
        padded[:, keys] = weights
        by_block = padded.reshape(len(rows), -1, self.size) @ np.ones(self.size, dtype=np.float32)
        self.mean[head, rows[starts]] += np.add.reduceat(by_block, starts)

    def finish(self) -> None:
        """Turn sums into means, once all weights are added."""
        self.mean /= np.maximum(self._n_allowed, 1).astype(np.float32)  # in place: allocating memory takes as long
        self.allowed = self._n_allowed > 0


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Rows = Float64[np.ndarray, "query key"]
OF_ROWS = ("sums", "entropies", "peaks", "peak_keys", "distances")  # what a walk knows of each row
QUERIES_AT_ONCE = 2**10  # queries whose neighbours are looked up together
MAX_OFFSET = 16  # largest distance in tokens at which attention is summed by offset
MAX_DRAWN_WEIGHTS = 2**26  # of all heads, above which maps are pooled: 256 MiB, 8 heads of 2,896 tokens
MAX_SIDE = 1024  # rows or columns of a map whose cells stand for several weights


class QueryBlock(NamedTuple):
    """A stretch of the real queries."""

    places: slice  # among the real queries
    queries: slice | Int[np.ndarray, " query"]  # among all; a slice copies nothing


@dataclass(frozen=True, eq=False)
class RowStatistics:
    """What one walk over the weights of a layer gives: of each row, and of each key by all rows. All but the sums are
    those of rows that sum to exactly 1.
    """

    sums: Float64[np.ndarray, "head query"]  # of weights as the record gives them, nearly 1
    entropies: Float64[np.ndarray, "head query"]  # nats, within 4e-6
    peaks: Float64[np.ndarray, "head query"]
    peak_keys: Int[np.ndarray, "head query"]  # of equal ones the first
    distances: Float64[np.ndarray, "head query"]  # tokens; without meaning between two texts
    received: Float64[np.ndarray, "head key"]  # mean over queries of the weight on each key
    pooled: PooledMaps | None  # with `with_pools` only, see `choose_pool_size`


# By record, as long as it lives, and layer.
_STATISTICS: WeakKeyDictionary[AttentionMaps, dict[int, RowStatistics]] = WeakKeyDictionary()


def cache_on_record(
    number: Callable[Concatenate[AttentionMaps, Parameters], Result],
) -> Callable[Concatenate[AttentionMaps, Parameters], Result]:
    """Cache `number` of a record and its other arguments for as long as the record lives: several measures start from
    it. The result has to be small beside the record.
    """
    known: WeakKeyDictionary[AttentionMaps, dict[object, Result]] = WeakKeyDictionary()

    @wraps(number)
    def remembering(maps: AttentionMaps, /, *asked: Parameters.args, **named: Parameters.kwargs) -> Result:
        found = known.setdefault(maps, {})
        key = (asked, tuple(named.items()))
        if key not in found:
            found[key] = number(maps, *asked, **named)
        return found[key]

    return remembering


@cache_on_record
def split_real_queries(maps: AttentionMaps, n_cells: int | None = None) -> tuple[QueryBlock, ...]:
    """Split the real queries into blocks that the processor's cache holds, given `n_cells` weights of each query;
    without it, as many as there are keys.
    """
    found, start = [], 0
    for queries in split_queries(np.flatnonzero(maps.real_queries), n_cells or len(maps.keys)):
        n_queries = queries.stop - queries.start if isinstance(queries, slice) else len(queries)
        found.append(QueryBlock(slice(start, start + n_queries), queries))
        start += n_queries
    return tuple(found)


def compute_statistics(maps: AttentionMaps, layer: int, *, with_pools: bool = False) -> RowStatistics:
    """Walk once over a layer's weights for all measures that need the same, cached for as long as the record lives.
    Where maps are drawn pooled, ask for `with_pools` first, so that pools come of the same walk.
    """
    known = _STATISTICS.setdefault(maps, {})
    if layer not in known or (with_pools and known[layer].pooled is None):
        known[layer] = _walk(maps, layer, with_pools)
    return known[layer]


def _walk(maps: AttentionMaps, layer: int, with_pools: bool) -> RowStatistics:
    """Walk over several heads in one step where the record says so, else head by head.

    Of a long text a few heads are walked over at a time, as numpy lets threads run side by side; each head's numbers
    are its own.
    """
    n_queries, n_keys = int(maps.real_queries.sum()), len(maps.keys)
    rows = {name: np.empty((maps.n_heads, n_queries), np.int64 if name == "peak_keys" else float) for name in OF_ROWS}
    received = np.zeros((maps.n_heads, n_keys))
    pools = PooledMaps(maps, layer, choose_pool_size(maps)) if with_pools else None

    def walk(heads: int | slice) -> None:
        walked = maps.walk(layer, heads, [queries for _, queries in several])
        for (places, queries), found in zip(several, walked, strict=True):
            for name, of_rows in rows.items():
                of_rows[heads, places] = getattr(found, name)
            received[heads, found.keys] += found.sum_received()
            if pools is not None:
                assert isinstance(heads, int)
                pools.add(heads, queries, found.keys, found.rows())

    alone = maps.heads_alone
    several = split_real_queries(maps, alone.factors[layer].span if holds_factors(alone) else n_keys)
    walk_each(walk, maps.heads_at_once if pools is None else range(maps.n_heads), n_queries * n_keys)
    if pools is not None:
        pools.finish()
    return RowStatistics(**rows, received=received / n_queries, pooled=pools)


def choose_pool_size(maps: AttentionMaps) -> int:
    """Return how many queries, and keys, become one where all heads are drawn; 1 where each weight has room.

    The cells of all heads are no more than the weights that are drawn one by one.
    """
    longest, n_heads = max(len(maps.queries), len(maps.keys)), maps.n_layers * maps.n_heads
    side = max(1, min(MAX_SIDE, isqrt(MAX_DRAWN_WEIGHTS // n_heads)))
    return 1 if n_heads * len(maps.queries) * len(maps.keys) <= MAX_DRAWN_WEIGHTS else -(-longest // side)


def has_too_many_weights(maps: AttentionMaps, n_heads: int, part: TokenSelection | None = None) -> bool:
    """Return whether so many heads have more weights than are drawn one by one, of all tokens or of a part."""
    n_queries, n_keys = (len(maps.queries), len(maps.keys)) if part is None else (len(part.queries), len(part.keys))
    return n_heads * n_queries * n_keys > MAX_DRAWN_WEIGHTS and choose_pool_size(maps) > 1


def head_rows(maps: AttentionMaps, layer: int, head: int, block: QueryBlock | None = None) -> Rows:
    """Return the real queries of one head, or a block of them; rows sum to exactly 1, which a record promises nearly.

    Where the model has a sink, that is what goes to keys as a distribution of its own; `to_sink` is how much that is.
    """
    queries = np.flatnonzero(maps.real_queries) if block is None else block.queries
    rows = maps.rows(layer, head, queries).astype(np.float64)
    rows /= rows.sum(axis=-1, keepdims=True)
    return rows


def layer_rows(maps: AttentionMaps, layer: int) -> Float64[np.ndarray, "head query key"]:
    """Return the same of all heads of a layer. Padding has no row; as a key it stays, with weight 0."""
    return np.stack([head_rows(maps, layer, head) for head in range(maps.n_heads)])


@cache_on_record
def sum_by_distance(maps: AttentionMaps) -> Float64[np.ndarray, "layer head offset"]:
    """Return the sum over real queries of the weights on the keys `MAX_OFFSET` before to `MAX_OFFSET` after the query.

    Divided by the number of queries these are shares: at 0 that of attention to oneself, at -1 to the token before.
    """
    found = np.zeros((maps.n_layers, maps.n_heads, 2 * MAX_OFFSET + 1))
    real = np.flatnonzero(maps.real_queries)
    for start in range(0, len(real), QUERIES_AT_ONCE):
        places = slice(start, start + QUERIES_AT_ONCE)
        keys = real[places, None] + np.arange(-MAX_OFFSET, MAX_OFFSET + 1)
        there = ((keys >= 0) & (keys < len(maps.keys))).astype(np.float32)
        cells = np.repeat(real[places], keys.shape[1]), keys.clip(0, len(maps.keys) - 1).ravel()
        for layer in range(maps.n_layers):
            shares = 1 / compute_statistics(maps, layer).sums[:, None, places]
            around = maps.read_cells_of_heads(layer, *cells).reshape(maps.n_heads, *keys.shape) * there
            found[layer] += (shares @ around)[:, 0]
    return found


def compute_entropies(rows: Float64[np.ndarray, "*queries key"]) -> Float64[np.ndarray, "*queries"]:
    """Return -Σ w ln w of each row, in nats, where 0 ln 0 = 0."""
    terms = rows + TINY
    np.log(terms, out=terms)
    return np.asarray(0.0 - np.vecdot(terms, rows))  # not -0


@cache_on_record
def count_attendable(maps: AttentionMaps, layer: int) -> Int[np.ndarray, " query"]:
    """Count the keys that each real query may attend to in this layer."""
    if maps.allows_all(layer):
        return np.full(int(maps.real_queries.sum()), len(maps.keys))
    return np.concatenate([maps.read_allowed(layer, block.queries).sum(axis=-1) for block in split_real_queries(maps)])


def compute_equal_shares(maps: AttentionMaps, layer: int) -> PerRow:
    """Return the equal share of each query (see `Heatmap.equal_share`), 0 for padding."""
    of_query = np.zeros(len(maps.queries), dtype=np.float32)
    of_query[maps.real_queries] = 1 / count_attendable(maps, layer)
    return of_query


@cache_on_record
def max_attendable(maps: AttentionMaps) -> int:
    """Return the largest number of keys that any real query may attend to in any layer."""
    return max(int(count_attendable(maps, layer).max()) for layer in find_unlike_layers(maps))


def find_unlike_layers(maps: AttentionMaps) -> range:
    """Return the layers that may differ in what may be attended to: only the first where all are alike."""
    return range(1 if maps.layers_alike else maps.n_layers)


def check_self_attention(maps: AttentionMaps, name: str) -> None:
    """Raise InvalidOption where queries and keys are different texts."""
    if not maps.self_attention:
        raise InvalidOption(f"{name} needs self-attention", hint="Queries and keys of this record are different texts.")
