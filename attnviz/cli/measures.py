"""`attnviz measures`."""

from __future__ import annotations

from attnviz.cli import show
from attnviz.specs.batch import MeasuresSpec


def measures(spec: MeasuresSpec) -> None:
    """List the measures of attention: what each says, its unit and its source.

    Example: attnviz measures --json
    """
    from attnviz.views.measures import measures_report

    show.report(measures_report(), spec.json)
