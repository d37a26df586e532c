"""How far apart distributions of attention are. Knows records and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
from jaxtyping import Float64, Int

from attnviz.measures.rows import LayerRows, entropies, layer_entropies, layer_rows, remembered
from attnviz.records import AttentionMaps

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


def pairwise(rows: LayerRows, spread: Float64[np.ndarray, "head query"] | None = None) -> Divergences:
    """Mean over queries of the JSD of each two heads, in nats (Clark et al. 2019, arXiv:1906.04341, section 6).

    Pair by pair, so that two heads' rows are the memory it takes. `spread` are the rows' entropies, if they are known.
    """
    apart = np.zeros((len(rows), len(rows)))
    _fill(apart, np.arange(len(rows)), rows, entropies(rows) if spread is None else spread)
    return apart


@remembered
def of_layer(maps: AttentionMaps, layer: int) -> Divergences:
    """`pairwise` of a layer's heads."""
    return pairwise(layer_rows(maps, layer), layer_entropies(maps, layer))


def across(several: Sequence[AttentionMaps]) -> Divergences:
    """`pairwise` of all heads of several records of the same tokens, layer by layer and one record after the other."""
    layers = [(maps, layer) for maps in several for layer in range(maps.n_layers)]
    owners = np.repeat(np.arange(len(layers)), [maps.n_heads for maps, _ in layers])
    apart = np.zeros((len(owners), len(owners)))
    for owner, layer in enumerate(layers):
        own = np.flatnonzero(owners == owner)
        apart[np.ix_(own, own)] = of_layer(*layer)
    rows, spread = ([number(*layer) for layer in layers] for number in (layer_rows, layer_entropies))
    _fill(apart, owners, np.concatenate(rows), np.concatenate(spread))
    return apart


def _fill(
    apart: Divergences, owners: Int[np.ndarray, " head"], rows: LayerRows, spread: Float64[np.ndarray, "head query"]
) -> None:
    """Write down the divergence of each two heads that have different owners; `spread` are their entropies.

    -Σ (p + q)/2 ln((p + q)/2) is ln 2 - Σ (p + q) ln(p + q) / 2: the rows need not be halved.
    """
    for one, other in zip(*np.triu_indices(len(rows), k=1), strict=True):
        if owners[one] != owners[other]:
            mixed = log(2) + entropies(rows[one] + rows[other]) / 2
            apart[one, other] = apart[other, one] = np.maximum(mixed - (spread[one] + spread[other]) / 2, 0.0).mean()
