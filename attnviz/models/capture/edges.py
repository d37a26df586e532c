"""Weights along the edges of a graph as maps. Knows numpy only."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float32, Int


def fill_edges(
    sources: Int[np.ndarray, " edge"], targets: Int[np.ndarray, " edge"], weights: np.ndarray, n_nodes: int
) -> tuple[Float32[np.ndarray, "head query key"], Bool[np.ndarray, "query key"]]:
    """Lay out weights [edge, head] or [edge] as maps in which targets attend to sources, and say where an edge is.

    Edges between the same two nodes add up.
    """
    maps, given = np.zeros((n_nodes, n_nodes, *weights.shape[1:]), np.float32), np.zeros((n_nodes, n_nodes), bool)
    np.add.at(maps, (targets, sources), weights)
    given[targets, sources] = True
    return np.moveaxis(maps, 2, 0) if maps.ndim > 2 else maps[None], given
