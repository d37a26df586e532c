"""How a measure of each head is spread over many texts, as charts. Knows `comparison` and `report`."""

from __future__ import annotations

from attnviz.commands.compare.comparison import Comparison
from attnviz.display import escape_for_display
from attnviz.report import Distribution, Distributions, Sample
from attnviz.views.measure_order import MAX_CHARTS, MAX_SAMPLES, rank


def distributions_picture(comparison: Comparison) -> Distributions | None:
    """A chart for each of up to four measures, a sample for each head; none where there are too many heads to see."""
    of_heads = [measure for measure in comparison.measures if not measure.together]
    chosen = sorted(of_heads, key=lambda measure: rank(measure.name))[:MAX_CHARTS]
    n_heads = sum(len(model.heads) for model in comparison.models)
    if not chosen or n_heads > MAX_SAMPLES:
        return None
    charts = tuple(
        Distribution(measure.name, "head", f"{measure.name} ({measure.unit})", _samples(comparison, measure.name))
        for measure in chosen
    )
    title = f"each head over {comparison.n_texts:,} texts"
    return Distributions("distributions", title, charts, 2 if len(charts) > 1 else 1)


def _samples(comparison: Comparison, measure: str) -> tuple[Sample, ...]:
    return tuple(
        Sample(
            label=f"{model.layer_numbers[layer]}.{head}" if model.n_layers > 1 else str(head),
            group=escape_for_display(model.name, 40),
            values=tuple(model.per_head[measure][:, layer, head].tolist()),
        )
        for model in comparison.models
        for layer, head in model.heads
    )
