"""What `attnviz render` reads and writes."""

from __future__ import annotations

import filecmp
from pathlib import Path

from attnviz import store
from attnviz.bounded import is_file
from attnviz.commands.render.spec import RenderSpec
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs
from attnviz.models.sizes import Work, check_memory
from attnviz.running.drawing import Drawing, check_factored_room


def render_inputs(spec: RenderSpec) -> Inputs:
    """Check one record, and that the folder holds no other. Raises InvalidRecord, TooLarge or InvalidOption."""
    drawing = Drawing.from_options(spec.figure)
    n_layers, n_heads, n_queries, n_keys = store.read_record_shape(spec.record)
    drawing.check_number(n_layers, n_heads)
    if store.is_factored(spec.record):
        held = store.count_record_bytes(spec.record)
        check_factored_room((n_layers * n_heads, n_queries, n_keys), held, spec.max_memory)
    else:
        check_memory(Work(n_queries, n_keys, n_heads, n_layers), spec.max_memory)
    folder = store.check_output_folder(spec.figure.out)
    there = folder / store.RECORD
    if is_file(there) and not filecmp.cmp(there, spec.record, shallow=False):
        raise InvalidOption(f"{folder} holds another record and its pictures", hint="Choose another --out.")
    return Inputs(files={"record": Path(spec.record)}, folder=folder)
