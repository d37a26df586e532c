"""The rows that count: what every measure walks over. Knows records, and no measure."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int

from attnviz.errors import BadOption
from attnviz.records import AttentionMaps
from attnviz.shapes import PerHead, PerLayer

Known = TypeVar("Known")
Rows = Float64[np.ndarray, "query key"]
LayerRows = Float64[np.ndarray, "head query key"]
SMALLEST = np.finfo(np.float64).tiny  # ln of it is finite, so that 0 ln 0 comes out as 0


def remembered(number: Callable[[AttentionMaps, int], Known]) -> Callable[[AttentionMaps, int], Known]:
    """`number` of a record's layer, worked out once for as long as the record lives: several measures start from it."""
    known: WeakKeyDictionary[AttentionMaps, dict[int, Known]] = WeakKeyDictionary()

    @wraps(number)
    def remembering(maps: AttentionMaps, layer: int) -> Known:
        found = known.setdefault(maps, {})
        if layer not in found:
            found[layer] = number(maps, layer)
        return found[layer]

    return remembering


def head_rows(maps: AttentionMaps, layer: int, head: int) -> Rows:
    """The real queries of one head; their rows sum to exactly 1, which a record promises only nearly.

    Where the model has a sink, that is what goes to keys as a distribution of its own; `to_sink` is how much that is.
    """
    return _exact(maps.weights[layer, head][maps.real_queries])


def layer_rows(maps: AttentionMaps, layer: int) -> LayerRows:
    """The same of all heads of a layer. Padding has no row; as a key it stays, with weight 0."""
    return _exact(maps.weights[layer][:, maps.real_queries])


def _exact(weights: Float32[np.ndarray, "*queries key"]) -> Float64[np.ndarray, "*queries key"]:
    rows = weights.astype(np.float64)
    rows /= rows.sum(axis=-1, keepdims=True)
    return rows


def per_head(maps: AttentionMaps, number: Callable[[Rows], float]) -> PerHead:
    """`number` of each head's rows, one head's at a time."""
    values = np.empty((maps.n_layers, maps.n_heads))
    for layer, head in np.ndindex(values.shape):
        values[layer, head] = number(head_rows(maps, layer, head))
    return values


def per_layer(maps: AttentionMaps, number: Callable[[LayerRows], float]) -> PerLayer:
    """`number` of the rows of each layer's heads, one layer's at a time."""
    return np.array([number(layer_rows(maps, layer)) for layer in range(maps.n_layers)])


def share_on(maps: AttentionMaps, there: Bool[np.ndarray, "#query key"]) -> PerHead:
    """The share of attention that goes where `there` is True: mean over queries of each row's sum there."""
    real = maps.real_queries
    chosen = np.broadcast_to(there, maps.attendable.shape[1:])[real]
    return per_head(maps, lambda rows: float(rows[chosen].sum() / len(rows)))


def entropies(rows: Float64[np.ndarray, "*queries key"]) -> Float64[np.ndarray, "*queries"]:
    """-Σ w ln w of each row, in nats, where 0 ln 0 = 0."""
    terms = np.maximum(rows, SMALLEST)
    np.log(terms, out=terms)
    terms *= rows
    return np.asarray(-terms.sum(axis=-1))


@remembered
def layer_entropies(maps: AttentionMaps, layer: int) -> Float64[np.ndarray, "head query"]:
    """`entropies` of each head's rows, worked out one head at a time."""
    return np.stack([entropies(head_rows(maps, layer, head)) for head in range(maps.n_heads)])


def per_entropy(maps: AttentionMaps, number: Callable[[Float64[np.ndarray, " query"]], float]) -> PerHead:
    """`number` of the entropies of each head's queries."""
    return np.array([[number(of_head) for of_head in layer_entropies(maps, layer)] for layer in range(maps.n_layers)])


def n_attendable(maps: AttentionMaps, layer: int) -> Int[np.ndarray, " query"]:
    """How many keys each real query may attend to in this layer."""
    return np.asarray(maps.attendable[layer][maps.real_queries].sum(axis=-1))


def most_keys(maps: AttentionMaps) -> int:
    """The largest number of keys that any real query may attend to in any layer."""
    return max(int(n_attendable(maps, layer).max()) for layer in range(1 if maps.layers_alike else maps.n_layers))


def check_self_attention(maps: AttentionMaps, name: str) -> None:
    """Raises BadOption where queries and keys are different texts."""
    if not maps.self_attention:
        raise BadOption(f"{name} needs self-attention", hint="Queries and keys of this record are different texts.")
