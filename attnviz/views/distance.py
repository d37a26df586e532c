"""Attention by distance as charts: how much of it goes how far. Knows records."""

from collections.abc import Iterator, Mapping, Sequence
from math import nan

import numpy as np
from jaxtyping import Float64

from attnviz.display import pluralize
from attnviz.measures.shares import DistanceBands, measure_distance_bands
from attnviz.records import AttentionMaps
from attnviz.report import Chart, Charts
from attnviz.views.head_pictures import Place, name_within_layer

N_COLUMNS = 4
EQUAL = "all keys alike"


def distance_curves(maps: AttentionMaps, places: Sequence[Place], *, whole: bool = True) -> Iterator[Charts]:
    """Yield for each layer a chart of each head: the median over queries, and the range of their middle half.

    They count every token; where others of the record's pictures do not show all, which are not `whole`, that is said.
    Raises InvalidOption for attention from one text to another.
    """
    layers = dict.fromkeys(layer for layer, _ in places)
    for layer in layers:
        found, number = measure_distance_bands(maps, layer), maps.layer_numbers[layer]
        n_queries = found.shares.shape[1]
        of = f"{n_queries:,}" if n_queries == found.n_real else f"{n_queries:,} of {found.n_real:,}"
        over = f"median and quartiles over {of} {pluralize(found.n_real, 'queries')}"
        over += "" if whole else ", hidden tokens included"
        heads = [head for of_layer, head in places if of_layer == layer]
        highest = float(max(_compute_quartiles(found)[-1, heads].max(), _average_equal(found).max()))
        yield Charts(
            "distance" if len(layers) == 1 else f"distance-layer-{number}",
            f"attention by distance, layer {number}: {over}",
            tuple(_draw_chart(found, head, name_within_layer(maps, (layer, head)), highest) for head in heads),
            N_COLUMNS,
        )


def distance_data(maps: AttentionMaps, layers: Sequence[int], heads: Sequence[int]) -> Mapping[str, object]:
    """Return the same for machines: from which distance each band is, and quartiles [layer][head][band][3]."""
    found = [measure_distance_bands(maps, layer) for layer in layers]
    quartiles = np.stack([_compute_quartiles(each)[:, list(heads)] for each in found])
    return {"from": found[0].starts, "quartiles": np.moveaxis(quartiles, 1, -1)}


def _draw_chart(found: DistanceBands, head: int, title: str, highest: float) -> Chart:
    low, middle, high = (each.tolist() for each in _compute_quartiles(found)[:, head])
    at, equal = found.starts.astype(float).tolist(), _average_equal(found).tolist()
    labels = [f"{share:.2f}" if place == np.argmax(middle) else "" for place, share in enumerate(middle)]
    attention = zip(at, middle, ["attention"] * len(at), labels, low, high, strict=True)
    return Chart(
        kind="line",
        title=title,
        x_axis="tokens away, up to twice as many",
        y_axis="share of attention",
        columns=("x", "y", "group", "label", "low", "high"),
        rows=(*attention, *((x, share, EQUAL, "", nan, nan) for x, share in zip(at, equal, strict=True))),
        quiet=(EQUAL,),
        doubling=True,
        y_range=(0.0, highest),
    )


def _compute_quartiles(found: DistanceBands) -> Float64[np.ndarray, "quartile head band"]:
    return np.asarray(np.quantile(found.shares, (0.25, 0.5, 0.75), axis=1))


def _average_equal(found: DistanceBands) -> Float64[np.ndarray, " band"]:
    return np.asarray(np.median(found.equal, axis=0))
