"""Records in which the mean over the heads of a layer is one more head. Knows numpy and records."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Int

from attnviz.errors import InvalidSelection
from attnviz.records import AttentionMaps
from attnviz.records.walk import Heads, Queries, WalkedRows, count_block_rows
from attnviz.selection import MEAN
from attnviz.shapes import Attendable, RealQueries, Weights


def add_mean(maps: AttentionMaps) -> AttentionMaps:
    """Return the record with the mean over its heads behind the last head of each layer.

    Each weight of it is the mean of the heads' weights, so that its rows sum to what theirs do on average. Raises
    InvalidSelection where the record does not have all heads of the model.
    """
    if maps.unseen_heads:
        n_heads = maps.n_heads + len(maps.unseen_heads)
        raise InvalidSelection(
            f"the mean over heads needs all of a layer, and the record has {maps.n_heads} of {n_heads}",
            hint="Record all heads.",
        )
    own = ("weights", "attendable", "sink", "value_norms")
    rest = {each.name: getattr(maps, each.name) for each in fields(AttentionMaps) if each.name not in own}
    sink = None if maps.sink is None else np.concatenate([maps.sink, maps.sink.mean(axis=1, keepdims=True)], axis=1)
    return MapsWithMean(**rest, sink=sink, heads=maps)


@dataclass(frozen=True, eq=False, repr=False)
class MapsWithMean(AttentionMaps):
    """A record whose last head is the mean over the others, worked out from their rows when it is asked for.

    It is a view for measures and pictures, never written to a file; numbers of all heads of a layer together are those
    of `heads_alone`.
    """

    weights: Weights = field(init=False)
    attendable: Attendable = field(init=False)
    heads: AttentionMaps = field(kw_only=True)

    def __post_init__(self) -> None:
        """Check nothing: a mean of distributions is one."""

    def __getattr__(self, name: str) -> Any:
        """Work out `weights` when they are asked for; `attendable` is that of the heads."""
        if name == "attendable":
            return self.heads.attendable
        if name != "weights":
            raise AttributeError(name)
        every = slice(0, len(self.queries))
        means = np.stack([self.rows(layer, self.heads.n_heads, every) for layer in range(self.n_layers)])
        return np.concatenate([self.heads.weights, means[:, None]], axis=1)

    @property
    def head_names(self) -> tuple[int | str, ...]:
        """Return the numbers of the heads, and MEAN."""
        return (*self.head_numbers, MEAN)

    @property
    def heads_alone(self) -> AttentionMaps:
        """Return the record without the mean."""
        return self.heads

    @property
    def heads_at_once(self) -> Sequence[Heads]:
        """Return which heads `walk` is given together: the mean by itself."""
        return [*self.heads.heads_at_once, self.heads.n_heads]

    def rows(self, layer: int, heads: Heads, queries: Queries) -> Float32[np.ndarray, "*heads query key"]:
        """Return the weights of some queries, of the mean a block at a time; `layer` is a place in the record."""
        if not self._is_mean(heads):
            return self.heads.rows(layer, heads, queries)
        places, n_keys = np.arange(len(self.queries))[queries], len(self.keys)
        found = np.empty((len(places), n_keys), dtype=np.float32)
        step = count_block_rows(n_keys)
        for start in range(0, len(places), step):
            block = slice(start, start + step)
            total = np.zeros(found[block].shape)
            for several in self.heads.heads_at_once:
                rows = self.heads.rows(layer, several, places[block])
                total += rows if rows.ndim == 2 else rows.sum(axis=0, dtype=np.float64)
            np.divide(total, self.heads.n_heads, out=found[block], casting="same_kind")
        return found

    def walk(self, layer: int, heads: Heads, several: Iterable[Queries]) -> Iterator[WalkedRows]:
        """Walk over the mean as over weights that are held; see `AttentionMaps.walk`."""
        return super().walk(layer, heads, several) if self._is_mean(heads) else self.heads.walk(layer, heads, several)

    def read_cells_of_heads(
        self, layer: int, queries: Int[np.ndarray, " cell"], keys: Int[np.ndarray, " cell"]
    ) -> Float32[np.ndarray, "head cell"]:
        """Return the weights of single pairs of a query and a key, for each head of a layer and for their mean."""
        found = self.heads.read_cells_of_heads(layer, queries, keys)
        mean = found.mean(axis=0, keepdims=True, dtype=np.float64)
        return np.concatenate([found, mean.astype(np.float32)])

    def read_allowed(self, layer: int, queries: Queries) -> Bool[np.ndarray, "query key"]:
        """Return which keys some queries may attend to in a layer."""
        return self.heads.read_allowed(layer, queries)

    def allows_all(self, layer: int) -> bool:
        """Return whether each query may attend to each key in a layer."""
        return self.heads.allows_all(layer)

    @property
    def layers_alike(self) -> bool:
        """Check whether all layers allow the same attention."""
        return self.heads.layers_alike

    @property
    def real_queries(self) -> RealQueries:
        """Return which queries count in a mean."""
        return self.heads.real_queries

    def _is_mean(self, heads: Heads) -> bool:
        return not isinstance(heads, slice) and heads == self.heads.n_heads
