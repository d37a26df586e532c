"""Data sets of the library `datasets`: folders that it saved, and what it loads from the hub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from datasets import ClassLabel, Value, load_from_disk

from attnviz.errors import InvalidSource
from attnviz.text.arrow import BATCH_ROWS, ArrowTable
from attnviz.text.files import summarize_error
from attnviz.text.labels import name_swapped
from attnviz.text.source import Source, Wanted


def open_saved(folder: Path, wanted: Wanted, name: str) -> Source:
    """Open a folder that `datasets` saved. Raises InvalidSource."""
    try:
        loaded = load_from_disk(str(folder.absolute()))
    except Exception as error:  # the library passes on whatever error a damaged folder causes
        raise InvalidSource(f"{folder} is not a data set that can be read: {summarize_error(error)}") from error
    return as_source(loaded, wanted, name)


def as_source(loaded: Any, wanted: Wanted, name: str, notices: tuple[str, ...] = ()) -> Source:
    """Wrap a `Dataset` or a `DatasetDict` as a source. A `Dataset` has one split, by its own name or `train`."""
    splits = loaded if isinstance(loaded, dict) else {str(loaded.split or "train").partition("[")[0]: loaded}
    if not splits:
        raise InvalidSource(f"{name} holds no splits")
    tables = {split: _as_table(dataset, f"{name} {split}") for split, dataset in splits.items()}
    with suppress(InvalidSource):  # raised where the rows are read
        notices += tuple(f"{name}: {note}" for note in next(iter(tables.values())).choose_columns(wanted).notes)
    return Source(name, tuple(tables), lambda split: tables[split].read_rows(wanted), notices)


def _as_table(dataset: Any, where: str) -> ArrowTable:
    """Wrap a `Dataset`, which maps its files into memory. In the format "arrow" it decodes nothing."""

    def find_kind(column: str) -> Any:
        feature = dataset.features[column]
        return (
            dataset.data.schema.field(column).type if type(feature) in (Value, ClassLabel) else type(feature).__name__
        )

    def find_swapped(column: str) -> Mapping[object, str]:
        return name_swapped(getattr(dataset.features[column], "names", None) or ())

    def read_batches(columns: Sequence[str]) -> Iterator[Any]:
        try:
            yield from dataset.select_columns(list(columns)).with_format("arrow").iter(BATCH_ROWS)
        except Exception as error:  # such as a missing file of the cache: the library passes on every error
            raise InvalidSource(f"{where} cannot be read: {summarize_error(error)}") from error

    return ArrowTable(where, dataset.column_names, find_kind, find_swapped, read_batches)
