"""Tables whose columns Arrow holds: Parquet files, folders of `datasets`, what it loads from the hub.

A feature of `datasets` such as Image, Audio, Video, Pdf or Array2D decodes bytes when a row is read, by libraries that
choose a format by content: Pillow starts Ghostscript for PostScript. So a column is read only where its type is plain,
which is checked before any row is, and values are what Arrow stores, never what `datasets` makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import pyarrow
from pyarrow import parquet, types

from attnviz.bounded import format_bytes, parse_json
from attnviz.errors import InvalidSource
from attnviz.text.archives import Place
from attnviz.text.columns import Columns, DataTable
from attnviz.text.files import open_file, summarize_error
from attnviz.text.labels import name_swapped
from attnviz.text.source import MAX_TEXTS, Wanted

BATCH_ROWS = 4096  # rows in memory at a time
TEXTS = (types.is_string, types.is_large_string, types.is_string_view)
LABELS = (*TEXTS, types.is_integer, types.is_floating, types.is_boolean)


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrowTable(DataTable):
    """A table by its columns, some of which are read, a batch at a time."""

    kinds: Mapping[str, Any]  # of each column: its Arrow type, or the name of a feature that would be decoded
    swapped: Mapping[str, Mapping[object, str]]  # of columns of classes, names that say other than their numbers
    batches: Callable[[Sequence[str]], Iterator[list[Iterator[object]]]]  # the values of these columns, from row 0 on

    def list_rows(self, columns: Columns) -> Iterator[tuple[str, object, object]]:
        """Yield the rows. Raises InvalidSource, also where the column of texts holds none."""
        if not self._is_one_of(TEXTS, columns.text):
            found = f"{self.where}: {columns.text!r} holds {self.kinds[columns.text]}, not text"
            raise InvalidSource(found, hint="Choose another with --text-column.")
        row = 0
        swapped = self.swapped.get(columns.label or "", {})
        for texts, *labels in self.batches([columns.text, columns.label] if columns.label else [columns.text]):
            for text, label in zip(texts, *labels or [repeat(None)], strict=bool(labels)):
                yield f"{self.where}: row {row}", text, swapped.get(label, label) if swapped else label
                row += 1

    def list_values(self, column: str) -> Iterator[object]:
        """Yield the values of a column; of one that is not plain its type, which is no label."""
        if not self._is_one_of(LABELS, column):
            yield str(self.kinds[column])  # however much it unpacks to
            return
        swapped = self.swapped.get(column, {})
        for (values,) in self.batches([column]):
            yield from (swapped.get(value, value) if swapped else value for value in values)

    def _is_one_of(self, plain: Sequence[Callable[[Any], bool]], column: str) -> bool:
        kind = self.kinds[column]
        if isinstance(kind, str):
            return False
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return any(is_plain(kind) for is_plain in plain)


def list_columns(batch: Any, names: Sequence[str]) -> list[Iterator[object]]:
    """Return the values of some columns of a batch; repeated texts are one object."""
    found = list[Iterator[object]]()
    for column in map(batch.column, names):
        if hasattr(column, "dictionary"):
            used = column.indices.unique()
            texts = dict(zip(used.to_pylist(), column.dictionary.take(used).to_pylist(), strict=True))
            found.append(map(texts.__getitem__, column.indices.to_pylist()))
        else:  # such as a string view, which is not read as a dictionary
            found.append(iter(column.to_pylist()))
    return found


def open_parquet(path: Place, wanted: Wanted) -> ArrowTable:
    """Open a Parquet table, which is read a row group at a time. Raises InvalidSource."""
    with _reading(path) as file:
        schema, metadata = file.schema_arrow, file.metadata

    def read_batches(columns: Sequence[str]) -> Iterator[list[Iterator[object]]]:
        # A text that is repeated stays one text: a small file may repeat a long one millions of times.
        with _reading(path, metadata=metadata, read_dictionary=list(columns)) as file:
            for group in range(metadata.num_row_groups):
                of_group = metadata.row_group(group)
                parts = [of_group.column(place) for place in range(of_group.num_columns)]
                size = sum(each.total_uncompressed_size for each in parts if each.path_in_schema in columns)
                if size > MAX_TEXTS:  # it is read whole
                    found = f"{path}: a row group takes {format_bytes(size)}"
                    raise InvalidSource(f"{found}, at most {format_bytes(MAX_TEXTS)} are read")
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns):
                    yield list_columns(batch, columns)

    swapped = {}
    with suppress(KeyError, TypeError, ValueError, RecursionError, AttributeError):  # what `datasets` wrote into it
        features = parse_json((schema.metadata or {})[b"huggingface"])["info"]["features"]
        swapped = {name: name_swapped(each["names"]) for name, each in features.items() if "names" in each}
    return ArrowTable(
        path.name,
        str(path),
        schema.names,
        wanted,
        kinds=dict(zip(schema.names, schema.types, strict=True)),
        swapped=swapped,
        batches=read_batches,
    )


@contextmanager
def _reading(path: Place, **options: Any) -> Iterator[parquet.ParquetFile]:
    try:
        with open_file(path) as raw, parquet.ParquetFile(raw, **options) as file:
            yield file
    except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as error:
        raise InvalidSource(f"{path} is not a readable Parquet file: {summarize_error(error)}") from error
    finally:
        pyarrow.default_memory_pool().release_unused()  # else the memory of a whole row group is never released
