"""The pictures of a comparison: maps of one text side by side, how measures are spread over several, like heads.

Knows records, `comparison` and `report`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, floor

import numpy as np

from attnviz.commands.compare.comparison import MAX_NAME_LENGTH, Comparison
from attnviz.commands.compare.spec import CompareSpec
from attnviz.display import escape_for_display, name_measure
from attnviz.errors import InvalidSelection
from attnviz.measures.divergence import Divergences, jsd, order_by_likeness, to_similarity
from attnviz.measures.rows import layer_rows
from attnviz.records import AttentionMaps, Tokens
from attnviz.report import Chart, Charts, Heatmap, HeatmapGrid, Picture, Scale
from attnviz.selection import find_token, select_numbers
from attnviz.specs import ScaleKind
from attnviz.views.captions import SIMILARITY
from attnviz.views.head_pictures import choose_columns, lift_scale
from attnviz.views.tokens import label_tokens, quote_token

MAX_CHARTS, MAX_SAMPLES = 4, 32  # measures that are drawn, and heads
PREFERRED = ("effective_keys", "entropy", "distance", "peak")  # drawn first
HEAD_AXIS = "head"
STEPS = 20  # of 1, at which scales of similarity begin and end
FROM_0 = 0.5  # of heads that are less alike, the scale begins at 0


def pictures_of(spec: CompareSpec, whole: Comparison, last: Sequence[AttentionMaps]) -> tuple[Picture, ...]:
    """Draw a comparison. `last` are the maps of the last text.

    Raises InvalidSelection for a layer or query that is not there.
    """
    drawn: list[Picture] = []
    if whole.n_texts == 1:
        layers = find_shared_layers(spec.layer, last)
        names = [model.name for model in whole.models]
        query = choose_query(spec.query, last, layers[-1])
        drawn += map_pictures(last, names, whole.slugs, layers, query, spec.figure.scale)
    elif spread := distributions_picture(whole):
        drawn.append(spread)
    if whole.divergences is not None and len(whole.divergences) > 1:
        drawn.append(similarity_picture(whole.divergences, whole.head_names))
    for place, each in enumerate(drawn):
        if isinstance(each, HeatmapGrid):
            asked = spec.figure.columns
            drawn[place] = replace(each, n_columns=asked or each.n_columns, reflows=asked is None)
    return tuple(drawn)


def distributions_picture(whole: Comparison) -> Charts | None:
    """Draw how up to four measures of each head are spread over texts; None of too many heads to see."""
    of_heads = [measure for measure in whole.measures if measure.level == "head"]
    chosen = sorted(of_heads, key=lambda measure: (*PREFERRED, measure.name).index(measure.name))[:MAX_CHARTS]
    if not chosen or len(whole.heads) > MAX_SAMPLES:
        return None
    names = tuple(
        f"{model.layer_numbers[layer]}.{head}" if model.n_layers > 1 else str(head)
        for model, layer, head in whole.heads
    )
    charts = []
    for measure in chosen:
        values = {model: whole.per_head(model, measure.name) for model in whole.models}
        rows = tuple(
            (place, value, model.label)
            for place, (model, layer, head) in enumerate(whole.heads)
            for value in values[model][:, layer, head].tolist()
        )
        axes = name_measure(measure.name), "head", name_measure(measure.name, measure.unit)
        charts.append(Chart("box", *axes, ("x", "y", "group"), rows, names))
    title = f"each head over {whole.n_texts:,} texts"
    return Charts("distributions", title, tuple(charts), 2 if len(charts) > 1 else 1)


def find_shared_layers(asked: Sequence[str], last: Sequence[AttentionMaps]) -> tuple[int, ...]:
    """Select the layers that are asked for, by number, of those that all models have."""
    shared = sorted(set.intersection(*(set(maps.layer_numbers) for maps in last)))
    if not shared:
        raise InvalidSelection("no layer of one number attends in all models", hint="Compare them on several texts.")
    return tuple(shared[place] for place in select_numbers(asked, shared, "layer"))


def choose_query(asked: str | None, last: Sequence[AttentionMaps], layer: int) -> int:
    """Choose the query asked for, else the one on which the heads of all models differ most from their mean."""
    if asked is not None:
        return find_token(asked, last[0].queries.pieces)
    rows = np.concatenate([layer_rows(maps, maps.layer_numbers.index(layer)) for maps in last])
    apart = jsd(rows, rows.mean(axis=0)).mean(axis=0)
    return int(np.flatnonzero(last[0].real_queries)[int(apart.argmax())])


def map_pictures(
    several: Sequence[AttentionMaps],
    names: Sequence[str],
    slugs: Sequence[str],
    layers: Sequence[int],
    query: int,
    scale: ScaleKind = "lift",
) -> tuple[Picture, ...]:
    """Build for each layer every map on one scale, the differences from the first model, one query in every head.

    The models have the same tokens. Of a model with several heads their mean stands first.
    """
    assert all(maps.weights.shape[2:] == several[0].weights.shape[2:] for maps in several)
    pictures: list[Picture] = []
    names = [escape_for_display(name, MAX_NAME_LENGTH) for name in names]
    for layer in layers:
        at, said = (f"-layer-{layer}", f"layer {layer}") if len(layers) > 1 else ("", "")
        shown = list(_list_maps(several, names, layer))
        panels = tuple(panel for panel, _ in shown)
        title = " · ".join(filter(None, ["all on one scale", said]))
        pictures.append(HeatmapGrid(f"maps{at}", title, panels, choose_columns(len(panels), about=5)))
        first, *others = (_map_layer(maps, "mean", name, layer) for maps, name in zip(several, names, strict=True))
        pictures += [
            _difference(other, first, f"difference{at}-{slug}-{slugs[0]}", said, scale)
            for other, slug in zip(others, slugs[1:], strict=True)
        ]
        pictures.append(_query(several[0].queries, shown, query, f"query-{query}{at}", said))
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
    """Find the largest weight on any of the maps that share the report's scale."""
    shared = [each for each in pictures if isinstance(each, HeatmapGrid | Heatmap) and each.scale is None]
    maps = (one for each in shared for one in (each.maps if isinstance(each, HeatmapGrid) else (each,)))
    return max((float(one.values.max()) for one in maps), default=1.0)


