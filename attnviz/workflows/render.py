"""`attnviz render`: from a saved record to pictures, without the model."""

from __future__ import annotations

import filecmp
from math import inf
from pathlib import Path

from attnviz import store
from attnviz.errors import InvalidOption
from attnviz.inputs import is_file
from attnviz.measures.rows import MAX_DRAWN
from attnviz.models.sizes import BASE, FLOAT32, ONE_TOKEN, Work, check_memory, check_room
from attnviz.result import Events
from attnviz.specs.render import RenderSpec
from attnviz.workflows.drawing import Drawing

COPIES = 3  # of a record of q and k: the file, and what rows are worked out from


def render(spec: RenderSpec) -> Events:
    """Draw a record.

    Raises InvalidRecord when the file is not one, TooLarge before it is read, InvalidOption where pictures of another
    one lie.
    """
    drawing = Drawing.of(spec.figure)
    n_layers, n_heads, n_queries, n_keys = store.record_shape(spec.record)
    drawing.check_number(n_layers, n_heads)
    if store.is_factored(spec.record):
        drawn = min(n_layers * n_heads * n_queries * n_keys, MAX_DRAWN)
        needed = BASE + COPIES * Path(spec.record).stat().st_size + ONE_TOKEN * n_queries + 2 * FLOAT32 * drawn
        check_room("the record and its pictures", needed, spec.max_memory)
    else:
        check_memory(Work(n_queries, n_keys, n_heads, n_layers), spec.max_memory)
    folder = store.output_folder(spec.figure.out)
    there = folder / store.RECORD
    if is_file(there) and not filecmp.cmp(there, spec.record, shallow=False):
        raise InvalidOption(f"{folder} holds another record and its pictures", hint="Choose another --out.")
    return _drawn(spec, drawing, folder)


def _drawn(spec: RenderSpec, drawing: Drawing, folder: Path) -> Events:
    maps = store.load(spec.record, inf)
    with store.locked(folder):
        yield (yield from drawing.draw(maps, folder, with_record=False))
