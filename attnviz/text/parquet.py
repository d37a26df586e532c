"""Read data sets in Parquet: only the columns and row groups that are needed. Must not know splits."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
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


def read_parquet(path: Place, wanted: Wanted, needed: int | None) -> Generator[Row, None, None]:
    """Read the rows of a Parquet table in batches, up to the row group that holds the last one needed.

    Raises InvalidSource.
    """
    try:
        with _open_table(path) as table:
            yield from islice(table.read_rows(wanted), needed)
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
                        _check_size(once.metadata.row_group(group), columns, path)
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


def _check_size(group: Any, columns: Sequence[str], path: Place) -> None:
    """Raises InvalidSource for a row group, which is read whole, whose unpacked columns are larger than a data set."""
    found = [group.column(place) for place in range(group.num_columns)]
    size = sum(column.total_uncompressed_size for column in found if column.path_in_schema in columns)
    if size > MAX_TEXTS:
        raise InvalidSource(
            f"{path}: a row group takes {format_bytes(size)}, at most {format_bytes(MAX_TEXTS)} are read"
        )
