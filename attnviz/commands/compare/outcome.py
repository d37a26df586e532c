"""From what was measured to a comparison, and from that to pictures and a report."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from math import isnan

import numpy as np
from jaxtyping import Float

from attnviz.commands.compare.accumulator import ComparisonAccumulator, Numbers
from attnviz.commands.compare.comparison import Comparison, Cost, MeanDifference, ModelComparison
from attnviz.commands.compare.cost import projection_operations, weight_memory, weight_operations
from attnviz.commands.compare.maps import highest, map_pictures, similarity_picture
from attnviz.commands.compare.report import compare_report, compare_rows
from attnviz.commands.compare.spec import CompareSpec
from attnviz.commands.compare.spread import distributions_picture
from attnviz.commands.compare.theory import theory_blocks
from attnviz.errors import InvalidSelection
from attnviz.measures.divergence import jsd
from attnviz.measures.rows import layer_rows
from attnviz.models.protocols import AttentionModel, Classifies
from attnviz.numbers.intervals import MIN_TEXTS, compute_intervals
from attnviz.records import AttentionMaps
from attnviz.records.training_metrics import Prediction
from attnviz.report import Block, HeatmapGrid, Picture, Report
from attnviz.running.metrics import load_model_metrics
from attnviz.selection import find_token, select_numbers
from attnviz.text import decode_argument
from attnviz.views.head_pictures import choose_scale, list_scales

FEW, ALIKE = f"fewer than {MIN_TEXTS} texts", "all texts differ alike"


def describe_model(
    model: AttentionModel, found: Numbers, predictions: tuple[Prediction, ...], seconds: float | None
) -> ModelComparison:
    """One model with all that was measured on it."""
    return ModelComparison(
        name=model.name,
        status=found.status,
        trained=model.trained,
        n_layers=len(found.layer_numbers),  # those that attend
        n_heads=model.n_heads,
        d_model=model.d_model,
        n_parameters=model.n_parameters,
        n_attention_parameters=model.n_attention_parameters,
        n_tokens=float(np.mean(found.n_tokens)),
        cost=_cost(model, found) if found.self_attention else None,
        per_head={name: np.stack(values) for name, values in found.per_head.items()},
        layer_numbers=found.layer_numbers,
        per_layer={name: np.stack(values) for name, values in found.per_layer.items()},
        answers=model.answers if isinstance(model, Classifies) else None,
        predictions=predictions,
        tested=None if (metrics := load_model_metrics(model)) is None else metrics.tested,
        seconds=seconds,
    )


def _cost(model: AttentionModel, found: Numbers) -> Cost:
    n_tokens, n_layers = np.array(found.n_tokens), len(found.layer_numbers)
    ours = model.n_attention_parameters  # models of others may project otherwise, and share keys between heads
    return Cost(
        projections=None if ours is None else n_layers * projection_operations(n_tokens, model.d_model),
        weights=n_layers * weight_operations(n_tokens, model.d_model),
        memory=n_layers * weight_memory(n_tokens, model.n_heads),
    )


def comparison(texts: str, tally: ComparisonAccumulator, found: Sequence[ModelComparison]) -> Comparison:
    """Each model against the first, with intervals where there are several texts."""
    first, *others = found
    names = [measure.name for measure in tally.shown]
    values = [np.stack([model.per_text(name) for name in names], axis=1) for model in found]
    differences = [_differences(of_model - values[0]) for of_model in values[1:]]
    right: tuple[MeanDifference, ...] = ()  # over the texts that both judge
    if first.right is not None and all(other.right is not None for other in others):
        apart = [(each := np.asarray(other.right) - first.right)[~np.isnan(each)] for other in others]
        right = tuple(_differences(each[:, None])[0].within(1.0) for each in apart if len(each))
    return Comparison(
        models=tuple(found),
        texts=texts,
        texts_sha256=hashlib.sha256(" ".join(tally.texts).encode()).hexdigest(),
        n_tokens=np.array(tally.n_tokens),
        n_in_text=np.array(tally.n_in_text),
        merged=tally.merged,
        left_out=tuple(np.mean(tally.left_out, axis=0).tolist()) if tally.left_out else (),
        measures=tally.shown,
        uniform={name: np.array(by_text) for name, by_text in tally.uniform.items()},
        differences={name: tuple(of_model[i] for of_model in differences) for i, name in enumerate(names)},
        right=right,
        divergences=tally.mean_divergences,
    )


def pictures_of(spec: CompareSpec, whole: Comparison, last: Sequence[AttentionMaps]) -> tuple[Picture, ...]:
    """Of one text its maps, of several how the measures are spread; of all how alike the heads are.

    `last` are the maps of the last text. Raises InvalidSelection for a layer or query that is not there.
    """
    drawn: list[Picture] = []
    if whole.n_texts == 1:
        layers = find_shared_layers(spec, last)
        names = [model.name for model in whole.models]
        drawn += map_pictures(last, names, whole.slugs, layers, choose_query(spec, last, layers[-1]), spec.figure.scale)
    else:
        drawn += _spread(whole)
    if whole.divergences is not None and len(whole.divergences) > 1:
        drawn.append(similarity_picture(whole.divergences, whole.head_names))
    return tuple(_in_columns(each, spec.figure.columns) for each in drawn)


# What only some comparisons show is imported when they do.


def _spread(whole: Comparison) -> list[Picture]:
    spread = distributions_picture(whole)
    return [] if spread is None else [spread]


def _theory(whole: Comparison, kernel: int) -> tuple[Block, ...]:
    first = whole.models[0]
    return theory_blocks(round(first.n_tokens), first.d_model, kernel)


def _in_columns(picture: Picture, n_columns: int | None) -> Picture:
    if not isinstance(picture, HeatmapGrid):
        return picture
    return replace(picture, n_columns=n_columns or picture.n_columns, reflows=n_columns is None)


def report_of(
    spec: CompareSpec, whole: Comparison, drawn: Sequence[Picture], last: Sequence[AttentionMaps]
) -> tuple[Report, tuple[tuple[str, ...], ...]]:
    """The report, and its numbers as rows."""
    extent = highest(drawn), len(last[0].keys)
    scales = choose_scale(spec.figure.scale, *extent), *list_scales(*extent)
    theory = _theory(whole, spec.kernel) if spec.theory else ()
    return compare_report(whole, drawn, scales, theory, spec), tuple(compare_rows(whole))


def _differences(apart: Float[np.ndarray, "text number"]) -> tuple[MeanDifference, ...]:
    means: list[float] = apart.mean(axis=0).tolist()
    if len(apart) < MIN_TEXTS:
        return tuple(MeanDifference(mean, no_interval=FEW) for mean in means)
    bounds = compute_intervals(apart).T.tolist()
    return tuple(
        MeanDifference(mean, no_interval=ALIKE) if isnan(low) else MeanDifference(mean, low, high)
        for mean, (low, high) in zip(means, bounds, strict=True)
    )


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
