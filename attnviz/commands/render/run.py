"""`attnviz render`: from a saved record to pictures, without the model."""

from __future__ import annotations

from math import inf

from attnviz import store
from attnviz.commands.render.spec import RenderSpec
from attnviz.inputs import Inputs
from attnviz.running import Events
from attnviz.running.drawing import Drawing


def render(spec: RenderSpec, inputs: Inputs) -> Events:
    """Draw a record."""
    maps = store.load(spec.record, inf)
    with store.locked(inputs.out):
        yield (yield from Drawing.from_options(spec.figure, spec.printing).draw(maps, inputs.out, with_record=False))
