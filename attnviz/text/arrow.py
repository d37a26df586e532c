"""Tables whose columns Arrow holds: Parquet files, folders of `datasets`, what it loads from the hub.

A feature of `datasets` such as Image, Audio, Video, Pdf or Array2D decodes bytes when a row is read, by libraries that
choose a format by content: Pillow starts Ghostscript for PostScript. So a column is read only where its type is plain,
which is checked before any row is, and values are what Arrow stores, never what `datasets` makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import repeat
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
TEXTS = (types.is_string, types.is_large_string, types.is_string_view)
LABELS = (*TEXTS, types.is_integer, types.is_floating, types.is_boolean)


@dataclass(frozen=True, eq=False)
class ArrowTable:
    """The columns of a table: names, what each holds, and its rows in batches."""

    where: str
    names: Sequence[str]
    kind: Callable[[str], Any]  # of a column: its Arrow type, or the name of a feature that would be decoded
    swapped: Callable[[str], Mapping[object, str]]  # of a column of classes: names that say other than their numbers
    batches: Callable[[Sequence[str]], Iterator[Any]]  # of these columns, each time from the first row on

    def choose_columns(self, wanted: Wanted) -> Columns:
        """Choose the columns of texts and labels. Raises InvalidSource, also where the first holds no text."""
        chosen = choose_columns(self.names, self._list_values, wanted, self.where)
        if not self._is_one_of(TEXTS, chosen.text):
            raise InvalidSource(
                f"{self.where}: {chosen.text!r} holds {self.kind(chosen.text)}, not text",
                hint="Choose another with --text-column.",
            )
        return chosen

    def read_rows(self, wanted: Wanted) -> Iterator[Row]:
        """Yield the rows, read a batch at a time. Raises InvalidSource."""
        chosen = self.choose_columns(wanted)
        text, label = chosen.text, chosen.label
        swapped = self.swapped(label) if label else {}
        row = 0
        for batch in self.batches([text, label] if label else [text]):
            labels = list_values(batch.column(label)) if label else repeat(None, len(batch))
            for value, written in zip(list_values(batch.column(text)), labels, strict=True):
                yield chosen.read_row(
                    value, swapped.get(written, written) if swapped else written, f"{self.where}: row {row}"
                )
                row += 1

    def _list_values(self, column: str) -> Iterator[object]:
        if not self._is_one_of(LABELS, column):
            yield str(self.kind(column))  # which is no label, however much it unpacks to
            return
        swapped = self.swapped(column)
        for batch in self.batches([column]):
            yield from (swapped.get(value, value) if swapped else value for value in list_values(batch.column(column)))

    def _is_one_of(self, plain: Sequence[Callable[[Any], bool]], column: str) -> bool:
        kind = self.kind(column)
        if isinstance(kind, str):
            return False
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return any(is_plain(kind) for is_plain in plain)


def list_values(column: Any) -> Iterator[object]:
    """Return the values of a batch; repeated values are one object."""
    if not hasattr(column, "dictionary"):  # such as a string view, which is not read as a dictionary
        return iter(column.to_pylist())
    used = column.indices.unique()
    texts = dict(zip(used.to_pylist(), column.dictionary.take(used).to_pylist(), strict=True))
    return (texts[place] for place in column.indices.to_pylist())


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
