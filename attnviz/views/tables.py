"""Attention as tables: one line per head, one line per query. Knows records, measurements and `report`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnviz.records import AttentionMaps, Measurement
from attnviz.report import Column, Table
from attnviz.views.tokens import labels, token

Cell = str | int | float


def heads_table(
    maps: AttentionMaps, measurements: Sequence[Measurement], layers: Sequence[int], heads: Sequence[int]
) -> Table:
    """One line per head: its numbers, and the pair with the largest weight, of equal ones the earliest."""
    columns = (
        Column("layer"),
        Column("head"),
        *(
            Column(m.name.replace("_", " "), m.unit, digits=3 if m.unit in ("nats", "share") else 2)
            for m in measurements
        ),
        Column("strongest pair"),
        Column("weight"),
    )
    rows: list[tuple[Cell, ...]] = []
    for layer, head in ((layer, head) for layer in layers for head in heads):
        numbers = (float(m.values[layer, head]) for m in measurements)
        rows.append((layer, head, *numbers, *_strongest(maps, layer, head)))
    return Table("heads", "heads", "heads", columns, tuple(rows))


def top_table(maps: AttentionMaps, layer: int, head: int, top_k: int) -> Table:
    """One line per query that is not padding: its `top_k` keys, largest weight first, of equal ones the earlier.

    A key that may not be attended to is never listed; a query with fewer keys than `top_k` leaves its last cells empty.
    """
    k = min(max(1, top_k), len(maps.keys))
    columns = [Column("query"), Column("token")]
    for rank in range(1, k + 1):
        columns += [Column(f"key {rank}"), Column(f"weight {rank}")]
    queries = labels(maps.queries)
    keys = [token(maps.keys, position) for position in range(len(maps.keys))]
    rows: list[tuple[Cell, ...]] = []
    for query in np.flatnonzero(maps.real_queries).tolist():
        weights = maps.weights[layer, head, query]
        best = largest(weights, np.flatnonzero(maps.attendable[layer, query]), k)
        pairs: list[Cell] = [cell for key in best for cell in (keys[key], float(weights[key]))]
        rows.append((query, queries[query], *pairs, *([""] * 2 * (k - len(best)))))
    title = f"layer {layer}, head {head}: " + (f"top {k} keys of each query" if k > 1 else "top key of each query")
    return Table(f"layer-{layer}-head-{head}-top", title, "top", tuple(columns), tuple(rows))


def largest(weights: np.ndarray, allowed: np.ndarray, k: int) -> list[int]:
    """The `k` allowed positions of largest weight, in order; linear in the number of keys."""
    if len(allowed) > k:
        least = np.partition(weights[allowed], -k)[-k]
        allowed = allowed[weights[allowed] >= least]
    order = np.argsort(-weights[allowed], kind="stable")[:k]
    return [int(key) for key in allowed[order]]


def _strongest(maps: AttentionMaps, layer: int, head: int) -> tuple[str, float]:
    """Among queries that have a choice: the first token of a causal map attends to itself whatever the head does."""
    choosing = maps.real_queries & (maps.attendable[layer].sum(axis=-1) > 1)
    queries = np.flatnonzero(choosing if choosing.any() else maps.real_queries)
    weights = maps.weights[layer, head][queries]
    row, key = (int(i) for i in np.unravel_index(weights.argmax(), weights.shape))
    return f"{token(maps.queries, int(queries[row]))} → {token(maps.keys, key)}", float(weights[row, key])
