"""`attnviz heatmap`."""

from __future__ import annotations

from attnviz.cli import show
from attnviz.specs.heatmap import HeatmapSpec


def heatmap(spec: HeatmapSpec) -> None:
    """Draw who attends to what: one picture per head, an overview, and the numbers.

    Example: attnviz heatmap --text "the cat sat on the mat" --heads 8
    """
    from attnviz.workflows.heatmap import heatmap as draw

    with show.followed() as follow:
        show.drawn(draw(spec, follow), spec.figure)
