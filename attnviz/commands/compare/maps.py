"""One text's maps under several models, as pictures side by side. Knows records and `report`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor

import numpy as np

from attnviz.display import escape_for_display
from attnviz.errors import InvalidSelection
from attnviz.measures.divergence import Divergences, order_by_likeness, to_similarity
from attnviz.measures.rollout import find_reachable, rollout  # models of one layer have none
from attnviz.records import AttentionMaps
from attnviz.report import Heatmap, HeatmapGrid, Picture, Scale
from attnviz.shapes import Cells, Shown
from attnviz.specs import ScaleKind
from attnviz.views.head_pictures import lift_scale, rollout_scale, rollout_title
from attnviz.views.likeness import SIMILARITY
from attnviz.views.tokens import label_tokens, quote_token

HEAD_AXIS = "head"
MAX_NAME_LENGTH = 24
STEPS = 20  # of 1, at which scales of similarity begin and end
FROM_0 = 0.5  # of heads that are less alike, the scale begins at 0


def map_pictures(
    several: Sequence[AttentionMaps],
    names: Sequence[str],
    slugs: Sequence[str],
    layers: Sequence[int],
    query: int,
    scale: ScaleKind = "lift",
) -> tuple[Picture, ...]:
    """For each layer number: every map on one scale, the differences from the first model, one query in every head.

    The models have the same tokens. Of a model with several heads their mean stands first.
    """
    assert all(maps.weights.shape[2:] == several[0].weights.shape[2:] for maps in several)
    pictures: list[Picture] = []
    names = [escape_for_display(name, MAX_NAME_LENGTH) for name in names]
    for layer in layers:
        at = f"-layer-{layer}" if len(layers) > 1 else ""
        said = f"layer {layer}" if len(layers) > 1 else ""
        panels = _panels(several, names, layer)
        pictures.append(
            HeatmapGrid(
                f"maps{at}", " · ".join(filter(None, ["all on one scale", said])), panels, _columns(len(panels))
            )
        )
        means = [
            _map(
                maps, f"mean-{i}", name, maps.weights[_at(maps, layer)].mean(axis=0), maps.attendable[_at(maps, layer)]
            )
            for i, (maps, name) in enumerate(zip(several, names, strict=True))
        ]
        pictures += [
            _difference(means[i], means[0], f"difference{at}-{slugs[i]}-{slugs[0]}", said, scale)
            for i in range(1, len(means))
        ]
        pictures.append(_query(several, names, layer, query, f"query-{query}{at}", said))
    if any(maps.n_layers > 1 for maps in several):
        pictures.append(_rollout(several, names, scale))
    return tuple(pictures)


def similarity_picture(divergences: Divergences, names: Sequence[str]) -> Heatmap:
    """Draw how alike each two of several heads are, like ones side by side, each pair once and none with itself."""
    order = list(order_by_likeness(divergences))
    once = np.tri(len(order) - 1, dtype=bool)
    similar = np.where(once, to_similarity(divergences[np.ix_(order[1:], order[:-1])]), 0.0)
    least = float(similar[once].min())
    low = 0.0 if least < FROM_0 else floor(round(STEPS * min(least, 1 - 1 / STEPS), 6)) / STEPS
    high = max(ceil(round(STEPS * float(similar.max()), 6)) / STEPS, low + 1 / STEPS)
    begins = f" (scale from {low:.2f}, not from 0)" if low else ""
    return Heatmap(
        name="similarity",
        title="which heads are alike",
        values=similar.astype(np.float32),
        allowed=once,
        rows=tuple(names[place] for place in order[1:]),
        columns=tuple(names[place] for place in order[:-1]),
        row_axis=HEAD_AXIS,
        column_axis=HEAD_AXIS,
        scale=Scale("shared", low, high, f"similarity: {SIMILARITY}{begins}"),
        footnote="each pair of heads once, in an order in which like ones stand together (average linkage)",
    )


def highest(pictures: Sequence[Picture]) -> float:
    """The largest weight on any of the maps that share the report's scale."""
    maps = [
        m
        for p in pictures
        if isinstance(p, HeatmapGrid | Heatmap) and p.scale is None
        for m in (p.maps if isinstance(p, HeatmapGrid) else (p,))
    ]
    return max((float(each.values.max()) for each in maps), default=1.0)


