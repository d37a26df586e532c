"""Which pictures a comparison has: maps of one text, how measures are spread over several, and how alike heads are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attnviz.commands.compare.comparison import Comparison
from attnviz.commands.compare.maps import map_pictures, similarity_picture
from attnviz.commands.compare.spec import CompareSpec
from attnviz.errors import InvalidSelection
from attnviz.measures.divergence import jsd
from attnviz.measures.rows import layer_rows
from attnviz.records import AttentionMaps
from attnviz.report import Distribution, Distributions, HeatmapGrid, Picture, Sample
from attnviz.selection import find_token, select_numbers
from attnviz.text import decode_argument
from attnviz.views.measure_order import MAX_CHARTS, MAX_SAMPLES, rank


def pictures_of(spec: CompareSpec, whole: Comparison, last: Sequence[AttentionMaps]) -> tuple[Picture, ...]:
    """Draw a comparison. `last` are the maps of the last text.

    Raises InvalidSelection for a layer or query that is not there.
    """
    drawn: list[Picture] = []
    if whole.n_texts == 1:
        layers = find_shared_layers(spec, last)
        names = [model.name for model in whole.models]
        drawn += map_pictures(last, names, whole.slugs, layers, choose_query(spec, last, layers[-1]), spec.figure.scale)
    elif spread := distributions_picture(whole):
        drawn.append(spread)
    if whole.divergences is not None and len(whole.divergences) > 1:
        drawn.append(similarity_picture(whole.divergences, whole.head_names))
    n_columns = spec.figure.columns
    return tuple(
        replace(each, n_columns=n_columns or each.n_columns, reflows=n_columns is None)
        if isinstance(each, HeatmapGrid)
        else each
        for each in drawn
    )


def distributions_picture(whole: Comparison) -> Distributions | None:
    """Draw how up to four measures of each head are spread over texts; None of too many heads to see."""
    of_heads = [measure for measure in whole.measures if measure.level == "head"]
    chosen = sorted(of_heads, key=lambda measure: rank(measure.name))[:MAX_CHARTS]
    if not chosen or len(whole.heads) > MAX_SAMPLES:
        return None
    charts = []
    for measure in chosen:
        values = {model: whole.per_head(model, measure.name) for model in whole.models}
        samples = tuple(
            Sample(
                label=f"{model.layer_numbers[layer]}.{head}" if model.n_layers > 1 else str(head),
                group=model.label,
                values=tuple(values[model][:, layer, head].tolist()),
            )
            for model, layer, head in whole.heads
        )
        charts.append(Distribution(measure.name, "head", f"{measure.name} ({measure.unit})", samples))
    title = f"each head over {whole.n_texts:,} texts"
    return Distributions("distributions", title, tuple(charts), 2 if len(charts) > 1 else 1)


def find_shared_layers(spec: CompareSpec, last: Sequence[AttentionMaps]) -> tuple[int, ...]:
    """The numbers of those that are asked for, of the layers that all models have."""
    shared = sorted(set.intersection(*(set(maps.layer_numbers) for maps in last)))
    if not shared:
        raise InvalidSelection("no layer of one number attends in all models", hint="Compare them on several texts.")
    return tuple(shared[place] for place in select_numbers(spec.layer, shared, "layer"))


def choose_query(spec: CompareSpec, last: Sequence[AttentionMaps], layer: int) -> int:
    """The one asked for, else the one on which the heads of all models differ most from their mean."""
    if spec.query is not None:
        return find_token(decode_argument(spec.query), last[0].queries.pieces)
    rows = np.concatenate([layer_rows(maps, maps.layer_numbers.index(layer)) for maps in last])
    apart = jsd(rows, rows.mean(axis=0)).mean(axis=0)
    return int(np.flatnonzero(last[0].real_queries)[int(apart.argmax())])
