"""`attnviz render`: from a saved record, or saved weights, to pictures, without the model."""

from dataclasses import replace
from math import inf
from pathlib import Path

from attnviz import store
from attnviz.commands.render.spec import RenderSpec
from attnviz.inputs import Inputs
from attnviz.registry import load
from attnviz.running import Events
from attnviz.running.drawing import Drawing


def render(spec: RenderSpec, inputs: Inputs) -> Events:
    """Draw a record, or weights, of which the record is written, too."""
    is_record, notices = "record" in inputs.files, ()
    drawing = Drawing.from_options(spec.figure, spec.printing)
    if not is_record and "weights" not in inputs.files:
        of_run = Path(spec.record), drawing.pictures, inputs.out, spec.figure.title
        yield from load("attnviz.monitor.report:render_run")(*of_run)
        return
    if is_record:
        maps = store.load(inputs.files["record"], inf)
    else:
        maps, notices = load("attnviz.commands.render.weights:read_maps")(spec)  # torch comes with it
    with store.locked(inputs.out):
        drawn = yield from drawing.draw(maps, inputs.out, with_record=not is_record)
        yield replace(drawn, notices=(*notices, *drawn.notices))