def _list_maps(several: Sequence[AttentionMaps], names: Sequence[str], layer: int) -> Iterator[tuple[Heatmap, str]]:
    """Yield the map of each head, the mean of several heads first, and what it is called as a row."""
    for place, (maps, name) in enumerate(zip(several, names, strict=True)):
        if maps.n_heads > 1:
            yield _map_layer(maps, f"mean-{place}", f"{name}, mean of {maps.n_heads} heads", layer), f"{name} · mean"
        for head, number in enumerate(maps.head_numbers):
            title = f"{name}, head {number}" if maps.n_heads > 1 else f"{name}, its one head"
            yield _map_layer(maps, f"model-{place}-head-{number}", title, layer, head), f"{name} · {number}"


def _map_layer(maps: AttentionMaps, name: str, title: str, layer: int, head: int | None = None) -> Heatmap:
    """Draw one head of a layer, or the mean of all of them."""
    at = maps.layer_numbers.index(layer)
    values = maps.weights[at].mean(axis=0) if head is None else maps.weights[at, head]
    return Heatmap(name, title, values, maps.attendable[at], label_tokens(maps.queries), label_tokens(maps.keys))


def _difference(of: Heatmap, first: Heatmap, name: str, said: str, kind: ScaleKind) -> Heatmap:
    """Subtract the means of two models, on a scale around 0.

    Of the multiples that both maps show it is how often one doubles into the other, from 1/16 to 16 times; on any other
    scale the weights of one minus those of the other.
    """
    multiples = lift_scale()
    doublings = kind == multiples.kind
    if doublings:
        shades = (np.clip(each.shade(multiples), multiples.low, multiples.high) for each in (of, first))
        of_this, of_first = map(np.log2, shades)
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


def _query(tokens: Tokens, shown: Sequence[tuple[Heatmap, str]], query: int, name: str, said: str) -> Heatmap:
    """Build the map of one query's attention: a row for each head of each model."""
    if not 0 <= query < len(tokens):
        raise InvalidSelection(f"no query {query}", hint=f"This text has queries 0 to {len(tokens) - 1}.")
    first, _ = shown[0]
    what = " · ".join(filter(None, [f"what query {quote_token(tokens, query)} attends to, head by head", said]))
    return Heatmap(
        name,
        what,
        values=np.stack([panel.values[query] for panel, _ in shown]),
        allowed=np.tile(first.allowed[query], (len(shown), 1)),
        rows=tuple(label for _, label in shown),
        columns=first.columns,
        row_axis=HEAD_AXIS,
    )
