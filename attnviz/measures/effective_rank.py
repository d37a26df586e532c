"""How many different mixtures of the values a query gets. Knows records only."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from attnviz.measures.rows import LayerRows, entropies, most_keys, per_layer
from attnviz.records import AttentionMaps, Measurement


def effective_rank(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the effective rank of the query's weights, a row for each head (Roy and Vetterli 2007).

    Mixes, from 1 (one head, or copies) to the smaller of the numbers of heads and of keys (heads with no common key
    and equally sharp). The effective rank is exp of the entropy of the normalised singular values (EUSIPCO 2007). It
    says how many independent mixtures of the keys the weights allow; heads also read values of their own.
    """
    most = float(min(maps.n_heads, most_keys(maps)))
    return Measurement("effective_rank", "mixes", per_layer(maps, _ranks), (1.0, most))


def _ranks(rows: LayerRows) -> Float64[np.ndarray, " query"]:
    """Singular values are the roots of the eigenvalues of heads × heads products: quick where keys are many."""
    by_query = rows.transpose(1, 0, 2)
    eigenvalues = np.linalg.eigvalsh(by_query @ by_query.transpose(0, 2, 1))
    noise = eigenvalues[:, -1:] * max(by_query.shape[1:]) * np.finfo(np.float64).eps
    singular = np.sqrt(np.where(eigenvalues > noise, eigenvalues, 0.0))  # below is rounding, some of it negative
    return np.asarray(np.exp(entropies(singular / singular.sum(axis=-1, keepdims=True))))
