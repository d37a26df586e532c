"""The measures as a report. Knows their table."""

from __future__ import annotations

from collections.abc import Iterable

from attnviz.measures import ALL, DEFAULT_MEASURES, MEASURES, Measure
from attnviz.report import Column, Note, Report, Table

EACH_HEAD, ALL_HEADS = "each head", "all heads of a layer"
COLUMNS = (Column("name"), Column("what it says"), Column("unit"), Column("source"))


def measures_report() -> Report:
    """List every measure in the order of the table, those of each head before those of all heads of a layer."""
    needing = [measure.name for measure in MEASURES if measure.self_attention_only]
    return Report(
        title="measures of attention",
        subtitle="numbers of one text's attention weights",
        blocks=(
            _measures_table("each-head", EACH_HEAD, (measure for measure in MEASURES if measure.level == "head")),
            _measures_table("all-heads", ALL_HEADS, (measure for measure in MEASURES if measure.level == "layer")),
            Note(
                f"--measure NAME chooses, --measure {ALL} takes all. Where nothing is chosen: "
                f"{', '.join(DEFAULT_MEASURES)}."
            ),
            Note(f"Only of a text that attends to itself: {', '.join(needing)}."),
        ),
        data={
            "measures": [
                {
                    "name": measure.name,
                    "says": measure.help,
                    "unit": measure.unit,
                    "of": ALL_HEADS if measure.level == "layer" else EACH_HEAD,
                    "self_attention_only": measure.self_attention_only,
                    "headline": measure.name in DEFAULT_MEASURES,
                    "source": measure.source,
                }
                for measure in MEASURES
            ]
        },
    )


def _measures_table(name: str, of: str, measures: Iterable[Measure]) -> Table:
    rows = tuple((measure.name, measure.help, measure.unit, measure.source) for measure in measures)
    return Table(name, f"of {of}", "facts", COLUMNS, rows)
