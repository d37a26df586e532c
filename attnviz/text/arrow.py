"""Tables whose columns Arrow holds: Parquet files, folders of `datasets`, what it loads from the hub.

A feature of `datasets` such as Image, Audio, Video, Pdf or Array2D decodes bytes when a row is read, by libraries that
choose a format by content: Pillow starts Ghostscript for PostScript. So a column is read only where its type is plain,
which is checked before any row is, and values are what Arrow stores, never what `datasets` makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from pyarrow import types

from attnviz.errors import InvalidSource
from attnviz.text.columns import Columns, choose_columns
from attnviz.text.source import Row, Wanted

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
