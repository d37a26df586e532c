"""The pictures of a survey: how numbers are spread over texts, and attention by distance. Knows `survey`."""

from __future__ import annotations

from collections.abc import Iterator

from attnviz.report import Curve, Curves, Distribution, Distributions, Line, Picture, Sample
from attnviz.survey import ABLATION, MASS_BITS, Survey, SurveyMeasure
from attnviz.views.patterns import FOR_LABELS

MAX_CHARTS, MAX_SAMPLES = 4, 32
MAX_LINES = 12  # of one chart


def survey_pictures(survey: Survey) -> Iterator[Picture]:
    """Violins of up to four measures, layer by layer where there are many heads; then curves, a line per head."""
    of_heads = [each for each in survey.info.measures if each.level == "head" and each.name not in FOR_LABELS]
    measures = [each for each in of_heads if not each.name.startswith(ABLATION)][:MAX_CHARTS]
    if measures and survey.summary.n_texts > 1:
        yield from _distributions(survey, measures)
    yield _distance(survey)


def _distributions(survey: Survey, measures: list[SurveyMeasure]) -> Iterator[Distributions]:
    info, n_layers = survey.info, len(survey.info.layer_numbers)
    at_once = max(1, min(n_layers, MAX_SAMPLES // info.n_heads))
    for first in range(0, n_layers, at_once):
        layers = range(first, min(first + at_once, n_layers))
        name = "distributions" if at_once >= n_layers else f"distributions-layer-{info.layer_numbers[first]}"
        charts = tuple(
            Distribution(m.title, "head", f"{m.title} ({m.unit})", tuple(_samples(survey, m, layers))) for m in measures
        )
        n, n_sampled = survey.summary.n_texts, len(survey.summary.hashes)
        said = f"each head over {n:,} texts" if n == n_sampled else f"each head over {n_sampled:,} of {n:,} texts"
        yield Distributions(name, said, charts, 2 if len(charts) > 1 else 1)


def _samples(survey: Survey, measure: SurveyMeasure, layers: range) -> Iterator[Sample]:
    info, values = survey.info, survey.summary.sample[:, survey.info.columns[measure.name]]
    for place in range(layers.start * info.n_heads, layers.stop * info.n_heads):
        layer, head = info.heads[place]
        label, group = (f"{layer}.{head}", f"layer {layer}") if len(info.layer_numbers) > 1 else (str(head), "")
        yield Sample(label, group, tuple(values[:, place].tolist()))


def _distance(survey: Survey) -> Curves:
    """A chart per layer. Of many heads those are drawn that have the highest peaks."""
    info = survey.info
    shares = survey.distances / 2**MASS_BITS / max(1, survey.n_queries)
    at = tuple(map(float, range(-info.reach, info.reach + 1)))
    curves = []
    for layer, number in enumerate(info.layer_numbers):
        of_layer = shares[layer * info.n_heads : (layer + 1) * info.n_heads]
        drawn = sorted(range(info.n_heads), key=lambda head: (-of_layer[head].max(), head))[:MAX_LINES]
        lines = tuple(Line(f"head {head}", at, tuple(of_layer[head].tolist())) for head in sorted(drawn))
        curves.append(Curve(f"layer {number}", "key minus query (tokens)", "share of attention", lines))
    return Curves("distance", "attention by distance", tuple(curves))
