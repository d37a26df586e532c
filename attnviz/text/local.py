"""Find the source that `--dataset` names: a name, a file or a folder. Knows names and endings, not file contents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from attnviz.bounded import exists, expand_path, is_file
from attnviz.display import list_first, replace_surrogates
from attnviz.errors import InvalidSource
from attnviz.registry import load, suggest_name
from attnviz.text import ENDINGS, NAMES
from attnviz.text.archives import Place, find_member, is_archive, is_compressed, list_entries, open_archive
from attnviz.text.class_folders import (
    find_class_files,
    find_class_folders,
    find_label,
    open_class_files,
    open_class_folders,
)
from attnviz.text.source import SPLIT_NAMES, Row, Source, Wanted
from attnviz.text.tables import describe_table

SAMPLE = Path(__file__).parents[1] / "data" / "sample"  # the packaged reviews
MAX_NAMED = 8  # files in a message
_READERS = {plugin.name: plugin for plugin in ENDINGS}
READABLE_ENDINGS = ", ".join(plugin.name for plugin in ENDINGS)

_SAVED_FILES = ({"dataset_dict.json"}, {"dataset_info.json", "state.json"})  # files that save_to_disk leaves
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+", re.ASCII)
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}", re.ASCII)  # .csv, but not the .5 of org/model-1.5
_SHARD = re.compile(r"(?P<split>.+)-[0-9]{5}-of-(?P<count>[0-9]{5})")  # how the hub names the parts of a split


def open_source(name: str, wanted: Wanted) -> Source:
    """Open the source `name`; a file that exists is never taken for a name on the hub. Raises InvalidSource."""
    for plugin in NAMES:
        if plugin.name == name:
            source: Source = load(plugin)(wanted)
            return source
    path = expand_path(name, InvalidSource)
    place: Place | None = None
    if name and exists(path):
        if any(all(is_file(path / each) for each in names) for names in _SAVED_FILES):
            from attnviz.text.saved import open_saved  # it imports datasets, which takes a second

            return open_saved(path, wanted, _make_title(path))
        place = open_archive(path) if is_archive(path) and not path.is_dir() else path
    elif name:
        place = find_member(path)
    if place is not None:
        return (_open_folder if place.is_dir() else _open_file)(place, wanted, _make_title(path))
    if name.startswith((".", "/", "~")) or name.endswith(("/", "\\")) or _ENDING.fullmatch(path.suffix):
        raise InvalidSource(f"no file or folder {name}")
    if _HUB_NAME.fullmatch(name):
        from attnviz.text.hub import open_hub  # it imports the hub's library, which local files do without

        return open_hub(name, wanted)
    raise InvalidSource(
        f"no data set {name!r}",
        hint=f"{suggest_name(name, [p.name for p in NAMES])} A file, a folder or org/name on the hub also works.",
    )


def open_sample(wanted: Wanted) -> Source:
    """Open the packaged reviews, written for attnviz."""
    return _make_source({split: [SAMPLE / f"{split}.jsonl"] for split in ("train", "test")}, wanted, "sample")


def _open_file(path: Place, wanted: Wanted, title: str) -> Source:
    if path.suffix.lower() in _READERS:
        return _make_source({_find_split_name(path) or "train": [path]}, wanted, title)
    if (label := find_label(path)) is not None:
        beside = find_class_files(path.parent) if isinstance(path, Path) else {}
        pair = beside if path in beside.values() else {label: path}
        return open_class_files(pair, wanted, title)
    raise InvalidSource(
        f"{path}: its ending does not say what it holds", hint=f"Endings that can be read: {READABLE_ENDINGS}."
    )


def _open_folder(path: Place, wanted: Wanted, title: str) -> Source:
    """Open a folder by what is in it, or in its only subfolder: copies of repositories have files one level down."""
    inner = [each for each in _list_entries(path) if each.is_dir()]
    for folder in (path, *(inner if len(inner) == 1 else ())):
        if splits := find_class_folders(folder):
            return open_class_folders(splits, folder, wanted, title)
        if labelled := find_class_files(folder):
            return open_class_files(labelled, wanted, title)
        if files := _group_by_split(folder):
            return _make_source(files, wanted, title)
        readable = [each for each in _list_entries(folder) if each.is_file() and each.suffix.lower() in _READERS]
        if len(readable) == 1:
            return _open_file(readable[0], wanted, title)
        if len(readable) > 1:
            raise InvalidSource(
                f"{folder} holds {len(readable)} files, none of them called train or test",
                hint=f"Name one: {list_first([f'{folder}/{each.name}' for each in readable], MAX_NAMED)}.",
            )
    raise InvalidSource(
        f"no data set in the folder {path}",
        hint=f"It needs train and test files ({READABLE_ENDINGS}), folders neg and pos, or what datasets saved.",
    )


def _group_by_split(folder: Place) -> dict[str, list[Place]]:
    """Return the files of each split. Raises InvalidSource for a split that occurs twice or lacks numbered parts."""
    found: dict[str, list[Place]] = {}
    for path in _list_entries(folder):
        split = _find_split_name(path)
        if split is not None and path.suffix.lower() in _READERS and path.is_file():
            found.setdefault(split, []).append(path)
    for split, paths in found.items():
        shard = _SHARD.fullmatch(paths[0].stem)
        expected = int(shard["count"]) if shard else 1
        if len(paths) != expected or len({path.suffix for path in paths}) > 1:
            held = "1 file" if len(paths) == 1 else f"{len(paths)} files"
            raise InvalidSource(
                f"{folder} holds {held} for the split {split!r} where {expected} should be",
                hint=f"There are {', '.join(path.name for path in paths)}.",
            )
    return found


def _make_source(files: Mapping[str, Sequence[Place]], wanted: Wanted, title: str) -> Source:
    def rows(split: str) -> Iterator[Row]:
        return chain.from_iterable(load(_READERS[path.suffix.lower()])(path, wanted) for path in files[split])

    notices = dict.fromkeys(notice for paths in files.values() for notice in _describe(paths[0], wanted))
    known = [split for split in SPLIT_NAMES if split in files]
    return Source(title, (*known, *sorted({*files} - {*known})), rows, tuple(notices))


def _describe(path: Place, wanted: Wanted) -> tuple[str, ...]:
    if path.suffix.lower() == ".parquet":
        from attnviz.text.parquet import describe_parquet  # it imports pyarrow, which other files do without

        return describe_parquet(path, wanted)
    return describe_table(path, wanted)


def _find_split_name(path: Place) -> str | None:
    shard = _SHARD.fullmatch(path.stem)
    if shard:
        return shard["split"]
    return path.stem.lower() if path.stem.lower() in SPLIT_NAMES else None


def _list_entries(folder: Place) -> list[Place]:
    """List what is in a folder but hidden files; a compressed file is listed as what it holds."""
    return [
        open_archive(each) if isinstance(each, Path) and is_compressed(each) else each for each in list_entries(folder)
    ]


def _make_title(path: Path) -> str:
    """Return the last part of the path, also of `.` and `..`."""
    named = path if path.name not in ("", "..") else path.resolve()
    return replace_surrogates(named.name or str(named))