def _panels(several: Sequence[AttentionMaps], names: Sequence[str], layer: int) -> tuple[Heatmap, ...]:
    panels = []
    for i, (maps, name) in enumerate(zip(several, names, strict=True)):
        weights, allowed = maps.weights[_at(maps, layer)], maps.attendable[_at(maps, layer)]
        if maps.n_heads > 1:
            title = f"{name}, mean of {maps.n_heads} heads"
            panels.append(_map(maps, f"mean-{i}", title, weights.mean(axis=0), allowed))
        panels += [
            _map(maps, f"model-{i}-head-{number}", _title(maps, name, number), weights[head], allowed)
            for head, number in enumerate(maps.head_numbers)
        ]
    return tuple(panels)


def _title(maps: AttentionMaps, name: str, head: int) -> str:
    return f"{name}, head {head}" if maps.n_heads > 1 else f"{name}, its one head"


def _map(maps: AttentionMaps, name: str, title: str, values: Cells, allowed: Shown) -> Heatmap:
    return Heatmap(name, title, values, allowed, label_tokens(maps.queries), label_tokens(maps.keys))


def _difference(of: Heatmap, first: Heatmap, name: str, said: str, kind: ScaleKind) -> Heatmap:
    """The means of two models on a scale around 0: of the multiples that both maps show, how often one doubles into the
    other, from 1/16 to 16 times; on any other scale the weights of one minus those of the other.
    """
    multiples = lift_scale()
    doublings = kind == multiples.kind
    if doublings:
        of_this, of_first = (
            np.log2(np.clip(each.shade(multiples), multiples.low, multiples.high)) for each in (of, first)
        )
        values, most = of_this - of_first, float(np.log2(multiples.high / multiples.low))
        apart = f"{of.title} over {first.title}"
        label = f"log₂ of the ratio of multiples, {apart} (equal shares, each 1 to {multiples.high:g} ×)"
    else:
        values = of.values - first.values
        most, apart = float(np.abs(values[of.allowed]).max()), f"{of.title} minus {first.title}"
        label = f"difference of weight, {apart}"
    what = " · ".join(filter(None, [f"{apart}, means of heads", said]))
    scale = Scale("diverging", -most, most, label, doublings)
    return Heatmap(name, what, values, of.allowed, of.rows, of.columns, scale=scale)


def _query(
    several: Sequence[AttentionMaps], names: Sequence[str], layer: int, query: int, name: str, said: str
) -> Heatmap:
    """One query's attention: a row for each head of each model."""
    tokens = several[0].queries
    if not 0 <= query < len(tokens):
        raise InvalidSelection(f"no query {query}", hint=f"This text has queries 0 to {len(tokens) - 1}.")
    rows = list(_query_rows(several, names, layer, query))
    values = np.stack([weights for _, weights in rows])
    what = " · ".join(filter(None, [f"what query {quote_token(tokens, query)} attends to, head by head", said]))
    columns = label_tokens(several[0].keys)
    allowed = np.tile(several[0].attendable[_at(several[0], layer), query], (len(rows), 1))
    return Heatmap(name, what, values, allowed, tuple(label for label, _ in rows), columns, row_axis=HEAD_AXIS)


def _query_rows(
    several: Sequence[AttentionMaps], names: Sequence[str], layer: int, query: int
) -> Iterator[tuple[str, np.ndarray]]:
    for maps, name in zip(several, names, strict=True):
        weights = maps.weights[_at(maps, layer), :, query]
        if maps.n_heads > 1:
            yield f"{name} · mean", weights.mean(axis=0)
        for head, number in enumerate(maps.head_numbers):
            yield f"{name} · {number}", weights[head]


def _rollout(several: Sequence[AttentionMaps], names: Sequence[str], scale: ScaleKind) -> HeatmapGrid:
    """What is left of each token after all layers, on a scale of its own: these are no weights of attention."""
    rolled = [rollout(maps).astype(np.float32) for maps in several]
    high = max(float(each.max()) for each in rolled)
    panels = [
        _map(maps, f"rollout-{place}", name, values, find_reachable(maps))
        for place, (maps, name, values) in enumerate(zip(several, names, rolled, strict=True))
    ]
    return HeatmapGrid(
        "rollout", rollout_title(several), tuple(panels), _columns(len(panels)), rollout_scale(scale, high, several)
    )


def _at(maps: AttentionMaps, layer: int) -> int:
    """The place of a layer in a record."""
    return maps.layer_numbers.index(layer)


def _columns(n_maps: int) -> int:
    """As many maps in a row as leave the fewest places empty: about five."""
    return n_maps if n_maps <= 5 else min((5, 4, 6), key=lambda n_columns: -n_maps % n_columns)
