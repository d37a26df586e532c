"""Heads of a text with too many tokens to be drawn one by one: a cell for each block of weights. Knows records."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attnviz.measures.rows import PooledMaps, choose_pool_size, compute_statistics, count_attendable
from attnviz.records import AttentionMaps, holds_factors
from attnviz.report import Heatmap, WeightFactors
from attnviz.shapes import PerRow
from attnviz.views.head_pictures import Place, name_place
from attnviz.views.tokens import TokenSelection, label_keys, label_queries, label_token


def pool_layer(maps: AttentionMaps, layer: int) -> PooledMaps:
    """Return the pooled maps of a layer (see `needs_pooling`)."""
    found = compute_statistics(maps, layer, with_pools=True).pooled
    assert found is not None
    return found


def draw_pooled_maps(maps: AttentionMaps, places: Sequence[Place]) -> tuple[Heatmap, ...]:
    """Draw one map per head: the mean of the weights of each block.

    A block of queries is called by its first, a block of keys by the one that gets most.
    """
    received = np.sum([compute_statistics(maps, layer).received[head] for layer, head in places], axis=0)
    size, starts = choose_pool_size(maps), range(0, len(maps.keys), choose_pool_size(maps))
    columns = [start + int(received[start : start + size].argmax()) for start in starts]
    rows = list(range(0, len(maps.queries), size))
    row_names, column_names = (
        tuple(label_token(tokens, place) for place in of) for tokens, of in ((maps.queries, rows), (maps.keys, columns))
    )
    found = []
    for layer, head in places:
        pooled, (name, title) = pool_layer(maps, layer), name_place(maps, (layer, head))
        picture = Heatmap(
            name=name,
            title=title,
            values=pooled.mean[head],
            allowed=pooled.allowed,
            rows=row_names,
            columns=column_names,
            row_positions=tuple(rows),
            column_positions=tuple(columns),
            # The largest share, so that no shade is stronger than that of its cells.
            equal=np.maximum.reduceat(_compute_equal_shares(maps, layer), rows),
            block=pooled.size,
        )
        found.append(picture)
    return tuple(found)


def _compute_equal_shares(maps: AttentionMaps, layer: int) -> PerRow:
    """Return the equal share of each query (see `Heatmap.equal_share`), 0 for padding."""
    of_query = np.zeros(len(maps.queries), dtype=np.float32)
    of_query[maps.real_queries] = 1 / count_attendable(maps, layer)
    return of_query


def add_factors(
    maps: AttentionMaps, places: Sequence[Place], part: TokenSelection, pictures: tuple[Heatmap, ...]
) -> tuple[Heatmap, ...]:
    """Add to pictures what their weights are worked out from, where a record holds that and all tokens are drawn."""
    maps = maps.heads_alone
    if not holds_factors(maps) or (len(part.queries), len(part.keys)) != (len(maps.queries), len(maps.keys)):
        return pictures
    rows, columns, found = label_queries(maps), label_keys(maps), []
    for picture, (layer, head) in zip(pictures, places, strict=True):
        of = maps.factors[layer]
        factors = None  # of a mean, which has none
        if head < maps.n_heads:
            factors = WeightFactors(
                query=of.query[head],
                key=of.select_keys(head),
                log_sum_exp=of.sums[head],
                scale=of.scale,
                bias=None if of.bias is None else of.bias[head % len(of.bias)],
                window=of.window,
                attendable=of.attendable_keys,
                equal=_compute_equal_shares(maps, layer),
                rows=rows,
                columns=columns,
            )
        found.append(replace(picture, factors=factors))
    return tuple(found)
