"""`attnviz render`: from a saved record to pictures, without the model."""

from __future__ import annotations

from pathlib import Path

from attnviz import store
from attnviz.errors import BadOption
from attnviz.specs.render import RenderSpec
from attnviz.workflows.drawing import Drawing, Drawn


def render(spec: RenderSpec) -> Drawn:
    """Draw a record. Raises BadRecord when the file is not one, BadOption where pictures of another one lie."""
    drawing = Drawing.of(spec.figure)
    maps = store.load(spec.record)
    folder = store.output_folder(spec.figure.out)
    there = folder / store.RECORD
    if there.is_file() and there.read_bytes() != Path(spec.record).read_bytes():
        raise BadOption(f"{folder} holds another record and its pictures", hint="Choose another --out.")
    with store.locked(folder):
        return drawing.draw(maps, folder, with_record=False)
