"""Data sets of the library `datasets`: from the hub, from the cache of earlier downloads, or folders that it saved."""

import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from huggingface_hub import constants

from attnviz.errors import InvalidSource, raising
from attnviz.store.hub import explain_offline
from attnviz.text.columns import DataTable
from attnviz.text.files import summarize_error
from attnviz.text.source import Source, Wanted, name_swapped

# The library passes on whatever error a damaged folder or a missing file of the cache causes.
_raising = partial(raising, InvalidSource, told=(Exception,), say=summarize_error)
# Modules of `datasets`; the first is an earlier download.
FORMATS = ("cache", "parquet", "arrow", "csv", "json", "text")


def open_imdb(wanted: Wanted) -> Source:
    """Open IMDb from the hub or its cache. Raises InvalidSource."""
    return open_hub("stanfordnlp/imdb", wanted, "imdb")


def open_hub(repository: str, wanted: Wanted, name: str = "") -> Source:
    """Open a data set from the hub or its cache.

    Raises InvalidSource where neither has a readable data set of this name.
    """
    name = name or repository
    offline = explain_offline("HF_DATASETS_OFFLINE")
    cache = Path(os.environ.get("HF_DATASETS_CACHE") or Path(constants.HF_HOME) / "datasets").expanduser()
    plain = repository.replace("/", "").replace("_", "").lower()  # names are compared loosely, and the library decides
    if offline and not any(path.parts[-4].replace("_", "").lower() == plain for path in cache.glob("*/*/*/*")):
        here = f" (the folder here is --dataset ./{name})" if Path(name).is_dir() else ""
        hint = f"Use a local copy with --dataset PATH{here}, or the packaged --dataset sample."
        raise InvalidSource(f"data set {name!r} is not on this machine, and {offline}", hint=hint)
    import datasets  # takes a second, and only after the hub or the cache was found

    notices = (f"{name}: {offline}, so the copy in the cache is used",) if offline else ()
    switch = partial(mock.patch.object, attribute="HF_HUB_OFFLINE", new=bool(offline))
    with switch(constants), switch(datasets.config):  # both libraries read it before each request
        return as_source(_load(name, repository), wanted, name, notices)


def _load(name: str, repository: str) -> Any:
    import datasets  # see above

    datasets.utils.logging.set_verbosity_error()  # its warnings, such as that of a cached copy, are notices here
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        builder = datasets.load_dataset_builder(repository)
        found = type(builder).__module__.rpartition(".")[2]
        if found not in FORMATS:  # no tables: some readers decode what they find
            problem = f"data set {name!r} is not a table of texts: its files are read as {found}"
            raise InvalidSource(problem, hint=f"Formats that can be read: {', '.join(FORMATS[1:])}.")
        builder.download_and_prepare()
        return builder.as_dataset()
    except InvalidSource:
        raise
    except Exception as error:  # the library passes on every error, from pyarrow's to the network's
        reason = error
        while type(error).__name__ == "DatasetGenerationError" and isinstance(reason.__cause__, Exception):
            reason = reason.__cause__  # the outer message says only that something failed
        hint = "Use a local copy with --dataset PATH, or the packaged --dataset sample."
        raise InvalidSource(f"data set {name!r} cannot be loaded: {summarize_error(reason)}", hint=hint) from error


def open_saved(folder: Path, wanted: Wanted, name: str) -> Source:
    """Open a folder that `datasets` saved. Raises InvalidSource."""
    from datasets import load_from_disk  # takes a second

    with _raising(f"{folder} is not a data set that can be read:"):
        loaded = load_from_disk(str(folder.absolute()))
    return as_source(loaded, wanted, name)


def as_source(loaded: Any, wanted: Wanted, name: str, notices: tuple[str, ...] = ()) -> Source:
    """Wrap a `Dataset` or a `DatasetDict` as a source. A `Dataset` has one split, by its own name or `train`."""
    splits = loaded if isinstance(loaded, dict) else {str(loaded.split or "train").partition("[")[0]: loaded}
    if not splits:
        raise InvalidSource(f"{name} holds no splits")
    tables = {split: _open_table(dataset, name, f"{name} {split}", wanted) for split, dataset in splits.items()}
    notices += next(iter(tables.values())).describe()
    return Source(name, tuple(tables), lambda split: tables[split].read(), notices)


def _open_table(dataset: Any, name: str, where: str, wanted: Wanted) -> DataTable:
    """Open a `Dataset`, which maps its files into memory. In the format "arrow" it decodes nothing."""
    from datasets import ClassLabel, Value

    from attnviz.text.arrow import BATCH_ROWS, is_chat, list_columns, read_rows  # pyarrow, which a refusal does without

    def read_batches(columns: Sequence[str]) -> Iterator[list[Iterator[object]]]:
        with _raising(f"{where} cannot be read:"):
            for batch in dataset.select_columns(list(columns)).with_format("arrow").iter(BATCH_ROWS):
                yield list_columns(batch, columns)

    features = dataset.features
    kinds = {each: type(kind).__name__ for each, kind in features.items()}  # of those that would be decoded
    named = (
        each for each in dataset.data.schema if type(features[each.name]) in (Value, ClassLabel) or is_chat(each.type)
    )
    kinds |= {each.name: each.type for each in named}
    swapped = {each: name_swapped(getattr(features[each], "names", None) or ()) for each in features}
    return DataTable(name, where, dataset.column_names, wanted, partial(read_rows, where, kinds, swapped, read_batches))
