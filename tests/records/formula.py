"""Attention worked out from factors by its formula, in float64, for all tests that hold faster ways against it."""

import numpy as np
import pytest

from attnviz.records import factors, walk
from attnviz.records.factors import Factors


def by_formula(of: Factors) -> tuple[np.ndarray, np.ndarray]:
    """The log-sum-exp [head, query] and the weights [head, query, key] of a layer."""
    n_heads, n_queries = of.query.shape[:2]
    n_groups, n_keys = of.key.shape[:2]
    distances = np.arange(n_keys) - np.arange(n_queries)[:, None]
    back, forward = (n_keys if reach is None else reach for reach in of.window)
    allowed = (distances >= -back) & (distances <= forward)
    if of.attendable_keys is not None:
        allowed &= of.attendable_keys
    keys = of.key.astype(float).repeat(n_heads // n_groups, axis=0)
    scores = of.scale * of.query.astype(float) @ keys.swapaxes(1, 2)
    if of.bias is not None:
        farthest = of.bias.shape[1] // 2
        scores += of.bias[:, distances.clip(-farthest, farthest) + farthest]
    scores = np.where(allowed, scores, -np.inf)
    log_sum_exp = np.logaddexp.reduce(scores, axis=-1)
    return log_sum_exp, np.exp(scores - log_sum_exp[..., None])


def take_small_steps(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    """Walks over weights go block by block even in short texts."""
    monkeypatch.setattr(walk, "CELLS_AT_ONCE", cells)
    monkeypatch.setattr(walk, "MIN_ROWS", 5)
    monkeypatch.setattr(factors, "PRODUCTS_AT_ONCE", 100)
    monkeypatch.setattr(walk, "KEYS_AT_ONCE", 7)
