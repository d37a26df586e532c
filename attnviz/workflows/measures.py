"""`attnviz measures`: the table of measures."""

from __future__ import annotations

from attnviz.specs.batch import MeasuresSpec
from attnviz.views.measures import measures_report
from attnviz.workflows import Events, Result


def measures(spec: MeasuresSpec) -> Events:
    """What each measure says, its unit and its source."""
    return iter((Result(measures_report()),))
