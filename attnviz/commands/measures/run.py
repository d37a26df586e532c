"""`attnviz measures`: the table of measures."""

from __future__ import annotations

from attnviz.commands.measures.report import measures_report
from attnviz.commands.measures.spec import MeasuresSpec
from attnviz.running import Events, Result


def measures(spec: MeasuresSpec) -> Events:
    """List what each measure says, its unit and its source."""
    yield Result(measures_report())
