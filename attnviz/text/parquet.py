"""Data sets in Parquet: only the columns and row groups that are needed. Must not know splits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnviz.errors import BadSource
from attnviz.text.files import in_one_line, opened
from attnviz.text.source import Row, as_label, as_text, label_column, text_column


def read_parquet(path: Path, wanted: str | None, needed: int | None) -> list[Row]:
    import pyarrow
    from pyarrow import parquet

    try:
        with opened(path) as raw, parquet.ParquetFile(raw) as file:
            text = text_column(file.schema_arrow.names, wanted, str(path))
            label = label_column(file.schema_arrow.names)
            _check_type(file.schema_arrow.field(text).type, text, path)
            return _rows(_first_rows(file, needed, [text] + ([label] if label else [])), text, label, path)
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise BadSource(f"{path} is not a readable Parquet file: {in_one_line(error)}") from error


def _check_type(kind: Any, column: str, path: Path) -> None:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
        raise BadSource(f"{path}: {column!r} holds {kind}, not text")


def _first_rows(file: Any, needed: int | None, columns: list[str]) -> Any:
    """Whole row groups up to the last row that is needed, then cut to size."""
    groups: list[int] = []
    count = 0
    while len(groups) < file.num_row_groups and (needed is None or count < needed):
        count += file.metadata.row_group(len(groups)).num_rows
        groups.append(len(groups))
    return file.read_row_groups(groups, columns=columns).slice(0, needed)


def _rows(table: Any, text: str, label: str | None, path: Path) -> list[Row]:
    texts = table.column(text).to_pylist()
    labels = table.column(label).to_pylist() if label else [None] * len(texts)
    return [
        (as_text(value, text, f"{path}: row {row}"), as_label(written))
        for row, (value, written) in enumerate(zip(texts, labels, strict=True))
    ]
