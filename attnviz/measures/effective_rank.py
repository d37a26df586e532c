"""How many different mixtures of the values a query gets. Knows records only."""

from __future__ import annotations

import numpy as np

from attnviz.measures.rows import blocks, entropies, most_keys, real_queries, row_sums
from attnviz.records import AttentionMaps, Measurement


def effective_rank(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the effective rank of the query's weights, a row for each head (Roy and Vetterli 2007).

    Mixes, from 1 (one head, or copies) to the smaller of the numbers of heads and of keys (heads with no common key
    and equally sharp). The effective rank is exp of the entropy of the normalised singular values (EUSIPCO 2007). It
    says how many independent mixtures of the keys the weights allow; heads also read values of their own.
    """
    most = float(min(maps.n_heads, most_keys(maps)))
    values = np.array([_mean_rank(maps, layer) for layer in range(maps.n_layers)])
    return Measurement("effective_rank", "mixes", values, (1.0, most))


def _mean_rank(maps: AttentionMaps, layer: int) -> float:
    """Singular values are the roots of the eigenvalues of heads × heads products: quick where keys are many."""
    if maps.n_heads == 1:
        return 1.0
    found, n_keys = 0.0, len(maps.keys)
    for block in blocks(maps, 2):
        sums = row_sums(maps, layer)[:, block.places].T  # a product is divided by two of them, rather than all rows
        rows = np.empty((maps.n_heads, len(sums), n_keys))
        for heads in maps.heads_at_once:
            rows[heads] = maps.rows(layer, heads, block.queries)
        by_query = rows.transpose(1, 0, 2)
        products = by_query @ by_query.transpose(0, 2, 1)
        products /= sums[:, :, None] * sums[:, None]
        eigenvalues = np.linalg.eigvalsh(products)
        noise = eigenvalues[:, -1:] * max(maps.n_heads, n_keys) * np.finfo(np.float64).eps
        singular = np.sqrt(np.where(eigenvalues > noise, eigenvalues, 0.0))  # below is rounding, some of it negative
        found += float(np.exp(entropies(singular / singular.sum(axis=-1, keepdims=True))).sum())
    return found / int(real_queries(maps).sum())
