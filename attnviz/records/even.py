"""Attention that makes no choice, by factors: what a walk would add up is known beforehand. Knows numpy and factors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float32, Float64, Int

from attnviz.records.factored import Factors
from attnviz.records.walk import Queries, WalkedRows


def evenly(factors: Factors, n_allowed: Int[np.ndarray, " query"]) -> EvenFactors:
    """One head whose queries attend alike to all keys that those of `factors` may attend to, so many of each."""
    query, key = (np.zeros((1, each.shape[1], 1), dtype=np.float32) for each in (factors.query, factors.key))
    log_sum_exp = np.log(n_allowed, dtype=np.float32)[None]
    return EvenFactors(query, key, log_sum_exp, factors.scale, None, factors.window, factors.attendable_keys)


@dataclass(frozen=True, eq=False)
class EvenFactors(Factors):
    """Of scores that are all 0: a walk needs no product and no exponential."""

    def walk(self, head: int, several: Iterable[Queries]) -> Iterator[WalkedRows]:
        """See `AttentionMaps.walk`."""
        return (self._walked(queries) for queries in several)

    @cached_property
    def _cumulated(self) -> tuple[Int[np.ndarray, " edge"], Int[np.ndarray, " edge"]]:
        """Before each key, and behind the last: how many may be attended to, and the sum of their positions."""
        there = self.keys_mask.astype(np.int64)
        counts, positions = np.cumsum(there), np.cumsum(there * np.arange(len(there)))
        return np.concatenate([[0], counts]), np.concatenate([[0], positions])

    def _walked(self, queries: Queries) -> WalkedRows:
        n_queries, n_keys = self.query.shape[1], self.key.shape[1]
        places = np.arange(n_queries)[queries]
        counts, positions = self._cumulated
        back, forward = (n_queries + n_keys if reach is None else reach for reach in self.window)
        first, own, end = (np.clip(each, 0, n_keys) for each in (places - back, places, places + forward + 1))
        before, behind = counts[own] - counts[first], counts[end] - counts[own]
        apart = places * (before - behind) - 2 * positions[own] + positions[first] + positions[end]
        log_sum_exp = self.log_sum_exp[0, places]
        weights = np.exp(-log_sum_exp)
        sums = (before + behind) * weights.astype(np.float64)
        return WalkedRows(
            sums=sums,
            entropies=sums * log_sum_exp,
            peaks=weights.astype(np.float64),
            peak_keys=np.searchsorted(counts, counts[first], side="right") - 1,
            distances=apart * weights.astype(np.float64),
            tiles=[EvenTile(self, queries, first, end, weights)],
        )


@dataclass(frozen=True, eq=False)
class EvenTile:
    """Rows that are alike but for which keys they reach."""

    factors: EvenFactors
    queries: Queries
    first: Int[np.ndarray, " query"]  # key that each attends to
    end: Int[np.ndarray, " query"]  # of its keys
    weights: Float32[np.ndarray, " query"]

    @property
    def keys(self) -> slice:
        """All of them."""
        return slice(0, self.factors.key.shape[1])

    def received(self, shares: Float64[np.ndarray, " query"]) -> Float64[np.ndarray, " key"]:
        """See `Tile`."""
        each, n_edges = shares * self.weights, self.keys.stop + 1
        begins, ends = (np.bincount(edge, each, n_edges) for edge in (self.first, self.end))
        return np.asarray(np.cumsum(begins - ends)[:-1] * self.factors.keys_mask)

    def rows(self) -> Float32[np.ndarray, "query key"]:
        """See `Tile`."""
        return np.asarray(self.factors.allowed(self.queries) * self.weights[:, None])

    def times(self, factors: Float64[np.ndarray, " query"]) -> EvenTile:
        """See `Tile`."""
        return replace(self, weights=(self.weights * factors).astype(np.float32))
