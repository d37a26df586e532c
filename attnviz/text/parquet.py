"""Read data sets in Parquet: only the columns and row groups that are needed. Must not know splits."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from itertools import islice, repeat
from typing import Any

import pyarrow
from pyarrow import parquet, types

from attnviz.bounded import format_bytes, parse_json
from attnviz.errors import InvalidSource
from attnviz.text.archives import Place
from attnviz.text.columns import Columns, choose_columns
from attnviz.text.files import open_file, summarize_error
from attnviz.text.labels import name_swapped
from attnviz.text.source import MAX_TEXTS, Row, Wanted

BATCH_ROWS = 4096  # rows in memory at a time


def read_parquet(path: Place, wanted: Wanted, needed: int | None) -> Generator[Row, None, None]:
    """Read the rows of a Parquet table in batches. Raises InvalidSource."""
    try:
        with open_file(path) as raw, parquet.ParquetFile(raw) as file:
            chosen = _choose_columns(file, raw, wanted, path)
            _check_type(file.schema_arrow.field(chosen.text).type, chosen.text, path)
            # A text that is repeated stays one text: a small file may repeat a long one millions of times.
            repeated = [chosen.text, *([chosen.label] if chosen.label else [])]
            with parquet.ParquetFile(raw, metadata=file.metadata, read_dictionary=repeated) as once:
                yield from islice(_read_rows(once, chosen, path, needed), needed)
    except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as error:
        raise InvalidSource(f"{path} is not a readable Parquet file: {summarize_error(error)}") from error
    finally:
        pyarrow.default_memory_pool().release_unused()  # else the memory of a whole row group is never released


def describe_parquet(path: Place, wanted: Wanted) -> tuple[str, ...]:
    """Say which columns are read where that is not plain. Raises nothing: errors are raised where the file is read."""
    wrong = suppress(InvalidSource, pyarrow.ArrowException, OSError)
    with wrong, open_file(path) as raw, parquet.ParquetFile(raw) as file:
        return tuple(f"{path.name}: {note}" for note in _choose_columns(file, raw, wanted, path).notes)
    return ()


def _choose_columns(file: Any, raw: Any, wanted: Wanted, path: Place) -> Columns:
    def list_values(column: str) -> Iterator[object]:
        kind = file.schema_arrow.field(column).type
        if types.is_nested(kind):
            yield str(kind)  # which is no label, however much it unpacks to
            return
        swapped = _find_swapped(file, column)
        with parquet.ParquetFile(raw, metadata=file.metadata, read_dictionary=[column]) as once:
            for group in range(once.num_row_groups):
                _check_size(once.metadata.row_group(group), {column}, path)
                for batch in once.iter_batches(BATCH_ROWS, row_groups=[group], columns=[column]):
                    yield from (
                        swapped.get(value, value) if swapped else value for value in _list_values(batch.column(column))
                    )

    return choose_columns(file.schema_arrow.names, list_values, wanted, str(path))


def _check_type(kind: Any, column: str, path: Place) -> None:
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
        raise InvalidSource(f"{path}: {column!r} holds {kind}, not text", hint="Choose another with --text-column.")


def _find_swapped(file: Any, column: str) -> dict[object, str]:
    """Return the names of classes that `datasets` wrote into the file, where they say other than their numbers."""
    with suppress(KeyError, TypeError, ValueError, RecursionError):
        info = parse_json((file.schema_arrow.metadata or {})[b"huggingface"])
        return name_swapped(info["info"]["features"][column]["names"])
    return {}


def _read_rows(file: Any, chosen: Columns, path: Place, needed: int | None) -> Iterator[Row]:
    """Yield the rows, read a batch at a time, up to the end of the row group that holds the last one needed."""
    columns = [chosen.text] + ([chosen.label] if chosen.label else [])
    swapped = _find_swapped(file, chosen.label) if chosen.label else {}
    row = n_before = 0
    for group in range(file.num_row_groups):
        if needed is not None and n_before >= needed:
            return
        n_before += file.metadata.row_group(group).num_rows
        _check_size(file.metadata.row_group(group), set(columns), path)
        for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns):
            texts = _list_values(batch.column(chosen.text))
            labels = _list_values(batch.column(chosen.label)) if chosen.label else repeat(None, len(batch))
            for value, written in zip(texts, labels, strict=True):
                yield chosen.read_row(
                    value, swapped.get(written, written) if swapped else written, f"{path}: row {row}"
                )
                row += 1


def _check_size(group: Any, columns: set[str], path: Place) -> None:
    """Raises InvalidSource for a row group, which is read whole, whose unpacked columns are larger than a data set."""
    found = [group.column(place) for place in range(group.num_columns)]
    size = sum(column.total_uncompressed_size for column in found if column.path_in_schema in columns)
    if size > MAX_TEXTS:
        raise InvalidSource(
            f"{path}: a row group takes {format_bytes(size)}, at most {format_bytes(MAX_TEXTS)} are read"
        )


def _list_values(column: Any) -> Iterator[object]:
    """Return the values of a batch; repeated values are one object."""
    if not hasattr(column, "dictionary"):  # such as a string view, which is not read as a dictionary
        return iter(column.to_pylist())
    used = column.indices.unique()
    texts = dict(zip(used.to_pylist(), column.dictionary.take(used).to_pylist(), strict=True))
    return (texts[place] for place in column.indices.to_pylist())
