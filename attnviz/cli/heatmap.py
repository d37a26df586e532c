"""`attnviz heatmap`."""

from __future__ import annotations

from attnviz.cli import progress, show
from attnviz.options import with_values
from attnviz.specs.heatmap import HeatmapSpec


def heatmap(spec: HeatmapSpec) -> None:
    """Draw who attends to what: one picture per head, an overview, and the numbers.

    Example: attnviz heatmap "the cat sat on the mat" --heads 8
    """
    from attnviz.workflows.heatmap import heatmap as draw

    if spec.inline_text is not None:
        spec = with_values(spec, inline_text=None, text=(spec.inline_text, *spec.text.text))
    with progress.followed() as follow:
        show.drawn(draw(spec, follow), spec.figure)
