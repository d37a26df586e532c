"""Effective number of distinct heads. Knows records only."""

from __future__ import annotations

from math import log

import numpy as np

from attnviz.measures.divergence import Divergences, of_layer
from attnviz.measures.rows import entropies
from attnviz.records import AttentionMaps, Measurement


def vendi_score(maps: AttentionMaps) -> Measurement:
    """The Vendi score of a layer's heads (Friedman and Dieng 2022, arXiv:2210.02410).

    Heads, from 1 (copies) to the number of heads (no two attend to a common key). Two copies and one head with keys
    of its own count as 3/2^(2/3) = 1.89. It says how differently heads attend, not how many the model needs.
    """
    values = np.array([distinct(of_layer(maps, layer)) for layer in range(maps.n_layers)])
    return Measurement("vendi_score", "heads", values, (1.0, float(maps.n_heads)))


def distinct(divergences: Divergences) -> float:
    """exp of the entropy of the eigenvalues of K/h, K = 1 - JSD in bits the similarity of each two of h heads.

    `divergences` are in nats. K is positive definite (Hein and Bousquet 2005, AISTATS), also as a mean over queries.
    """
    similar = 1 - divergences / log(2)
    shares = np.maximum(np.linalg.eigvalsh(similar / len(similar)), 0.0)  # rounding may leave -1e-17
    return float(np.exp(entropies(shares / shares.sum())))
