"""Read data sets in Parquet: only the columns and row groups that are needed. Must not know splits."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow
from pyarrow import parquet

from attnviz.bounded import format_bytes, parse_json
from attnviz.errors import InvalidSource
from attnviz.text.archives import Place
from attnviz.text.arrow import BATCH_ROWS, ArrowTable
from attnviz.text.files import open_file, summarize_error
from attnviz.text.labels import name_swapped
from attnviz.text.source import MAX_TEXTS, Row, Wanted


def read_parquet(path: Place, wanted: Wanted) -> Generator[Row, None, None]:
    """Read the rows of a Parquet table, a row group at a time. Raises InvalidSource."""
    try:
        with _open_table(path) as table:
            yield from table.read_rows(wanted)
    finally:
        pyarrow.default_memory_pool().release_unused()  # else the memory of a whole row group is never released


def describe_parquet(path: Place, wanted: Wanted) -> tuple[str, ...]:
    """Say which columns are read where that is not plain. Raises nothing: errors are raised where the file is read."""
    with suppress(InvalidSource), _open_table(path) as table:
        return tuple(f"{path.name}: {note}" for note in table.choose_columns(wanted).notes)
    return ()


@contextmanager
def _open_table(path: Place) -> Iterator[ArrowTable]:
    try:
        with open_file(path) as raw, parquet.ParquetFile(raw) as file:
            schema = file.schema_arrow

            def read_batches(columns: Sequence[str]) -> Iterator[Any]:
                # A text that is repeated stays one text: a small file may repeat a long one millions of times.
                with parquet.ParquetFile(raw, metadata=file.metadata, read_dictionary=list(columns)) as once:
                    for group in range(once.num_row_groups):
                        of_group = once.metadata.row_group(group)
                        parts = [of_group.column(place) for place in range(of_group.num_columns)]
                        # A row group is read whole.
                        size = sum(each.total_uncompressed_size for each in parts if each.path_in_schema in columns)
                        if size > MAX_TEXTS:
                            found = f"{path}: a row group takes {format_bytes(size)}"
                            raise InvalidSource(f"{found}, at most {format_bytes(MAX_TEXTS)} are read")
                        yield from once.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns)

            def find_swapped(column: str) -> Mapping[object, str]:
                """Return the names of classes that `datasets` wrote into the file, where they are not in order."""
                with suppress(KeyError, TypeError, ValueError, RecursionError):
                    info = parse_json((schema.metadata or {})[b"huggingface"])
                    return name_swapped(info["info"]["features"][column]["names"])
                return {}

            yield ArrowTable(str(path), schema.names, lambda name: schema.field(name).type, find_swapped, read_batches)
    except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as error:
        raise InvalidSource(f"{path} is not a readable Parquet file: {summarize_error(error)}") from error
