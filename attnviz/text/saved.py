"""Data sets of the library `datasets`: folders that it saved, and what it loads from the hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from attnviz.errors import InvalidSource
from attnviz.text.columns import Columns, choose_columns
from attnviz.text.files import summarize_error
from attnviz.text.labels import name_swapped
from attnviz.text.source import Row, Source, Wanted, check_total_size

BATCH_ROWS = 4096  # rows in memory at a time
_SAVED_FILES = ({"dataset_dict.json"}, {"dataset_info.json", "state.json"})  # files that save_to_disk leaves


def is_saved(folder: Path) -> bool:
    """Return whether a folder was saved by `datasets`."""
    return any(all((folder / name).is_file() for name in names) for names in _SAVED_FILES)


def open_saved(folder: Path, wanted: Wanted, name: str) -> Source:
    """Open a folder that `datasets` saved. Raises InvalidSource."""
    import datasets  # takes a second, which other folders do without

    try:
        loaded = datasets.load_from_disk(str(folder.absolute()))
    except Exception as error:  # the library passes on whatever error a damaged folder causes
        raise InvalidSource(f"{folder} is not a data set that can be read: {summarize_error(error)}") from error
    return as_source(loaded, wanted, name)


def as_source(loaded: Any, wanted: Wanted, name: str, notices: tuple[str, ...] = ()) -> Source:
    """Wrap a `Dataset` or a `DatasetDict` as a source. A `Dataset` has one split, by its own name or `train`."""
    splits = loaded if isinstance(loaded, dict) else {str(loaded.split or "train").partition("[")[0]: loaded}

    def stream(split: str, needed: int | None = None) -> Iterator[Row]:
        return _read_rows(splits[split], wanted, needed, f"{name} {split}")

    def read(split: str, needed: int | None) -> list[Row]:
        return list(check_total_size(stream(split, needed), f"{name} {split}"))

    with suppress(InvalidSource):  # raised where the rows are read
        first = next(iter(splits))
        notices += tuple(f"{name}: {note}" for note in _choose_columns(splits[first], wanted, f"{name} {first}").notes)
    return Source(name, tuple(splits), read, notices, stream)


def _choose_columns(dataset: Any, wanted: Wanted, where: str) -> Columns:
    def list_values(column: str) -> Iterator[object]:
        swapped = _find_swapped(dataset, column)
        for values in _read_batches(dataset.select_columns([column]), len(dataset), where):
            yield from (swapped.get(value, value) if swapped else value for value in values[column])

    return choose_columns(dataset.column_names, list_values, wanted, where)


def _read_rows(dataset: Any, wanted: Wanted, needed: int | None, where: str) -> Iterator[Row]:
    """Yield the rows with few in memory at a time: `datasets` maps its files into memory."""
    chosen = _choose_columns(dataset, wanted, where)
    text, label = chosen.text, chosen.label
    swapped = _find_swapped(dataset, label) if label else {}
    end, row = len(dataset) if needed is None else min(needed, len(dataset)), 0
    for columns in _read_batches(dataset.select_columns([text, label] if label else [text]), end, where):
        labels = columns[label] if label else [None] * len(columns[text])
        for value, written in zip(columns[text], labels, strict=True):
            yield chosen.read_row(value, swapped.get(written, written) if swapped else written, f"{where}[{row}]")
            row += 1


def _find_swapped(dataset: Any, column: str) -> dict[object, str]:
    return name_swapped(getattr(dataset.features[column], "names", None) or ())


def _read_batches(dataset: Any, end: int, where: str) -> Iterator[Any]:
    for start in range(0, end, BATCH_ROWS):
        try:
            yield dataset[start : min(start + BATCH_ROWS, end)]
        except Exception as error:  # such as a missing file of the cache: the library passes on every error
            raise InvalidSource(f"{where} cannot be read: {summarize_error(error)}") from error
