"""`attnviz render`: from a saved record to pictures, without the model."""

from __future__ import annotations

from pathlib import Path

from attnviz import store
from attnviz.specs import RenderSpec
from attnviz.workflows.drawing import Drawing, Drawn


def render(spec: RenderSpec) -> Drawn:
    """Draw a record. Raises BadRecord when the file is not one."""
    drawing = Drawing.of(spec)
    return drawing.draw(store.load(spec.record), Path(spec.out))
