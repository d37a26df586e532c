"""Tables as Parquet files, and back from files that somebody else may have written.

A file is somebody else's until it is checked: what its footer promises is bounded before a page is unpacked, columns
have the types that are asked for, and numbers are finite. A string that is repeated is one string in the file and
millions in memory (391 bytes may hold 10 GB), so columns of strings are read as dictionaries and what they would unpack
to is counted first.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from attnviz.bounded import format_bytes
from attnviz.errors import InvalidRecord, raising

INTEGER, NUMBER, TEXT = pa.int64(), pa.float64(), pa.string()  # what columns may hold
INTEGERS, NUMBERS, TEXTS = map(pa.list_, (INTEGER, NUMBER, TEXT))

MAX_FOOTER = 2**26  # bytes of any string in it
MAX_UNPACKED = 2**31  # bytes of all columns


def encode_table(table: pa.Table, about: Mapping[str, str]) -> bytes:
    """Write a table as Parquet, with what it is about in the metadata. The same rows give the same bytes.

    Numbers are split into their bytes before they are packed: exponents, and ends that were rounded off, repeat.
    """
    sink = pa.BufferOutputStream()
    named = table.combine_chunks().replace_schema_metadata(dict(about))
    numbers = [field.name for field in named.schema if pa.types.is_floating(field.type)]
    others = [field.name for field in named.schema if pa.types.is_string(field.type)]
    parquet.write_table(
        named, sink, compression="zstd", use_dictionary=others, use_byte_stream_split=numbers, write_statistics=False
    )
    return bytes(sink.getvalue())


def read_table(
    path: Path, columns: Mapping[str, pa.DataType], others: pa.DataType | None, only: Sequence[str] | None = None
) -> tuple[pa.Table, dict[str, str]]:
    """Read a table and what it is about: these `columns` of these types, and any `others` of one type, or none.

    Types are checked of all columns; of a wide file `only` some may be read.

    Raises InvalidRecord for what is not Parquet, unpacks to more than MAX_UNPACKED, lacks a column, has one of another
    type, or holds a number that is not finite: one that is missing is null.
    """
    told = pa.ArrowException, UnicodeDecodeError, OSError
    with raising(InvalidRecord, f"{path} is not a readable Parquet file:", told=told):
        with parquet.ParquetFile(path, thrift_string_size_limit=MAX_FOOTER) as file:
            metadata = file.metadata
            pages = sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups))
            # what the pages take in memory: the larger of what the footer says and what numbers take
            n_bytes = max(int(pages), 8 * int(metadata.num_rows * metadata.num_columns))
            _check_size(path, n_bytes)
            schema = file.schema_arrow
            _check_types(path, schema, columns, others)
            strings = [field.name for field in schema if pa.types.is_string(field.type)]
        packed = parquet.read_table(
            path, columns=only, read_dictionary=strings, thrift_string_size_limit=MAX_FOOTER, partitioning=None
        )
        schema = pa.schema([schema.field(name) for name in packed.column_names], schema.metadata)
        unpacked = sum(_count_unpacked(packed[name]) for name in strings if name in schema.names)
        _check_size(path, unpacked)
        about = {name.decode(): value.decode() for name, value in (schema.metadata or {}).items()}
    # to the types as they were asked for: those of files call what is in a list otherwise, which other files would tell
    table = packed.cast(pa.schema([(name, columns.get(name, others)) for name in packed.column_names]))
    for field in schema:
        if pa.types.is_floating(field.type) and pc.all(pc.is_finite(table[field.name])).as_py() not in (True, None):
            raise InvalidRecord(
                f"{path}: {field.name!r:.80} holds a number that is not finite", hint="Leave it out: null."
            )
    return table, about


def _check_types(path: Path, schema: pa.Schema, columns: Mapping[str, pa.DataType], others: pa.DataType | None) -> None:
    if missing := [name for name in columns if name not in schema.names]:
        raise InvalidRecord(f"{path} has no column {missing[0]!r}")
    if len(set(schema.names)) < len(schema.names):
        raise InvalidRecord(f"{path} has two columns of one name")
    for field in schema:
        wanted = columns.get(field.name, others)
        if field.type != wanted:
            expected = "is not expected" if wanted is None else f"holds {field.type}, not {wanted}"
            raise InvalidRecord(f"{path}: column {field.name!r:.80} {expected}")


def _check_size(path: Path, n_bytes: int) -> None:
    if n_bytes > MAX_UNPACKED:
        raise InvalidRecord(f"{path} unpacks to {format_bytes(n_bytes)}, at most {format_bytes(MAX_UNPACKED)} are read")


def _count_unpacked(column: Any) -> int:
    """Count the bytes of a column of strings once each row has its own."""
    lengths = [pc.take(pc.binary_length(of.dictionary.cast(pa.binary())), of.indices) for of in column.chunks]
    return sum(int(pc.sum(each).as_py() or 0) for each in lengths)
