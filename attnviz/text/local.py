"""Find the source that `--dataset` names: a name, a file or a folder. Knows names and endings, not file contents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from attnviz.bounded import exists, expand_path
from attnviz.errors import InvalidSource
from attnviz.registry import load, suggest_name
from attnviz.text import ENDINGS, NAMES, replace_surrogates
from attnviz.text.acl_imdb import is_acl_imdb, open_acl_imdb
from attnviz.text.saved import is_saved, open_saved
from attnviz.text.source import SPLIT_NAMES, Row, Rows, Source, check_total_size
from attnviz.text.tables import describe_columns

READABLE_ENDINGS = ", ".join(plugin.name for plugin in ENDINGS)

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+", re.ASCII)
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}", re.ASCII)  # .csv, but not the .5 of org/model-1.5
_SHARD = re.compile(r"(?P<split>.+)-[0-9]{5}-of-(?P<count>[0-9]{5})")  # how the hub names the parts of a split


def open_source(name: str, wanted: str | None) -> Source:
    """Open the source `name`; a file that exists is never taken for a name on the hub. Raises InvalidSource."""
    for plugin in NAMES:
        if plugin.name == name:
            source: Source = load(plugin)(wanted)
            return source
    path = expand_path(name, InvalidSource)
    if name and exists(path):
        if path.is_dir():
            return _open_folder(path, wanted)
        _find_reader(path)  # refuses an unknown ending before anything is opened
        return _make_source({_find_split_name(path) or "train": [path]}, wanted, _make_title(path))
    if name.startswith((".", "/", "~")) or name.endswith(("/", "\\")) or _ENDING.fullmatch(path.suffix):
        raise InvalidSource(f"no file or folder {name}")
    if _HUB_NAME.fullmatch(name):
        from attnviz.text.hub import open_hub  # it imports the hub's library, which local files do without

        return open_hub(name, wanted)
    raise InvalidSource(
        f"no data set {name!r}",
        hint=f"{suggest_name(name, [p.name for p in NAMES])} A file, a folder or org/name on the hub also works.",
    )


def _open_folder(path: Path, wanted: str | None) -> Source:
    if is_saved(path):
        return open_saved(path, wanted, _make_title(path))
    if is_acl_imdb(path):
        return open_acl_imdb(path, wanted, _make_title(path))
    for folder in (path, *_find_only_subfolder(path)):  # a copy of a repository on the hub has its files one level down
        files = _group_by_split(folder)
        if files:
            return _make_source(files, wanted, _make_title(path))
    raise InvalidSource(
        f"no data set in the folder {path}",
        hint=f"It needs train and test files ({READABLE_ENDINGS}), aclImdb's folders, or what datasets saved.",
    )


def _group_by_split(folder: Path) -> dict[str, list[Path]]:
    """Return the files of each split. Raises InvalidSource for a split that occurs twice or lacks numbered parts."""
    found: dict[str, list[Path]] = {}
    for path in _list_entries(folder):
        split = _find_split_name(path)
        if (
            split is not None
            and not path.name.startswith(".")
            and path.suffix.lower() in {plugin.name for plugin in ENDINGS}
            and path.is_file()
        ):
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


def _make_source(files: dict[str, list[Path]], wanted: str | None, title: str) -> Source:
    def stream(split: str, needed: int | None = None) -> Iterator[Row]:
        return chain.from_iterable(_find_reader(path)(path, wanted, needed) for path in files[split])

    def read(split: str, needed: int | None) -> Rows:
        return list(islice(check_total_size(stream(split, needed), f"{title} {split}"), needed))

    notices = dict.fromkeys(notice for paths in files.values() for notice in describe_columns(paths[0], wanted))
    return Source(title, tuple(sorted(files, key=_rank_split)), read, tuple(notices), stream=stream)


def _find_reader(path: Path) -> Callable[[Path, str | None, int | None], Iterable[Row]]:
    for plugin in ENDINGS:
        if plugin.name == path.suffix.lower():
            reader: Callable[[Path, str | None, int | None], Iterable[Row]] = load(plugin)
            return reader
    raise InvalidSource(
        f"{path}: its ending does not say what it holds", hint=f"Endings that can be read: {READABLE_ENDINGS}."
    )


def _find_split_name(path: Path) -> str | None:
    shard = _SHARD.fullmatch(path.stem)
    if shard:
        return shard["split"]
    return path.stem.lower() if path.stem.lower() in SPLIT_NAMES else None


def _rank_split(split: str) -> tuple[int, str]:
    return (SPLIT_NAMES.index(split) if split in SPLIT_NAMES else len(SPLIT_NAMES), split)


def _find_only_subfolder(folder: Path) -> Iterator[Path]:
    folders = [path for path in _list_entries(folder) if path.is_dir() and not path.name.startswith(".")]
    if len(folders) == 1:
        yield folders[0]


def _list_entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise InvalidSource(f"{folder} cannot be read: {error.strerror}") from error


def _make_title(path: Path) -> str:
    """Return the last part of the path, also of `.` and `..`."""
    named = path if path.name not in ("", "..") else path.resolve()
    return replace_surrogates(named.name or str(named))
