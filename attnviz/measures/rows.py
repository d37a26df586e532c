"""The rows that count: what every measure walks over. Knows records, and no measure."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int, Num

from attnviz.errors import InvalidOption
from attnviz.records import AttentionMaps
from attnviz.shapes import PerHead, PerLayer, RealQueries

Asked = ParamSpec("Asked")
Known = TypeVar("Known")
GivenRows = Float32[np.ndarray, "query key"]
Rows = Float64[np.ndarray, "query key"]
LayerRows = Float64[np.ndarray, "head query key"]
TINY = np.finfo(np.float64).tiny  # ln of it is finite, so that 0 ln 0 comes out as 0


def remembered(
    number: Callable[Concatenate[AttentionMaps, Asked], Known],
) -> Callable[Concatenate[AttentionMaps, Asked], Known]:
    """`number` of a record (and its layer), worked out once for as long as the record lives: several measures start
    from it. It has to be small beside the record.
    """
    known: WeakKeyDictionary[AttentionMaps, dict[object, Known]] = WeakKeyDictionary()

    @wraps(number)
    def remembering(maps: AttentionMaps, /, *asked: Asked.args, **named: Asked.kwargs) -> Known:
        found = known.setdefault(maps, {})
        key = (asked, tuple(named.items()))
        if key not in found:
            found[key] = number(maps, *asked, **named)
        return found[key]

    return remembering


@remembered
def real_queries(maps: AttentionMaps) -> RealQueries:
    """Those of the record: to find them takes as long as a head's measure."""
    return maps.real_queries


@remembered
def _counted(maps: AttentionMaps) -> slice | RealQueries:
    """The real queries as an index, which copies nothing where all of them are."""
    return slice(None) if real_queries(maps).all() else real_queries(maps)


def given_rows(maps: AttentionMaps, layer: int, head: int) -> GivenRows:
    """The weights of the real queries as the record has them, not copied unless there is padding."""
    return np.asarray(maps.weights[layer, head][_counted(maps)])


@remembered
def row_sums(maps: AttentionMaps, layer: int) -> Float64[np.ndarray, "head query"]:
    """What the rows of each head sum to, nearly 1."""
    given = (given_rows(maps, layer, head) for head in range(maps.n_heads))
    return np.stack([rows.sum(axis=-1, dtype=np.float64) for rows in given])


def head_rows(maps: AttentionMaps, layer: int, head: int) -> Rows:
    """The real queries of one head; their rows sum to exactly 1, which a record promises only nearly.

    Where the model has a sink, that is what goes to keys as a distribution of its own; `to_sink` is how much that is.
    """
    rows = given_rows(maps, layer, head).astype(np.float64)
    rows /= row_sums(maps, layer)[head, :, None]
    return rows


def layer_rows(maps: AttentionMaps, layer: int) -> LayerRows:
    """The same of all heads of a layer. Padding has no row; as a key it stays, with weight 0."""
    rows = np.empty((maps.n_heads, int(real_queries(maps).sum()), len(maps.keys)))
    for head in range(maps.n_heads):
        rows[head] = head_rows(maps, layer, head)
    return rows


def per_head(maps: AttentionMaps, number: Callable[[GivenRows], Num[np.ndarray, " query"]]) -> PerHead:
    """Mean over each head's queries of `number`, which gives one for each row: of twice the weights, twice as much.

    So not the rows have to be divided by their sums, only what comes of them, which is far less.
    """
    values = np.empty((maps.n_layers, maps.n_heads))
    for layer in range(maps.n_layers):
        by_query = np.stack([number(given_rows(maps, layer, head)) for head in range(maps.n_heads)])
        values[layer] = (by_query / row_sums(maps, layer)).mean(axis=-1)
    return values


def per_layer(maps: AttentionMaps, number: Callable[[LayerRows], float]) -> PerLayer:
    """`number` of the rows of each layer's heads, one layer's at a time."""
    return np.array([number(layer_rows(maps, layer)) for layer in range(maps.n_layers)])


def share_on(maps: AttentionMaps, there: Bool[np.ndarray, "#query key"]) -> PerHead:
    """The share of attention that goes where `there` is True: mean over queries of each row's sum there."""
    if len(there) == 1:  # the same keys for every query: what these receive
        return np.stack([layer_received(maps, layer)[:, there[0]].sum(axis=-1) for layer in range(maps.n_layers)])
    chosen = there[real_queries(maps)].astype(np.float64)
    return per_head(maps, lambda rows: np.vecdot(rows.astype(np.float64), chosen))


@remembered
def layer_received(maps: AttentionMaps, layer: int) -> Float64[np.ndarray, "head key"]:
    """What each key receives of each head: mean over queries of the weight on it."""
    shares = 1 / (row_sums(maps, layer) * row_sums(maps, layer).shape[-1])
    given = (given_rows(maps, layer, head).astype(np.float64) for head in range(maps.n_heads))
    return np.stack([share @ rows for share, rows in zip(shares, given, strict=True)])


def entropies(rows: Float64[np.ndarray, "*queries key"]) -> Float64[np.ndarray, "*queries"]:
    """-Σ w ln w of each row, in nats, where 0 ln 0 = 0."""
    terms = rows + TINY  # which changes nothing but zeros
    np.log(terms, out=terms)
    return np.asarray(0.0 - np.vecdot(terms, rows))  # not -0


@remembered
def layer_entropies(maps: AttentionMaps, layer: int) -> Float64[np.ndarray, "head query"]:
    """`entropies` of each head's rows, worked out one head at a time."""
    return np.stack([entropies(head_rows(maps, layer, head)) for head in range(maps.n_heads)])


@remembered
def n_attendable(maps: AttentionMaps, layer: int) -> Int[np.ndarray, " query"]:
    """How many keys each real query may attend to in this layer."""
    return np.asarray(maps.attendable[layer][real_queries(maps)].sum(axis=-1))


def most_keys(maps: AttentionMaps) -> int:
    """The largest number of keys that any real query may attend to in any layer."""
    return max(int(n_attendable(maps, layer).max()) for layer in range(1 if maps.layers_alike else maps.n_layers))


def check_self_attention(maps: AttentionMaps, name: str) -> None:
    """Raises InvalidOption where queries and keys are different texts."""
    if not maps.self_attention:
        raise InvalidOption(f"{name} needs self-attention", hint="Queries and keys of this record are different texts.")
