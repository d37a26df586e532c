"""Heads of a text with too many tokens to be drawn one by one: a cell for each block of weights. Knows records."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from attnviz.measures.shown import Findings, RecordPart
from attnviz.records import holds_factors
from attnviz.report import Heatmap, WeightFactors
from attnviz.views.head_pictures import name_place
from attnviz.views.tokens import label_keys, label_queries, label_token


def draw_pooled_maps(part: RecordPart, measured: Findings) -> Iterator[Heatmap]:
    """Yield one map per head: the mean of the weights of each block.

    A block of queries is called by its first, a block of keys by the one that gets most.
    """
    maps, places = part.maps, part.places
    pools = {layer: found.pooled for layer, found in measured.statistics.items() if found.pooled is not None}
    received = np.sum([measured.statistics[layer].received[head] for layer, head in places], axis=0)
    size = next(iter(pools.values())).size
    starts = range(0, len(maps.keys), size)
    columns = [start + int(received[start : start + size].argmax()) for start in starts]
    rows = list(range(0, len(maps.queries), size))
    row_names, column_names = (
        tuple(label_token(tokens, place) for place in of) for tokens, of in ((maps.queries, rows), (maps.keys, columns))
    )
    for layer, head in places:
        pooled, (name, title) = pools[layer], name_place(maps, (layer, head))
        yield Heatmap(
            name=name,
            title=title,
            values=pooled.mean[head],
            allowed=pooled.allowed,
            rows=row_names,
            columns=column_names,
            row_positions=tuple(rows),
            column_positions=tuple(columns),
            # The largest share, so that no shade is stronger than that of its cells.
            equal=np.maximum.reduceat(measured.equal[layer], rows),
            block=pooled.size,
        )


def add_factors(part: RecordPart, measured: Findings, pictures: tuple[Heatmap, ...]) -> tuple[Heatmap, ...]:
    """Add to pictures what their weights are worked out from, where a record holds that and all tokens are drawn."""
    maps, drawn = part.maps.heads_alone, part.tokens
    if not holds_factors(maps) or (len(drawn.queries), len(drawn.keys)) != (len(maps.queries), len(maps.keys)):
        return pictures
    rows, columns, found = label_queries(maps), label_keys(maps), []
    for picture, (layer, head) in zip(pictures, part.places, strict=True):
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
                equal=measured.equal[layer],
                rows=rows,
                columns=columns,
            )
        found.append(replace(picture, factors=factors))
    return tuple(found)
