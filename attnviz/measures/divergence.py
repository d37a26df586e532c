"""How far apart distributions of attention are. Knows records and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np
from jaxtyping import Float32, Float64, Int

from attnviz.measures.rows import (
    Mixer,
    blocks,
    entropies,
    halves,
    mixable,
    own_entropies,
    real_queries,
    remembered,
)
from attnviz.records import AttentionMaps
from attnviz.records.with_entropies import MapsWithEntropies

Divergences = Float64[np.ndarray, "head head"]


def jsd(
    p: Float64[np.ndarray, "#*queries key"], q: Float64[np.ndarray, "#*queries key"]
) -> Float64[np.ndarray, "#*queries"]:
    """Jensen-Shannon divergence over the last axis, the others broadcast: H((p + q)/2) - (H(p) + H(q))/2.

    Nats, from 0 (equal) to ln 2 (nothing in common); symmetric, and finite where one of them is 0
    (Lin 1991, doi:10.1109/18.61115). Its root is a distance.
    """
    apart = entropies((p + q) / 2) - (entropies(p) + entropies(q)) / 2
    return np.asarray(np.maximum(apart, 0.0))  # without the -1e-16 of rounding


@remembered
def of_layer(maps: AttentionMaps, layer: int) -> Divergences:
    """Mean over queries of the JSD of each two heads, in nats (Clark et al. 2019, arXiv:1906.04341, section 6)."""
    return _over_blocks([(maps, layer)], np.arange(maps.n_heads))


def across(several: Sequence[AttentionMaps]) -> Divergences:
    """The same of all heads of several records of the same tokens, layer by layer and one record after the other."""
    layers = [(maps, layer) for maps in several for layer in range(maps.n_layers)]
    owners = np.repeat(np.arange(len(layers)), [maps.n_heads for maps, _ in layers])
    apart = _over_blocks(layers, owners)
    for (owner, layer), (other, copy) in combinations_with_replacement(enumerate(layers), 2):
        if owner == other or _are_copies(layer, copy):
            heads, of_copy = np.flatnonzero(owners == owner), np.flatnonzero(owners == other)
            apart[np.ix_(heads, of_copy)] = apart[np.ix_(of_copy, heads)] = of_layer(*layer)
    return apart


def _are_copies(one: tuple[AttentionMaps, int], other: tuple[AttentionMaps, int]) -> bool:
    """Whether entropies that their model told, and that rounding leaves apart from those of means, are of one layer."""
    told = [maps.weights[layer] for maps, layer in (one, other) if isinstance(maps, MapsWithEntropies)]
    return len(told) == 2 and np.array_equal(*told)


def _over_blocks(layers: Sequence[tuple[AttentionMaps, int]], owners: Int[np.ndarray, " head"]) -> Divergences:
    """The mean over queries of the divergence of each two heads that have different owners."""
    maps, _ = layers[0]
    total = np.zeros((len(owners), len(owners)))
    for block in blocks(maps, 2):
        own = np.concatenate([own_entropies(*layer)[:, block.places] for layer in layers])
        if len(layers) == 1:
            rows, mixer = mixable(*layers[0], block)
        else:
            rows = np.concatenate([halves(*layer, block) for layer in layers])
            mixer = Mixer(maps.logarithm, *rows.shape[1:])
        total += _pairs(rows, own, owners, mixer)
    return total / int(real_queries(maps).sum())


def _pairs(
    rows: Float32[np.ndarray, "head query key"],
    own: Float64[np.ndarray, "head query"],
    owners: Int[np.ndarray, " head"],
    mixer: Mixer,
) -> Divergences:
    """The sum over queries of the divergence of each two heads that have different owners.

    Owners rise from head to head. Copies of one head have exactly 0: each of the three entropies is the same number.
    """
    apart, half = np.zeros((len(rows), len(rows))), own / 2
    for one, first in enumerate(np.searchsorted(owners, owners[owners < owners[-1]], side="right")):
        mixed = mixer.entropies(rows[one], rows[first:])
        mixed -= half[one]
        mixed -= half[first:]
        apart[one, first:] = np.maximum(mixed, 0.0, out=mixed).sum(axis=-1)
    return apart + apart.T
