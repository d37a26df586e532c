"""The only room that writes files, each one whole or not at all; records and other arrays in and out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attnviz.store.files import append as append
from attnviz.store.files import remove as remove
from attnviz.store.files import write as write
from attnviz.store.folders import OutputFolder as OutputFolder
from attnviz.store.folders import locked as locked
from attnviz.store.folders import make_folder as make_folder
from attnviz.store.folders import new_folder as new_folder
from attnviz.store.folders import output_folder as output_folder
from attnviz.store.folders import refuse_existing as refuse_existing
from attnviz.store.folders import refuse_links as refuse_links
from attnviz.store.folders import remove_folder as remove_folder
from attnviz.store.folders import replacing as replacing

if TYPE_CHECKING:
    from attnviz.store.arrays import arrays_bytes as arrays_bytes
    from attnviz.store.arrays import read_arrays as read_arrays
    from attnviz.store.records import RECORD as RECORD
    from attnviz.store.records import SCHEMA as SCHEMA
    from attnviz.store.records import held_bytes as held_bytes
    from attnviz.store.records import is_factored as is_factored
    from attnviz.store.records import load as load
    from attnviz.store.records import read_record as read_record
    from attnviz.store.records import record_bytes as record_bytes
    from attnviz.store.records import record_shape as record_shape
    from attnviz.store.records import save as save
    from attnviz.store.records import write_record as write_record


def __getattr__(name: str) -> Any:
    """What concerns arrays is imported on first use: numpy comes with it, and a folder is refused without."""
    for room in map(import_module, ("attnviz.store.records", "attnviz.store.arrays")):  # the second where it is needed
        if hasattr(room, name):
            return getattr(room, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
